//! `dsh plugin update` and `outdated`.

use serde_json::json;

use crate::support::{COUNTER, Scratch, counter, greedy, made};

#[test]
fn an_update_says_what_changes_and_what_has_not() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let same = scratch.plugin(["update"]).done();
    assert_eq!(same.stdout, "acme:counter 1.0.0 has not changed\n");
    scratch.put("counter.wasm", &counter("1.1.0"));
    let lock = scratch.lock_text();
    let dry = scratch.plugin(["update", "--dry-run"]).done();
    assert!(
        dry.stdout.contains("version: 1.0.0 -> 1.1.0") && dry.stdout.contains("digest: "),
        "{dry:?}"
    );
    assert_eq!(scratch.lock_text(), lock);
    // It wants no more than it has, so nobody has to be asked.
    let updated = scratch.plugin(["update", "acme:counter"]).done();
    assert!(
        updated.stdout.contains("It wants no more than it has.")
            && updated.stdout.contains("updated acme:counter to 1.1.0"),
        "{updated:?}"
    );
    assert_eq!(scratch.packages().len(), 1, "the old bytes are swept");
    scratch.plugin(["verify"]).done();
}

#[test]
fn an_update_that_wants_more_asks_again_and_keeps_only_what_is_still_wanted() {
    let scratch = Scratch::new();
    scratch.with_counter();
    scratch.put("counter.wasm", &greedy("1.1.0"));
    let lock = scratch.lock_text();
    let refused = scratch.plugin(["update"]).refused(&[
        "nobody can be asked here",
        "appends todo/write",
        "dsh plugin update --yes acme:counter",
        "--grant",
    ]);
    let more = refused.stderr.find("It wants more than it has").unwrap();
    assert!(
        more < refused.stderr.find("version: 1.0.0 -> 1.1.0").unwrap(),
        "wants come first: {refused:?}"
    );
    assert!(
        refused
            .stderr
            .contains("wants it no more, so it goes:\n  - adds the tool c_count"),
        "{refused:?}"
    );
    assert_eq!(scratch.lock_text(), lock);

    let (ended, updated) = scratch.plugin_json(["update", "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let update = &updated["updates"][0];
    assert_eq!(update["status"], "updated");
    assert_eq!(
        update["plugin"]["grants"],
        json!({"journal": ["todo/write"], "tool-names": ["acme_write"]})
    );
    let more: Vec<&str> = update["more"]
        .as_array()
        .unwrap()
        .iter()
        .map(|want| want["grant"].as_str().unwrap())
        .collect();
    assert!(
        more.contains(&"journal") && more.contains(&"tool-names"),
        "{more:?}"
    );
    assert_eq!(update["plugin"]["tools"], json!(["acme_write"]));
}

/// What a person gave is kept as they gave it, though the plugin wants more of it: that is asked, not taken.
#[test]
fn a_narrower_grant_stays_as_it_is() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &greedy("1.0.0"));
    scratch
        .plugin(["add", "--grant", "tool-names=acme_write", "counter.wasm"])
        .done();
    scratch.put("counter.wasm", &greedy("1.1.0"));
    scratch.plugin(["update"]).refused(&["appends todo/write"]);
    scratch
        .plugin(["update", "--grant", "tool-names=acme_write"])
        .done();
    let (_, list) = scratch.plugin_json(["list"]);
    assert_eq!(
        list["plugins"][0]["grants"],
        json!({"tool-names": ["acme_write"]})
    );
    assert_eq!(list["plugins"][0]["version"], "1.1.0");
}

#[test]
fn an_update_keeps_a_persons_ids_and_what_they_disabled() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    scratch
        .plugin(["add", "--yes", "--as", "counter=mine", "counter.wasm"])
        .done();
    scratch.plugin(["disable", "acme:counter"]).done();
    scratch.put("counter.wasm", &counter("1.1.0"));
    scratch.plugin(["update"]).done();
    let (_, list) = scratch.plugin_json(["list"]);
    assert_eq!(
        (
            &list["plugins"][0]["rows"][0]["id"],
            &list["plugins"][0]["disabled"]
        ),
        (&json!("mine"), &json!(true))
    );
}

