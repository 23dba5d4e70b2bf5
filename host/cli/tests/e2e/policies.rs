//! Rows that guard what an agent does, in whole runs: what they refuse when they
//! break, and what is left of a session's when the next process takes it up.

use serde_json::{Value, json};

use crate::hostile::guest;
use crate::support::{Ended, Record, Scratch};

/// A run that writes over a file which it may have read.
fn writes(scratch: &Scratch, row: &Value, calls: &[Value]) -> (Ended, Record) {
    let mut script: Vec<_> = calls.iter().map(|call| json!({"calls": [call]})).collect();
    script.push(json!({"text": "Done."}));
    let script = scratch.script(&Value::from(script));
    let row = scratch.write_beside("row.yml", &json!([row]).to_string());
    let dsh = scratch.dsh().headless().patch(script).patch(row);
    let ended = dsh.args(["Go"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    (ended, scratch.record())
}

fn read() -> Value {
    json!({"name": "read", "arguments": {"file_path": "a.txt"}})
}

fn write() -> Value {
    json!({"name": "write", "arguments": {"file_path": "a.txt", "content": "beta"}})
}

fn edit() -> Value {
    let arguments = json!({"file_path": "a.txt", "old_string": "alpha", "new_string": "beta"});
    json!({"name": "edit", "arguments": arguments})
}

/// The row of observations, with another component that does this at each event.
fn replaced(says: &[&str]) -> Value {
    json!({
        "id": "fs-observation-policy",
        "component": guest().to_string_lossy(),
        "config": {"says": says},
        "grants": {
            "clock": true, "random": true, "session": true, "journal": true, "workspace": true,
            "spill": true, "attachments": true, "pictures": true, "process": [], "inbox": true, "kv": true, "llm": true,
            "route": {"provider": "prober"},
            "observe": ["fs/observed"], "decide": ["fs/write-intent", "fs/edit-intent"],
        },
        "limits": {"cpu": "1s"},
    })
}

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("a.txt", "alpha");
    scratch
}

#[test]
fn a_policy_of_files_that_breaks_refuses_every_change_and_says_so() {
    let says = ["fs/write-intent|panic|", "fs/edit-intent|panic|"];
    let scratch = scratch();
    let (ended, record) = writes(
        &scratch,
        &replaced(&says),
        &[read(), write(), edit(), write(), write(), write()],
    );
    let results = record.results();
    assert_eq!(results.len(), 6);
    for (text, code) in &results[1..] {
        assert_eq!(code.as_deref(), Some("FS_PERMISSION_DENIED"), "{text}");
        assert!(
            text.contains("fs-observation-policy") && text.contains("a.txt"),
            "{text}"
        );
    }
    assert!(results[5].0.contains("out of use"), "{results:?}");
    assert_eq!(scratch.read("a.txt"), "alpha");
    assert!(
        ended.stderr.contains("row fs-observation-policy"),
        "{ended:?}"
    );
}

#[test]
fn a_policy_of_files_that_answers_nonsense_refuses_too() {
    for answer in [
        "settle|{'kind':'please'}",
        "rewrite|{'path':'/elsewhere'}",
        "settle|nonsense",
    ] {
        let scratch = scratch();
        let rule = format!("fs/write-intent|{answer}");
        let (_, record) = writes(&scratch, &replaced(&[&rule]), &[read(), write()]);
        let (text, code) = record.results().remove(1);
        assert_eq!(
            code.as_deref(),
            Some("FS_PERMISSION_DENIED"),
            "{answer}: {text}"
        );
        assert_eq!(scratch.read("a.txt"), "alpha");
    }
}

#[test]
fn a_file_is_written_once_it_was_read_and_not_by_the_next_process() {
    let scratch = scratch();
    let as_it_is = json!({"id": "fs-observation-policy"});
    let (_, record) = writes(&scratch, &as_it_is, &[write(), edit(), read(), write()]);
    let codes: Vec<_> = record.results().into_iter().map(|(_, code)| code).collect();
    let refused = Some("FS_NOT_OBSERVED".to_owned());
    assert_eq!(codes, [refused.clone(), refused.clone(), None, None]);
    assert_eq!(scratch.read("a.txt"), "beta");

    let id = record.inspection.header.id.to_string();
    let script = scratch.script(&json!([
        {"calls": [write()]}, {"calls": [read()]}, {"calls": [write()]}, {"text": "Done."}
    ]));
    let dsh = scratch.dsh().headless().patch(script);
    dsh.args(["--resume", &id, "Again"]).run().answered("Done.");
    let codes: Vec<_> = scratch
        .record()
        .results()
        .into_iter()
        .map(|(_, code)| code)
        .collect();
    assert_eq!(codes[4..], [refused, None, None]);
}

#[test]
fn a_row_whose_numbers_are_out_of_bounds_is_left_out_in_a_line() {
    for (id, config, says) in [
        (
            "spill-policy",
            json!({"maxInlineBytes": -1}),
            r#""maxInlineBytes" must be 0 or more"#,
        ),
        (
            "repeat-tool-reminder",
            json!({"thresholds": [3, 1]}),
            r#""thresholds[1]" must be 2 or more"#,
        ),
        (
            "repeat-tool-reminder",
            json!({"thresholds": []}),
            r#""thresholds" must have 1 or more items"#,
        ),
        (
            "repeat-tool-reminder",
            json!({"thresholds": [3, 3]}),
            r#""thresholds" must not have 3 twice"#,
        ),
        (
            "timeout-policy",
            json!({"limits": [{"tool": "bash", "timeoutMs": 0}]}),
            r#""limits[0].timeoutMs" must be 1 or more"#,
        ),
        (
            "fs-observation-policy",
            json!({"unguarded": "x"}),
            r#""unguarded" must be an array"#,
        ),
    ] {
        let scratch = scratch();
        let (ended, _) = writes(&scratch, &json!({"id": id, "config": config}), &[]);
        let line = format!("dsh: row {id} is left out: config: {says}");
        assert!(ended.stderr.contains(&line), "{ended:?}");
    }
}
