//! What a row may use up, as plain data.
//!
//! The defaults are the host's; a component's manifest may ask for less, a row
//! says what holds. Why these: `engine.rs` and `instance.rs` say what each bounds.

use std::time::Duration;

use serde_json::Value;

use crate::component::Component;
use crate::error::Error;

const MIB: u64 = 1 << 20;

/// Bounds on an instance and on each call of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all linear memories of an instance together.
    pub memory: u64,
    /// Time in the component, without time in imports.
    pub cpu: Duration,
    /// The whole call on the wall clock; a tool's run has none of it.
    pub call: Duration,
    /// Bytes that a call may hand over, in one import or as its result.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 * MIB,
            cpu: Duration::from_secs(5),
            call: Duration::from_secs(30),
            output: 16 * MIB,
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
        let mut defaults = Self::default();
        if component.description.exports_interface("llm-adapter") {
            // An adapter sees the whole history.
            defaults.memory = 256 * MIB;
        }
        let asked = component
            .manifest()
            .map(|manifest| Value::Object(manifest.limits.clone()));
        let asked = defaults.with(&asked.unwrap_or_default())?;
        defaults.lesser(&asked).with(limits)
    }

    /// `self` with the members of `limits` laid over it: `memory` and `output`
    /// as bytes or `"64MiB"`, `cpu` and `call` as milliseconds or `"5s"`.
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
                "memory" => self.memory = bytes(name, value)?,
                "output" => self.output = bytes(name, value)?,
                "cpu" => self.cpu = time(name, value)?,
                "call" => self.call = time(name, value)?,
                _ => {
                    return Err(bad(
                        name,
                        "there is none of this name, but memory, output, cpu, call",
                    ));
                }
            }
        }
        Ok(self)
    }

    fn lesser(&self, other: &Self) -> Self {
        Self {
            memory: self.memory.min(other.memory),
            cpu: self.cpu.min(other.cpu),
            call: self.call.min(other.call),
            output: self.output.min(other.output),
        }
    }
}

fn bad(limit: &str, reason: &str) -> Error {
    Error::Limit {
        limit: limit.to_owned(),
        reason: reason.to_owned(),
    }
}

fn bytes(name: &str, value: &Value) -> Result<u64, Error> {
    let units = [("GiB", 1 << 30), ("MiB", MIB), ("KiB", 1 << 10), ("B", 1)];
    scaled(value, &units)
        .filter(|&bytes| bytes <= 4 << 30)
        .ok_or_else(|| bad(name, "write bytes, or a text like \"64MiB\", up to 4GiB"))
}

fn time(name: &str, value: &Value) -> Result<Duration, Error> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000)];
    scaled(value, &units)
        .filter(|ms| (1..=86_400_000).contains(ms))
        .map(Duration::from_millis)
        .ok_or_else(|| {
            bad(
                name,
                "write milliseconds, or a text like \"5s\", up to a day",
            )
        })
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
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_and_times_are_numbers_or_texts_with_a_unit() {
        let limits = Limits::default()
            .with(&json!({"memory": "256MiB", "output": 4096, "cpu": "500ms", "call": "2m"}))
            .unwrap();
        assert_eq!(limits.memory, 256 * MIB);
        assert_eq!(limits.output, 4096);
        assert_eq!(limits.cpu, Duration::from_millis(500));
        assert_eq!(limits.call, Duration::from_secs(120));
        assert_eq!(
            Limits::default()
                .with(&json!({"call": "10 s"}))
                .unwrap()
                .call,
            Duration::from_secs(10)
        );
    }

    #[test]
    fn what_is_no_limit_or_cannot_be_is_refused() {
        for value in [
            json!({"fuel": 1}),
            json!({"memory": "lots"}),
            json!({"memory": "64MB"}),
            json!({"memory": -1}),
            json!({"memory": "99999999999999999999GiB"}),
            json!({"memory": "5GiB"}),
            json!({"memory": "MiB"}),
            json!({"cpu": 0}),
            json!({"cpu": "forever"}),
            json!({"call": 1.5}),
            json!([]),
        ] {
            assert!(
                matches!(Limits::default().with(&value), Err(Error::Limit { .. })),
                "{value}"
            );
        }
    }
}
