//! `/name` in what a person wrote: a gesture that brings a skill before the model.

use guest_support::json::{Json, Object, array, text};
use guest_support::tool;

use crate::front::is_name;

/// The message source that marks it.
pub(crate) const SOURCE: &str = "skill-invocation";

/// Skills that one message can call.
const MAX: usize = 8;

/// What may be a call in these messages, in order, each once.
pub(crate) fn candidates<'a>(messages: impl Iterator<Item = Json<'a>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for message in messages {
        let kind = message
            .get("source")
            .and_then(|source| text(source, "kind"));
        if kind.as_deref() != Some("user") {
            continue;
        }
        for block in message.get("content").into_iter().flat_map(Json::items) {
            let Some(said) = text(block, "text") else {
                continue;
            };
            for name in said
                .split_whitespace()
                .filter_map(|word| word.strip_prefix('/'))
            {
                if is_name(name) && names.len() < MAX && !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    names
}

/// The draft of the message that brings a skill.
pub(crate) fn message(name: &str, content: &str) -> String {
    let words = format!(
        "The person called the skill `{name}`. It applies to what they ask for.\n\n{content}"
    );
    let source = Object::new()
        .string("kind", SOURCE)
        .string("name", name)
        .build();
    Object::new()
        .raw("content", &array([tool::text_block(&words)]))
        .raw("source", &source)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(said: &str, kind: &str) -> Vec<String> {
        let message = Object::new()
            .raw("source", &Object::new().string("kind", kind).build())
            .raw("content", &array([tool::text_block(said)]))
            .build();
        candidates([Json::parse(&message).unwrap()].into_iter())
    }

    #[test]
    fn a_word_that_starts_with_a_slash_may_be_a_call() {
        assert_eq!(called("/a do it", "user"), ["a"]);
        assert_eq!(called("do /b-2 and\n/a, /a /b-2", "user"), ["b-2", "a"]);
        for said in [
            "a/b", "/usr/bin", "/A", "/", "//a", "/a-", "x /a.md", "</a>",
        ] {
            assert!(called(said, "user").is_empty(), "{said}");
        }
    }

    #[test]
    fn only_a_person_calls() {
        for kind in ["plugin", "model", "skill-catalog"] {
            assert!(called("/a", kind).is_empty(), "{kind}");
        }
    }

    #[test]
    fn the_message_says_which() {
        let message = message("a", "<skill_content name=\"a\">");
        let message = Json::parse(&message).unwrap();
        assert_eq!(
            message.get("source").unwrap().raw(),
            r#"{"kind":"skill-invocation","name":"a"}"#
        );
    }
}