#[test]
fn another_source_is_taken_when_it_is_named_and_another_plugin_never() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let other = scratch.put("other.wasm", &counter("1.1.0"));
    let updated = scratch
        .plugin(["update", "--from", "other.wasm", "acme:counter"])
        .done();
    assert!(
        updated.stdout.contains("source: ") && updated.stdout.contains(&*other.to_string_lossy()),
        "{updated:?}"
    );
    scratch.put(
        "twin.wasm",
        &made(
            COUNTER,
            &json!({"plugin": {"name": "evil:twin", "version": "9.0.0"}}),
        ),
    );
    scratch
        .plugin(["update", "--yes", "--from", "twin.wasm", "acme:counter"])
        .refused(&["acme:counter", "evil:twin"]);
    // Older, and unsigned: only when it is asked for.
    scratch.put("old.wasm", &counter("0.9.0"));
    scratch
        .plugin(["update", "--from", "old.wasm", "acme:counter"])
        .refused(&["0.9.0", "1.1.0", "--allow-downgrade"]);
    scratch
        .plugin([
            "update",
            "--allow-downgrade",
            "--from",
            "old.wasm",
            "acme:counter",
        ])
        .done();
    std::fs::remove_file(scratch.work().join("old.wasm")).unwrap();
    scratch
        .plugin(["update"])
        .refused(&["acme:counter", "old.wasm", "--from SOURCE acme:counter"]);
    scratch
        .plugin(["update", "acme:none"])
        .refused(&["no plugin acme:none"]);
}

#[test]
fn one_that_cannot_be_updated_keeps_no_other_from_it() {
    let scratch = Scratch::new();
    scratch.with_counter();
    scratch.put("todo.wasm", &crate::support::todo());
    scratch.plugin(["add", "--yes", "todo.wasm"]).done();
    std::fs::remove_file(scratch.work().join("counter.wasm")).unwrap();
    let bytes = made(
        crate::support::TODO,
        &json!({"plugin": {"name": "acme:todo", "version": "1.0.1"}, "rows": [{"id": "todo"}], "wants": {"journal": ["todo/write"]}}),
    );
    scratch.put(
        "todo.wasm",
        &crate::support::replaced(&bytes, b"todo_write", b"acme_write"),
    );
    let (ended, updated) = scratch.plugin_json(["update"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(
        (
            &updated["updates"][0]["status"],
            &updated["updates"][1]["status"]
        ),
        (&json!("failed"), &json!("updated"))
    );
    assert!(ended.stderr.contains("counter.wasm"), "{ended:?}");
}

#[test]
fn outdated_asks_the_sources_and_changes_nothing() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let sound = scratch.plugin(["outdated"]).done();
    assert_eq!(sound.stdout, "acme:counter 1.0.0 is what its source has\n");
    scratch.put("counter.wasm", &counter("1.1.0"));
    let lock = scratch.lock_text();
    let (ended, outdated) = scratch.plugin_json(["outdated"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(outdated["plugins"][0]["outdated"], true);
    assert_eq!(outdated["plugins"][0]["available"]["version"], "1.1.0");
    let text = scratch.plugin(["outdated"]).done().stdout;
    assert!(
        text.contains("its source has 1.1.0") && text.contains("dsh plugin update acme:counter"),
        "{text}"
    );
    assert_eq!(scratch.lock_text(), lock);
    std::fs::remove_file(scratch.work().join("counter.wasm")).unwrap();
    let (ended, outdated) = scratch.plugin_json(["outdated"]);
    assert_eq!(
        (ended.code, &outdated["plugins"][0]["outdated"]),
        (Some(1), &json!(null))
    );
}
