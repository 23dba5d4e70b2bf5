//! What the agent gives to components: its log to read, a place to append
//! beside the surface, and the context that every call is made with.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::CallContext;
use dsh_plugin::api::{JsonText, PluginError, code};
use dsh_plugin::port::{Charge, Journal, NewEvent, Node, PortSet, SessionView, SurfaceView};
use dsh_session::{Draft, Event, Json, Kind, Seq, Session, Value, estimate};

use crate::error::AgentError;
use crate::log::Log;
use crate::tools::CallScope;

/// A page of events or messages ends here, in bytes (wit/host.wit `session`).
const PAGE: usize = 1 << 20;

/// For whom an agent's components run.
#[derive(Clone)]
pub struct CallIdentity {
    /// What their imports are linked to.
    pub ports: Arc<PortSet>,
    /// The session.
    pub session_id: String,
    /// The agent.
    pub agent_id: String,
}

impl CallIdentity {
    /// The context of one call. `what` tells calls of a row apart, so that an
    /// ungranted generator is seeded by session, row and call.
    #[must_use]
    pub fn context(&self, row: &str, what: &str, scope: &CallScope) -> CallContext {
        CallContext {
            ports: Arc::clone(&self.ports),
            cancel: scope.cancel.clone(),
            session_id: Some(self.session_id.clone()),
            agent_id: Some(self.agent_id.clone()),
            time_ms: scope.time_ms,
            seed: seed(&[&self.session_id, row, what]),
        }
    }
}

