use serde_json::{Value, json};

use crate::call;
use crate::settings::Settings;

fn usual() -> Settings {
    Settings::read("{}").unwrap()
}

fn prompt(text: &str) -> String {
    json!({"seq": 7, "content": [{"type": "text", "text": text}, {"type": "image"}, {"type": "text", "text": "more"}]})
        .to_string()
}

fn framed(draft: &str) -> String {
    let draft: Value = serde_json::from_str(draft).unwrap();
    assert_eq!(draft["role"], "user");
    draft["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_settings_are_the_rows_or_upstreams() {
    let usual = usual();
    assert_eq!((usual.target_words, usual.target_cjk_characters), (5, 10));
    assert_eq!((usual.max_input_bytes, usual.max_output_tokens), (4096, 64));
    assert_eq!((usual.timeout_ms, usual.route), (60_000, None));
    let own = Settings::read(r#"{"targetWords":3,"provider":"p","model":"m"}"#).unwrap();
    assert_eq!(own.route, Some(("p".to_owned(), "m".to_owned())));
    assert!(call::system(&own).contains("about 3 words"));
    assert_eq!(
        call::config(&own),
        r#"{"provider":"p","model":"m","maxTokens":64}"#
    );
    for (config, word) in [
        (r#"{"targetWords":0}"#, "targetWords"),
        (r#"{"timeoutMs":1.5}"#, "timeoutMs"),
        (r#"{"provider":"p"}"#, "go together"),
        (r#"{"model":""}"#, "model"),
    ] {
        let fault = Settings::read(config).unwrap_err();
        assert!(fault.contains(word), "{fault}");
    }
}

#[test]
fn a_prompt_is_framed_as_data_with_its_seq() {
    let draft = call::draft(&usual(), &prompt("Say \"hi\"\n[1]")).unwrap();
    let text = framed(&draft);
    let (lead, data) = text.split_once('\n').unwrap();
    assert!(lead.ends_with(':'), "{lead}");
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data, json!([{"seq": 7, "text": "Say \"hi\"\n[1]\nmore"}]));
}

#[test]
fn a_prompt_that_takes_more_than_the_row_allows_is_not_asked_about() {
    let length = |text: &str| framed(&call::draft(&usual(), &prompt(text)).unwrap()).len();
    let most = 4096 - length("");
    assert_eq!(length(&"a".repeat(most)), 4096);
    let error = call::draft(&usual(), &prompt(&"a".repeat(most + 1))).unwrap_err();
    assert_eq!(error.code, "LIMIT");
}

#[test]
fn a_title_is_the_texts_of_an_answer_that_stopped_by_itself() {
    let text = |text: &str| json!({"type": "text", "text": text}).to_string();
    let stop = r#"{"kind":"stop"}"#;
    let thought = json!({"type": "reasoning", "text": "hm"}).to_string();
    let title = call::title(stop, &[thought.clone(), text("Mend"), text("the parser")]);
    assert_eq!(title.unwrap(), "Mend the parser");
    let called = json!({"type": "tool-call", "name": "bash"}).to_string();
    for (finish, content) in [
        (r#"{"kind":"max-tokens"}"#, vec![text("Mend the")]),
        (r#"{"kind":"tool-calls"}"#, vec![text("Mend")]),
        (stop, vec![text("Mend"), called]),
        (stop, vec![thought]),
        (stop, vec![text(" \n")]),
        (stop, vec![]),
    ] {
        let error = call::title(finish, &content).unwrap_err();
        assert_eq!(error.code, "INVALID", "{finish} {content:?}");
    }
}
