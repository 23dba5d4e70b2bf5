//! The runtime-context snapshot over whole turns (spec/loop.md §9.4 and §17,
//! "Context"): what the model was told is what the log says it was told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_plugin::api::{Place, PluginError, PromptSection};
use dsh_session::{Draft, Json, Kind, Seq, Value};

use super::rig::{FakeListener, Rig, Setup, json, reopened, text};
use crate::dispatch::Entry;
use crate::prompt::PromptSource;
use crate::tools::CallScope;
use crate::{Message, text_block};

/// A row with one fact, or none.
#[derive(Clone, Default)]
struct Fact(Arc<Mutex<Option<&'static str>>>);

impl Fact {
    fn new(fact: &'static str) -> Self {
        Self(Arc::new(Mutex::new(Some(fact))))
    }

    fn set(&self, fact: Option<&'static str>) {
        *self.0.lock().unwrap() = fact;
    }

    fn setup(&self, answers: usize) -> Setup {
        Setup {
            say: vec![text("yes"); answers],
            prompts: vec![Arc::new(self.clone())],
            ..Setup::default()
        }
    }
}

#[async_trait]
impl PromptSource for Fact {
    fn name(&self) -> &str {
        "fact"
    }

    async fn sections(&self, _: &Json, _: &CallScope) -> Result<Vec<PromptSection>, PluginError> {
        let fact = *self.0.lock().unwrap();
        let section = fact.map(|fact| PromptSection {
            place: Place::Context,
            name: "fact".to_owned(),
            order: 1.0,
            text: fact.to_owned(),
            complete: false,
        });
        Ok(section.into_iter().collect())
    }
}

/// What the log's snapshots say, a line each: the fact, or that none applies.
fn told(rig: &Rig) -> Vec<String> {
    let events = rig.log.read(|session| session.log().to_vec().unwrap());
    let messages = events
        .iter()
        .filter(|event| event.kind == Kind::UserMessage);
    let snapshots = messages.filter(|event| {
        let source = event.data.get("source");
        let plugin = source.and_then(|source| source.get("plugin"));
        plugin.and_then(Value::text).as_deref() == Some("@deepseek-ai/dsh-system-prompt")
    });
    let said = snapshots.map(|event| {
        let source = event.data.get("source").unwrap();
        let section = source.get("sections").and_then(|all| all.items().next());
        let fact = section.and_then(|section| section.get("text"));
        fact.and_then(Value::text)
            .map_or_else(|| "cleared".to_owned(), std::borrow::Cow::into_owned)
    });
    said.collect()
}

#[tokio::test]
async fn a_snapshot_is_not_repeated() {
    let fact = Fact::new("one");
    let rig = Rig::new(fact.setup(2));
    rig.run("a").await;
    rig.run("b").await;
    assert_eq!(told(&rig), ["one"]);
    let next = Rig::new(Setup {
        session: Some(reopened(&rig)),
        ..fact.setup(1)
    });
    next.run("c").await;
    assert_eq!(told(&next), ["one"]);
}

#[tokio::test]
async fn a_snapshot_that_changed_is_told_again() {
    let fact = Fact::new("one");
    let rig = Rig::new(fact.setup(3));
    rig.run("a").await;
    fact.set(Some("two"));
    rig.run("b").await;
    fact.set(Some("one"));
    rig.run("c").await;
    assert_eq!(told(&rig), ["one", "two", "one"]);
}

#[tokio::test]
async fn that_nothing_applies_any_more_is_told_once() {
    let fact = Fact::new("one");
    fact.set(None);
    let rig = Rig::new(fact.setup(5));
    rig.run("a").await;
    // Where nothing was told, there is nothing to take back.
    assert!(told(&rig).is_empty());
    fact.set(Some("one"));
    rig.run("b").await;
    fact.set(None);
    rig.run("c").await;
    rig.run("d").await;
    assert_eq!(told(&rig), ["one", "cleared"]);
    fact.set(Some("one"));
    rig.run("e").await;
    assert_eq!(told(&rig), ["one", "cleared", "one"]);
}

#[tokio::test]
async fn a_snapshot_that_was_put_away_is_told_again_and_so_is_that_nothing_applies() {
    let fact = Fact::new("one");
    let rig = Rig::new(fact.setup(3));
    rig.run("a").await;
    put_away(&rig);
    rig.run("b").await;
    assert_eq!(told(&rig), ["one", "one"]);
    put_away(&rig);
    fact.set(None);
    rig.run("c").await;
    assert_eq!(told(&rig), ["one", "one", "cleared"]);
}

/// A summary in place of all that the model sees, as a compaction writes it.
fn put_away(rig: &Rig) {
    let nodes: Vec<Seq> = rig.log.read(|session| session.surface().nodes().to_vec());
    let source = Json::object(|source| {
        source.str("kind", "plugin").str("plugin", "compact");
    });
    let summary = Message::mint(&[text_block("a summary")], &source);
    let draft = Draft::new(Kind::UserMessage, summary.json().clone())
        .replace(nodes[0], nodes[nodes.len() - 1])
        .sources(nodes);
    rig.log.append(draft).unwrap();
}

#[tokio::test]
async fn a_snapshot_of_a_step_that_was_refused_does_not_count_as_told() {
    let fact = Fact::new("one");
    let refusing = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&refusing);
    let refuse = FakeListener {
        name: "l",
        event: "agent/pre-step",
        enter: Some(Box::new(move |_| {
            let reject = || Entry::settle(json(r#"{"kind":"reject"}"#));
            let refused = asked.load(Ordering::Relaxed);
            Ok(if refused { reject() } else { Entry::proceed() })
        })),
        ..FakeListener::default()
    };
    let rig = Rig::new(Setup {
        listeners: vec![Arc::new(refuse)],
        ..fact.setup(1)
    });
    rig.run("a").await;
    assert!(told(&rig).is_empty());
    refusing.store(false, Ordering::Relaxed);
    rig.run("b").await;
    assert_eq!(told(&rig), ["one"]);
}
