//! A tool that declares how long one run may take is held to it
//! (spec/loop.md §7.2). The policy only sets the deadline: the host keeps the
//! time, asks the body to end and waits for it, so a late success never slips
//! through.

use guest_support::json::Json;
use guest_support::{Error, hook_panics};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:timeout-policy;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
            }",
        path: "../../wit",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
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

impl Guest for Component {
    fn subscriptions() -> Vec<Subscription> {
        vec![Subscription {
            event: "tools/execute".to_owned(),
            only: Vec::new(),
            beside: false,
        }]
    }

    fn notify(_: String, _: Vec<String>) {}

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(_: String, payload: String) -> Result<Entry, Error> {
        hook_panics();
        let verdict = bounded(payload).map_or(Verdict::Proceed, Verdict::Rewrite);
        Ok(Entry {
            verdict,
            carry: None,
        })
    }

    fn leave(_: String, _: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

/// The payload with `deadlineMs` of the tool's own limit; none where it has no
/// limit, or a deadline that comes sooner.
fn bounded(mut payload: String) -> Option<String> {
    let call = Json::of_host(&payload);
    let own = call.first("timeoutMs").and_then(Json::whole)?;
    match call.first("deadlineMs") {
        None => {
            payload.truncate(payload.trim_end().len() - 1);
            payload.push_str(&format!(",\"deadlineMs\":{own}}}"));
            Some(payload)
        }
        Some(other) if other.whole().is_some_and(|sooner| sooner <= own) => None,
        Some(_) => {
            let members = call.members().map(|(name, value)| {
                if name == "deadlineMs" {
                    format!("\"deadlineMs\":{own}")
                } else {
                    format!("\"{name}\":{}", value.raw())
                }
            });
            Some(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sooner_of_two_limits_holds() {
        let table = [
            (r#"{"name":"t"}"#, None),
            (r#"{"name":"t","timeoutMs":null}"#, None),
            (
                r#"{"name":"t","timeoutMs":5}"#,
                Some(r#"{"name":"t","timeoutMs":5,"deadlineMs":5}"#),
            ),
            (r#"{"timeoutMs":5,"deadlineMs":4}"#, None),
            (r#"{"timeoutMs":5,"deadlineMs":5}"#, None),
            (
                r#"{"timeoutMs":5,"deadlineMs":6,"name":"a\"b"}"#,
                Some(r#"{"timeoutMs":5,"deadlineMs":5,"name":"a\"b"}"#),
            ),
            (
                r#"{"arguments":{"timeoutMs":1},"timeoutMs":7}"#,
                Some(r#"{"arguments":{"timeoutMs":1},"timeoutMs":7,"deadlineMs":7}"#),
            ),
        ];
        for (payload, expected) in table {
            assert_eq!(
                bounded(payload.to_owned()).as_deref(),
                expected,
                "{payload}"
            );
        }
    }
}
