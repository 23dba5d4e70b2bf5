use super::super::{Style, Transcript};
use super::*;
use crate::testing::{cases, quick_dir, recorded_cases};
use crate::{Store, StoreConfig, Target};
use dsh_session::Seq;
use std::path::Path;

/// The transcript of a log file, and its marks.
fn read(file: &Path, style: Style) -> (String, Vec<Mark>) {
    let root = quick_dir();
    let store = Store::open(StoreConfig::new(root.path())).unwrap();
    let log = store.inspect(&Target::File(file.to_owned())).unwrap();
    let mut out = Vec::new();
    let mut transcript = Transcript::new(&mut out, style);
    let (mut found, mut marks) = (Compactions::default(), Vec::new());
    let mut keep = |mark| {
        marks.push(mark);
        Ok(())
    };
    for event in log.log.events_from(Seq(0)) {
        let event = event.unwrap();
        transcript.event(&event).unwrap();
        found.event(&event, &mut keep).unwrap();
    }
    transcript.end(None, "").unwrap();
    found.end(&mut keep).unwrap();
    (String::from_utf8(out).unwrap(), marks)
}

fn case(name: &str) -> std::path::PathBuf {
    cases().join(name).join("input.jsonl")
}

#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut at = 0;
    for part in parts {
        let found = text[at..].find(part);
        at += found.unwrap_or_else(|| panic!("{part:?} is not where it belongs in:\n{text}"));
        at += part.len();
    }
}

#[test]
fn a_summary_is_shown_where_it_took_the_place_of_messages_and_they_stay() {
    let mark =
        "compaction: from here on the model sees this summary in place of older messages (2)";
    for style in [Style::Terminal { max: Some(9) }, Style::Markdown] {
        let (text, marks) = read(&case("surf-replace-chain"), style);
        in_order(
            &text,
            &[
                "one", "two", "three", mark, "Summary", "sum1", "four", mark, "Summary", "sum2",
            ],
        );
        // The host's words around it are for the model.
        assert!(!text.contains("<sum") && !text.contains("\\<sum"), "{text}");
        let told = |seq, time, text: &str| Mark::Summary {
            seq,
            time,
            nodes: Some(2),
            text: text.to_owned(),
        };
        let (first, second) = (1_700_000_000_070, 1_700_000_000_120);
        assert_eq!(marks, [told(7, first, "sum1"), told(12, second, "sum2")]);
    }
}

#[test]
fn a_result_that_became_shorter_is_marked_and_shown_whole() {
    let (text, marks) = read(&case("surf-tool-rewrite-ok"), Style::Terminal { max: None });
    in_order(
        &text,
        &[
            "← c1",
            "long",
            "the model sees one tool result above without its middle",
        ],
    );
    assert!(!text.contains("short\n"), "{text}");
    assert_eq!(marks, [Mark::Pruned(1)]);
}

#[test]
fn a_summary_that_never_took_a_place_and_a_failure_are_no_summary() {
    let root = quick_dir();
    let file = root.path().join("log.jsonl");
    let whole = std::fs::read_to_string(case("surf-replace-chain")).unwrap();
    let mut lines: Vec<&str> = whole.lines().take(8).collect();
    lines.push(r#"{"type":"compaction/end","seq":7,"time":1700000000080,"data":{"compactionId":"k1","turn":1,"error":"no\nroom"}}"#);
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let (text, marks) = read(&file, Style::Terminal { max: None });
    assert_eq!(marks, [Mark::Failed("no\nroom".to_owned())]);
    assert!(text.contains("[compaction failed: no room]"), "{text}");
    assert!(!text.contains("sum1"), "{text}");
}

#[test]
fn upstreams_recorded_compaction_is_shown() {
    let Some(recorded) = recorded_cases() else {
        return;
    };
    let name = "fx-headless-agent-compaction-recovery-session/input.jsonl";
    let (text, marks) = read(&recorded.join(name), Style::Markdown);
    let [
        Mark::Summary {
            seq: 21,
            text: summary,
            ..
        },
    ] = &marks[..]
    else {
        panic!("{marks:?}");
    };
    in_order(
        &text,
        &["in place of older messages (1)", "### Summary", summary],
    );
}
