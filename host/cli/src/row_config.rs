//! Whether a row's `config` is what its component's manifest says it takes.
//!
//! Asked before the component is mounted, so that a misspelt member is a line at
//! the start and not a tool that behaves oddly. Shapes, names and choices are
//! checked; limits of numbers and texts are the component's own to check, and a
//! schema that says more than that is left to it altogether.

use dsh_agent::tools::Schema;
use dsh_session::Json;
use serde_json::Value;

/// Said by schemas, and not checked here.
const LIMITS: &[&str] = &[
    "$schema",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
];

/// The first thing that is wrong with a configuration: which member, by which rule.
pub(crate) fn fault(schema: &Value, config: &Value) -> Option<String> {
    let text = Json::normalise(&without_limits(schema).to_string()).ok()?;
    let schema = Schema::compile(text.value()).ok()?;
    let config = match config {
        Value::Null => Json::empty_object(),
        config => Json::normalise(&config.to_string()).ok()?,
    };
    let faults = schema.violations(config.value());
    let fault = faults.first()?;
    Some(format!(
        "config: {}",
        fault.replacen("the arguments", "it", 1)
    ))
}

/// Whether a schema says nothing but what is checked here.
pub(crate) fn is_checked(schema: &Value) -> bool {
    Json::normalise(&without_limits(schema).to_string())
        .is_ok_and(|text| Schema::compile(text.value()).is_ok())
}

/// The schema with its limits taken out, where it is a schema: below
/// `properties` the same words are names.
fn without_limits(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let kept = members
        .iter()
        .filter(|(key, _)| !LIMITS.contains(&key.as_str()));
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fault_names_the_member_and_the_rule() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "mode": {"enum": ["a", "b"]},
                "minimum": {"type": "integer", "minimum": 1},
                "models": {"type": "array", "items": {
                    "type": "object", "properties": {"id": {"type": "string", "minLength": 1}},
                    "required": ["id"], "additionalProperties": false
                }}
            },
            "additionalProperties": false
        });
        let table = [
            (json!(null), None),
            (json!({}), None),
            (json!({"mode": "a", "minimum": 0}), None),
            (json!([]), Some("config: it must be an object")),
            (
                json!({"mode": "c"}),
                Some(r#"config: "mode" must be one of ["a","b"]"#),
            ),
            (
                json!({"minimum": "1"}),
                Some(r#"config: "minimum" must be an integer"#),
            ),
            (
                json!({"models": [{"id": "x"}, {}]}),
                Some(r#"config: missing required property "models[1].id""#),
            ),
            (
                json!({"Mode": "a"}),
                Some(r#"config: "Mode" is not a declared property"#),
            ),
        ];
        for (config, says) in table {
            assert_eq!(fault(&schema, &config).as_deref(), says, "{config}");
        }
    }

    #[test]
    fn a_schema_that_says_more_is_not_checked() {
        let schema =
            json!({"type": "object", "patternProperties": {}, "additionalProperties": false});
        assert_eq!(fault(&schema, &json!({"a": 1})), None);
    }

    #[test]
    fn every_official_schema_is_checked() {
        let plugins = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
        let mut count = 0;
        for plugin in std::fs::read_dir(plugins).unwrap() {
            let file = plugin.unwrap().path().join("config.schema.json");
            let Ok(text) = std::fs::read_to_string(&file) else {
                continue;
            };
            let schema = serde_json::from_str(&text).unwrap();
            let fault = fault(&schema, &json!({"no-such-member": 1}));
            let says = r#"config: "no-such-member" is not a declared property"#;
            assert_eq!(fault.as_deref(), Some(says), "{}", file.display());
            count += 1;
        }
        assert!(count > 0);
    }
}
