use std::sync::Arc;

use dsh_session::{Event, RepairTexts, Stored, Value, closers_with, scan};

use crate::cases::{flag, json, member, number, root};

/// Upstream's sentences are replaced by tokens in the data; the length of a text is all that depends on them.
pub(crate) const TOKENS: RepairTexts<'static> = RepairTexts {
    outcome_unknown: "{{TEXT:TOOL_OUTCOME_UNKNOWN}}",
    not_started: "{{TEXT:TOOL_NOT_STARTED}}",
};

pub(crate) fn sound(events: &[Stored]) -> Vec<Arc<Event>> {
    events.iter().filter_map(Stored::event).cloned().collect()
}

#[test]
fn every_prefix_of_a_log_is_closed_as_upstream() {
    let dir = root().join("rep-prefix-sweep");
    let scan = scan::plain(&std::fs::read(dir.join("input.jsonl")).unwrap()).unwrap();
    let log = sound(&scan.events);
    let expected = json(&dir.join("expected.json"));
    let sweep: Vec<_> = member(expected.value(), "sweep").items().collect();
    assert_eq!(sweep.len(), log.len() + 1);
    for row in sweep {
        let prefix = &log[..number(row, "prefix") as usize];
        let got: Vec<String> = closers_with(prefix, TOKENS)
            .iter()
            .map(|e| e.line())
            .collect();
        let want: Vec<&str> = member(row, "closers").items().map(Value::as_str).collect();
        assert_eq!(got, want, "{} events", prefix.len());
        let closed: Vec<_> = prefix
            .iter()
            .cloned()
            .chain(closers_with(prefix, TOKENS))
            .collect();
        assert!(
            closers_with(&closed, TOKENS).is_empty(),
            "a closed log needs no closers"
        );
    }
}

#[test]
fn a_plain_file_cut_anywhere_keeps_what_upstream_keeps() {
    let dir = root().join("torn-plain-sweep");
    let bytes = std::fs::read(dir.join("input.jsonl")).unwrap();
    let expected = json(&dir.join("expected.json"));
    for row in member(expected.value(), "rows").items() {
        let cut = number(row, "cut") as usize;
        let scan = scan::plain(&bytes[..cut]);
        assert_eq!(scan.is_ok(), flag(row, "ok"), "cut at {cut}");
        let Ok(scan) = scan else { continue };
        assert_eq!(
            scan.events.len() as u64,
            number(row, "eventCount"),
            "cut at {cut}"
        );
        assert_eq!(
            scan.committed_bytes as u64,
            number(row, "committedBytes"),
            "cut at {cut}"
        );
        let got = closers_with(&sound(&scan.events), TOKENS);
        let got: Vec<&str> = got.iter().map(|event| event.kind.as_str()).collect();
        let want = member(row, "closers")
            .items()
            .map(|kind| kind.text().unwrap());
        assert!(want.eq(got), "cut at {cut}");
    }
}
