//! `/name` in what a person wrote: a gesture that brings a skill before the model.

use guest_support::json::{Json, Object, array, text};
use guest_support::tool;

use crate::front::is_name;

/// The message source that marks it.
pub(crate) const SOURCE: &str = "skill-invocation";

/// Skills that the messages of one step can call.
pub(crate) const MAX: usize = 8;

/// Words that are looked at: most that start so are paths.
const MAX_WORDS: usize = 64;

/// What a person wrote that may call skills.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Called {
    /// Names, in order, each once.
    pub(crate) names: Vec<String>,
    /// Words that would be calls but for what stands around them, with the name.
    pub(crate) near: Vec<(String, String)>,
}

impl Called {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.near.is_empty()
    }
}

/// What may be a call in these messages.
pub(crate) fn candidates<'a>(messages: impl Iterator<Item = Json<'a>>) -> Called {
    let mut called = Called::default();
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
            for word in said.split_whitespace().filter(|word| word.contains('/')) {
                if called.names.len() + called.near.len() == MAX_WORDS {
                    return called;
                }
                called.word(word);
            }
        }
    }
    called
}

impl Called {
    fn word(&mut self, word: &str) {
        let around = |c: char| c.is_ascii_punctuation() && c != '/';
        if let Some(name) = word.strip_prefix('/').filter(|name| is_name(name)) {
            if !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_owned());
            }
        } else if let Some(name) = word.trim_matches(around).strip_prefix('/')
            && is_name(name)
            && !self.near.iter().any(|(known, _)| known == word)
        {
            self.near.push((word.to_owned(), name.to_owned()));
        }
    }
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
        let called = candidates([Json::parse(&message).unwrap()].into_iter());
        called.names
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
    fn a_call_with_something_around_it_is_known_for_what_it_is() {
        let near = |said: &str| {
            let message = format!(
                r#"{{"source":{{"kind":"user"}},"content":[{{"type":"text","text":"{said}"}}]}}"#
            );
            candidates([Json::parse(&message).unwrap()].into_iter()).near
        };
        for word in ["/a,", "/a.", "(/a)", "`/a`", "/a-"] {
            let expected = [(word.to_owned(), "a".to_owned())];
            assert_eq!(near(&format!("do {word} and {word}")), expected, "{word}");
        }
        for said in ["/a", "a/b", "/usr/bin,", "/A.", "//a,"] {
            assert!(near(said).is_empty(), "{said}");
        }
        assert_eq!(
            near(&(0..99).map(|n| format!("/{n}. ")).collect::<String>()).len(),
            MAX_WORDS
        );
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
