use dsh_plugin::{Error, want};
use serde_json::json;

use crate::support::{component, engine, engine_in, guest, load_text};

#[tokio::test]
async fn what_a_component_offers_is_asked_without_granting_anything() {
    let offered = engine()
        .survey(&component().await, "prober", r#"{"listen":true}"#)
        .await
        .unwrap();
    let tools: Vec<&str> = offered
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(tools, ["one", "two"]);
    assert_eq!(offered.routes.len(), 1);
    assert_eq!(offered.subscriptions[0].event, "agent/pre-step");
}

#[tokio::test]
async fn a_survey_tells_what_a_row_would_need_to_be_mounted() {
    let component = component().await;
    let offered = engine()
        .survey(&component, "prober", r#"{"listen":true}"#)
        .await
        .unwrap();
    let wants = want::wants(component.description(), &offered).unwrap();
    let grants: serde_json::Map<_, _> = wants
        .into_iter()
        .map(|want| (want.grant, want.parameters))
        .collect();
    let row = dsh_plugin::Row {
        id: "prober".to_owned(),
        limits: dsh_plugin::Limits::of(&component, &json!({})).unwrap(),
        component,
        config: r#"{"listen":true}"#.to_owned(),
        grants: dsh_plugin::Grants::parse(&grants.into()).unwrap(),
    };
    let mounted = engine().mount(row).await.unwrap();
    assert_eq!(mounted.subscriptions(), offered.subscriptions);
}

#[tokio::test]
async fn a_survey_calls_nothing_of_the_hosts() {
    let error = engine()
        .survey(&component().await, "prober", r#"{"misplaced":1}"#)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("row prober") && error.contains("clock.now"),
        "{error}"
    );
}

#[tokio::test]
async fn a_component_of_another_world_is_refused_when_it_is_surveyed() {
    let other = r#"(component
        (import "dsh:plugin/work@0.1.0" (instance (export "cancelled" (func (result string)))))
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $p (export "sections" (func $f)))
        (export "dsh:plugin/prompt@0.1.0" (instance $p)))"#;
    let component = load_text(engine(), other).await.unwrap();
    let error = engine().survey(&component, "r", "{}").await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    let component = load_text(engine(), "(component)").await.unwrap();
    let error = engine().survey(&component, "r", "{}").await.unwrap_err();
    assert!(matches!(error, Error::NothingToMount { .. }), "{error}");
}

#[tokio::test]
async fn what_was_surveyed_is_kept_and_grants_are_checked_all_the_same() {
    let cache = tempfile::tempdir().unwrap();
    let engine = engine_in(cache.path());
    let component = engine.load_bytes(guest().to_vec()).await.unwrap();
    let config = r#"{"listen":true}"#;
    let offered = engine.survey(&component, "prober", config).await.unwrap();
    assert_eq!(
        engine.survey(&component, "prober", config).await.unwrap(),
        offered
    );
    let mut grants = crate::support::all();
    let members = grants.as_object_mut().unwrap();
    members.retain(|name, _| name != "observe" && name != "decide");
    let row = dsh_plugin::Row {
        id: "prober".to_owned(),
        limits: dsh_plugin::Limits::of(&component, &json!({})).unwrap(),
        component,
        config: config.to_owned(),
        grants: dsh_plugin::Grants::parse(&grants).unwrap(),
    };
    let error = engine.mount(row).await.err().unwrap();
    assert!(matches!(error, Error::ExportNotGranted { .. }), "{error}");
}
