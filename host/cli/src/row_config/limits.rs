//! How large a number, how long a text or a list may be.

use std::collections::HashSet;

use serde_json::Value;

/// The words that are checked here.
pub(super) const WORDS: [&str; 9] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "uniqueItems",
];

/// The first limit that a configuration of the right shape goes beyond.
pub(super) fn fault(schema: &Value, config: &Value) -> Option<String> {
    below(schema, config, "")
}

fn below(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let own = own(schema, value).map(|rule| match path {
        "" => format!("it {rule}"),
        path => format!("\"{path}\" {rule}"),
    });
    own.or_else(|| match value {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            below(schema.get("properties")?.get(name)?, value, &path)
        }),
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(at, value)| below(schema, value, &format!("{path}[{at}]")))
        }
        _ => None,
    })
    .or_else(|| {
        let branches = schema.get("oneOf")?.as_array()?;
        let branch = branches.iter().find(|branch| super::fits(branch, value))?;
        below(branch, value, path)
    })
}

/// The rule of this very value that it breaks.
fn own(schema: &Value, value: &Value) -> Option<String> {
    let bound = |word: &str| schema.get(word);
    let size = |word: &str| bound(word).and_then(Value::as_u64);
    let sized = |least: &str, most: &str, count: usize, what: &str| {
        let count = count as u64;
        if let Some(least) = size(least).filter(|least| count < *least) {
            return Some(format!("must have {least} or more {what}"));
        }
        let most = size(most).filter(|most| count > *most)?;
        Some(format!("must have at most {most} {what}"))
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            let beyond = |word: &str, breaks: fn(f64, f64) -> bool| {
                bound(word)
                    .filter(|bound| bound.as_f64().is_some_and(|bound| breaks(number, bound)))
            };
            let says = [
                (
                    "minimum",
                    (|n, bound| n < bound) as fn(f64, f64) -> bool,
                    "or more",
                ),
                ("maximum", |n, bound| n > bound, "or less"),
                ("exclusiveMinimum", |n, bound| n <= bound, ""),
                ("exclusiveMaximum", |n, bound| n >= bound, ""),
            ];
            says.into_iter().find_map(|(word, breaks, end)| {
                let bound = beyond(word, breaks)?;
                Some(match word {
                    "exclusiveMinimum" => format!("must be more than {bound}"),
                    "exclusiveMaximum" => format!("must be less than {bound}"),
                    _ => format!("must be {bound} {end}"),
                })
            })
        }
        Value::String(text) => sized("minLength", "maxLength", text.chars().count(), "characters"),
        Value::Array(items) => sized("minItems", "maxItems", items.len(), "items").or_else(|| {
            let unique = bound("uniqueItems").and_then(Value::as_bool)?;
            let mut seen = HashSet::new();
            let twice = items.iter().find(|item| !seen.insert(item.to_string()));
            twice
                .filter(|_| unique)
                .map(|item| format!("must not have {item} twice"))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_limit_is_met_at_its_edge_and_broken_beyond_it() {
        let table = [
            (
                json!({"minimum": 2}),
                json!(2),
                json!(1),
                "must be 2 or more",
            ),
            (
                json!({"maximum": 0.8}),
                json!(0.8),
                json!(0.9),
                "must be 0.8 or less",
            ),
            (
                json!({"exclusiveMinimum": 0}),
                json!(0.1),
                json!(0),
                "must be more than 0",
            ),
            (
                json!({"exclusiveMaximum": 1}),
                json!(0.9),
                json!(1),
                "must be less than 1",
            ),
            (
                json!({"minLength": 1}),
                json!("é"),
                json!(""),
                "must have 1 or more characters",
            ),
            (
                json!({"maxLength": 1}),
                json!("é"),
                json!("éé"),
                "must have at most 1 characters",
            ),
            (
                json!({"minItems": 1}),
                json!([1]),
                json!([]),
                "must have 1 or more items",
            ),
            (
                json!({"maxItems": 1}),
                json!([1]),
                json!([1, 1]),
                "must have at most 1 items",
            ),
            (
                json!({"uniqueItems": true}),
                json!([1, "1"]),
                json!([3, 5, 3]),
                "must not have 3 twice",
            ),
            (
                json!({"uniqueItems": false}),
                json!([1, 1]),
                json!(null),
                "",
            ),
        ];
        for (schema, good, bad, says) in table {
            assert_eq!(fault(&schema, &good), None, "{schema}");
            let rule = fault(&schema, &bad);
            assert_eq!(
                rule,
                (!says.is_empty()).then(|| format!("it {says}")),
                "{schema}"
            );
        }
    }

    #[test]
    fn a_limit_is_found_wherever_it_stands() {
        let schema = json!({"properties": {"a": {"items": {"oneOf": [
            {"type": "integer", "minimum": 2}, {"type": "string"}
        ]}}}});
        assert_eq!(fault(&schema, &json!({"a": [2, "x"], "b": -1})), None);
        let says = fault(&schema, &json!({"a": [2, 1]}));
        assert_eq!(says.as_deref(), Some("\"a[1]\" must be 2 or more"));
    }
}
