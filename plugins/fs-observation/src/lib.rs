//! A file that is there is replaced, edited or removed only after the agent read
//! it, and only while it is what was read (spec/loop.md §15.2). A rename loses
//! nothing, so it is left alone.
//!
//! The component remembers, the host acts: it tells every version that a read or
//! a change met, asks what a write must meet, and checks that in the same step
//! as the write. What is remembered belongs to one agent's instance and is
//! nowhere else. A resumed session begins without it, and so does an instance
//! that takes the place of one that broke: then files have to be read again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;

use guest_support::json::{Json, Object, text};
use guest_support::pattern::matches;
use guest_support::{Error, config, hook_panics};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:fs-observation;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
            }",
        path: "../../wit",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
            "dsh:plugin/config@0.1.0": guest_support::config,
        },
    });
    // A native linker takes no such names as a component's exports have.
    #[cfg(target_family = "wasm")]
    export!(Component with_types_in self);
    #[cfg(target_family = "wasm")]
    use super::Component;
}

use bindings::exports::dsh::plugin::dispatch::{Entry, Guest, Subscription, Verdict};

/// The policy.
pub struct Component;

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::default();
}

const OBSERVED: &str = "fs/observed";
const WRITE: &str = "fs/write-intent";
const EDIT: &str = "fs/edit-intent";

impl Guest for Component {
    fn subscriptions() -> Vec<Subscription> {
        let to = |event: &str| Subscription {
            event: event.to_owned(),
            only: Vec::new(),
            beside: false,
        };
        vec![to(OBSERVED), to(WRITE), to(EDIT)]
    }

    fn notify(event: String, payloads: Vec<String>) {
        hook_panics();
        if event == OBSERVED {
            SEEN.with_borrow_mut(|seen| payloads.iter().for_each(|payload| seen.tell(payload)));
        }
    }

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(event: String, payload: String) -> Result<Entry, Error> {
        hook_panics();
        static UNGUARDED: OnceLock<Vec<String>> = OnceLock::new();
        let unguarded = UNGUARDED.get_or_init(|| unguarded(&config::get()));
        // Others are asked too, and may deny what this would let pass.
        Ok(Entry {
            verdict: Verdict::Proceed,
            carry: SEEN.with_borrow(|seen| seen.condition(&event, &payload, unguarded)),
        })
    }

    fn leave(_: String, carry: String, outcome: String) -> Result<Option<String>, Error> {
        hook_panics();
        Ok((!denies(&outcome)).then_some(carry))
    }
}

/// `{unguarded?}`; its shape was checked when the row was mounted.
fn unguarded(config: &str) -> Vec<String> {
    let patterns = Json::parse(config).and_then(|config| config.some("unguarded"));
    let patterns = patterns.into_iter().flat_map(Json::items);
    patterns
        .filter_map(|pattern| Some(pattern.string()?.into_owned()))
        .collect()
}

/// Whether the others refuse the change; nothing that this asks for is stricter.
fn denies(outcome: &str) -> bool {
    text(Json::of_host(outcome), "kind").is_some_and(|kind| kind == "deny")
}

/// The version that each path was last met with; none where nothing was there.
#[derive(Debug, Default)]
struct Seen(HashMap<String, Option<String>>);

impl Seen {
    /// `fs/observed`: `{path, version}`.
    fn tell(&mut self, payload: &str) {
        let payload = Json::of_host(payload);
        if let Some(path) = text(payload, "path") {
            self.0.insert(path, text(payload, "version"));
        }
    }

