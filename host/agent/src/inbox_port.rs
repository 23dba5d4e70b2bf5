//! `inbox` as components have it: drafts put in front of the agent.
//!
//! Whose words they are is the host's to say (`dispatch/stamp.rs`), and how much
//! they may set off is bounded: between two inputs of a person, a row starts an
//! idle agent as often as its grant allows, and puts in no more than [`MOST`]
//! messages at all, since a turn that runs takes up what arrives and would never
//! end. A wake that is not granted is no failure: the message waits.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use dsh_plugin::api::{JsonText, PluginError, code};
use dsh_plugin::port::{Inbox, Sender, Target as PortTarget};
use dsh_session::{Json, Target, Value};
use tokio::runtime::Handle;

use crate::agent::{Agent, Inner};
use crate::dispatch::{Standing, own_message};
use crate::message::Message;

/// Messages of one row between two inputs of a person.
const MOST: u32 = 32;

/// The port. It is made before its agent is, and answers `UNAVAILABLE` until
/// it is served by one ([`crate::Parts::inbox`]).
#[derive(Default)]
pub struct InboxPort {
    agent: OnceLock<(Weak<Inner>, Handle)>,
    rows: Mutex<HashMap<String, Sent>>,
}

/// What a row has put in.
#[derive(Default)]
struct Sent {
    /// By id, whether they still wait or not.
    ids: HashSet<String>,
    /// Since which input of a person the counts below are.
    since: u64,
    messages: u32,
    wakes: u32,
}

impl InboxPort {
    /// Serves this agent. Must be called inside of the runtime that its turns
    /// run on; the first agent stays.
    pub(crate) fn serve(&self, agent: &Agent) {
        let served = (agent.downgrade(), Handle::current());
        let _ = self.agent.set(served);
    }

    fn agent(&self) -> Option<(Arc<Inner>, &Handle)> {
        let (agent, handle) = self.agent.get()?;
        Some((agent.upgrade()?, handle))
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<String, Sent>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message that waits is of the row's own making.
    fn is_own(&self, row: &str, message: &Json) -> bool {
        let id = message.get("id").and_then(Value::text).unwrap_or_default();
        let rows = self.rows();
        if rows.get(row).is_some_and(|sent| sent.ids.contains(&*id)) {
            return true;
        }
        // Of an earlier process.
        let of = |member| {
            message
                .value()
                .path(&["source", member])
                .and_then(Value::text)
        };
        of("kind").as_deref() == Some("plugin") && of("plugin").as_deref() == Some(row)
    }

    fn own(&self, row: &str, agent: &Inner) -> Vec<Json> {
        [Target::NextStep, Target::NextTurn]
            .into_iter()
            .flat_map(|target| agent.inbox.list(target))
            .filter(|message| self.is_own(row, message))
            .collect()
    }
}

impl Inbox for InboxPort {
    fn send(
        &self,
        sender: Sender<'_>,
        draft: JsonText,
        target: PortTarget,
        wake: bool,
    ) -> Result<String, PluginError> {
        let invalid = |text: String| PluginError::new(code::INVALID, text);
        let Some((agent, runtime)) = self.agent() else {
            return Err(PluginError::unavailable("agent to send to"));
        };
        let draft =
            Json::normalise(&draft).map_err(|error| invalid(format!("the draft is {error}")))?;
        let standing = Standing::Row {
            row: sender.row.to_owned(),
            sources: sender.sources.to_vec(),
        };
        let message = own_message(&standing, draft.value())
            .map_err(|error| PluginError::new(error.code, error.message))?;
        let message = Message::complete(message).map_err(|error| invalid(error.to_string()))?;
        let target = match target {
            PortTarget::NextStep => Target::NextStep,
            PortTarget::NextTurn => Target::NextTurn,
        };
        let wake = {
            let mut rows = self.rows();
            let sent = rows.entry(sender.row.to_owned()).or_default();
            let now = agent.inputs.load(Ordering::Relaxed);
            if sent.since != now {
                (sent.since, sent.messages, sent.wakes) = (now, 0, 0);
            }
            if sent.messages >= MOST {
                let text = format!(
                    "row {} has put in {MOST} messages since a person last did; it may again after that",
                    sender.row
                );
                return Err(PluginError::new(code::LIMIT, text));
            }
            sent.messages += 1;
            let wake = wake && sent.wakes < sender.wakes;
            sent.wakes += u32::from(wake);
            sent.ids.insert(message.id().to_owned());
            wake
        };
        // A turn that this starts is the agent's, not the component's.
        let _on = runtime.enter();
        Inner::send(&agent, &message, target, wake)
            .map_err(|error| PluginError::new(error.code(), error.to_string()))?;
        Ok(message.id().to_owned())
    }

    fn pending(&self, row: &str) -> Vec<JsonText> {
        let Some((agent, _)) = self.agent() else {
            return Vec::new();
        };
        let own = self.own(row, &agent);
        own.iter().map(|json| json.as_str().to_owned()).collect()
    }

    fn cancel(&self, row: &str, id: &str) -> bool {
        let Some((agent, _)) = self.agent() else {
            return false;
        };
        let named = |message: &Json| message.get("id").and_then(Value::text).as_deref() == Some(id);
        self.own(row, &agent).iter().any(named) && Inner::withdraw(&agent, id).unwrap_or(false)
    }
}
