//! YAML as patch files have it: js-yaml's JSON schema and one tag more, `!!js`.
//!
//! Files are read from parser events and not through serde, because three things
//! have to survive that a data format drops: the `!!js` tag (an expression is
//! not a string), whether a scalar was quoted, and the line of every node, which
//! each error names. A tree is small and is walked as it stands; it becomes JSON
//! only when a row is evaluated.

mod emit;
mod locate;
mod parse;
mod scalar;

pub(crate) use emit::{Field, emit_item};
pub(crate) use locate::{Located, locate};
pub(crate) use parse::{Fault, parse};

use serde_json::Value;

/// A node and the 1-based line that it starts on.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    /// `!!js`: the expression, verbatim.
    Js(String),
    Seq(Vec<Node>),
    Map(Map),
}

/// A mapping in the order of its file; keys are unique.
#[derive(Debug, Clone, Default)]
pub(crate) struct Map(pub(crate) Vec<(String, Node)>);

impl Map {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

impl Node {
    pub(crate) fn new(line: usize, kind: Kind) -> Self {
        Self { line, kind }
    }

    /// A value as a node; no text in it is an expression.
    pub(crate) fn of(value: &Value) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(b) => Kind::Bool(*b),
            Value::Number(n) => Kind::Number(n.clone()),
            Value::String(s) => Kind::String(s.clone()),
            Value::Array(items) => Kind::Seq(items.iter().map(Self::of).collect()),
            Value::Object(object) => return Self::of_object(object),
        };
        Self::new(0, kind)
    }

    /// An object as a node.
    pub(crate) fn of_object(object: &serde_json::Map<String, Value>) -> Self {
        let members = object
            .iter()
            .map(|(key, value)| (key.clone(), Self::of(value)));
        Self::new(0, Kind::Map(Map(members.collect())))
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// What a person would call it, for errors.
    pub(crate) fn noun(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::String(_) => "a string",
            Kind::Js(_) => "an expression",
            Kind::Seq(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// As JSON. `js` gives the value of an expression, none for JavaScript's
    /// `undefined`: that drops a mapping's member and is null in a list.
    pub(crate) fn to_json<E>(
        &self,
        js: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Option<Value>, E> {
        Ok(Some(match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(b) => Value::Bool(*b),
            Kind::Number(n) => Value::Number(n.clone()),
            Kind::String(s) => Value::String(s.clone()),
            Kind::Js(expression) => return Ok(js(expression)?.map(Value::String)),
            Kind::Seq(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(item.to_json(js)?.unwrap_or(Value::Null));
                }
                Value::Array(list)
            }
            Kind::Map(map) => {
                let mut object = serde_json::Map::new();
                for (key, node) in &map.0 {
                    if let Some(value) = node.to_json(js)? {
                        object.insert(key.clone(), value);
                    }
                }
                Value::Object(object)
            }
        }))
    }

    /// As JSON where no expression is allowed; the line of the first one otherwise.
    pub(crate) fn plain_json(&self) -> Result<Value, Fault> {
        if let Some(line) = self.first_expression() {
            return Err(Fault {
                line,
                message: "an expression (!!js) is not allowed in this file".into(),
            });
        }
        let value = self.to_json::<std::convert::Infallible>(&mut |_| Ok(None));
        Ok(value.ok().flatten().unwrap_or(Value::Null))
    }

    fn first_expression(&self) -> Option<usize> {
        match &self.kind {
            Kind::Js(_) => Some(self.line),
            Kind::Seq(items) => items.iter().find_map(Self::first_expression),
            Kind::Map(map) => map.0.iter().find_map(|(_, n)| n.first_expression()),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
