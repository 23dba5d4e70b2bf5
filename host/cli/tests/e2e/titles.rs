//! How a run names its session: beside the turn, and never in its way.

use mock_provider::{Answer, Mock};
use serde_json::Value;

use crate::support::{Scratch, kinds, say};

fn run(scratch: &Scratch, mock: &Mock) {
    let ended = scratch.dsh().provider(mock).headless();
    ended
        .args(["Mend", "the", "parser", "of", "dates", "today"])
        .run()
        .answered("Done.");
}

#[test]
fn a_title_is_asked_for_without_tools_and_with_the_prompt_alone() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![say("Done.").answer()]);
    run(&scratch, &mock);
    let log = scratch.record();
    let kinds = kinds(log.events());
    let at = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(at("request/context") < at("session/title-llm-request"));
    assert!(at("session/title-llm-request") < at("assistant/chunk"));
    let asked = mock.title_requests();
    // It may have been given up before it went out.
    for request in &asked {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["max_tokens"], 64);
        assert!(body.get("tools").is_none(), "{body}");
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["system", "user"]);
        let text = messages[1]["content"].to_string();
        assert!(text.contains("Mend the parser of dates today"), "{text}");
    }
}

/// A title may take a minute, and a run does not.
#[test]
fn a_title_that_never_comes_keeps_no_run_from_ending() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![say("Done.").answer()]).answering_titles(|_| Answer::silence());
    run(&scratch, &mock);
    let log = scratch.record();
    let titles: Vec<_> = log
        .events()
        .iter()
        .filter(|event| event.kind.as_str() == "session/title")
        .map(|event| event.data.get("title").unwrap().as_str().to_owned())
        .collect();
    assert_eq!(titles, [r#""Mend the parser of dates""#]);
}
