//! Compaction: spec/loop.md §10, and what of §17 is the host's.

use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use dsh_plugin::api::{Place, Plan, PluginError, PromptSection, Situation, Summary, Trigger, Trim};
use dsh_session::{Draft, Json, Kind, Seq, Session, meter};
use tokio::sync::Semaphore;

use super::rig::{ANY, Rig, Say, Setup, calls, error_finish, json, ok, reopened, spec, text, tool};
use crate::compaction::{CompactionError, Compactor, Compactors, ModelCall, Written};
use crate::prompt::PromptSource;
use crate::tools::{CallScope, ToolSpec};
use crate::{CancelCause, Log, Message};

mod by_hand;
mod overflow;
mod pressure;
mod refusals;

type Choose = Box<dyn Fn(&Situation, &Log) -> Result<Plan, PluginError> + Send + Sync>;
type Said = Arc<Mutex<Vec<String>>>;
type Write = Box<dyn Fn(&Log) -> Result<Written, PluginError> + Send + Sync>;

/// A row made of functions; it looks at the log as a component looks at `session`.
struct Fake {
    row: &'static str,
    log: OnceLock<Arc<Log>>,
    choose: Choose,
    write: Write,
    /// It waits here before it writes.
    gate: Option<Arc<Semaphore>>,
    seen: Mutex<Vec<Situation>>,
}

#[async_trait]
impl Compactor for Fake {
    fn row(&self) -> &str {
        self.row
    }

    async fn choose(&self, situation: &Situation, _: &CallScope) -> Result<Plan, PluginError> {
        self.seen.lock().unwrap().push(situation.clone());
        match self.log.get() {
            Some(log) => (self.choose)(situation, log),
            None => Ok(Plan::Nothing),
        }
    }

    async fn summarise(
        &self,
        _: &Situation,
        _: (u32, u32),
        scope: &CallScope,
    ) -> Result<Written, PluginError> {
        if let Some(gate) = &self.gate {
            tokio::select! {
                permit = gate.acquire() => permit.unwrap().forget(),
                () = scope.cancel.cancelled() => return Err(PluginError::cancelled()),
            }
        }
        (self.write)(self.log.get().unwrap())
    }
}

fn fake(
    choose: impl Fn(&Situation, &Log) -> Result<Plan, PluginError> + Send + Sync + 'static,
    write: impl Fn(&Log) -> Result<Written, PluginError> + Send + Sync + 'static,
) -> Fake {
    Fake {
        row: "compactor",
        log: OnceLock::new(),
        choose: Box::new(choose),
        write: Box::new(write),
        gate: None,
        seen: Mutex::default(),
    }
}

fn written(summary: &str) -> Result<Written, PluginError> {
    Ok(Written {
        summary: Summary {
            content: vec![crate::text_block(summary).as_str().to_owned()],
            origin: r#"{"provider":"p","model":"m"}"#.to_owned(),
        },
        call: None,
    })
}

/// All but the last `keep` nodes, once.
fn all_but(keep: usize) -> impl Fn(&Situation, &Log) -> Result<Plan, PluginError> {
    move |situation, log| {
        let nodes = nodes(log);
        if situation.round > 0 || nodes.len() <= keep {
            return Ok(Plan::Nothing);
        }
        Ok(Plan::Summarise((nodes[0], nodes[nodes.len() - keep - 1])))
    }
}

fn nodes(log: &Log) -> Vec<u32> {
    let seq = |seq: &Seq| u32::try_from(seq.0).unwrap();
    log.read(|session| session.surface().nodes().iter().map(seq).collect())
}

/// A rig with these rows, and what they had to say.
fn rig(setup: Setup, fakes: Vec<Fake>) -> (Rig, Vec<Arc<Fake>>, Said) {
    let fakes: Vec<_> = fakes.into_iter().map(Arc::new).collect();
    let rows = fakes
        .iter()
        .map(|fake| Arc::clone(fake) as Arc<dyn Compactor>)
        .collect();
    let said = Said::default();
    let heard = Arc::clone(&said);
    let rig = Rig::new(Setup {
        compactors: Compactors::new(rows, move |line| {
            heard.lock().unwrap().push(line.to_owned());
        }),
        ..setup
    });
    for fake in &fakes {
        let _ = fake.log.set(Arc::clone(&rig.log));
    }
    (rig, fakes, said)
}

fn saying(say: Vec<Say>) -> Setup {
    Setup {
        say,
        ..Setup::default()
    }
}

/// A prompt that weighs more than any summary here.
fn long(word: &str) -> String {
    format!("{word} {}", "lorem ipsum ".repeat(200))
}

/// Since the last turn began.
fn last_turn(rig: &Rig) -> Vec<String> {
    let events = rig.events();
    let start = events
        .iter()
        .rposition(|event| event.starts_with("turn/start"));
    events[start.unwrap()..].to_vec()
}

fn newest(rig: &Rig, kind: &Kind) -> Json {
    rig.log
        .read(|session| session.last_of(kind).unwrap().data.clone())
}

fn member(data: &Json, path: &[&str]) -> String {
    let value = data
        .value()
        .path(path)
        .unwrap_or_else(|| panic!("{path:?} of {data}"));
    value
        .text()
        .map_or_else(|| value.as_str().to_owned(), std::borrow::Cow::into_owned)
}

fn messages(session: &mut Session) -> String {
    session.messages().unwrap().to_json().as_str().to_owned()
}

/// Shortens the first tool result, as often as it is longer than that.
fn trims(to: &'static str) -> impl Fn(&Situation, &Log) -> Result<Plan, PluginError> {
    move |situation, log| {
        let told = situation.more.as_deref().unwrap_or_default();
        if situation.trigger == Trigger::Pressure && !told.contains("summarise") {
            return Ok(Plan::Nothing);
        }
        let node = log.read(|session| {
            let nodes = session.surface().nodes().iter().copied();
            let mut events = nodes.map(|node| session.event(node).unwrap().unwrap());
            events
                .find(|event| event.kind == Kind::ToolResult && event.line().len() > 1000)
                .map(|event| u32::try_from(event.seq.0).unwrap())
        });
        Ok(node.map_or(Plan::Nothing, |node| {
            Plan::Trim(vec![Trim {
                node,
                content: vec![crate::text_block(to).as_str().to_owned()],
            }])
        }))
    }
}
