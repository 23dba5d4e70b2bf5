//! A tool that declares how long one run may take is held to it
//! (spec/loop.md §7.2), and so is one that the row's configuration has a limit
//! for. The policy only sets the deadline: the host keeps the time, asks the body
//! to end and waits for it, so a late success never slips through.

use std::sync::OnceLock;

use guest_support::json::{Json, text};
use guest_support::pattern::matches;
use guest_support::{Error, config, hook_panics};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:timeout-policy;
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
        static LIMITS: OnceLock<Vec<Limit>> = OnceLock::new();
        let limits = LIMITS.get_or_init(|| limits(&config::get()));
        let verdict = bounded(payload, limits).map_or(Verdict::Proceed, Verdict::Rewrite);
        Ok(Entry {
            verdict,
            carry: None,
        })
    }

    fn leave(_: String, _: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

/// A limit of the configuration's.
struct Limit {
    tool: String,
    timeout_ms: u64,
}

/// `{limits?}`; its shape was checked when the row was mounted.
fn limits(config: &str) -> Vec<Limit> {
    let limits = Json::parse(config).and_then(|config| config.some("limits"));
    let limit = |limit: Json<'_>| {
        Some(Limit {
            tool: text(limit, "tool")?,
            timeout_ms: limit.get("timeoutMs")?.whole()?,
        })
    };
    limits
        .into_iter()
        .flat_map(Json::items)
        .filter_map(limit)
        .collect()
}

/// The payload with the call's limit as `deadlineMs`; none where it has no limit,
/// or a deadline that comes sooner.
fn bounded(mut payload: String, limits: &[Limit]) -> Option<String> {
    let call = Json::of_host(&payload);
    let configured = || {
        let name = call.first("name")?.string()?;
        let limit = limits.iter().find(|limit| matches(&limit.tool, &name))?;
        Some(limit.timeout_ms)
    };
    let limit = if limits.is_empty() {
        None
    } else {
        configured()
    };
    let limit = limit.or_else(|| call.first("timeoutMs")?.whole())?;
    match call.first("deadlineMs") {
        None => {
            payload.truncate(payload.trim_end().len() - 1);
            payload.push_str(&format!(",\"deadlineMs\":{limit}}}"));
            Some(payload)
        }
        Some(other) if other.whole().is_some_and(|sooner| sooner <= limit) => None,
        Some(_) => {
            let members = call.members().map(|(name, value)| {
                if name == "deadlineMs" {
                    format!("\"deadlineMs\":{limit}")
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
                bounded(payload.to_owned(), &[]).as_deref(),
                expected,
                "{payload}"
            );
        }
    }

    #[test]
    fn a_configured_limit_stands_in_place_of_the_tools_own() {
        let limits = limits(
            r#"{"limits":[{"tool":"bash","timeoutMs":50},{"tool":"mcp_*","timeoutMs":9},{"tool":"*","timeoutMs":99}]}"#,
        );
        let deadline = |payload: &str| {
            let bounded = bounded(payload.to_owned(), &limits)?;
            Json::parse(&bounded)?.get("deadlineMs")?.whole()
        };
        let table = [
            (r#"{"name":"bash","timeoutMs":5}"#, Some(50)),
            (r#"{"name":"bash"}"#, Some(50)),
            (r#"{"name":"mcp_a"}"#, Some(9)),
            (r#"{"name":"read","timeoutMs":500}"#, Some(99)),
            (r#"{"name":"bash","deadlineMs":49}"#, None),
        ];
        for (payload, expected) in table {
            assert_eq!(deadline(payload), expected, "{payload}");
        }
        assert!(super::limits("{}").is_empty());
    }
}
