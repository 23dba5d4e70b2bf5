//! The guests' reader of JSON against serde_json's, which takes less: it has a bound on depth, and no half surrogate pairs.

use guest_support::json::Json;
use serde_json::Value;

pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let ours = Json::parse(text);
    match serde_json::from_str::<Value>(text) {
        Ok(theirs) => same(ours.expect("it is JSON"), &theirs),
        Err(error) => {
            let why = error.to_string();
            let known = [
                "recursion limit",
                "surrogate",
                "hex escape",
                "number out of range",
            ];
            let taken = ours.is_some() && !known.iter().any(|known| why.contains(known));
            assert!(!taken, "it is no JSON: {why}");
        }
    }
    if let Some(json) = ours {
        walk(json);
    }
}

/// Reads all there is to read.
fn walk(json: Json<'_>) {
    let mut open = vec![json];
    while let Some(json) = open.pop() {
        if let Some(text) = json.string() {
            assert_eq!(json.string_len(), Some(text.len()));
        }
        json.number();
        json.whole();
        open.extend(json.items());
        open.extend(json.members().map(|(_, value)| value));
    }
}

fn same(ours: Json<'_>, theirs: &Value) {
    match theirs {
        Value::Null => assert_eq!(ours.raw(), "null"),
        Value::Bool(value) => assert_eq!(ours.bool(), Some(*value)),
        Value::Number(number) => {
            let pair = ours.number().zip(number.as_f64());
            // serde_json rounds long numbers a last place away.
            let alike =
                pair.is_some_and(|(ours, theirs)| (ours - theirs).abs() <= theirs.abs() * 1e-15);
            assert!(alike, "{pair:?}");
        }
        Value::String(text) => assert_eq!(ours.string().as_deref(), Some(&**text)),
        Value::Array(items) => {
            let own: Vec<_> = ours.items().collect();
            assert_eq!(own.len(), items.len());
            own.into_iter()
                .zip(items)
                .for_each(|(ours, theirs)| same(ours, theirs));
        }
        Value::Object(members) => {
            for (name, theirs) in members {
                same(ours.get(name).expect("the member is there"), theirs);
            }
        }
    }
}
