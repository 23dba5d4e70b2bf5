//! What the log's hot paths are measured on: instructions counted by callgrind do not depend on how busy a machine is.

#![forbid(unsafe_code)]

use std::fmt::Write;

use dsh_session::{Draft, Header, Json, Kind, Seq, Session};

/// How many events or lines each bench works on, so that a count divided by it is per event.
pub const COUNT: u64 = 1_000;

fn json(text: &str) -> Json {
    Json::normalise(text).expect("JSON")
}

/// A message of a person of about 300 bytes.
pub fn message(index: u64) -> Draft {
    let words = "alpha beta gamma delta ".repeat(9);
    let text = format!(
        r#"{{"content":[{{"type":"text","text":"{words}"}}],"source":{{"kind":"user"}},"role":"user","id":"u{index}"}}"#
    );
    Draft::new(Kind::UserMessage, json(&text)).append()
}

/// Nine chunks, then a message made of them, again and again.
pub fn drafts() -> Vec<Draft> {
    let chunk = json(
        r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":" some words of an answer"}}"#,
    );
    let said = json(
        r#"{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"text","text":"some words of an answer"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"a"}}"#,
    );
    let draft = |index| {
        if index % 10 == 9 {
            let sources = (index - 9..index).map(Seq).collect();
            Draft::new(Kind::AssistantMessage, said.clone())
                .append()
                .sources(sources)
        } else {
            Draft::new(Kind::AssistantChunk, chunk.clone())
        }
    };
    (0..COUNT).map(draft).collect()
}

/// A session without events.
pub fn session() -> Session {
    Session::new(Header::new("s", 0)).expect("a session")
}

/// A session with a message for each of [`COUNT`], all derived.
pub fn derived() -> Session {
    let mut session = session();
    for index in 0..COUNT {
        session.append(message(index), 0).expect("appended");
    }
    session.digest().expect("derived");
    session
}

/// The plaintext of a frame: the lines of [`drafts`].
pub fn lines() -> String {
    let mut session = session();
    let mut text = String::new();
    for draft in drafts() {
        let event = session.append(draft, 1_780_000_000_000).expect("appended");
        let _ = writeln!(text, "{}", event.line());
    }
    text
}
