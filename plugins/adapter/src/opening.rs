//! What a body with status 200 begins with. A proxy's page of HTML or an error
//! object where a stream was asked for holds no event, so a reader of events
//! would see an empty stream; it is told as what it is, with its first words
//! (spec/llm.md §4 has no code for it: `MALFORMED_RESPONSE`, or what an error
//! object's own words mean).

use std::borrow::Cow;

use guest_support::json::Json;
use guest_support::words::start;

use crate::classify;
use crate::failure::{Failure, MAX_MESSAGE};

/// Bytes kept of a body that is no stream.
const KEPT: usize = 64 * 1024;
/// Characters of it that a message shows.
const SHOWN: usize = 120;

/// The start of a body, until it is known for a stream.
#[derive(Debug, Default)]
pub struct Opening {
    kept: Vec<u8>,
    is: Is,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Is {
    /// So far it may be anything that lines may hold.
    #[default]
    Unknown,
    Stream,
    Other,
}

impl Opening {
    /// Takes in what arrived; whether it is to be read as events.
    pub fn push(&mut self, data: &[u8]) -> bool {
        if self.is == Is::Stream {
            return true;
        }
        let room = KEPT - self.kept.len();
        self.kept.extend_from_slice(&data[..data.len().min(room)]);
        if self.is == Is::Unknown && matches!(self.first(), Some(b'<' | b'{' | b'[')) {
            self.is = Is::Other;
        }
        self.is == Is::Unknown
    }

    /// An event was read, so it is a stream.
    pub fn is_stream(&mut self) {
        if self.is == Is::Unknown {
            self.is = Is::Stream;
            self.kept = Vec::new();
        }
    }

    /// Why the body was no stream, now that it has ended; none where it was one,
    /// or empty, or broke off before its first event.
    pub fn failure(&self, provider: &str) -> Option<Failure> {
        let text = String::from_utf8_lossy(&self.kept);
        let text = text.trim_start_matches('\u{FEFF}').trim();
        match self.is {
            Is::Stream => None,
            Is::Unknown if text.lines().all(is_field) => None,
            Is::Unknown | Is::Other => Some(told(text, provider)),
        }
    }

    fn first(&self) -> Option<u8> {
        let kept = self
            .kept
            .strip_prefix(b"\xEF\xBB\xBF")
            .unwrap_or(&self.kept);
        kept.iter()
            .copied()
            .find(|byte| !byte.is_ascii_whitespace())
    }
}

/// Whether a line belongs into a stream of events; the last one may be cut.
fn is_field(line: &str) -> bool {
    const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];
    match line.split_once(':') {
        Some((name, _)) => name.is_empty() || FIELDS.contains(&name),
        None => FIELDS.iter().any(|field| field.starts_with(line)),
    }
}

fn told(text: &str, provider: &str) -> Failure {
    let json = Json::parse(text);
    if let Some(error) = json.and_then(|json| json.some("error")) {
        let (message, detail) = error_words(error);
        let message = message.unwrap_or_else(|| shown(error.raw()));
        return Failure::new(classify::of_text(&detail), message);
    }
    let what = if json.is_some() {
        "JSON in place of an event stream"
    } else if text.starts_with('<') {
        "a page of HTML in place of an event stream"
    } else {
        "a text that is no event stream"
    };
    let message = format!(
        "{provider} answered with {what}; check the base URL and what proxies are between. It begins: {}",
        shown(text)
    );
    Failure::new("MALFORMED_RESPONSE", message)
}

/// An error's message, and all the words that it is classified by: code, type and
/// message of an object, or the text that stands in its place. Each is cut where a
/// message would be.
pub fn error_words(error: Json<'_>) -> (Option<String>, String) {
    let text = |json: Json<'_>| {
        let text = json.string().unwrap_or(Cow::Borrowed(json.raw()));
        start(&text, MAX_MESSAGE).to_owned()
    };
    if !error.is_object() {
        let text = text(error);
        return (Some(text.clone()).filter(|text| !text.is_empty()), text);
    }
    let detail: Vec<_> = ["code", "type", "message"]
        .into_iter()
        .filter_map(|name| error.some(name).map(text))
        .filter(|part| !part.is_empty())
        .collect();
    let message = error
        .some("message")
        .filter(|message| message.string_len().is_some_and(|length| length > 0))
        .map(text);
    (message, start(&detail.join(" "), MAX_MESSAGE).to_owned())
}

