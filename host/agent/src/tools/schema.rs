//! The schema subset of tools, and what a value does wrong by it
//! (spec/loop.md §7.1, §8). Small on purpose: what a model is told about its
//! arguments has fixed phrases, and a schema outside of the subset is refused
//! when its tool is registered, not when it is first called.

use dsh_session::{Json, Value, ValueKind};

/// A schema of the subset, ready to check values with. The default takes everything.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    kind: Option<Type>,
    one_of: Vec<Schema>,
    properties: Vec<(String, Schema)>,
    required: Vec<String>,
    closed: bool,
    items: Option<Box<Schema>>,
    allowed: Option<Json>,
    constant: Option<Json>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    String,
    Number,
    Integer,
    Boolean,
    Object,
    Array,
    Null,
}

/// How deep a schema may nest. Values need no bound: they are only walked where
/// the schema goes.
const MAX_DEPTH: usize = 64;

const ANNOTATIONS: &[&str] = &["description", "title", "default", "examples"];

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// Where it leaves the subset, in words.
    pub fn compile(schema: Value<'_>) -> Result<Self, String> {
        compile(schema, "", 0)
    }

    /// Reads the schema of a tool's arguments, whose root is an object.
    ///
    /// # Errors
    /// As [`Schema::compile`].
    pub fn compile_parameters(schema: Value<'_>) -> Result<Self, String> {
        let compiled = Self::compile(schema)?;
        if compiled.kind == Some(Type::Object) {
            Ok(compiled)
        } else {
            Err("the root must have the type object".into())
        }
    }

    /// What is wrong with a value, in the order of the schema; empty when nothing is.
    #[must_use]
    pub fn violations(&self, value: Value<'_>) -> Vec<String> {
        let mut found = Vec::new();
        self.check(value, "", &mut found);
        found
    }

    /// What is wrong with one member of an object, by a schema of the object.
    pub(crate) fn check_member(&self, name: &str, object: Value<'_>, found: &mut Vec<String>) {
        let value = object.get(name);
        match (value, self.properties.iter().find(|(own, _)| own == name)) {
            (None, _) if self.required.iter().any(|required| required == name) => {
                found.push(format!("missing required property {}", quoted(name)));
            }
            (Some(value), Some((_, schema))) => schema.check(value, name, found),
            _ => {}
        }
    }

    fn check(&self, value: Value<'_>, path: &str, found: &mut Vec<String>) {
        if !self.one_of.is_empty() {
            let matched = self
                .one_of
                .iter()
                .filter(|branch| branch.violations(value).is_empty())
                .count();
            if matched != 1 {
                found.push(format!(
                    "{} must match exactly one oneOf branch (matched {matched})",
                    quoted(path)
                ));
            }
        }
        if let Some(kind) = self.kind
            && let Some(expected) = kind.complaint(value)
        {
            found.push(format!("{} must be {expected}", quoted(path)));
            return;
        }
        if let Some(allowed) = &self.allowed
            && !allowed.value().items().any(|item| equal(item, value))
        {
            found.push(format!("{} must be one of {allowed}", quoted(path)));
        }
        if let Some(constant) = &self.constant
            && !equal(constant.value(), value)
        {
            found.push(format!("{} must be {constant}", quoted(path)));
        }
        if value.is_object() {
            self.check_members(value, path, found);
        }
        if let Some(items) = &self.items {
            for (index, item) in value.items().enumerate() {
                items.check(item, &format!("{path}[{index}]"), found);
            }
        }
    }

    fn check_members(&self, value: Value<'_>, path: &str, found: &mut Vec<String>) {
        for name in self
            .required
            .iter()
            .filter(|name| value.get(name).is_none())
        {
            found.push(format!(
                "missing required property {}",
                quoted(&member(path, name))
            ));
        }
        for (name, schema) in &self.properties {
            if let Some(value) = value.get(name) {
                schema.check(value, &member(path, name), found);
            }
        }
        if self.closed {
            for (key, _) in value
                .entries()
                .filter(|(key, _)| !self.properties.iter().any(|(name, _)| key.is(name)))
            {
                found.push(format!(
                    "{} is not a declared property",
                    quoted(&member(path, &key.decode()))
                ));
            }
        }
    }
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "object" => Self::Object,
            "array" => Self::Array,
            "null" => Self::Null,
            _ => return None,
        })
    }

    /// What the value should have been, if it is not.
    fn complaint(self, value: Value<'_>) -> Option<&'static str> {
        let kind = value.kind();
        let (fits, expected) = match self {
            Self::String => (kind == ValueKind::String, "a string"),
            Self::Number => (kind == ValueKind::Number, "a number"),
            Self::Integer => (
                value.f64().is_some_and(|number| number.fract() == 0.0),
                "an integer",
            ),
            Self::Boolean => (kind == ValueKind::Bool, "a boolean"),
            Self::Object => (kind == ValueKind::Object, "an object"),
            Self::Array => (kind == ValueKind::Array, "an array"),
            Self::Null => (kind == ValueKind::Null, "null"),
        };
        (!fits).then_some(expected)
    }
}

