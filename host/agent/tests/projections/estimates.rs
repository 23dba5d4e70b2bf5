//! The heuristic measure of messages, by the component that people's views rest on: the figures of the conformance
//! table, and for what the table has not, those of the host, whose measure decides when a conversation is compacted.

use std::sync::Arc;

use dsh_agent::projection::Stretch;
use dsh_session::{Draft, Header, Json, Kind, Session, Value, estimate};
use tokio_util::sync::CancellationToken;

use crate::{mounted, official, root, units};

/// What the component charges for a surface with this message alone.
async fn charged(message: &Json) -> u64 {
    let mounted = mounted("context-pressure", official("context-pressure").await, "{}").await;
    let units = units(&mounted, "{}", None);
    let mut session = Session::new(Header::new("s", 0)).unwrap();
    session
        .append(Draft::new(Kind::UserMessage, message.clone()).append(), 0)
        .unwrap();
    let events: Vec<Arc<_>> = session.live_events().to_vec();
    let cancel = CancellationToken::new();
    let stretch = Stretch {
        state: None,
        as_of: None,
        end: events.last().map(|event| event.seq),
        events: &events,
        cancel: &cancel,
    };
    let state = units[0].fold(stretch).await.unwrap();
    state.get("surfaceTokens").and_then(Value::u64).unwrap()
}

#[tokio::test]
async fn the_component_charges_each_message_as_the_table_and_the_host_do() {
    let read = |file: &str| {
        let path = root()
            .join("tests/conformance/session/tbl-estimate")
            .join(file);
        Json::restore(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (input, expected) = (read("input.json"), read("expected.json"));
    let mut count = 0;
    for (message, want) in input.value().items().zip(expected.value().items()) {
        let message = message.to_json();
        assert_eq!(Some(charged(&message).await), want.u64(), "{message}");
        count += 1;
    }
    assert!(count >= 12, "only {count} messages");

    let image = format!(
        r#"{{"type":"image","attachment":{{"attachmentId":"sha256:{}","mediaType":"image/png","bytes":70000,"width":640,"height":480,"name":"ünï 💡.png","originalDimensions":{{"width":6400,"height":4800}}}}}}"#,
        "0123456789abcdef".repeat(4)
    );
    for content in [
        format!("[{image}]"),
        format!(r#"[{{"type":"text","text":"see"}},{image},{image}]"#),
        format!(
            r#"[{{"type":"tool-result","toolCallId":"c","isError":false,"content":[{{"type":"text","text":"x"}},{image}]}}]"#
        ),
    ] {
        let message = format!(r#"{{"id":"m","role":"user","content":{content}}}"#);
        let message = Json::normalise(&message).unwrap();
        let host = estimate::message(message.value());
        assert_eq!(charged(&message).await, host, "{message}");
        assert!(host > 60, "a picture costs its block's text: {host}");
    }
}
