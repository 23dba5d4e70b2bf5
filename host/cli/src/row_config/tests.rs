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
        (json!({"mode": "a", "minimum": 1}), None),
        (
            json!({"mode": "a", "minimum": 0}),
            Some(r#"config: "minimum" must be 1 or more"#),
        ),
        (
            json!({"models": [{"id": ""}]}),
            Some(r#"config: "models[0].id" must have 1 or more characters"#),
        ),
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
    let schema = json!({"type": "object", "patternProperties": {}, "additionalProperties": false});
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
