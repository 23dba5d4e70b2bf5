use dsh_session::{Draft, Header, Json, Kind, Seq, Session, Value};

use super::{CLEARED, LEAD, candidate};
use crate::message::{Message, text_block};

fn session() -> Session {
    Session::new(Header::new("s", 0)).unwrap()
}

fn enter(session: &mut Session, message: &Message) -> Seq {
    session
        .append(
            Draft::new(Kind::UserMessage, message.json().clone()).append(),
            0,
        )
        .unwrap()
        .seq
}

fn text(message: &Message) -> String {
    message
        .json()
        .get("content")
        .unwrap()
        .items()
        .next()
        .unwrap()
        .get("text")
        .unwrap()
        .text()
        .unwrap()
        .into_owned()
}

#[test]
fn nothing_is_told_where_there_is_nothing_to_tell() {
    assert!(candidate(&session(), [].into_iter()).is_none());
}

#[test]
fn a_snapshot_is_told_once_and_again_when_it_changed() {
    let mut session = session();
    let first = candidate(&session, [("a", "one"), ("b", "two")].into_iter()).unwrap();
    assert_eq!(text(&first), format!("{LEAD}\n\none\n\ntwo"));
    let source = first.json().get("source").unwrap();
    assert_eq!(
        source.get("form").and_then(Value::text).unwrap(),
        "snapshot"
    );
    assert_eq!(
        source.get("sections").unwrap().as_str(),
        r#"[{"name":"a","text":"one"},{"name":"b","text":"two"}]"#
    );
    // A candidate that no step took in does not count as told.
    assert!(candidate(&session, [("a", "one"), ("b", "two")].into_iter()).is_some());
    enter(&mut session, &first);
    assert!(candidate(&session, [("a", "one"), ("b", "two")].into_iter()).is_none());
    assert!(candidate(&session, [("a", "other")].into_iter()).is_some());
    // Another process, which reads the same log, knows as much.
    assert!(candidate(&session, [("a", "one"), ("b", "two")].into_iter()).is_none());
}

#[test]
fn cleared_facts_are_taken_back_once() {
    let mut session = session();
    let first = candidate(&session, [("a", "one")].into_iter()).unwrap();
    enter(&mut session, &first);
    let cleared = candidate(&session, [].into_iter()).unwrap();
    assert_eq!(text(&cleared), CLEARED);
    assert!(cleared.json().get("source").unwrap().get("form").is_none());
    enter(&mut session, &cleared);
    assert!(candidate(&session, [].into_iter()).is_none());
}

#[test]
fn a_replaced_snapshot_is_told_again() {
    let mut session = session();
    let first = candidate(&session, [("a", "one")].into_iter()).unwrap();
    let at = enter(&mut session, &first);
    let source = Json::object(|source| {
        source.str("kind", "plugin").str("plugin", "compact");
    });
    let summary = Message::mint(&[text_block("a summary")], &source);
    let replace = Draft::new(Kind::UserMessage, summary.json().clone())
        .replace(at, at)
        .sources(vec![at]);
    session.append(replace, 0).unwrap();
    assert!(candidate(&session, [("a", "one")].into_iter()).is_some());
    assert_eq!(text(&candidate(&session, [].into_iter()).unwrap()), CLEARED);
}
