use std::sync::{Arc, Mutex};

use dsh_plugin::port::{Journal, NewEvent, SessionView};
use dsh_session::{Draft, Header, Json, Kind, Session};

use super::{JournalPort, SessionPort, seed};
use crate::log::{Log, NoDurability, SystemClock};
use crate::message::Message;

fn log() -> Arc<Log> {
    let session = Session::new(Header::new("s", 0)).unwrap();
    let session = Arc::new(Mutex::new(session));
    Arc::new(Log::new(
        session,
        Arc::new(SystemClock),
        Vec::new(),
        Arc::new(NoDurability),
    ))
}

fn event(kind: &str, data: &str) -> NewEvent {
    NewEvent {
        kind: kind.into(),
        data: data.into(),
    }
}

#[tokio::test]
async fn a_journal_appends_all_or_nothing_and_answers_the_first_seq() {
    let log = log();
    let journal = JournalPort::new(Arc::clone(&log));
    let todo = || event("todo/write", r#"{"todos": []}"#);
    assert_eq!(
        journal
            .append("r", vec![todo(), event("acme/x", "1")], Some(0))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        journal
            .append("r", vec![todo(), event("acme/x", "{")], None)
            .await
            .unwrap_err()
            .code,
        "INVALID"
    );
    assert_eq!(
        journal
            .append("r", vec![todo()], Some(0))
            .await
            .unwrap_err()
            .code,
        "STALE"
    );
    assert_eq!(log.read(|session| session.log().len()), 2);
    assert!(log.read(|session| session.log().to_vec().unwrap()[1].ignorable));
}

#[tokio::test]
async fn a_journal_never_writes_what_the_host_writes() {
    let log = log();
    let journal = JournalPort::new(Arc::clone(&log));
    for kind in [
        "user/message",
        "turn/end",
        "approval/decided",
        "tool/result",
        "request/header",
    ] {
        assert_eq!(
            journal
                .append("r", vec![event(kind, "{}")], None)
                .await
                .unwrap_err()
                .code,
            "DENIED",
            "{kind}"
        );
    }
    assert_eq!(log.read(|session| session.log().len()), 0);
}

#[test]
fn the_session_is_readable_by_kind_and_page() {
    let log = log();
    for turn in 1..=3 {
        let data = Json::object(|data| {
            data.u64("turn", turn);
        });
        log.record(Kind::TurnStart, data).unwrap();
        let message = Message::from_person(&"x".repeat(600_000));
        log.append(Draft::new(Kind::UserMessage, message.json().clone()).append())
            .unwrap();
    }
    let port = SessionPort::new(log);
    assert_eq!(port.length(), 6);
    assert_eq!(port.events(0, 10, &["turn/start".into()]).unwrap().len(), 3);
    assert_eq!(
        port.events(0, 10, &["user/message".into()]).unwrap().len(),
        1,
        "a page ends at 1 MiB but has one event"
    );
    assert!(
        port.last(&["turn/start".into()], Some(3))
            .unwrap()
            .unwrap()
            .contains(r#""turn":2"#)
    );
    assert_eq!(
        port.surface()
            .unwrap()
            .nodes
            .iter()
            .map(|node| node.seq)
            .collect::<Vec<_>>(),
        [1, 3, 5]
    );
    assert_eq!(port.messages(2, 5).unwrap().len(), 1);
    assert!(port.measure().unwrap().tokens > 400_000);
}

#[test]
fn seeds_differ_by_session_row_and_call() {
    let one = seed(&["s", "row", "c1"]);
    assert_eq!(one, seed(&["s", "row", "c1"]));
    assert_ne!(one, seed(&["s", "row", "c2"]));
    assert_ne!(seed(&["ab", "c"]), seed(&["a", "bc"]));
}