/// FNV-1a, which is fixed for all time, unlike the standard library's hasher.
fn seed(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// `journal` over an agent's log.
pub struct JournalPort(Arc<Log>);

impl JournalPort {
    /// Of this log.
    #[must_use]
    pub fn new(log: Arc<Log>) -> Self {
        Self(log)
    }
}

/// The kinds of the common vocabulary that a component may be granted; every
/// other known kind is the host's to write (design: plugins.md, `journal`).
fn may_be_granted(kind: &Kind) -> bool {
    !kind.is_known()
        || matches!(
            kind,
            Kind::TodoWrite
                | Kind::GoalChange
                | Kind::PlanMode
                | Kind::LlmRetry
                | Kind::LlmRetryStarted
        )
}

struct Refused(PluginError);

impl From<AgentError> for Refused {
    fn from(error: AgentError) -> Self {
        Self(PluginError::new(code::INVALID, error.to_string()))
    }
}

#[async_trait]
impl Journal for JournalPort {
    async fn append(
        &self,
        row: &str,
        events: Vec<NewEvent>,
        at: Option<u32>,
    ) -> Result<u32, PluginError> {
        let drafts = events
            .into_iter()
            .map(|event| draft(row, &event))
            .collect::<Result<Vec<_>, _>>()?;
        let appended = self.0.append_all(|session| {
            let length = length(session);
            if at.is_some_and(|at| at != length) {
                let message = format!("the log has {length} events by now");
                return Err(Refused(PluginError::new(code::STALE, message)));
            }
            Ok(drafts)
        });
        let appended = appended.map_err(|Refused(error)| error)?;
        Ok(appended
            .first()
            .map_or_else(|| self.0.read(length), |event| seq(event.seq)))
    }
}

fn draft(row: &str, event: &NewEvent) -> Result<Draft, PluginError> {
    let kind = Kind::from_name(&event.kind);
    if !may_be_granted(&kind) {
        let message = format!(
            "{} is written by the host; {row} cannot append it",
            event.kind
        );
        return Err(PluginError::new(code::DENIED, message));
    }
    let data = Json::normalise(&event.data).map_err(|error| {
        PluginError::new(
            code::INVALID,
            format!("the data of {}: {error}", event.kind),
        )
    })?;
    Ok(Draft::new(kind, data))
}

/// `session` over an agent's log.
pub struct SessionPort(Arc<Log>);

impl SessionPort {
    /// Of this log.
    #[must_use]
    pub fn new(log: Arc<Log>) -> Self {
        Self(log)
    }
}

impl SessionView for SessionPort {
    fn header(&self) -> JsonText {
        self.0.read(|session| session.header().line())
    }

    fn length(&self) -> u32 {
        self.0.read(length)
    }

    fn events(&self, first: u32, limit: u32, kinds: &[String]) -> Vec<JsonText> {
        self.0.read(|session| {
            let events = session.events_from(Seq(u64::from(first))).iter();
            page(
                limit,
                events
                    .filter(|event| of_kinds(event, kinds))
                    .map(|event| event.line()),
            )
        })
    }

    fn last(&self, kinds: &[String], before: Option<u32>) -> Option<JsonText> {
        self.0.read(|session| {
            let events = session.events();
            let end = before.map_or(events.len(), |before| (before as usize).min(events.len()));
            events[..end]
                .iter()
                .rev()
                .find(|event| of_kinds(event, kinds))
                .map(|event| event.line())
        })
    }

    fn surface(&self) -> SurfaceView {
        self.0.read(|session| {
            let surface = session.surface();
            let nodes = surface.nodes().iter().filter_map(|&at| {
                let event = session.event(at)?;
                let message = message(event);
                Some(Node {
                    seq: seq(at),
                    tokens: message.map_or(0, tokens),
                    calls: message.map_or(0, |message| calls(&event.kind, message)),
                })
            });
            SurfaceView {
                nodes: nodes.collect(),
                generation: u32::try_from(surface.replace_generation()).unwrap_or(u32::MAX),
            }
        })
    }

    fn messages(&self, first: u32, limit: u32) -> Vec<JsonText> {
        self.0.read(|session| {
            let nodes = session.surface().nodes().iter().skip(first as usize);
            let texts = nodes.filter_map(|&at| session.event(at)).map(|event| {
                message(event).map_or_else(String::new, |message| message.as_str().to_owned())
            });
            page(limit, texts)
        })
    }

    fn measure(&self) -> Charge {
        self.0.read(|session| {
            let header = session
                .request_header()
                .map_or(0, |header| estimate::header(&header));
            let nodes = session
                .surface()
                .nodes()
                .iter()
                .filter_map(|&at| session.event(at));
            let surface: u64 = nodes
                .filter_map(|event| message(event))
                .map(estimate::message)
                .sum();
            let window = session
                .request_context()
                .and_then(|context| context.context_window);
            Charge {
                tokens: u32::try_from(header + surface).unwrap_or(u32::MAX),
                context_window: window.and_then(whole),
            }
        })
    }

    fn estimate(&self, messages: &[JsonText]) -> Vec<u32> {
        let price =
            |text: &String| Json::normalise(text).map_or(0, |message| tokens(message.value()));
        messages.iter().map(price).collect()
    }

    fn projection(&self, _key: &str) -> Option<JsonText> {
        None
    }
}

fn of_kinds(event: &Event, kinds: &[String]) -> bool {
    kinds.is_empty() || kinds.iter().any(|kind| kind == event.kind.as_str())
}

/// What a surface event puts before the model.
fn message(event: &Event) -> Option<Value<'_>> {
    match event.kind {
        Kind::UserMessage => Some(event.data.value()),
        Kind::AssistantMessage => event.data.get("message").filter(|message| {
            message
                .get("content")
                .is_some_and(|c| c.items().next().is_some())
        }),
        Kind::ToolResult => event.data.get("message"),
        _ => None,
    }
}

fn tokens(message: Value<'_>) -> u32 {
    u32::try_from(estimate::message(message)).unwrap_or(u32::MAX)
}

/// Tool calls that a node opens, less those that it answers.
fn calls(kind: &Kind, message: Value<'_>) -> i32 {
    match kind {
        Kind::ToolResult => -1,
        Kind::AssistantMessage => {
            let is_call = |block: &Value<'_>| {
                block
                    .get("type")
                    .and_then(Value::string)
                    .is_some_and(|kind| kind.is("tool-call"))
            };
            let opened = message
                .get("content")
                .into_iter()
                .flat_map(Value::items)
                .filter(is_call)
                .count();
            i32::try_from(opened).unwrap_or(i32::MAX)
        }
        _ => 0,
    }
}

fn page(limit: u32, texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut page: Vec<String> = Vec::new();
    let mut bytes = 0;
    for text in texts.take(limit as usize) {
        bytes += text.len();
        if bytes > PAGE && !page.is_empty() {
            break;
        }
        page.push(text);
    }
    page
}

fn length(session: &Session) -> u32 {
    seq(session.next_seq())
}

fn seq(seq: Seq) -> u32 {
    u32::try_from(seq.0).unwrap_or(u32::MAX)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range and whole"
)]
fn whole(number: f64) -> Option<u32> {
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number))
        .then_some(number as u32)
}

#[cfg(test)]
#[path = "ports_tests.rs"]
mod tests;
