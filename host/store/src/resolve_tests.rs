use std::fs;

use super::*;
use crate::testing::quick_dir;
use crate::{Store, StoreConfig};

fn store(ids: &[&str]) -> (tempfile::TempDir, Store) {
    let dir = quick_dir();
    for (n, id) in ids.iter().enumerate() {
        let session = dir
            .path()
            .join(format!("--p{}--", n % 3))
            .join(layout::encode_segment(id).unwrap());
        fs::create_dir_all(&session).unwrap();
        fs::write(session.join("session.jsonl.zstd"), "").unwrap();
    }
    let store = Store::open(StoreConfig::new(dir.path())).unwrap();
    (dir, store)
}

fn resolved(store: &Store, text: &str) -> String {
    match store.resolve(text, None) {
        Ok(id) => id.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_id_may_be_shortened_while_it_is_the_only_one() {
    let (_dir, store) = store(&["session-ab12", "session-ab34", "session-c", "other~/x", "s"]);
    assert_eq!(resolved(&store, "session-ab1"), "session-ab12");
    assert_eq!(resolved(&store, "ab3"), "session-ab34");
    assert_eq!(resolved(&store, "c"), "session-c");
    assert_eq!(resolved(&store, "other~/"), "other~/x");
    // An exact one wins over those that it begins.
    assert_eq!(resolved(&store, "s"), "s");
    assert_eq!(
        store.resolve("ab", None).unwrap_err().code(),
        "SESSION_AMBIGUOUS"
    );
    let error = resolved(&store, "session-ab");
    assert!(
        error.contains("session-ab12") && error.contains("session-ab34"),
        "{error}"
    );
}

#[test]
fn what_follows_session_is_an_exact_name_too() {
    let (_dir, store) = store(&["session-1", "session-12", "session-123"]);
    assert_eq!(resolved(&store, "12"), "session-12");
    assert_eq!(resolved(&store, "123"), "session-123");
}

#[test]
fn an_ambiguous_text_names_some_and_counts_the_rest() {
    let ids: Vec<String> = (0..20).map(|n| format!("session-{n:02}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (_dir, store) = store(&ids);
    match store.resolve("", None) {
        Err(StoreError::Ambiguous {
            candidates, more, ..
        }) => {
            assert_eq!(candidates, ids[..8]);
            assert_eq!(more, 12);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_session_is_an_error_that_names_text_and_place() {
    let (dir, store) = store(&["session-1"]);
    fs::create_dir_all(dir.path().join("--p0--/session-no-log")).unwrap();
    for text in ["x", "session-no", "last", &"l".repeat(300)] {
        let error = store.resolve(text, None).unwrap_err();
        assert_eq!(error.code(), "SESSION_NOT_FOUND");
        let shown = error.to_string();
        assert!(
            shown.contains(text) && shown.contains(&*dir.path().to_string_lossy()),
            "{shown}"
        );
    }
}

#[test]
fn an_id_that_is_there_twice_is_one_candidate() {
    let (dir, store) = store(&["session-1"]);
    let twin = dir.path().join("--p9--/session-1");
    fs::create_dir_all(&twin).unwrap();
    fs::write(twin.join("session.jsonl"), "").unwrap();
    assert_eq!(resolved(&store, "session"), "session-1");
    assert_eq!(
        store.find("session-1").unwrap_err().code(),
        "SESSION_LAYOUT"
    );
}
