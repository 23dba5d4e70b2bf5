use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_session::Json;
use tokio::sync::Semaphore;

use super::super::{
    Dispatch, DispatchError, Entry, EventContext, Listener, ListenerError, Subscription, Verdict,
};
use crate::cancel::Signal;

/// Of `agent/request`, by the model that it names.
fn config(model: &str) -> Json {
    Json::object(|config| {
        config.str("provider", "p").str("model", model);
    })
}

fn payload(model: &str) -> Json {
    Json::object(|payload| {
        payload.u64("turn", 1).u64("step", 1);
        payload.json("config", &config(model));
    })
}

fn model(json: &Json) -> String {
    let config = json.get("config").unwrap_or(json.value());
    let model = config.get("model").and_then(dsh_session::Value::text);
    model.unwrap_or("nothing".into()).into_owned()
}

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
            beside: false,
        }]
    }

    async fn enter(&self, _: &str, asked: &Json, _: &EventContext) -> Result<Entry, ListenerError> {
        self.seen
            .lock()
            .unwrap()
            .push(format!("{} in {}", self.name, model(asked)));
        let carry = Some(self.name.to_owned());
        match self.name {
            "rewrites" => Ok(Entry {
                verdict: Verdict::Rewrite(payload("other")),
                carry,
            }),
            "settles" => Ok(Entry {
                verdict: Verdict::Settle(config("settled")),
                carry,
            }),
            "babbles" => Ok(Entry::settle(Json::string("sure"))),
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
            .push(format!("{} out {}", self.name, model(outcome)));
        Ok((self.name == "wraps").then(|| config("wrapped")))
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
    let retries = event == "agent/request-error";
    let asked = if retries {
        let text = r#"{"turn":1,"step":1,"provider":"p","failure":{"message":"m"},"retryPolicy":{"mode":"normal"},"retries":0,"spoke":false}"#;
        Json::normalise(text).unwrap()
    } else {
        payload("payload")
    };
    let outcome = dispatch
        .waterfall(event, None, asked, &context, |payload| async move {
            let core = config(&format!("core of {}", model(&payload)));
            Ok::<_, std::fmt::Error>(if retries { Json::null() } else { core })
        })
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
    assert_eq!(
        seen,
        [
            "first in payload",
            "wraps in payload",
            "last in payload",
            "last out core of payload",
            "wraps out core of payload",
            "first out wrapped",
        ]
    );
    assert_eq!(model(&outcome.unwrap()), "wrapped");
}

#[tokio::test]
async fn a_rewrite_is_what_the_rest_sees_and_a_settled_result_skips_the_rest() {
    let (seen, outcome) = run("agent/request", &["rewrites", "settles", "never"]).await;
    assert_eq!(
        seen,
        [
            "rewrites in payload",
            "settles in other",
            "rewrites out settled"
        ]
    );
    assert_eq!(model(&outcome.unwrap()), "settled");
}

#[tokio::test]
async fn a_failing_listener_of_a_policy_event_refuses_and_of_another_is_left_out() {
    for (name, what) in [
        ("fails", "crashed"),
        (
            "babbles",
            "its result is not of the event's shape: it must be an object",
        ),
    ] {
        let (_, refused) = run("agent/request", &[name, "never"]).await;
        let expected = format!("{name} failed at agent/request: {what}");
        assert!(refused.unwrap_err().starts_with(&expected));
        let (seen, outcome) = run("agent/request-error", &[name, "goes on"]).await;
        assert_eq!(seen.len(), 3);
        assert!(outcome.is_ok());
    }
}

#[tokio::test]
async fn a_failure_is_told_once_for_each_row_and_event_with_what_it_means() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&told);
    let row = |name, event| {
        Arc::new(Row {
            name,
            seen: Arc::default(),
            only: Vec::new(),
            event,
        }) as Arc<dyn Listener>
    };
    let rows = vec![
        row("fails", "agent/request"),
        row("fails", "fs/edit-intent"),
    ];
    let dispatch = Dispatch::new(rows)
        .unwrap()
        .reporting(move |failure| heard.lock().unwrap().push(failure.to_string()));
    let context = EventContext {
        signal: Signal::new(),
    };
    for _ in 0..2 {
        let core = |payload: Json| async move { Ok::<_, std::fmt::Error>(payload) };
        let asked = dispatch.waterfall("agent/request", None, payload("m"), &context, core);
        asked.await.unwrap_err();
    }
    assert_eq!(
        *told.lock().unwrap(),
        [
            "row fails failed at agent/request, so what it was to decide is refused: crashed; \
          if that stays so, update it or disable the row"
        ]
    );
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
struct Slow {
    gate: Semaphore,
    told: Mutex<Vec<String>>,
    beside: Option<Arc<Slow>>,
}