    /// What a change must meet; none where this is no change of a file's content,
    /// or of one that is left alone.
    fn condition(&self, event: &str, payload: &str, unguarded: &[String]) -> Option<String> {
        let intent = Json::of_host(payload);
        let kind = |kind: &str| Object::new().string("kind", kind);
        let not_observed = |condition: Object| condition.string("code", "FS_NOT_OBSERVED").build();
        let operation = text(intent, "operation");
        let edit = event == EDIT;
        if !edit && operation.is_some_and(|operation| operation == "rename") {
            return None;
        }
        // A path that is missing was never met.
        let path = text(intent, "path").unwrap_or_default();
        if unguarded.iter().any(|pattern| matches(pattern, &path)) {
            return None;
        }
        Some(match (self.0.get(&path), edit) {
            (Some(Some(version)), _) => kind("replace-if-version")
                .string("version", version)
                .build(),
            (Some(None), false) => kind("create-if-absent").build(),
            (None, false) => not_observed(kind("create-if-absent")),
            (Some(None) | None, true) => not_observed(kind("deny")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(payloads: &[&str]) -> Seen {
        let mut seen = Seen::default();
        payloads.iter().for_each(|payload| seen.tell(payload));
        seen
    }

    #[test]
    fn what_a_change_must_meet_is_what_was_met_before() {
        let seen = seen(&[
            r#"{"path":"/w/a","version":"1"}"#,
            r#"{"path":"/w/a","version":"2"}"#,
            r#"{"path":"/w/gone","version":"1"}"#,
            r#"{"path":"/w/gone","version":null}"#,
            r#"{"path":"/w/new","version":null}"#,
            r#"{"path":"/w/new","version":"1"}"#,
        ]);
        let version_2 = r#"{"kind":"replace-if-version","version":"2"}"#;
        let unread = r#"{"kind":"create-if-absent","code":"FS_NOT_OBSERVED"}"#;
        let refused = r#"{"kind":"deny","code":"FS_NOT_OBSERVED"}"#;
        let table = [
            (WRITE, "write", "/w/a", Some(version_2)),
            (EDIT, "edit", "/w/a", Some(version_2)),
            (
                WRITE,
                "write",
                "/w/gone",
                Some(r#"{"kind":"create-if-absent"}"#),
            ),
            (EDIT, "edit", "/w/gone", Some(refused)),
            (
                EDIT,
                "edit",
                "/w/new",
                Some(r#"{"kind":"replace-if-version","version":"1"}"#),
            ),
            (WRITE, "write", "/w/other", Some(unread)),
            (EDIT, "edit", "/w/other", Some(refused)),
            (WRITE, "remove", "/w/a", Some(version_2)),
            (WRITE, "remove", "/w/other", Some(unread)),
            (WRITE, "rename", "/w/other", None),
        ];
        for (event, operation, path, expected) in table {
            let payload = Object::new()
                .string("operation", operation)
                .string("path", path)
                .string("version", "9")
                .build();
            assert_eq!(
                seen.condition(event, &payload, &[]).as_deref(),
                expected,
                "{event} {operation} {path}"
            );
        }
    }

    #[test]
    fn a_denial_of_another_row_stands_and_no_row_makes_it_laxer() {
        assert!(denies(r#"{"kind":"deny","reason":"not today"}"#));
        assert!(!denies(r#"{"kind":"overwrite"}"#));
        assert!(!denies(r#"{"kind":"replace-if-version","version":"1"}"#));
    }

    #[test]
    fn paths_are_told_apart_by_their_text_and_not_by_how_it_is_escaped() {
        let seen = seen(&[r#"{"path":"/w/\u00e9\"","version":"1"}"#]);
        let condition = seen.condition(EDIT, "{\"operation\":\"edit\",\"path\":\"/w/é\\\"\"}", &[]);
        assert!(condition.unwrap().contains("replace-if-version"));
    }

    #[test]
    fn what_the_configuration_leaves_alone_may_be_changed_unread() {
        let unguarded = unguarded(r#"{"unguarded":["*.log","/w/target/*"]}"#);
        let condition = |path: &str| {
            let payload = Object::new().string("path", path).build();
            Seen::default().condition(EDIT, &payload, &unguarded)
        };
        assert_eq!(condition("/w/a/b.log"), None);
        assert_eq!(condition("/w/target/x/y"), None);
        assert!(condition("/w/b.log.txt").is_some());
        assert!(super::unguarded("{}").is_empty());
    }

    #[test]
    fn an_intent_that_cannot_be_read_is_of_a_file_that_was_never_read() {
        let refused = Seen::default().condition(EDIT, "{}", &[]).unwrap();
        assert!(refused.contains("FS_NOT_OBSERVED"), "{refused}");
        let refused = Seen::default().condition(WRITE, "{}", &[]).unwrap();
        assert!(refused.contains("FS_NOT_OBSERVED"), "{refused}");
    }
}
