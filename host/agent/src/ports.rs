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
use crate::projection::Projections;
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
pub(crate) fn seed(parts: &[&str]) -> u64 {
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
pub struct SessionPort {
    log: Arc<Log>,
    projections: Option<Arc<Projections>>,
}

impl SessionPort {
    /// Of this log.
    #[must_use]
    pub fn new(log: Arc<Log>) -> Self {
        Self {
            log,
            projections: None,
        }
    }

    /// With the read models of the same log.
    #[must_use]
    pub fn with_projections(self, projections: Option<Arc<Projections>>) -> Self {
        Self {
            projections,
            ..self
        }
    }
}

#[async_trait]
impl SessionView for SessionPort {
    fn header(&self) -> JsonText {
        self.log.read(|session| session.header().line())
    }

    fn length(&self) -> u32 {
        self.log.read(length)
    }

    fn events(
        &self,
        first: u32,
        limit: u32,
        kinds: &[String],
    ) -> Result<Vec<JsonText>, PluginError> {
        self.log.read(|session| {
            let events = session.events_from(Seq(u64::from(first)));
            let lines = events.filter_map(|event| match event {
                Ok(event) => of_kinds(&event, kinds).then(|| Ok(event.line())),
                Err(error) => Some(Err(unreadable(&error))),
            });
            page(limit, lines)
        })
    }

    fn last(&self, kinds: &[String], before: Option<u32>) -> Result<Option<JsonText>, PluginError> {
        self.log.read(|session| {
            let end = before.map_or(session.next_seq(), |before| Seq(u64::from(before)));
            // The newest of each kind is in memory, and mostly it is what is asked for.
            let known = kinds
                .iter()
                .map(|kind| session.last_of(&Kind::from_name(kind)));
            let newest = known.flatten().max_by_key(|event| event.seq);
            if !kinds.is_empty() && newest.is_none_or(|event| event.seq < end) {
                return Ok(newest.map(|event| event.line()));
            }
            for event in session.log().events_before(end) {
                let event = event.map_err(|error| unreadable(&error))?;
                if of_kinds(&event, kinds) {
                    return Ok(Some(event.line()));
                }
            }
            Ok(None)
        })
    }

    fn surface(&self) -> Result<SurfaceView, PluginError> {
        let view = self.log.metered(|session, meter| {
            let nodes = meter.nodes().iter().map(|&(at, price)| {
                let event = node(session, at)?;
                Ok(Node {
                    seq: seq(at),
                    tokens: count(price),
                    calls: calls(&event),
                })
            });
            Ok(SurfaceView {
                nodes: nodes.collect::<Result<_, PluginError>>()?,
                generation: count(session.surface().replace_generation()),
            })
        });
        view.map_err(|error| unmeasured(&error))?
    }

    fn messages(&self, first: u32, limit: u32) -> Result<Vec<JsonText>, PluginError> {
        self.log.read(|session| {
            let nodes = session.surface().nodes().iter().skip(first as usize);
            let texts = nodes.map(|&at| {
                let event = node(session, at)?;
                let text = message(&event).map(|message| message.as_str().to_owned());
                Ok(text.unwrap_or_default())
            });
            page(limit, texts)
        })
    }

    fn measure(&self) -> Result<Charge, PluginError> {
        let tokens = self.log.measure().map_err(|error| unmeasured(&error))?;
        Ok(Charge {
            tokens: count(tokens),
            context_window: self.log.read(context_window),
        })
    }

    fn estimate(&self, messages: &[JsonText]) -> Vec<u32> {
        let price =
            |text: &String| Json::normalise(text).map_or(0, |message| tokens(message.value()));
        messages.iter().map(price).collect()
    }

    async fn projection(&self, key: &str) -> Result<Option<JsonText>, PluginError> {
        let Some(projections) = &self.projections else {
            return Ok(None);
        };
        let view = projections.view(key).await;
        Ok(view.map(|view| view.as_str().to_owned()))
    }
}

/// The event of a surface node.
fn node(session: &Session, seq: Seq) -> Result<Arc<Event>, PluginError> {
    let event = session.event(seq).map_err(|error| unreadable(&error))?;
    event.ok_or_else(|| PluginError::new(code::INVALID, format!("the log has no event {seq}")))
}

fn unreadable(error: &dsh_session::Error) -> PluginError {
    PluginError::new(code::UNAVAILABLE, error.to_string())
}

fn unmeasured(error: &AgentError) -> PluginError {
    PluginError::new(code::UNAVAILABLE, error.to_string())
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
    count(estimate::message(message))
}

/// The context window of the last request's model, where it is known.
pub(crate) fn context_window(session: &Session) -> Option<u32> {
    let context = session.request_context()?;
    context.context_window.and_then(whole)
}

/// Tool calls that a node opens, less those that it answers.
pub(crate) fn calls(event: &Event) -> i32 {
    match event.kind {
        Kind::ToolResult => -1,
        Kind::AssistantMessage => {
            let is_call = |block: &Value<'_>| {
                block
                    .get("type")
                    .and_then(Value::string)
                    .is_some_and(|kind| kind.is("tool-call"))
            };
            let opened = event
                .data
                .value()
                .path(&["message", "content"])
                .into_iter()
                .flat_map(Value::items)
                .filter(is_call)
                .count();
            i32::try_from(opened).unwrap_or(i32::MAX)
        }
        _ => 0,
    }
}

fn page(
    limit: u32,
    texts: impl Iterator<Item = Result<String, PluginError>>,
) -> Result<Vec<String>, PluginError> {
    let mut page: Vec<String> = Vec::new();
    let mut bytes = 0;
    for text in texts.take(limit as usize) {
        let text = text?;
        bytes += text.len();
        if bytes > PAGE && !page.is_empty() {
            break;
        }
        page.push(text);
    }
    Ok(page)
}

fn length(session: &Session) -> u32 {
    seq(session.next_seq())
}

pub(crate) fn seq(seq: Seq) -> u32 {
    count(seq.0)
}

/// A number as components take it.
pub(crate) fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
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
