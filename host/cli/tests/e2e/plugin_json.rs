//! What `--json` prints is what `docs/schema` says, of successes and of failures.

use serde_json::Value;

use crate::support::{Scratch, counter, greedy, root, todo};

/// Checks a value by the words of JSON Schema that our schemas use; anything else in one is an error of the test.
pub(crate) fn check(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        let fits = match word.as_str() {
            "$schema" | "$id" | "title" | "description" | "$defs" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                check(
                    root.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")),
                    root,
                    value,
                    at,
                )?;
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|kind| is(kind, value)),
                kind => is(kind, value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, root, item, &format!("{at}[{index}]"))?;
                }
                true
            }
            "required" => {
                let names = rule.as_array().unwrap();
                let missing = names
                    .iter()
                    .find(|name| value.is_object() && value.get(name.as_str().unwrap()).is_none());
                if let Some(name) = missing {
                    return Err(format!("{at} lacks {name}: {value}"));
                }
                true
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        check(rule, root, member, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(rule, false, "only false is known");
                let known = schema["properties"].as_object().unwrap();
                let unknown = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .find(|(name, _)| !known.contains_key(*name));
                if let Some((name, _)) = unknown {
                    return Err(format!("{at} has {name}, which is not in the schema"));
                }
                true
            }
            "oneOf" => {
                let results: Vec<_> = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|rule| check(rule, root, value, at))
                    .collect();
                if results.iter().filter(|result| result.is_ok()).count() != 1 {
                    return Err(format!("{at}: not exactly one of {results:?}: {value}"));
                }
                true
            }
            other => panic!("the test does not know {other}"),
        };
        if !fits {
            return Err(format!("{at}: {word} {rule}: {value}"));
        }
    }
    Ok(())
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "null" => value.is_null(),
        other => panic!("the test does not know {other}"),
    }
}

#[test]
fn every_output_is_what_its_schema_says() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    scratch.put("todo.wasm", &todo());
    let mut seen = std::collections::BTreeMap::new();
    let mut run = |words: &[&str], ok: bool| {
        let (ended, value) = scratch.plugin_json(words.iter().copied());
        let verb = words[0];
        let file = root().join(format!("docs/schema/plugin-{verb}.schema.json"));
        let schema = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let schema: Value = serde_json::from_str(&schema).unwrap();
        check(&schema, &schema, &value, "it").unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert_eq!(value["ok"], ok, "{words:?}: {ended:?}");
        assert_eq!(ended.stdout.lines().count(), 1);
        if !ok {
            assert_eq!(ended.code, Some(1));
            let error = value.get("error").is_some();
            assert!(!ended.stderr.is_empty() || !error, "a person is told too");
        }
        *seen.entry((verb.to_owned(), ok)).or_insert(0) += 1;
        value
    };
    run(&["list"], true);
    let refused = run(&["add", "counter.wasm"], false);
    assert_eq!(refused["wants"][0]["grant"], "tool-names");
    run(&["add", "--yes", "counter.wasm"], true);
    run(&["add", "--yes", "counter.wasm"], true);
    run(&["add", "--none", "todo.wasm"], true);
    run(&["add", "nothing.wasm"], false);
    run(&["add"], false);
    run(&["list"], true);
    run(&["list", "too", "much"], false);
    run(&["info", "counter.wasm"], true);
    run(&["info", "acme:counter"], true);
    run(&["info", "acme:none"], false);
    run(&["grant", "acme:todo", "journal"], true);
    run(&["grant", "acme:todo", "clock"], false);
    run(&["revoke", "acme:todo", "journal"], true);
    run(&["revoke", "acme:todo", "journal"], false);
    run(&["disable", "acme:counter"], true);
    run(&["disable", "counter"], true);
    run(&["disable", "tool-bash"], false);
    run(&["enable", "acme:counter", "counter"], true);
    run(&["enable", "acme:none"], false);
    for word in ["acme:counter", "counter", "c_count", "bash", "acme:todo"] {
        run(&["why", word], true);
    }
    run(&["why", "nothing"], false);
    run(&["audit"], true);
    run(&["audit", "x"], false);
    run(&["outdated"], true);
    run(&["update"], true);
    scratch.put("counter.wasm", &counter("1.1.0"));
    run(&["outdated"], true);
    run(&["outdated", "acme:none"], false);
    run(&["update", "--dry-run"], true);
    run(&["update"], true);
    scratch.put("counter.wasm", &greedy("1.2.0"));
    // One of two cannot be; and one that is named cannot be.
    run(&["update", "--yes"], false);
    run(&["update", "acme:counter"], false);
    std::fs::remove_file(scratch.work().join("todo.wasm")).unwrap();
    run(&["outdated"], false);
    run(&["verify"], true);
    run(&["verify", "acme:none"], false);
    std::fs::write(
        scratch
            .home()
            .join(format!("plugins/sha256/{}.wasm", scratch.packages()[0])),
        b"x",
    )
    .unwrap();
    run(&["verify"], false);
    run(&["remove", "acme:counter"], true);
    run(&["remove", "acme:counter"], false);
    assert_eq!(
        seen.len(),
        26,
        "each command has done it and failed: {seen:?}"
    );
}
