//! The object of `dsh sessions inspect --json` against every case that is a file: member by member what upstream
//! measured, or the class and the stage of its refusal.

use std::fs;

use dsh_session::{RepairTexts, closers_with};
use serde_json::{Value, json};

use super::*;
use crate::load::Target;
use crate::report::{error_json, inspect_json};
use crate::testing::whole_pairs;

#[test]
fn what_is_printed_is_what_upstream_measured() {
    let mut deviations = Deviations::default();
    let mut count = 0;
    for case in of_kind("file") {
        let name = case["case"].as_str().unwrap();
        let expected = json(name, "expected.json");
        if name == "line-huge" {
            continue;
        }
        let file = case["files"][0].as_str().unwrap();
        let bytes = fs::read(cases().join(name).join(file)).unwrap();
        one(&case, &expected, &bytes, &mut deviations);
        count += 1;
    }
    assert_eq!(count, 137);
    deviations.settle(&["report"]);
}

#[test]
fn what_is_printed_of_recorded_sessions_is_what_upstream_measured() {
    let Some(recorded) = recorded_cases() else {
        println!("skipped: no recorded cases here, set DSH_SHARED to a directory that has them");
        return;
    };
    let mut deviations = Deviations::default();
    let index = json_at(&recorded.join("index.json"));
    for case in index["cases"].as_array().unwrap() {
        let dir = recorded.join(case["case"].as_str().unwrap());
        let expected = json_at(&dir.join("expected.json"));
        let bytes = fs::read(dir.join("input.jsonl")).unwrap();
        one(case, &expected, &bytes, &mut deviations);
    }
    assert!(deviations.found.is_empty(), "{:#?}", deviations.found);
}

fn one(case: &Value, expected: &Value, bytes: &[u8], deviations: &mut Deviations) {
    let name = case["case"].as_str().unwrap();
    let dir = quick_dir();
    let path = dir.path().join(expected["path"].as_str().unwrap());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    let store = store(dir.path(), compression(case));
    let mut check = |member: &str, ours: Value, upstream: Value| {
        // As texts, so that the order of members counts.
        let (ours, upstream) = (ours.to_string(), upstream.to_string());
        if ours != upstream {
            let detail = format!("{member}: ours {ours}, upstream {upstream}");
            let found = deviations.found.entry(format!("{name}/report"));
            found.or_default().push_str(&(detail + "\n"));
        }
    };

    let outcome = &case["outcome"];
    let id = Target::Id(case["id"].as_str().unwrap().to_owned());
    let by_id = store.report(&id);
    let mut report = match store.report(&Target::File(path.clone())) {
        Ok(report) => report,
        Err(error) => {
            let ours = parse(error_json(&error).as_str())["error"].clone();
            assert_eq!(outcome["result"], "refuse", "{name}: {ours}");
            assert!(!ours["message"].as_str().unwrap().is_empty());
            let ours = json!({"class": ours["class"], "stage": ours["stage"]});
            return check("error", ours, refusal(outcome));
        }
    };
    // Texts of repair results as long as upstream's, which is what its token counts are of.
    if !report.inspection.closers.is_empty() {
        let texts = RepairTexts {
            outcome_unknown: &"x".repeat(313),
            not_started: &"x".repeat(104),
        };
        report.inspection.closers = closers_with(&report.inspection.log.to_vec().unwrap(), texts);
    }
    let text = inspect_json(&report).unwrap();
    let ours = parse(text.as_str());
    // An id leads to the same log; it also says what the log must be called.
    let damage = match (ours["damage"].is_null(), by_id) {
        (true, Ok(by_id)) => by_id.inspection.damage,
        (true, Err(e)) => panic!("{name}: {e}"),
        (false, _) => report.inspection.damage.clone(),
    };
    if let Some(damage) = damage {
        let ours = parse(crate::report::damage_json(Some(&damage)).as_str());
        assert_eq!(keys(&ours), ["class", "stage", "offset", "seq", "reason"]);
        let ours = json!({"class": ours["class"], "stage": ours["stage"]});
        assert!(report.inspection.closers.is_empty(), "{name}");
        return check("damage", ours, refusal(outcome));
    }
    assert_eq!(keys(&ours), MEMBERS, "{name}");
    let (stored, session) = (
        &expected["loadStored"]["value"],
        &expected["session"]["value"],
    );
    check("header", ours["header"].clone(), stored["meta"].clone());
    for key in [
        "eventCount",
        "lastSeq",
        "torn",
        "packedSha256",
        "unpackedSha256",
    ] {
        check(key, ours[key].clone(), stored[key].clone());
    }
    let surface = json!({
        "nodes": session["nodes"],
        "replaceGeneration": session["replaceGeneration"],
    });
    check("surface", ours["surface"].clone(), surface);
    let mut messages = ours["messages"].clone();
    messages.as_array_mut().unwrap().iter_mut().for_each(token);
    check("messages", messages, session["messages"].clone());
    let mut closers = ours["closers"].clone();
    closers.as_array_mut().unwrap().iter_mut().for_each(neutral);
    check("closers", closers, expected["closers"].clone());
    for key in ["requestHeader", "requestContext"] {
        check(key, ours[key].clone(), session[key].clone());
    }
    let projections = &expected["projections"];
    check(
        "title",
        ours["title"].clone(),
        projections["title"]["value"].clone(),
    );
    for key in [
        "sessionStats",
        "tokenUsage",
        "contextPressure",
        "contextBreakdown",
    ] {
        let view = projections[key]["value"]["view"].clone();
        check(key, ours["projections"][key].clone(), view);
    }
}

const MEMBERS: [&str; 14] = [
    "header",
    "eventCount",
    "lastSeq",
    "torn",
    "damage",
    "surface",
    "messages",
    "closers",
    "title",
    "requestHeader",
    "requestContext",
    "projections",
    "packedSha256",
    "unpackedSha256",
];

fn parse(text: &str) -> Value {
    serde_json::from_str(&whole_pairs(text)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn refusal(outcome: &Value) -> Value {
    json!({"class": outcome["error"], "stage": outcome["stage"]})
}

/// The filler of a repair result's message, replaced by the token that the data has.
fn token(message: &mut Value) {
    let Some(text) = message.pointer_mut("/content/0/content/0/text") else {
        return;
    };
    let code = match text.as_str().unwrap_or_default() {
        filler if filler == "x".repeat(313) => "TOOL_OUTCOME_UNKNOWN",
        filler if filler == "x".repeat(104) => "TOOL_NOT_STARTED",
        _ => return,
    };
    *text = format!("{{{{TEXT:{code}}}}}").into();
}
