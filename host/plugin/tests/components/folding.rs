//! Projections: a fold that depends on nothing but its events.

use dsh_plugin::{CallContext, CallError, Projection};
use serde_json::json;

use crate::support::{all, try_mount};

async fn projection() -> Projection {
    let config = json!({"project": true}).to_string();
    let mounted = try_mount(&config, all()).await.unwrap();
    mounted.projection().unwrap()
}

fn events(events: &[&str]) -> Vec<String> {
    events.iter().map(|event| (*event).to_owned()).collect()
}

#[tokio::test]
async fn a_projection_folds_the_same_however_the_events_are_cut() {
    let projection = projection().await;
    let spec = &projection.specs()[0];
    assert_eq!((spec.key.as_str(), spec.version), ("bytes", 3));
    assert_eq!(spec.kinds, ["user/message"]);
    let ctx = CallContext::default();
    let whole = projection
        .fold(&ctx, "bytes", None, events(&["a", "bc", "def"]))
        .await
        .unwrap();
    let first = projection
        .fold(&ctx, "bytes", None, events(&["a"]))
        .await
        .unwrap();
    let rest = projection
        .fold(&ctx, "bytes", Some(first), events(&["bc", "def"]))
        .await
        .unwrap();
    assert_eq!((whole.as_str(), &rest), ("6", &whole));
    let view = projection.view(&ctx, "bytes", whole).await.unwrap();
    assert_eq!(view, "bytes 6");
}

/// With all grants: what it may do elsewhere it may not do while it folds.
#[tokio::test]
async fn h64_a_projection_that_calls_the_host_is_ended() {
    let ctx = CallContext::default();
    for import in [
        "session",
        "journal",
        "clock",
        "random",
        "inbox",
        "kv",
        "workspace",
        "spill",
        "process",
        "llm",
    ] {
        let projection = projection().await;
        let error = projection
            .fold(&ctx, "bytes", None, events(&[import]))
            .await
            .unwrap_err();
        let CallError::Trap { reason, .. } = &error else {
            panic!("{import}: {error}")
        };
        assert!(
            reason.contains(import) && reason.contains("while it folds the log"),
            "{import}: {error}"
        );
    }
}

#[tokio::test]
async fn a_projection_that_fails_is_as_any_other_row() {
    let projection = projection().await;
    let ctx = CallContext::default();
    let fold = |event: &'static str| projection.fold(&ctx, "bytes", None, events(&[event]));
    assert_eq!(fold("fail").await.unwrap_err().code(), "AS_TOLD");
    for _ in 0..3 {
        assert_eq!(fold("panic").await.unwrap_err().code(), "PLUGIN_TRAP");
    }
    assert_eq!(fold("a").await.unwrap_err().code(), "PLUGIN_QUARANTINED");
}
