use dsh_plugin::api::{Concurrency, PluginError};
use dsh_plugin::{CallContext, CallError};
use serde_json::{Value, json};

use crate::support::{all, call, mount, run, try_mount};

#[tokio::test]
async fn a_tool_runs_on_a_fresh_instance_each_time() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    assert_eq!(run(&mounted, &ctx, "calls", "").await, "1");
    assert_eq!(run(&mounted, &ctx, "calls", "").await, "1");
}

#[tokio::test]
async fn what_a_component_offers_is_read_when_it_is_mounted() {
    let mounted = mount().await;
    let names: Vec<_> = mounted
        .tools()
        .iter()
        .map(|tool| (tool.name.as_str(), tool.concurrency))
        .collect();
    assert_eq!(
        names,
        [("one", Concurrency::Ask), ("two", Concurrency::Ask)]
    );
    assert_eq!(mounted.tools()[0].parameters, r#"{"type":"object"}"#);
    assert!(mounted.routes()[0].contains(r#""provider":"prober""#));
    assert!(mounted.subscriptions().is_empty() && mounted.has_prompt());
    let listening = try_mount(r#"{"listen":true}"#, all()).await.unwrap();
    assert_eq!(listening.subscriptions()[0].event, "agent/pre-step");
    assert!(listening.subscriptions()[0].beside);
}

#[tokio::test]
async fn an_error_of_the_components_own_is_an_answer() {
    let mounted = mount().await;
    let expected = PluginError {
        code: "AS_TOLD".to_owned(),
        message: "as it was told".to_owned(),
        details: Some("{}".to_owned()),
    };
    for _ in 0..5 {
        let error = mounted
            .call_tool(&CallContext::default(), call("fail", ""))
            .await
            .unwrap_err();
        assert_eq!(error, CallError::Plugin(expected.clone()));
    }
    assert!(mounted.quarantine().is_none());
}

#[tokio::test]
async fn a_component_knows_its_configuration_and_whom_it_works_for() {
    let mounted = try_mount(r#"{"a":1}"#, all()).await.unwrap();
    let ctx = CallContext {
        session_id: Some("s".to_owned()),
        ..CallContext::default()
    };
    assert_eq!(run(&mounted, &ctx, "config", "").await, r#"{"a":1}"#);
    let about: Value = serde_json::from_str(&run(&mounted, &ctx, "about", "").await).unwrap();
    let expected = json!({
        "host": "dsh", "version": "9.9.9", "contract": "0.1.0", "plugin": "prober", "row": "prober", "sessionId": "s",
    });
    assert_eq!(about, expected);
}

#[tokio::test]
async fn a_panic_costs_its_instance_and_nothing_else() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    let error = mounted
        .call_tool(&ctx, call("panic", ""))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "PLUGIN_TRAP");
    assert!(error.to_string().contains("tool.run"), "{error}");
    assert_eq!(run(&mounted, &ctx, "calls", "").await, "1");
}

#[tokio::test]
async fn three_traps_in_a_row_put_the_row_out_of_use_and_no_other() {
    let mounted = mount().await;
    let other = mount().await;
    let ctx = CallContext::default();
    for _ in 0..2 {
        mounted
            .call_tool(&ctx, call("panic", ""))
            .await
            .unwrap_err();
    }
    assert_eq!(run(&mounted, &ctx, "echo", "between").await, "between");
    for _ in 0..3 {
        assert_eq!(
            mounted
                .call_tool(&ctx, call("panic", ""))
                .await
                .unwrap_err()
                .code(),
            "PLUGIN_TRAP"
        );
    }
    let error = mounted.call_tool(&ctx, call("echo", "")).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Quarantined { row, failures: 3, .. } if row == "prober"),
        "{error}"
    );
    assert!(matches!(
        mounted
            .prompt()
            .unwrap()
            .sections(&ctx, String::new())
            .await,
        Err(CallError::Quarantined { .. })
    ));
    assert_eq!(mounted.quarantine(), Some(error));
    assert_eq!(run(&other, &ctx, "echo", "other").await, "other");
}

#[tokio::test]
async fn whether_calls_may_overlap_is_the_tools_to_say_and_a_trap_means_no() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    assert!(mounted.may_overlap(&ctx, call("one", "yes")).await);
    assert!(!mounted.may_overlap(&ctx, call("one", "no")).await);
    assert!(!mounted.may_overlap(&ctx, call("panic", "yes")).await);
}

#[tokio::test]
async fn a_prompt_keeps_its_instance_and_needs_a_grant_to_replace_all() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    let prompt = mounted.prompt().unwrap();
    for expected in ["v 1", "v 2"] {
        assert_eq!(
            prompt.sections(&ctx, "v".to_owned()).await.unwrap()[0].text,
            expected
        );
    }
    assert_eq!(
        mounted
            .prompt()
            .unwrap()
            .sections(&ctx, "v".to_owned())
            .await
            .unwrap()[0]
            .text,
        "v 1"
    );
    let error = prompt
        .sections(&ctx, "complete".to_owned())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "DENIED");
    let mut grants = all();
    grants["prompt.complete"] = json!(true);
    let granted = try_mount("{}", grants).await.unwrap();
    assert!(
        granted
            .prompt()
            .unwrap()
            .sections(&ctx, "complete".to_owned())
            .await
            .unwrap()[0]
            .complete
    );
}

#[tokio::test]
async fn a_listener_is_told_asked_and_passed_through() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    let dispatch = mounted.dispatch().unwrap();
    dispatch
        .notify(&ctx, "test/e", vec!["{}".to_owned()])
        .await
        .unwrap();
    assert_eq!(
        dispatch
            .decide(&ctx, "test/e", "p".to_owned())
            .await
            .unwrap()
            .as_deref(),
        Some("p")
    );
    let entry = dispatch
        .enter(&ctx, "test/e", "p".to_owned())
        .await
        .unwrap();
    assert_eq!(
        entry.verdict,
        dsh_plugin::api::Verdict::Rewrite("p".to_owned())
    );
    let left = dispatch
        .leave(&ctx, "test/e", entry.carry.unwrap(), "o".to_owned())
        .await
        .unwrap();
    assert_eq!(left.as_deref(), Some("test/e test/e o"));
    assert_eq!(
        dispatch
            .enter(&ctx, "test/panic", String::new())
            .await
            .unwrap_err()
            .code(),
        "PLUGIN_TRAP"
    );
    dispatch.notify(&ctx, "test/e", vec![]).await.unwrap();
}
