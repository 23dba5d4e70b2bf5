//! The events that a run has: how each is delivered, what a failing listener
//! means for it, what of it a listener may change, and the shapes of payload and
//! result. The table is `table.rs`; `docs/events/` is made from it, and each
//! payload is checked against it wherever tests run.

use std::sync::LazyLock;

use dsh_session::{Json, Value};

use super::{absent, table};
use crate::tools::Schema;

/// How an event reaches its listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `enter` in row order, the host's own default, `leave` in reverse.
    Waterfall,
    /// Asked in row order; the first answer wins.
    Serial,
    /// Told, all at once, and the host waits until all were.
    Parallel,
    /// Told after the fact, while the host goes on.
    Emit,
}

impl Mode {
    /// As the contract and `docs/events/` name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waterfall => "waterfall",
            Self::Serial => "serial",
            Self::Parallel => "parallel",
            Self::Emit => "emit",
        }
    }

    /// Whether listeners are only told of it, and decide nothing.
    #[must_use]
    pub const fn only_tells(self) -> bool {
        matches!(self, Self::Parallel | Self::Emit)
    }
}

/// What a listener that fails means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// What was to be decided is refused.
    Refuse,
    /// On without this listener.
    LeaveOut,
}

/// One event.
#[derive(Debug)]
pub struct EventSpec {
    /// As subscriptions name it.
    pub name: &'static str,
    /// How it is delivered.
    pub mode: Mode,
    /// The rule for a listener that fails.
    pub on_failure: OnFailure,
    /// Members of the payload that a listener may rewrite; the others stay as they were.
    pub rewrites: &'static [&'static str],
    /// Whether a listener may change the outcome on the way out.
    pub leaves: bool,
    /// The member of a result that holds messages, whose drafts the host stamps.
    pub messages: Option<&'static str>,
    /// When it is raised, and what `only` of a subscription means, in a sentence.
    pub when: &'static str,
    /// The payload's JSON Schema.
    pub payload: &'static str,
    /// The result's.
    pub result: Option<&'static str>,
}

/// The event of this name, if a run has it.
#[must_use]
pub fn event(name: &str) -> Option<&'static EventSpec> {
    table::EVENTS.iter().find(|spec| spec.name == name)
}

/// All events of a run.
#[must_use]
pub fn events() -> &'static [EventSpec] {
    table::EVENTS
}

/// Why a run has no use for a subscription.
///
/// # Errors
/// What is wrong with it, as the end of a sentence about the row.
pub fn check_subscription(name: &str, beside: bool) -> Result<(), String> {
    match event(name) {
        None => {
            let absent = absent::ABSENT.iter().find(|(absent, ..)| *absent == name);
            let why = absent.map_or("there is no such event", |(.., reason)| reason);
            Err(format!("it listens to {name}, which no run has: {why}"))
        }
        Some(spec) if beside && !spec.mode.only_tells() => Err(format!(
            "it listens to {name} beside the turn, which is asked and not only told"
        )),
        Some(_) => Ok(()),
    }
}

struct Schemas {
    payload: Schema,
    result: Option<Schema>,
}

/// Of each event of the table, in its order.
static SCHEMAS: LazyLock<Vec<Schemas>> = LazyLock::new(|| {
    let compiled = |text: &str| {
        let schema = Json::normalise(text).unwrap_or_else(|_| Json::empty_object());
        Schema::compile(schema.value())
    };
    let schemas = table::EVENTS.iter().map(|spec| Schemas {
        // A test compiles them all.
        payload: compiled(spec.payload).unwrap_or_default(),
        result: spec.result.map(|text| compiled(text).unwrap_or_default()),
    });
    schemas.collect()
});

impl EventSpec {
    /// Its place in the table.
    pub(super) fn index(&self) -> usize {
        let at = |other: &EventSpec| std::ptr::eq(self, other);
        table::EVENTS.iter().position(at).unwrap_or_default()
    }

    /// What is wrong with a payload.
    ///
    /// # Errors
    /// In words.
    pub fn check_payload(&self, payload: &Json) -> Result<(), String> {
        refuse("payload", &SCHEMAS[self.index()].payload, payload)
    }

    /// What is wrong with a result.
    ///
    /// # Errors
    /// In words.
    pub fn check_result(&self, result: &Json) -> Result<(), String> {
        match &SCHEMAS[self.index()].result {
            Some(schema) => refuse("result", schema, result),
            None => Err("the event has no result".to_owned()),
        }
    }

    /// What is wrong with a rewritten payload, as far as it may be rewritten.
    ///
    /// # Errors
    /// In words.
    pub fn check_rewrite(&self, by: &Json) -> Result<(), String> {
        if self.rewrites.is_empty() {
            return Err(format!("the payload of {} cannot be rewritten", self.name));
        }
        if !by.value().is_object() {
            return Err("its payload is no object".to_owned());
        }
        let schema = &SCHEMAS[self.index()].payload;
        let mut violations = Vec::new();
        for name in self.rewrites {
            schema.check_member(name, by.value(), &mut violations);
        }
        say("payload", &violations)
    }

    /// The payload with those members that a listener may rewrite taken from
    /// what it made of it; what it leaves out is gone.
    ///
    /// # Errors
    /// What is wrong with what it made.
    pub fn rewritten(&self, payload: &Json, by: &Json) -> Result<Json, String> {
        self.check_rewrite(by)?;
        let may = |key: &str| self.rewrites.contains(&key);
        let rewritten = Json::object(|object| {
            for (key, value) in payload.value().entries() {
                let key = key.decode();
                if !may(&key) {
                    object.value(&key, value);
                }
            }
            for (key, value) in by.value().entries() {
                let key = key.decode();
                if may(&key) {
                    object.value(&key, value);
                }
            }
        });
        Ok(rewritten)
    }
}

fn refuse(what: &str, schema: &Schema, json: &Json) -> Result<(), String> {
    say(what, &schema.violations(json.value()))
}

fn say(what: &str, violations: &[String]) -> Result<(), String> {
    let Some(first) = violations.first() else {
        return Ok(());
    };
    let first = first.replace("the arguments", "it");
    let more = match violations.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Err(format!(
        "its {what} is not of the event's shape: {first}{more}"
    ))
}

/// A payload of the host's own that is not what the table says is a defect,
/// which tests are to find.
pub(super) fn assert_payload(spec: &EventSpec, payload: &Json) {
    if cfg!(debug_assertions)
        && let Err(what) = spec.check_payload(payload)
    {
        panic!("{}: {what}: {payload}", spec.name);
    }
}

/// The same of an outcome that the host made.
pub(super) fn assert_result(spec: &EventSpec, result: &Json) {
    if cfg!(debug_assertions)
        && let Err(what) = spec.check_result(result)
    {
        panic!("{}: {what}: {result}", spec.name);
    }
}

/// Whether a waterfall's outcome of this kind only proceeds, whoever settles it:
/// no listener speaks for the others (wit/plugin.wit, `verdict`).
pub(super) fn only_proceeds(spec: &EventSpec, result: &Json) -> bool {
    spec.name == "tools/pre-execute"
        && result.get("kind").and_then(Value::text).as_deref() == Some("allow")
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
