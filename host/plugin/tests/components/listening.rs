//! What a listener may make of what it is told, by its grants.

use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use dsh_plugin::api::{PluginError, Verdict};
use dsh_plugin::port::{Command, Output, PortSet, Process, Quarantine, Watch};
use dsh_plugin::{CallContext, CallError, Dispatch, Mounted};
use serde_json::{Value, json};

use crate::support::{all, try_mount};

const EVENT: &str = "tools/pre-execute";

/// A listener that does this at the event, with these grants over all others.
async fn listening(rule: &str, grants: Value) -> Mounted {
    let config = json!({"rules": [format!("{EVENT}|{rule}")]}).to_string();
    let mut all = all();
    all.as_object_mut().unwrap().remove("decide");
    for (name, parameters) in grants.as_object().unwrap() {
        all[name] = parameters.clone();
    }
    try_mount(&config, all).await.unwrap()
}

/// Keeps what it is told of quarantines.
#[derive(Default)]
struct Told(Mutex<Vec<Quarantine>>);

impl Watch for Told {
    fn quarantined(&self, quarantine: Quarantine) {
        self.0.lock().unwrap().push(quarantine);
    }
}

fn watched() -> (CallContext, Arc<Told>) {
    let told = Arc::new(Told::default());
    let ports = PortSet {
        watch: Some(told.clone()),
        ..PortSet::default()
    };
    let ctx = CallContext {
        ports: Arc::new(ports),
        ..CallContext::default()
    };
    (ctx, told)
}

/// On the way in, on the way out, and asked.
async fn answers(listener: &Dispatch, ctx: &CallContext, how: &str) -> Result<(), CallError> {
    let (event, payload) = (EVENT, "{}".to_owned());
    match how {
        "answer" => listener.decide(ctx, event, payload).await.map(drop),
        "leave" => {
            let entry = listener.enter(ctx, event, payload.clone()).await?;
            let carry = entry.carry.unwrap();
            listener.leave(ctx, event, carry, payload).await.map(drop)
        }
        _ => listener.enter(ctx, event, payload).await.map(drop),
    }
}

#[tokio::test]
async fn who_was_granted_watching_and_decides_is_refused_and_put_out_of_use() {
    for how in ["rewrite", "settle", "leave", "answer"] {
        let rule = format!("{how}|{{'kind':'allow'}}");
        let watching = listening(&rule, json!({"observe": [EVENT]})).await;
        let listener = watching.dispatch().unwrap();
        let (ctx, told) = watched();
        for _ in 0..3 {
            let error = answers(&listener, &ctx, how).await.unwrap_err();
            assert!(
                matches!(&error, CallError::Undecided { event, .. } if event == EVENT),
                "{how}: {error}"
            );
            assert_eq!(error.code(), "DENIED");
            assert!(error.is_failure_of_component());
        }
        assert!(watching.quarantine().is_some(), "{how}");
        {
            let told = told.0.lock().unwrap();
            assert_eq!(told.len(), 1, "{how}");
            assert_eq!((told[0].row.as_str(), told[0].failures), ("prober", 3));
            assert!(told[0].reason.contains("granted to watch only"));
        }
        let deciding = listening(&rule, json!({"decide": [EVENT]})).await;
        let listener = deciding.dispatch().unwrap();
        answers(&listener, &ctx, how).await.unwrap();
    }
}

#[tokio::test]
async fn who_watches_and_changes_nothing_is_no_failure() {
    let watching = listening("proceed|", json!({"observe": [EVENT]})).await;
    let listener = watching.dispatch().unwrap();
    let ctx = CallContext::default();
    for _ in 0..4 {
        let entry = listener.enter(&ctx, EVENT, "{}".to_owned()).await.unwrap();
        assert_eq!(entry.verdict, Verdict::Proceed);
        let answer = listener.decide(&ctx, EVENT, "{}".to_owned()).await.unwrap();
        assert_eq!(answer, None);
    }
    assert!(watching.quarantine().is_none());
}