impl Slow {
    fn new(permits: usize, beside: Option<Arc<Slow>>) -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(permits),
            told: Mutex::default(),
            beside,
        })
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

#[async_trait]
impl Listener for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        let beside = Subscription {
            beside: self.beside.is_some(),
            ..Subscription::all("agent/status")
        };
        vec![
            Subscription::all("session/event"),
            Subscription::all("agent/request"),
            beside,
        ]
    }

    fn beside(&self) -> Option<Arc<dyn Listener>> {
        let beside = self.beside.clone()?;
        Some(beside)
    }

    async fn enter(&self, _: &str, _: &Json, _: &EventContext) -> Result<Entry, ListenerError> {
        self.told.lock().unwrap().push("asked".to_owned());
        Ok(Entry::proceed())
    }

    async fn notify(&self, event: &str, payloads: &[Json]) -> Result<(), ListenerError> {
        self.gate.acquire().await.unwrap().forget();
        let line = format!("{event} {}", payloads.len());
        self.told.lock().unwrap().push(line);
        Ok(())
    }
}

fn happened(dispatch: &Dispatch) {
    let event = r#"{"type":"x/y","seq":0,"time":0,"data":{}}"#;
    dispatch.notify("session/event", Some("x/y"), || {
        Json::normalise(event).unwrap()
    });
}

fn status(dispatch: &Dispatch) {
    dispatch.notify("agent/status", None, || {
        Json::normalise(r#"{"status":"idle"}"#).unwrap()
    });
}

async fn ask(dispatch: &Dispatch) {
    let context = EventContext {
        signal: Signal::new(),
    };
    let core = |payload: Json| async move {
        Ok::<_, std::fmt::Error>(payload.get("config").unwrap().to_json())
    };
    let asked = dispatch.waterfall("agent/request", None, payload("m"), &context, core);
    asked.await.unwrap();
}

#[tokio::test]
async fn a_slow_observer_holds_up_nobody_and_gets_what_piled_up_in_one_call() {
    let slow = Slow::new(0, None);
    let dispatch = Dispatch::new(vec![slow.clone()]).unwrap();
    for _ in 0..6 {
        happened(&dispatch);
    }
    status(&dispatch);
    happened(&dispatch);
    assert!(slow.told().is_empty());
    slow.gate.add_permits(3);
    dispatch.settle().await;
    assert_eq!(
        slow.told(),
        ["session/event 6", "agent/status 1", "session/event 1"]
    );
}

#[tokio::test]
async fn a_listener_is_told_what_was_queued_for_it_before_it_is_asked() {
    let quick = Slow::new(9, None);
    let dispatch = Dispatch::new(vec![quick.clone()]).unwrap();
    ask(&dispatch).await;
    happened(&dispatch);
    happened(&dispatch);
    ask(&dispatch).await;
    assert_eq!(quick.told(), ["asked", "session/event 2", "asked"]);
}

#[tokio::test]
async fn what_is_told_beside_goes_to_another_instance_and_is_not_waited_for() {
    let beside = Slow::new(0, None);
    let row = Slow::new(9, Some(beside.clone()));
    let dispatch = Dispatch::new(vec![row.clone()]).unwrap();
    status(&dispatch);
    happened(&dispatch);
    ask(&dispatch).await;
    assert_eq!(row.told(), ["session/event 1", "asked"]);
    assert!(beside.told().is_empty());
    beside.gate.add_permits(1);
    dispatch.settle().await;
    assert_eq!(beside.told(), ["agent/status 1"]);
}

#[tokio::test]
async fn an_event_that_is_asked_cannot_be_listened_to_beside() {
    struct Wrong;
    impl Listener for Wrong {
        fn name(&self) -> &str {
            "wrong"
        }

        fn subscriptions(&self) -> Vec<Subscription> {
            vec![Subscription {
                beside: true,
                ..Subscription::all("tools/pre-execute")
            }]
        }
    }
    let refused = Dispatch::new(vec![Arc::new(Wrong)]).err().unwrap();
    assert!(refused.to_string().contains("beside the turn"), "{refused}");
}