fn compile(schema: Value<'_>, path: &str, depth: usize) -> Result<Schema, String> {
    let here = || {
        if path.is_empty() {
            "the root".to_owned()
        } else {
            format!("\"{path}\"")
        }
    };
    if depth > MAX_DEPTH {
        return Err(format!("{} nests deeper than {MAX_DEPTH} levels", here()));
    }
    if !schema.is_object() {
        return Err(format!("{} is not an object", here()));
    }
    let mut compiled = Schema {
        kind: None,
        one_of: Vec::new(),
        properties: Vec::new(),
        required: Vec::new(),
        closed: false,
        items: None,
        allowed: None,
        constant: None,
    };
    for (key, value) in schema.entries() {
        let key = key.decode();
        let unusable = || format!("{key} of {} is not usable", here());
        match &*key {
            "type" => {
                let name = value.text().ok_or_else(unusable)?;
                compiled.kind = Some(Type::named(&name).ok_or_else(unusable)?);
            }
            "oneOf" => {
                compiled.one_of = value
                    .items()
                    .map(|branch| compile(branch, path, depth + 1))
                    .collect::<Result<_, _>>()?;
                if compiled.one_of.len() < 2 {
                    return Err(format!("oneOf of {} needs two branches or more", here()));
                }
            }
            "properties" if value.is_object() => {
                for (name, property) in value.entries() {
                    let name = name.decode().into_owned();
                    let property = compile(property, &member(path, &name), depth + 1)?;
                    compiled.properties.push((name, property));
                }
            }
            "required" if value.is_array() => {
                let names = value
                    .items()
                    .map(|name| name.text().map(std::borrow::Cow::into_owned));
                compiled.required = names.collect::<Option<_>>().ok_or_else(unusable)?;
            }
            "additionalProperties" => compiled.closed = !value.bool().ok_or_else(unusable)?,
            "items" => {
                compiled.items = Some(Box::new(compile(value, &format!("{path}[]"), depth + 1)?));
            }
            "enum" if value.items().next().is_some() => compiled.allowed = Some(value.to_json()),
            "const" => compiled.constant = Some(value.to_json()),
            annotation if ANNOTATIONS.contains(&annotation) => {}
            _ => return Err(unusable()),
        }
    }
    Ok(compiled)
}

fn member(path: &str, name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == '-');
    match (path.is_empty(), plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{}]", Json::string(name)),
    }
}

fn quoted(path: &str) -> String {
    if path.is_empty() {
        "the arguments".to_owned()
    } else {
        format!("\"{path}\"")
    }
}

/// Equality of values: members in any order. Depth is bounded by the schema's
/// side, which is why recursion is safe.
fn equal(expected: Value<'_>, value: Value<'_>) -> bool {
    if expected.as_str() == value.as_str() {
        return true;
    }
    match (expected.kind(), value.kind()) {
        (ValueKind::Object, ValueKind::Object) => {
            expected.entries().count() == value.entries().count()
                && expected.entries().all(|(key, item)| {
                    value.entries().any(|(other, candidate)| {
                        other.raw() == key.raw() && equal(item, candidate)
                    })
                })
        }
        (ValueKind::Array, ValueKind::Array) => {
            expected.items().count() == value.items().count()
                && expected
                    .items()
                    .zip(value.items())
                    .all(|(left, right)| equal(left, right))
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
