use super::*;

const IMAGE: &str =
    r#"{"type":"image","attachment":{"attachmentId":"sha256:0123456789abcdef","bytes":1}}"#;

fn view(images: bool) -> View {
    View {
        own_routes: vec![String::from("mine")],
        images,
    }
}

#[test]
fn an_image_becomes_text_for_a_model_that_reads_text_only() {
    let message = format!(
        r#"{{"id":"m","role":"user","content":[{{"type":"text","text":"See "}},{IMAGE},{{"type":"tool-result","toolCallId":"c","content":[{IMAGE}],"isError":false}}],"source":{{"kind":"user"}}}}"#
    );
    assert_eq!(view(true).of(&message), message);
    let shown = view(false).of(&message);
    assert!(
        !shown.contains(r#""image""#) && !shown.contains("89abcdef"),
        "{shown}"
    );
    assert_eq!(shown.matches("sha256:01234567").count(), 2, "{shown}");
    assert!(
        shown.contains(r#""toolCallId":"c","content":[{"type":"text""#),
        "{shown}"
    );
    assert!(
        shown.contains(r#""isError":false"#) && shown.contains(r#"{"type":"text","text":"See "}"#)
    );
}

#[test]
fn a_replay_state_goes_only_back_to_the_adapter_that_made_it() {
    let message = |provider: &str| {
        format!(
            r#"{{"role":"assistant","content":[],"source":{{"kind":"model","provider":"{provider}","model":"m","replayState":{{"response":1}}}}}}"#
        )
    };
    assert_eq!(view(true).of(&message("mine")), message("mine"));
    assert_eq!(
        view(true).of(&message("other")),
        r#"{"role":"assistant","content":[],"source":{"kind":"model","provider":"other","model":"m"}}"#
    );
}

#[test]
fn words_that_only_look_like_it_change_nothing() {
    let message = r#"{"role":"user","content":[{"type":"text","text":"image \"replayState\""}],"source":{"kind":"user"}}"#;
    assert_eq!(view(false).of(message), message);
}

#[test]
fn half_of_a_surrogate_pair_survives() {
    let message = format!(r#"{{"content":[{{"type":"text","text":"\ud83d"}},{IMAGE}]}}"#);
    assert!(view(false).of(&message).contains(r#""\ud83d""#));
}
