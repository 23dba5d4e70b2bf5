use super::*;
use crate::engine::{Engine, EngineConfig};

fn engine() -> Engine {
    Engine::new(EngineConfig::default()).unwrap()
}

fn bounds(call: Option<Duration>) -> Bounds<'static> {
    static NEVER: std::sync::LazyLock<CancellationToken> =
        std::sync::LazyLock::new(CancellationToken::new);
    Bounds {
        call,
        cancel: &NEVER,
    }
}

#[tokio::test]
async fn what_is_done_at_once_needs_no_runtime_of_its_own() {
    let engine = engine();
    let caller = std::thread::current().id();
    let here = Box::pin(async { std::thread::current().id() });
    assert_eq!(
        run(engine.inner(), Arc::default(), bounds(None), here).await,
        Ok(caller)
    );
    let later = Box::pin(async {
        tokio::task::yield_now().await;
        std::thread::current().id()
    });
    assert_ne!(
        run(engine.inner(), Arc::default(), bounds(None), later).await,
        Ok(caller)
    );
}

#[tokio::test]
async fn what_a_component_asked_to_wait_is_not_counted() {
    let engine = engine();
    let meter = Arc::new(Meter::default());
    let inside = Arc::clone(&meter);
    let waits = Box::pin(async move {
        for _ in 0..5 {
            inside.waits(Duration::from_millis(20));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(
        run(
            engine.inner(),
            meter,
            bounds(Some(Duration::from_secs(3600))),
            waits
        )
        .await,
        Ok(())
    );
    let for_ever = Box::pin(std::future::pending::<()>());
    let soon = bounds(Some(Duration::from_millis(20)));
    assert_eq!(
        run(engine.inner(), Arc::default(), soon, for_ever).await,
        Err(Stopped::Timeout)
    );
}

#[tokio::test]
async fn a_cancel_ends_what_does_not_return_after_the_grace() {
    let engine = engine();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let bounds = Bounds {
        call: None,
        cancel: &cancel,
    };
    let for_ever = Box::pin(std::future::pending::<()>());
    assert_eq!(
        run(engine.inner(), Arc::default(), bounds, for_ever).await,
        Err(Stopped::Cancelled)
    );
}

#[test]
fn a_meter_counts_the_ticks_inside_and_none_between() {
    let meter = Meter::default();
    meter.reset(3);
    meter.enter(10);
    assert!(!meter.exhausted(13));
    meter.leave(12);
    meter.enter(1000);
    assert!(!meter.exhausted(1001));
    assert!(meter.exhausted(1002));
    meter.reset(3);
    assert!(!meter.exhausted(1003));
}