/// The loop is in the function that the host calls to put the payload in.
#[tokio::test]
async fn h6_a_loop_while_arguments_are_put_in_is_stopped() {
    let config = json!({"rules": [format!("{EVENT}|arm|")]}).to_string();
    let mut grants = all();
    grants["decide"] = json!([EVENT]);
    let component = crate::support::row(&config, grants, json!({"cpu": "1s"}));
    let mounted = crate::support::engine()
        .mount(component.await)
        .await
        .unwrap();
    let listener = mounted.dispatch().unwrap();
    let ctx = CallContext::default();
    let payload = || "{}".to_owned();
    listener.notify(&ctx, EVENT, vec![payload()]).await.unwrap();
    let error = listener.enter(&ctx, EVENT, payload()).await.unwrap_err();
    assert!(matches!(error, CallError::Cpu { .. }), "{error}");
    // A new instance is not armed.
    listener.enter(&ctx, EVENT, payload()).await.unwrap();
}

#[tokio::test]
async fn answering_for_a_person_needs_its_own_grant() {
    let config = json!({"rules": ["approval/request|answer|{'outcome':'allowed-once'}"]});
    let mut grants = all();
    grants["decide"] = json!(["tools/pre-execute"]);
    let error = try_mount(&config.to_string(), grants.clone())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("approval/request"), "{error}");
    grants["approval"] = json!(true);
    let mounted = try_mount(&config.to_string(), grants).await.unwrap();
    let listener = mounted.dispatch().unwrap();
    let answer = listener
        .decide(&CallContext::default(), "approval/request", "{}".to_owned())
        .await
        .unwrap();
    assert_eq!(answer.as_deref(), Some(r#"{"outcome":"allowed-once"}"#));
}

/// Runs no command, but asks the listener that it was given first.
#[derive(Default)]
struct Asks {
    listener: OnceLock<(Dispatch, CallContext)>,
    heard: Mutex<Vec<Result<(), CallError>>>,
}

#[async_trait]
impl Process for Asks {
    async fn run(&self, _: Command) -> Result<Output, PluginError> {
        let (listener, ctx) = self.listener.get().unwrap();
        let event = "approval/request";
        let payload = || "{}".to_owned();
        let heard = [
            listener.enter(ctx, event, payload()).await.map(drop),
            listener.decide(ctx, event, payload()).await.map(drop),
            listener.notify(ctx, event, vec![payload()]).await,
        ];
        self.heard.lock().unwrap().extend(heard);
        Ok(Output::default())
    }
}

/// Waiting would be for itself, until a bound ends both; the test would not end.
#[tokio::test]
async fn h12_an_instance_on_the_stack_is_skipped_and_counted_and_told_later() {
    let grants = json!({"decide": [EVENT], "approval": true});
    let mounted = listening("exec|allowed", grants).await;
    let asks = Arc::new(Asks::default());
    let ports = PortSet {
        process: Some(asks.clone()),
        ..PortSet::default()
    };
    let ctx = CallContext {
        ports: Arc::new(ports),
        ..CallContext::default()
    };
    let listener = mounted.dispatch().unwrap();
    let _ = asks.listener.set((listener.clone(), ctx.clone()));
    listener.enter(&ctx, EVENT, "{}".to_owned()).await.unwrap();
    let heard = std::mem::take(&mut *asks.heard.lock().unwrap());
    assert!(
        matches!(
            &heard[..],
            [
                Err(CallError::OnStack { .. }),
                Err(CallError::OnStack { .. }),
                Ok(())
            ]
        ),
        "{heard:?}"
    );
    assert_eq!(mounted.skipped(), 2);
    assert!(
        mounted.quarantine().is_none(),
        "being skipped is no failure"
    );
    // Another listener of the row has an instance of its own.
    let other = mounted.dispatch().unwrap();
    let _ = other
        .decide(&ctx, "approval/request", "{}".to_owned())
        .await
        .unwrap();
    assert_eq!(mounted.skipped(), 2);
}
