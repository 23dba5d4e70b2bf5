//! `kind: layout`: several files below a root, found, listed, loaded, created.

use std::fs;

use dsh_session::{Header, Session};
use serde_json::Value;

use super::*;

#[test]
fn sessions_are_found_and_listed_as_upstream_does_except_that_none_hides_another() {
    let mut deviations = Deviations::default();
    let cases = of_kind("layout");
    assert_eq!(cases.len(), 10);
    for case in &cases {
        one(case, &mut deviations);
    }
    deviations.settle(&["layout-list", "layout-load", "layout-create"]);
}

fn one(case: &Value, deviations: &mut Deviations) {
    let name = case["case"].as_str().unwrap();
    let expected = json(name, "expected.json");
    let dir = quick_dir();
    for entry in fs::read_dir(cases().join(name)).unwrap() {
        let entry = entry.unwrap();
        let file = entry.file_name().into_string().unwrap();
        if let Some(place) = file.strip_prefix("root__") {
            let path = dir.path().join(place.replace("__", "/"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(entry.path(), path).unwrap();
        }
    }
    let root = if name == "lay-absent-root" {
        dir.path().join("absent")
    } else {
        dir.path().to_owned()
    };
    let store = store(&root, compression(case));

    let listed = store.list().unwrap();
    let headers: Vec<Value> = listed
        .iter()
        .filter_map(|e| e.header.as_ref().ok())
        .map(header_json)
        .collect();
    let damages: Vec<String> = listed
        .iter()
        .filter_map(|e| Some(format!("{:?}: {}", e.id(), e.header.as_ref().err()?)))
        .collect();
    if expected["list"]["ok"] != true {
        deviations.note(
            name,
            "layout-list",
            format!("upstream lists nothing, ours {headers:?} and {damages:?}"),
        );
        assert!(
            !damages.is_empty(),
            "{name}: what upstream complains about is not named"
        );
    } else if Value::from(headers.clone()) != expected["list"]["value"] || !damages.is_empty() {
        let detail = format!(
            "upstream {}, ours {headers:?} and {damages:?}",
            expected["list"]["value"]
        );
        deviations.note(name, "layout-list", detail);
    }

    for (id, expected) in expected["load"].as_object().unwrap() {
        let ours = store.repair(id);
        match (&ours, expected["ok"] == true) {
            (Ok(inspection), true) => assert_eq!(
                inspection.log.len(),
                expected["value"]["eventCount"],
                "{name} {id}"
            ),
            (Err(e), false) => {
                let unsupported = expected["error"]["name"] == "SessionFormatUnsupportedError";
                assert_eq!(
                    e.code() == "SESSION_FORMAT_UNSUPPORTED",
                    unsupported,
                    "{name} {id}: {e}"
                );
                let message = expected["error"]["message"].as_str().unwrap();
                assert_eq!(
                    e.code() == "SESSION_NOT_FOUND",
                    message.ends_with("not found"),
                    "{name} {id}: {e}"
                );
            }
            _ => deviations.note(
                name,
                "layout-load",
                format!("{id}: ours {ours:?}, upstream {expected}"),
            ),
        }
    }

    // The data's `create` makes session s-1 of /work/p anew.
    let mut header = Header::new("s-1", 1_700_000_000_000);
    header.cwd = Some("/work/p".into());
    let created = store.create(&Session::new(header).unwrap());
    if created.is_ok() != (expected["create"]["ok"] == true) {
        deviations.note(
            name,
            "layout-create",
            format!("ours {:?}, upstream {}", created.err(), expected["create"]),
        );
    }
}
