use std::borrow::Cow;

use guest_support::types::CallConfig;

use super::*;
use crate::history::{Assistant, Image};
use crate::profile::{Compat, Model};

fn model(context_window: u64) -> Model {
    Model {
        id: "m".to_owned(),
        name: "m".to_owned(),
        base_url: None,
        context_window,
        max_tokens: 100,
        default_max_tokens: None,
        vision: false,
        efforts: None,
        compat: Compat::default(),
    }
}

fn request(system: Option<&str>, tools: &[&str]) -> GenerateRequest {
    GenerateRequest {
        config: CallConfig {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            reasoning_effort: None,
            temperature: None,
            max_tokens: None,
            stop: None,
            more: None,
        },
        purpose: None,
        system: system.map(str::to_owned),
        messages: Vec::new(),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        session_id: None,
        more: None,
    }
}

fn text(text: &str) -> Piece<'_> {
    Piece::Text(Cow::Borrowed(text))
}

#[test]
fn a_request_is_four_characters_a_token_each_message_rounded_up() {
    let plain = request(None, &[]);
    let user = |parts| Entry::User { parts };
    assert_eq!(estimate(&plain, &[]), 0);
    assert_eq!(
        estimate(&plain, &[user(vec![text("abcde")]), user(vec![text("a")])]),
        3
    );
    // As decoded, in UTF-16 units.
    assert_eq!(
        estimate(&plain, &[user(vec![text(r"\n\u00e9\ud83e\udd80")])]),
        1
    );
    assert_eq!(estimate(&plain, &[user(vec![text("🦀🦀a")])]), 2);
    let image = Piece::Image(Image {
        attachment: Cow::Borrowed("x"),
    });
    assert_eq!(estimate(&plain, &[user(vec![text("abcd"), image])]), 1201);
    let assistant = Entry::Assistant(Assistant {
        same: false,
        api: None,
        response_id: None,
        stop: Cow::Borrowed("stop"),
        blocks: vec![
            Block::Text {
                text: Cow::Borrowed("ab"),
                signature: None,
            },
            Block::Thinking {
                text: Cow::Borrowed("cd"),
                signature: Some(Cow::Borrowed("not counted")),
                redacted: false,
            },
            Block::Call {
                id: Cow::Borrowed("not counted"),
                name: Cow::Borrowed("ef"),
                arguments: "{}".to_owned(),
                signature: None,
            },
        ],
    });
    assert_eq!(estimate(&plain, &[assistant]), 2);
    assert_eq!(estimate(&request(Some("abcde"), &[]), &[]), 2);
    // [{"name":"n","parameters":{}}] has 30 characters.
    assert_eq!(
        estimate(
            &request(None, &[r#"{"name":"n","parameters":{},"timeoutMs":5}"#]),
            &[]
        ),
        8
    );
}

#[test]
fn the_room_is_what_the_window_leaves_and_never_nothing() {
    for (window, estimate, expected) in [
        (10_000, 0, 5904),
        (10_000, 5903, 1),
        (10_000, 5904, 1),
        (10_000, 99_999, 1),
        (u64::MAX, 0, u32::MAX),
    ] {
        assert_eq!(
            room(&model(window), estimate),
            expected,
            "{window} {estimate}"
        );
    }
}
