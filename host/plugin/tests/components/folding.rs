//! Projections: a fold that depends on nothing but its events.

use dsh_plugin::{CallContext, CallError, Projection};
use serde_json::json;

use crate::support::{all, try_mount};

async fn projection() -> Projection {
    let config = json!({"project": true}).to_string();
    let mounted = try_mount(&config, all()).await.unwrap();
    mounted.projection().unwrap()
}

fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
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
        .fold(&ctx, "bytes", None, events(&["a", "bc", "def"]), any)
        .await
        .unwrap();
    let first = projection
        .fold(&ctx, "bytes", None, events(&["a"]), any)
        .await
        .unwrap();
    let rest = projection
        .fold(&ctx, "bytes", Some(first), events(&["bc", "def"]), any)
        .await
        .unwrap();
    assert_eq!((whole.as_str(), &rest), ("6", &whole));
    let view = projection.view(&ctx, "bytes", whole, any).await.unwrap();
    assert_eq!(view, "\"bytes 6\"");
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
        "attachments",
        "pictures",
        "process",
        "llm",
    ] {
        let projection = projection().await;
        let error = projection
            .fold(&ctx, "bytes", None, events(&[import]), any)
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
    let fold = |event: &'static str| projection.fold(&ctx, "bytes", None, events(&[event]), any);
    assert_eq!(fold("fail").await.unwrap_err().code(), "AS_TOLD");
    for _ in 0..3 {
        assert_eq!(fold("panic").await.unwrap_err().code(), "PLUGIN_TRAP");
    }
    assert_eq!(fold("a").await.unwrap_err().code(), "PLUGIN_QUARANTINED");
}

/// What it does well at one thing does not make up for what it fails at.
#[tokio::test]
async fn a_state_that_is_not_accepted_is_a_failure_of_the_component() {
    let projection = projection().await;
    let ctx = CallContext::default();
    let fold = |accept: fn(&str) -> Result<String, String>| {
        projection.fold(&ctx, "bytes", None, events(&["a"]), accept)
    };
    let view = || projection.view(&ctx, "bytes", "1".to_owned(), any);
    for _ in 0..3 {
        assert_eq!(view().await.unwrap(), "\"bytes 1\"");
        let error = fold(|_| Err("too long".to_owned())).await.unwrap_err();
        assert!(matches!(error, CallError::Nonsense { .. }), "{error}");
        assert!(error.to_string().ends_with("nonsense: too long"), "{error}");
    }
    for out in [fold(any).await, view().await] {
        assert!(matches!(out, Err(CallError::Quarantined { .. })), "{out:?}");
    }
}
