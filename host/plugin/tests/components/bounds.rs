use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_plugin::api::{CallConfig, PluginError};
use dsh_plugin::port::{Picture, Pictures, PortSet};
use dsh_plugin::{CallContext, CallError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{call, mount, mount_with, run};

#[tokio::test]
async fn h5_a_loop_is_stopped_by_its_cpu_bound() {
    let mounted = mount_with(json!({"cpu": "50ms"})).await;
    let ctx = CallContext::default();
    let error = mounted.call_tool(&ctx, call("spin", "")).await.unwrap_err();
    assert!(
        matches!(error, CallError::Cpu { limit_ms: 50, .. }),
        "{error}"
    );
    assert_eq!(run(&mounted, &ctx, "echo", "after").await, "after");
}

/// On one thread, with more loops than the components' runtime has threads: if
/// they starved anybody, the loops would end by their bound instead.
#[tokio::test]
async fn loops_starve_neither_other_calls_nor_timers() {
    let mounted = mount_with(json!({"cpu": "10m"})).await;
    let cancel = CancellationToken::new();
    let ctx = CallContext {
        cancel: cancel.clone(),
        ..CallContext::default()
    };
    let loops: Vec<_> = (0..9)
        .map(|_| {
            let (mounted, ctx) = (mounted.clone(), ctx.clone());
            tokio::spawn(async move { mounted.call_tool(&ctx, call("spin", "")).await })
        })
        .collect();
    let others = CallContext::default();
    for n in 0..20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(
            run(&mounted, &others, "echo", &n.to_string()).await,
            n.to_string()
        );
        assert_eq!(run(&mounted, &others, "wait", "1").await, "waited");
    }
    cancel.cancel();
    for task in loops {
        assert!(matches!(
            task.await.unwrap(),
            Err(CallError::Cancelled { .. })
        ));
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_ended_though_it_may_compute() {
    let mounted = mount_with(json!({"cpu": "10m", "call": "30ms"})).await;
    let adapter = mounted.adapter().unwrap();
    let config = CallConfig {
        model: "spin".to_owned(),
        ..CallConfig::default()
    };
    let error = adapter
        .prepare(&CallContext::default(), config)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Timeout { limit_ms: 30, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_tools_run_has_no_bound_on_the_wall_clock() {
    let mounted = mount_with(json!({"call": "10ms"})).await;
    assert_eq!(
        run(&mounted, &CallContext::default(), "wait", "60").await,
        "waited"
    );
}

/// Takes a while for each picture.
struct Slow;

#[async_trait]
impl Pictures for Slow {
    async fn render(
        &self,
        attachment: &str,
        _: Option<u32>,
        _: Option<u32>,
    ) -> Result<Picture, PluginError> {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(Picture {
            id: attachment.to_owned(),
            media_type: "image/png".to_owned(),
            bytes: 1,
            width: 1,
            height: 1,
            alpha: false,
        })
    }
}

#[tokio::test]
async fn what_pictures_take_to_be_made_does_not_count_against_the_call() {
    let mounted = mount_with(json!({"call": "1s"})).await;
    let ctx = CallContext {
        ports: Arc::new(PortSet {
            pictures: Some(Arc::new(Slow)),
            ..PortSet::default()
        }),
        ..CallContext::default()
    };
    let config = CallConfig {
        model: "pictures".to_owned(),
        ..CallConfig::default()
    };
    let adapter = mounted.adapter().unwrap();
    adapter.prepare(&ctx, config).await.unwrap();
}

#[tokio::test]
async fn memory_ends_at_its_cap() {
    let mounted = mount_with(json!({"memory": "8MiB"})).await;
    let ctx = CallContext::default();
    let error = mounted.call_tool(&ctx, call("grow", "")).await.unwrap_err();
    assert!(
        matches!(
            error,
            CallError::Memory {
                limit: 8_388_608,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(run(&mounted, &ctx, "echo", "after").await, "after");
}

#[tokio::test]
async fn h7_recursion_ends_at_the_stacks_end() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    let error = mounted
        .call_tool(&ctx, call("recurse", ""))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, CallError::Trap { reason, .. } if reason.contains("stack")),
        "{error}"
    );
    assert_eq!(run(&mounted, &ctx, "echo", "after").await, "after");
}

#[tokio::test]
async fn h10_what_a_call_hands_over_has_a_cap_however_small_its_pieces() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    for name in ["huge", "amplify"] {
        let error = mounted.call_tool(&ctx, call(name, "")).await.unwrap_err();
        assert!(
            matches!(
                error,
                CallError::Text {
                    limit: 16_777_216,
                    ..
                }
            ),
            "{name}: {error}"
        );
    }
    let less = mount_with(json!({"output": "1KiB"})).await;
    assert_eq!(run(&less, &ctx, "echo", "short").await, "short");
    let error = less
        .call_tool(&ctx, call("echo", &"x".repeat(2000)))
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Output { limit: 1024, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn what_a_call_hands_over_in_many_goes_has_a_cap_too() {
    let mounted = mount_with(json!({"output": "16KiB"})).await;
    // Nothing is behind it, and what is handed over is counted all the same.
    let ctx = CallContext::default();
    let error = mounted
        .call_tool(&ctx, call("chatter", ""))
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Output { limit: 16_384, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn imports_are_called_so_often_and_no_more() {
    let mounted = mount_with(json!({"calls": 50})).await;
    let ctx = CallContext::default();
    assert_eq!(run(&mounted, &ctx, "config-often", "50").await, "done");
    let error = mounted
        .call_tool(&ctx, call("config-often", "51"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Calls { limit: 50, .. }),
        "{error}"
    );
    assert_eq!(error.code(), "PLUGIN_CALLS");
    // Each call has its own: also on an instance that is kept.
    assert_eq!(run(&mounted, &ctx, "config-often", "50").await, "done");
}

#[tokio::test]
async fn h9_texts_that_are_none_or_lie_outside_of_memory_are_refused() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    for (name, reason) in [
        ("no-text", "utf-8"),
        ("out-of-bounds", "out of bounds"),
        ("too-long", ""),
    ] {
        let error = mounted.call_tool(&ctx, call(name, "")).await.unwrap_err();
        assert!(
            error.is_failure_of_component() && error.to_string().contains(reason),
            "{name}: {error}"
        );
        assert_eq!(run(&mounted, &ctx, "echo", "after").await, "after");
    }
}

#[tokio::test]
async fn cancelling_answers_the_waiting_import_and_lets_the_component_tell() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    let (told, ()) = tokio::join!(run(&mounted, &ctx, "wait-then-tell", ""), async {
        tokio::task::yield_now().await;
        ctx.cancel.cancel();
    });
    assert_eq!(told, "CANCELLED true");
}

#[tokio::test]
async fn a_component_that_only_computes_sees_the_cancel() {
    let mounted = mount_with(json!({"cpu": "10m"})).await;
    let ctx = CallContext::default();
    let (told, ()) = tokio::join!(run(&mounted, &ctx, "poll", ""), async {
        ctx.cancel.cancel();
    });
    assert_eq!(told, "saw it");
}

#[tokio::test]
async fn one_that_does_not_return_after_a_cancel_is_interrupted() {
    let mounted = mount_with(json!({"cpu": "10m"})).await;
    let ctx = CallContext::default();
    ctx.cancel.cancel();
    let error = mounted
        .call_tool(&ctx, call("wait-then-spin", ""))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Cancelled { .. }), "{error}");
    assert!(mounted.quarantine().is_none());
}

/// Nothing of a call is left once its ports are let go.
#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_ends() {
    let mounted = mount_with(json!({"cpu": "10m"})).await;
    let ports = Arc::new(PortSet::default());
    let ctx = CallContext {
        ports: Arc::clone(&ports),
        ..CallContext::default()
    };
    let task = tokio::spawn({
        let mounted = mounted.clone();
        async move { mounted.call_tool(&ctx, call("spin", "")).await }
    });
    while !task.is_finished() && Arc::strong_count(&ports) < 3 {
        tokio::task::yield_now().await;
    }
    task.abort();
    while Arc::strong_count(&ports) > 1 {
        tokio::task::yield_now().await;
    }
}

/// The memory's bound would come first, so it is wider here.
#[tokio::test]
async fn h67_an_event_of_any_size_does_not_reach_the_log() {
    let mounted = mount_with(json!({"memory": "1GiB", "output": "1GiB", "cpu": "10m"})).await;
    let ctx = CallContext::default();
    for bytes in ["17000000", "200000000"] {
        let error = mounted
            .call_tool(&ctx, call("append-large", bytes))
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                CallError::Text {
                    limit: 16_777_216,
                    ..
                }
            ),
            "{bytes}: {error}"
        );
    }
    let small = mount().await;
    let error = small
        .call_tool(&ctx, call("append-large", "1000000000"))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Memory { .. }), "{error}");
}
