use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_session::Json;
use tokio::sync::Semaphore;

use super::super::{
    Dispatch, DispatchError, Entry, EventContext, Listener, ListenerError, Subscription, Verdict,
};
use crate::cancel::Signal;

/// Writes down what it is asked, and does as its name says.
struct Row {
    name: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
    only: Vec<String>,
    event: &'static str,
}

#[async_trait]
impl Listener for Row {
    fn name(&self) -> &str {
        self.name
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription {
            event: self.event.to_owned(),
            only: self.only.clone(),
        }]
    }

    async fn enter(
        &self,
        _: &str,
        payload: &Json,
        _: &EventContext,
    ) -> Result<Entry, ListenerError> {
        self.seen
            .lock()
            .unwrap()
            .push(format!("{} in {payload}", self.name));
        let carry = Some(self.name.to_owned());
        match self.name {
            "rewrites" => Ok(Entry {
                verdict: Verdict::Rewrite(Json::string("other")),
                carry,
            }),
            "settles" => Ok(Entry {
                verdict: Verdict::Settle(Json::string("settled")),
                carry,
            }),
            "fails" => Err(ListenerError::new("PLUGIN_TRAP", "crashed")),
            _ => Ok(Entry {
                verdict: Verdict::Proceed,
                carry,
            }),
        }
    }

    async fn leave(
        &self,
        _: &str,
        carry: String,
        outcome: &Json,
        _: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        assert_eq!(carry, self.name);
        self.seen
            .lock()
            .unwrap()
            .push(format!("{} out {outcome}", self.name));
        Ok((self.name == "wraps").then(|| Json::string("wrapped")))
    }
}

async fn run(event: &'static str, names: &[&'static str]) -> (Vec<String>, Result<Json, String>) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let rows = names.iter().map(|&name| {
        Arc::new(Row {
            name,
            seen: Arc::clone(&seen),
            only: Vec::new(),
            event,
        }) as Arc<dyn Listener>
    });
    let dispatch = Dispatch::new(rows.collect()).unwrap();
    let context = EventContext {
        signal: Signal::new(),
    };
    let outcome = dispatch
        .waterfall(
            event,
            None,
            Json::string("payload"),
            &context,
            |payload| async move {
                Ok::<_, std::fmt::Error>(Json::string(&format!("core of {payload}")))
            },
        )
        .await;
    let seen = seen.lock().unwrap().clone();
    (
        seen,
        outcome.map_err(|error: DispatchError<_>| error.to_string()),
    )
}

#[tokio::test]
async fn a_waterfall_goes_in_by_row_and_out_in_reverse() {
    let (seen, outcome) = run("agent/request", &["first", "wraps", "last"]).await;
    let core = r#""core of \"payload\"""#;
    assert_eq!(
        seen,
        [
            r#"first in "payload""#.to_owned(),
            r#"wraps in "payload""#.to_owned(),
            r#"last in "payload""#.to_owned(),
            format!("last out {core}"),
            format!("wraps out {core}"),
            r#"first out "wrapped""#.to_owned(),
        ]
    );
    assert_eq!(outcome.unwrap().as_str(), r#""wrapped""#);
}

#[tokio::test]
async fn a_rewrite_is_what_the_rest_sees_and_a_settled_result_skips_the_rest() {
    let (seen, outcome) = run("agent/request", &["rewrites", "settles", "never"]).await;
    assert_eq!(
        seen,
        [
            r#"rewrites in "payload""#,
            r#"settles in "other""#,
            r#"rewrites out "settled""#
        ]
    );
    assert_eq!(outcome.unwrap().as_str(), r#""settled""#);
}

#[tokio::test]
async fn a_failing_listener_of_a_policy_event_refuses_and_of_another_is_left_out() {
    let (_, refused) = run("agent/request", &["fails", "never"]).await;
    assert_eq!(
        refused.unwrap_err(),
        "fails failed at agent/request: crashed"
    );
    let (seen, outcome) = run("agent/request-error", &["fails", "goes on"]).await;
    assert_eq!(seen.len(), 3);
    assert!(outcome.is_ok());
}

#[tokio::test]
async fn what_a_subscription_leaves_out_does_not_reach_it() {
    let seen = Arc::default();
    let row = Row {
        name: "n",
        seen,
        only: vec!["bash".to_owned()],
        event: "tools/execute",
    };
    let dispatch = Dispatch::new(vec![Arc::new(row)]).unwrap();
    assert!(dispatch.listens("tools/execute", Some("bash")));
    assert!(!dispatch.listens("tools/execute", Some("read")));
    assert!(!dispatch.listens("tools/execute", None));
}

/// Takes what it is told only after a permit came.
struct Slow(Arc<Semaphore>, Mutex<Vec<usize>>);

#[async_trait]
impl Listener for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::all("session/event")]
    }

    async fn notify(&self, _: &str, payloads: &[Json]) {
        self.0.acquire().await.unwrap().forget();
        self.1.lock().unwrap().push(payloads.len());
    }
}

#[tokio::test]
async fn a_slow_observer_holds_up_nobody_and_gets_what_piled_up_in_one_call() {
    let gate = Arc::new(Semaphore::new(0));
    let slow = Arc::new(Slow(Arc::clone(&gate), Mutex::default()));
    let dispatch = Dispatch::new(vec![slow.clone()]).unwrap();
    dispatch.notify("session/event", None, || Json::string("1"));
    tokio::task::yield_now().await;
    for _ in 0..5 {
        dispatch.notify("session/event", None, || Json::string("more"));
    }
    gate.add_permits(2);
    dispatch.settle().await;
    assert_eq!(*slow.1.lock().unwrap(), [1, 5]);
}