/// The first words of a text, on one line.
pub fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN * 4).collect();
    let line = guest_support::words::one_line(&start);
    line.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &[u8], cut: usize) -> (bool, Option<Failure>) {
        let mut opening = Opening::default();
        let mut reads = true;
        for piece in body.chunks(cut) {
            reads = opening.push(piece);
        }
        (reads, opening.failure("Acme"))
    }

    #[test]
    fn what_is_no_stream_is_told_as_what_it_is_however_it_is_cut() {
        for (body, code, part) in [
            (
                "\u{FEFF}\r\n <!DOCTYPE html>\n<title>Sign in</title>",
                "MALFORMED_RESPONSE",
                "a page of HTML in place of an event stream; check the base URL and what proxies are between. It begins: <!DOCTYPE html> <title>",
            ),
            (
                r#"{"id":"x","choices":[]}"#,
                "MALFORMED_RESPONSE",
                "JSON in place",
            ),
            (
                "upstream connect error",
                "MALFORMED_RESPONSE",
                "no event stream",
            ),
            (
                r#"{"error":{"message":"slow down","code":429}}"#,
                "RATE_LIMIT",
                "slow down",
            ),
            (r#"{"error":"model is overloaded"}"#, "SERVER", "overloaded"),
            (
                r#"{"error":{"detail":"odd"}}"#,
                "PI_AI_ERROR",
                r#"{"detail":"odd"}"#,
            ),
        ] {
            for cut in [1, 7, 1000] {
                let failure = of(body.as_bytes(), cut).1.unwrap();
                assert_eq!(failure.code, code, "{body}");
                assert!(failure.message.contains(part), "{}", failure.message);
            }
        }
    }

    #[test]
    fn an_error_s_words_are_cut_before_anybody_searches_them() {
        let long = "x".repeat(MAX_MESSAGE);
        for error in [
            format!(r#"{{"message":"{long} quota exceeded"}}"#),
            format!(r#"{{"code":"{long}","message":"quota exceeded"}}"#),
            format!(r#""{long} quota exceeded""#),
            format!(r#"[1,"{long} quota exceeded"]"#),
        ] {
            let (message, detail) = error_words(Json::parse(&error).unwrap());
            assert!(message.is_none_or(|message| message.len() <= MAX_MESSAGE));
            assert_eq!(detail.len(), MAX_MESSAGE);
            assert_eq!(classify::of_text(&detail), "PI_AI_ERROR");
        }
    }

    #[test]
    fn fields_comments_and_nothing_are_a_stream() {
        for body in [
            "",
            "\n\n",
            ": keep-alive\n\n",
            "event: x\ndata",
            "data: <html>\n",
        ] {
            for cut in [1, 1000] {
                assert_eq!(of(body.as_bytes(), cut), (true, None), "{body}");
            }
        }
    }

    #[test]
    fn little_is_kept_of_a_long_page() {
        let mut opening = Opening::default();
        opening.push(b"<");
        for _ in 0..100 {
            opening.push(&[b'x'; 4096]);
        }
        assert_eq!(opening.kept.len(), KEPT);
        assert!(opening.failure("Acme").unwrap().message.len() < 400);
    }

    #[test]
    fn a_stream_is_not_kept_once_it_is_known_for_one() {
        let mut opening = Opening::default();
        opening.push(b"data: a\n\n");
        opening.is_stream();
        assert!(opening.kept.is_empty() && opening.push(b"<html>"));
        assert_eq!(opening.failure("Acme"), None);
    }
}
