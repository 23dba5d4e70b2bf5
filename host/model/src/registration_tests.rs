use async_trait::async_trait;
use dsh_plugin::CallContext;
use dsh_plugin::api::{CallConfig, GenerateRequest, Prepared};

use super::*;
use crate::adapter::Attempt;
use crate::failure::LlmFailure;

/// Serves these routes and is never asked.
struct Serves(Vec<&'static str>);

#[async_trait]
impl Adapter for Serves {
    fn list_routes(&self) -> Vec<String> {
        let route = |name: &&str| format!(r#"{{"provider":"{name}"}}"#);
        self.0.iter().map(route).collect()
    }

    async fn prepare(&self, _: &CallContext, _: CallConfig) -> Result<Prepared, LlmFailure> {
        Err(LlmFailure::new("UNKNOWN_MODEL", "no"))
    }

    async fn open(
        &self,
        _: &CallContext,
        _: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        Err(LlmFailure::new("SERVER", "no"))
    }
}

fn serves(names: &[&'static str]) -> Arc<dyn Adapter> {
    Arc::new(Serves(names.to_vec()))
}

fn names(entries: &Entries) -> Vec<String> {
    let all = entries.all();
    all.iter().map(|one| one.route.provider.clone()).collect()
}

#[test]
fn a_replacement_takes_the_place_of_all_that_it_replaces() {
    let entries = Arc::new(Entries::default());
    let first = entries.add(&serves(&["a", "b"]), &[]).unwrap();
    entries.add(&serves(&["z"]), &[]).unwrap();
    // Its own routes are free to it.
    first.replace(Serves(vec!["b", "c", "d"]), &[]).unwrap();
    assert_eq!(names(&entries), ["b", "c", "d", "z"]);
    first.replace(Serves(vec![]), &[]).unwrap();
    assert_eq!(names(&entries), ["z"]);
    first.replace(Serves(vec!["a"]), &[]).unwrap();
    assert_eq!(names(&entries), ["a", "z"]);
}

#[test]
fn a_replacement_that_is_refused_leaves_what_was() {
    let entries = Arc::new(Entries::default());
    let first = entries.add(&serves(&["a"]), &[]).unwrap();
    entries.add(&serves(&["z"]), &[]).unwrap();
    for (names, code) in [
        (vec!["b", "z"], "DUPLICATE_ADAPTER"),
        (vec!["b", "b"], "DUPLICATE_ADAPTER"),
        (vec!["b", ""], "INVALID_ADAPTER"),
    ] {
        let error = first.replace(Serves(names), &[]).unwrap_err();
        assert_eq!(error.code(), code);
    }
    assert_eq!(names(&entries), ["a", "z"]);
}

#[test]
fn what_was_disposed_of_is_gone_and_cannot_be_replaced() {
    let entries = Arc::new(Entries::default());
    let first = entries.add(&serves(&["a"]), &[]).unwrap();
    first.dispose();
    assert_eq!(names(&entries), [""; 0]);
    let error = first.replace(Serves(vec!["a"]), &[]).unwrap_err();
    assert_eq!(error.code(), "REGISTRATION_DISPOSED");
    // The name is free again.
    entries.add(&serves(&["a"]), &[]).unwrap();
}

#[test]
fn a_place_is_kept_for_routes_that_come_later() {
    let entries = Arc::new(Entries::default());
    let place = entries.place();
    entries.add(&serves(&["z"]), &[]).unwrap();
    place.replace(Serves(vec!["a"]), &[]).unwrap();
    assert_eq!(names(&entries), ["a", "z"]);
}

#[test]
fn a_dropped_registration_leaves_its_routes() {
    let entries = Arc::new(Entries::default());
    drop(entries.add(&serves(&["a"]), &[]).unwrap());
    assert_eq!(names(&entries), ["a"]);
}
