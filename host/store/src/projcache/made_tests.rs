use dsh_session::projection::{Registry, Row, Rows};
use dsh_session::{Header, Json, Seq};

use super::document::{LARGEST, Records};
use super::made;

fn row(seq: u64, state: &str) -> Row {
    Row {
        version: 1,
        as_of: Some(Seq(seq)),
        state: Json::normalise(state).unwrap(),
    }
}

/// A state of a component, with its row beside it.
fn made(seq: u64, key: &str, state: &str, view: &str) -> Rows {
    let state = row(seq, state);
    let mut rows = Rows::default();
    let view = Json::normalise(view).unwrap();
    rows.set(&made::key(key), made::row(&state, "maker", &view));
    rows.set(key, state);
    rows
}

#[test]
fn a_state_is_its_makers_until_somebody_replaces_it() {
    let mut rows = made(7, "acme:words", "[3]", "{\"words\":3}");
    assert_eq!(made::by(&rows, "acme:words").as_deref(), Some("maker"));
    let view = made::view(&rows, "acme:words").unwrap();
    assert_eq!(view.as_str(), "{\"words\":3}");
    assert_eq!(made::by(&rows, "other"), None);
    for other in [
        row(7, "[4]"),
        row(8, "[3]"),
        Row {
            version: 2,
            ..row(7, "[3]")
        },
    ] {
        rows.set("acme:words", other.clone());
        assert_eq!(made::by(&rows, "acme:words"), None, "{other:?}");
        assert_eq!(made::view(&rows, "acme:words"), None, "{other:?}");
    }
    rows.set("acme:words", row(7, "[3]"));
    assert!(made::by(&rows, "acme:words").is_some());
}

/// No component is loaded for a list: what it shows of a component's state was made when the state was.
#[test]
fn a_snapshot_has_the_views_that_stand_beside_states_and_the_hosts_own() {
    let mut records = Records::default();
    let mut header = Header::new("s", 1);
    let mut rows = made(7, "acme:words", "[3]", "{\"words\":3}");
    rows.set("title", row(5, "\"T\""));
    rows.set("unknown", row(2, "1"));
    records.put(&header, &rows);
    let of = |length| records.snapshot(&Registry::standard(), &header, length);
    let snapshot = of(8).unwrap();
    assert_eq!(
        snapshot.json().as_str(),
        r#"{"asOfSeq":5,"values":{"acme:words":{"words":3},"title":"T"}}"#
    );
    // What says that it knows more events than there are is of another log.
    let shorter = of(7).unwrap();
    assert_eq!(
        shorter.json().as_str(),
        r#"{"asOfSeq":5,"values":{"title":"T"}}"#
    );
    assert_eq!(of(5), None);
    header.created_at = 2;
    assert_eq!(records.snapshot(&Registry::standard(), &header, 8), None);
}

#[test]
fn what_was_written_longest_ago_goes_when_there_is_too_much() {
    let mut records = Records::default();
    let put = |records: &mut Records, id: &str, seq: u64| {
        let mut rows = Rows::default();
        let text = format!("\"{}\"", "x".repeat(LARGEST / 4));
        rows.set("title", row(seq, &text));
        assert!(records.put(&Header::new(id, 1), &rows));
        assert!(!records.put(&Header::new(id, 1), &rows), "as it was");
    };
    for (seq, id) in (0..).zip(["a", "b", "c", "a", "d"]) {
        put(&mut records, id, seq);
    }
    let has = |records: &Records, id: &str| records.rows(&Header::new(id, 1)).is_some();
    assert_eq!(records.len(), 3);
    assert!(!has(&records, "b") && has(&records, "a") && has(&records, "d"));
    let mut rows = Rows::default();
    rows.set("title", row(1, &format!("\"{}\"", "x".repeat(LARGEST))));
    records.put(&Header::new("huge", 1), &rows);
    assert_eq!(records.len(), 1, "the one that was written stays");
}
