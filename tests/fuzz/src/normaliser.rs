//! The normaliser (`spec/session.md` §0): its result is valid, is its own normal form, and means what the text meant.

use dsh_session::{Json, json_judged};
use serde_json::Value;

pub(crate) fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let judged = json_judged(&text);
    let restored = Json::restore(&text);
    let normal = Json::normalise(&text);
    match (&judged, &restored) {
        (Ok((is_normal, rewritten)), Ok(restored)) => {
            assert_eq!(restored.as_str(), rewritten, "two ways, two normal forms");
            if *is_normal {
                assert_eq!(*text, **rewritten, "what is called normal is rewritten");
            }
        }
        (Err(_), Err(_)) => assert!(normal.is_err()),
        _ => panic!("validator and normaliser disagree whether this is JSON"),
    }
    let theirs: Result<Value, _> = serde_json::from_str(&text);
    let Ok(restored) = restored else {
        assert!(theirs.is_err(), "another reader takes what is refused here");
        return;
    };
    let again = Json::restore(restored.as_str()).expect("a normal form is JSON");
    assert_eq!(again, restored, "a normal form has another one");
    let (is_normal, _) = json_judged(restored.as_str()).expect("a normal form is JSON");
    assert!(is_normal, "a normal form is not called so");
    if let Ok(normal) = normal {
        assert_eq!(normal, restored, "lossless text is kept in two ways");
        assert_eq!(Json::normalise(normal.as_str()), Ok(normal));
    }
    // Half surrogates and deep nesting are refused there, not here.
    if let Ok(theirs) = theirs {
        let ours = serde_json::from_str(restored.as_str()).expect("what they took they take again");
        assert!(same(&theirs, &ours), "{restored:?} means something else");
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            // Their reading of decimals may be off in the last place.
            (a - b).abs() <= a.abs() * 1e-15 || (a.abs() < 1e-300 && b.abs() < 1e-300)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
