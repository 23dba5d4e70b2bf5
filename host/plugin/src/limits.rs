//! What a row may use up, as plain data.
//!
//! The defaults are the host's; a component's manifest may ask for less, a row
//! (or the lock) says what holds, and no more than [`CEILING`] ever does. Why
//! these: `engine.rs`, `instance.rs` and `run.rs` say what each bounds and how.
//! Each has an error of its own in [`crate::CallError`], but for `log-lines`:
//! what is too much of them is dropped, and said so once.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::component::{Component, Description};
use crate::error::Error;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bounds on an instance and on each call of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all linear memories of an instance together.
    pub memory: u64,
    /// Elements of all tables of an instance together.
    pub tables: u64,
    /// Core instances that a component is made of.
    pub instances: u64,
    /// Linear memories of an instance.
    pub memories: u64,
    /// Time in the component, without time in imports.
    pub cpu: Duration,
    /// The whole call on the wall clock; a tool's run has none of it.
    pub call: Duration,
    /// Bytes that a call may hand over to imports in all, and again as its
    /// result.
    pub output: u64,
    /// Bytes of texts and lists in one go: of one import's arguments, or of one
    /// result.
    pub text: u64,
    /// Messages of `log` that are kept of a call.
    pub log_lines: u64,
    /// Imports that a call may call.
    pub calls: u64,
    /// Resources that an instance may hold at once.
    pub handles: u64,
}

/// No row gets more, whoever says so.
pub const CEILING: Limits = Limits {
    memory: 4 * GIB,
    tables: 10_000_000,
    instances: 10_000,
    memories: 1_000,
    cpu: Duration::from_secs(86_400),
    call: Duration::from_secs(86_400),
    output: 4 * GIB,
    text: GIB,
    log_lines: 1_000_000,
    calls: 1_000_000_000,
    handles: 1_000_000,
};

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 * MIB,
            tables: 20_000,
            // The largest that guests of C, Rust, JavaScript, Python and Go
            // need is a dozen core instances and two memories.
            instances: 64,
            memories: 8,
            cpu: Duration::from_secs(5),
            call: Duration::from_secs(30),
            output: 64 * MIB,
            text: 16 * MIB,
            log_lines: 1_000,
            // An import costs about a microsecond, so this many are a second: a
            // tool that looks at every event of a long log makes some thousands.
            calls: 1_000_000,
            handles: 1_000,
        }
    }
}

impl Limits {
    /// What holds for a row of this component that says `limits` (an object, or
    /// null).
    ///
    /// # Errors
    /// A name that no limit has, or a value that is not of its shape.
    pub fn of(component: &Component, limits: &Value) -> Result<Self, Error> {
        let defaults = Self::usual(&component.description);
        let asked = component
            .manifest()
            .map(|manifest| Value::Object(manifest.limits.clone()));
        let asked = defaults.with(&asked.unwrap_or_default())?;
        defaults.lesser(&asked).with(limits)
    }

    /// What a component of this kind has when nobody says anything.
    pub(crate) fn usual(component: &Description) -> Self {
        let mut usual = Self::default();
        if component.exports_interface("llm-adapter") {
            // An adapter sees the whole history.
            usual.memory = 256 * MIB;
        }
        usual
    }

    /// `self` with the members of `limits` laid over it: `memory`, `output` and
    /// `text` as bytes or `"64MiB"`, `cpu` and `call` as milliseconds or `"5s"`,
    /// the others as whole numbers.
    ///
    /// # Errors
    /// A name that no limit has, or a value that is not of its shape.
    pub fn with(mut self, limits: &Value) -> Result<Self, Error> {
        let members = match limits {
            Value::Null => return Ok(self),
            Value::Object(members) => members,
            _ => return Err(bad("limits", "must be an object")),
        };
        for (name, value) in members {
            match name.as_str() {
                "memory" => self.memory = size(name, value, CEILING.memory)?,
                "output" => self.output = size(name, value, CEILING.output)?,
                "text" => self.text = size(name, value, CEILING.text)?,
                "cpu" => self.cpu = time(name, value, CEILING.cpu)?,
                "call" => self.call = time(name, value, CEILING.call)?,
                "tables" => self.tables = count(name, value, CEILING.tables)?,
                "instances" => self.instances = count(name, value, CEILING.instances)?,
                "memories" => self.memories = count(name, value, CEILING.memories)?,
                "log-lines" => self.log_lines = count(name, value, CEILING.log_lines)?,
                "calls" => self.calls = count(name, value, CEILING.calls)?,
                "handles" => self.handles = count(name, value, CEILING.handles)?,
                _ => {
                    let names: Vec<_> = self.to_value().keys().cloned().collect();
                    return Err(bad(
                        name,
                        format!("there is none of this name, but {}", names.join(", ")),
                    ));
                }
            }
        }
        Ok(self)
    }

    /// All of them as [`Limits::with`] reads them, sizes in bytes and times in
    /// milliseconds.
    #[must_use]
    pub fn to_value(&self) -> Map<String, Value> {
        let ms = |time: Duration| json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        [
            ("memory", json!(self.memory)),
            ("tables", json!(self.tables)),
            ("instances", json!(self.instances)),
            ("memories", json!(self.memories)),
            ("cpu", ms(self.cpu)),
            ("call", ms(self.call)),
            ("output", json!(self.output)),
            ("text", json!(self.text)),
            ("log-lines", json!(self.log_lines)),
            ("calls", json!(self.calls)),
            ("handles", json!(self.handles)),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    fn lesser(&self, other: &Self) -> Self {
        Self {
            memory: self.memory.min(other.memory),
            tables: self.tables.min(other.tables),
            instances: self.instances.min(other.instances),
            memories: self.memories.min(other.memories),
            cpu: self.cpu.min(other.cpu),
            call: self.call.min(other.call),
            output: self.output.min(other.output),
            text: self.text.min(other.text),
            log_lines: self.log_lines.min(other.log_lines),
            calls: self.calls.min(other.calls),
            handles: self.handles.min(other.handles),
        }
    }
}

fn bad(limit: &str, reason: impl Into<String>) -> Error {
    Error::Limit {
        limit: limit.to_owned(),
        reason: reason.into(),
    }
}

fn size(name: &str, value: &Value, most: u64) -> Result<u64, Error> {
    bytes(value).filter(|&bytes| bytes <= most).ok_or_else(|| {
        bad(
            name,
            format!(
                "write bytes, or a text like \"64MiB\", up to {}GiB",
                most / GIB
            ),
        )
    })
}

/// Bytes as a number, or as a text with a unit; up to 4 GiB.
pub(crate) fn bytes(value: &Value) -> Option<u64> {
    let units = [("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)];
    scaled(value, &units).filter(|&bytes| bytes <= 4 * GIB)
}

fn time(name: &str, value: &Value, most: Duration) -> Result<Duration, Error> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000)];
    scaled(value, &units)
        .map(Duration::from_millis)
        .filter(|time| !time.is_zero() && *time <= most)
        .ok_or_else(|| {
            bad(
                name,
                "write milliseconds, or a text like \"5s\", up to a day",
            )
        })
}

fn count(name: &str, value: &Value, most: u64) -> Result<u64, Error> {
    value
        .as_u64()
        .filter(|&count| count <= most)
        .ok_or_else(|| bad(name, format!("write a whole number up to {most}")))
}

fn scaled(value: &Value, units: &[(&str, u64)]) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let digits = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            let (number, unit) = text.split_at(digits);
            let unit = unit.trim_start();
            let scale = units.iter().find(|(name, _)| *name == unit)?.1;
            number.parse::<u64>().ok()?.checked_mul(scale)
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
