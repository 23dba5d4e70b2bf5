//! Whether a row's `config` is what its component's manifest says it takes.
//!
//! Asked before the component is mounted, so that a misspelt member is a line at
//! the start and not a tool that behaves oddly. Shapes, names and choices are
//! checked as a tool's arguments are, then the limits of numbers, texts and lists;
//! a `pattern` is the component's own to check, and a schema that says more than
//! that is left to it altogether.

mod limits;

use dsh_agent::tools::Schema;
use dsh_session::Json;
use serde_json::Value;

/// Said by schemas, and no matter of their shape.
const BESIDE: &[&str] = &["$schema", "pattern"];

/// The first thing that is wrong with a configuration: which member, by which rule.
pub(crate) fn fault(schema: &Value, config: &Value) -> Option<String> {
    let text = Json::normalise(&without_limits(schema).to_string()).ok()?;
    let shape = Schema::compile(text.value()).ok()?;
    let normal = match config {
        Value::Null => Json::empty_object(),
        config => Json::normalise(&config.to_string()).ok()?,
    };
    let faults = shape.violations(normal.value());
    let fault = match faults.first() {
        Some(fault) => fault.replacen("the arguments", "it", 1),
        None => limits::fault(schema, config)?,
    };
    Some(format!("config: {fault}"))
}

/// Whether a schema says nothing but what is checked here.
pub(crate) fn is_checked(schema: &Value) -> bool {
    Json::normalise(&without_limits(schema).to_string())
        .is_ok_and(|text| Schema::compile(text.value()).is_ok())
}

/// Whether a value has the shape that a schema asks for, limits aside.
fn fits(schema: &Value, value: &Value) -> bool {
    let shape = Json::normalise(&without_limits(schema).to_string()).ok();
    let shape = shape.and_then(|text| Schema::compile(text.value()).ok());
    let value = Json::normalise(&value.to_string()).ok();
    shape
        .zip(value)
        .is_some_and(|(shape, value)| shape.violations(value.value()).is_empty())
}

/// The schema with its limits taken out, where it is a schema: below
/// `properties` the same words are names.
fn without_limits(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let kept = members.iter().filter(|(key, _)| {
        !BESIDE.contains(&key.as_str()) && !limits::WORDS.contains(&key.as_str())
    });
    let member = |(key, value): (&String, &Value)| {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), without_limits(schema)))
                .collect(),
            ("items", schema) => without_limits(schema),
            ("oneOf", Value::Array(branches)) => branches.iter().map(without_limits).collect(),
            _ => value.clone(),
        };
        (key.clone(), value)
    };
    Value::Object(kept.map(member).collect())
}

#[cfg(test)]
mod tests;
