use super::*;

fn json(text: &str) -> Json {
    Json::normalise(text).unwrap()
}

#[test]
fn a_person_can_be_told_what_each_event_means() {
    for spec in events() {
        let known = dsh_plugin::want::event(spec.name)
            .unwrap_or_else(|| panic!("{} has no words", spec.name));
        assert_eq!(
            known.lets.is_some(),
            !spec.mode.only_tells(),
            "{}",
            spec.name
        );
    }
}

#[test]
fn every_schema_of_the_table_compiles_and_fits_its_mode() {
    for spec in events() {
        for text in [Some(spec.payload), spec.result].into_iter().flatten() {
            let schema = Json::normalise(text)
                .unwrap_or_else(|error| panic!("{}: {error}: {text}", spec.name));
            Schema::compile(schema.value())
                .unwrap_or_else(|error| panic!("{}: {error}", spec.name));
        }
        assert_eq!(
            spec.result.is_none(),
            spec.mode.only_tells(),
            "{}",
            spec.name
        );
        let waterfall = spec.mode == Mode::Waterfall;
        assert!(
            waterfall || spec.rewrites.is_empty() && !spec.leaves,
            "{}",
            spec.name
        );
        if spec.mode.only_tells() {
            assert_eq!(spec.on_failure, OnFailure::LeaveOut, "{}", spec.name);
        }
    }
}

#[test]
fn a_rewrite_changes_what_may_be_rewritten_and_nothing_else() {
    let spec = event("tools/execute").unwrap();
    let payload = json(
        r#"{"turn":1,"step":1,"callId":"c","name":"bash","arguments":{"command":"ls"},"raw":"{}"}"#,
    );
    let by = json(
        r#"{"turn":9,"name":"other","arguments":{"command":"rm"},"deadlineMs":5,"extra":true}"#,
    );
    let rewritten = spec.rewritten(&payload, &by).unwrap();
    assert_eq!(
        rewritten.as_str(),
        r#"{"turn":1,"step":1,"callId":"c","name":"bash","arguments":{"command":"ls"},"raw":"{}","deadlineMs":5}"#
    );
    let wrong = spec.rewritten(&payload, &json(r#"{"deadlineMs":"soon"}"#));
    assert!(wrong.unwrap_err().contains("deadlineMs"));
    for name in [
        "tools/pre-execute",
        "llm/stream",
        "approval/request",
        "fs/edit-intent",
    ] {
        let refused = event(name).unwrap().rewritten(&payload, &payload);
        assert!(
            refused.unwrap_err().contains("cannot be rewritten"),
            "{name}"
        );
    }
}

#[test]
fn a_subscription_names_an_event_of_a_run_and_is_beside_it_only_where_it_is_told() {
    assert!(check_subscription("session/event", true).is_ok());
    assert!(check_subscription("tools/execute", false).is_ok());
    assert!(
        check_subscription("tools/execute", true)
            .unwrap_err()
            .contains("beside")
    );
    for (name, why) in [
        ("workflow/start", "no run has: there are no workflows yet"),
        ("workflow/strat", "no run has: there is no such event"),
    ] {
        assert!(check_subscription(name, false).unwrap_err().ends_with(why));
    }
}

#[test]
fn a_result_of_another_shape_is_refused_in_words() {
    let refused = |name: &str, result: &str| {
        event(name)
            .unwrap()
            .check_result(&json(result))
            .unwrap_err()
    };
    assert!(refused("tools/pre-execute", r#"{"kind":"maybe"}"#).contains("oneOf"));
    assert!(refused("approval/request", r#"{"outcome":"sure"}"#).contains("outcome"));
    assert!(refused("agent/request", r#"{"provider":1,"model":"m"}"#).contains("provider"));
    assert!(refused("session/event", "null").contains("no result"));
}
