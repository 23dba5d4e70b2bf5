use dsh_session::Json;

use super::Schema;

fn violations(schema: &str, value: &str) -> String {
    let schema = Json::normalise(schema).unwrap();
    let value = Json::normalise(value).unwrap();
    Schema::compile(schema.value())
        .unwrap()
        .violations(value.value())
        .join("; ")
}

fn refusal(schema: &str) -> String {
    Schema::compile_parameters(Json::normalise(schema).unwrap().value()).unwrap_err()
}

const TODOS: &str = r#"{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object",
    "properties":{"content":{"type":"string"},"status":{"type":"string","enum":["pending","completed"]}},
    "required":["content","status"],"additionalProperties":false}}},"required":["todos"]}"#;

#[test]
fn violations_have_fixed_phrases_and_paths_from_the_root() {
    assert_eq!(
        violations(TODOS, "{}"),
        r#"missing required property "todos""#
    );
    assert_eq!(
        violations(TODOS, r#"{"todos":1}"#),
        r#""todos" must be an array"#
    );
    assert_eq!(
        violations(TODOS, r#"{"todos":[{"content":1,"status":"no","x":2}]}"#),
        concat!(
            r#""todos[0].content" must be a string; "#,
            r#""todos[0].status" must be one of ["pending","completed"]; "#,
            r#""todos[0].x" is not a declared property"#
        )
    );
    assert_eq!(
        violations(TODOS, r#"{"todos":[{}]}"#)
            .matches("missing required property")
            .count(),
        2
    );
}

#[test]
fn each_type_says_what_it_wanted() {
    for (kind, wrong, phrase) in [
        ("string", "1", "a string"),
        ("number", "\"1\"", "a number"),
        ("integer", "1.5", "an integer"),
        ("boolean", "null", "a boolean"),
        ("null", "false", "null"),
        ("object", "[]", "an object"),
        ("array", "{}", "an array"),
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"x":{{"type":"{kind}"}}}}}}"#);
        assert_eq!(
            violations(&schema, &format!(r#"{{"x":{wrong}}}"#)),
            format!("\"x\" must be {phrase}")
        );
    }
}

#[test]
fn an_integer_is_what_is_integral() {
    let schema = r#"{"type":"object","properties":{"x":{"type":"integer"}}}"#;
    assert_eq!(violations(schema, r#"{"x":2.0}"#), "");
    assert_eq!(violations(schema, r#"{"x":1e3}"#), "");
}

#[test]
fn undeclared_properties_are_allowed_unless_the_schema_is_closed() {
    assert_eq!(
        violations(r#"{"type":"object","properties":{}}"#, r#"{"y":1}"#),
        ""
    );
}

#[test]
fn one_of_wants_exactly_one_branch() {
    let schema = r#"{"type":"object","properties":{"at":{"oneOf":[{"type":"string"},{"type":"number"},{"type":"integer"}]}}}"#;
    assert_eq!(violations(schema, r#"{"at":"x"}"#), "");
    assert_eq!(
        violations(schema, r#"{"at":1}"#),
        r#""at" must match exactly one oneOf branch (matched 2)"#
    );
    assert_eq!(
        violations(schema, r#"{"at":true}"#),
        r#""at" must match exactly one oneOf branch (matched 0)"#
    );
}

#[test]
fn constants_compare_by_value_not_by_text() {
    let schema = r#"{"type":"object","properties":{"x":{"const":{"a":1,"b":[2]}}}}"#;
    assert_eq!(violations(schema, r#"{"x":{"b":[2.0],"a":1}}"#), "");
    assert_eq!(
        violations(schema, r#"{"x":{"b":[3],"a":1}}"#),
        r#""x" must be {"a":1,"b":[2]}"#
    );
}

#[test]
fn lone_surrogates_and_depth_in_arguments_are_no_fault() {
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    assert_eq!(violations(r#"{"type":"object"}"#, &deep), "");
    let schema = r#"{"type":"object","properties":{"x":{"type":"string"}}}"#;
    assert_eq!(violations(schema, r#"{"x":"\ud83d"}"#), "");
}

#[test]
fn what_is_outside_the_subset_is_refused_at_registration() {
    assert!(
        refusal(r#"{"type":"object","patternProperties":{}}"#)
            .contains("patternProperties of the root")
    );
    assert!(refusal(r#"{"type":"string"}"#).contains("the root must have the type object"));
    assert!(
        refusal(r#"{"type":"object","properties":{"a":{"oneOf":[{"type":"null"}]}}}"#)
            .contains("two branches")
    );
    assert!(
        refusal(r#"{"type":"object","properties":{"a":{"type":["string","null"]}}}"#)
            .contains("type of \"a\"")
    );
    let deep = format!(
        r#"{{"type":"object","properties":{{"a":{}{{}}{}}}}}"#,
        r#"{"items":"#.repeat(80),
        "}".repeat(80)
    );
    assert!(refusal(&deep).contains("nests deeper"));
}
