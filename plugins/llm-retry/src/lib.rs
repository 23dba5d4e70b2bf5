//! Failed model requests are made again inside of their step, as the policy of
//! their route says (spec/llm.md §5).
//!
//! It decides and keeps nothing: the count is the log's, which the event tells,
//! so it goes on after a reload; the host logs the retry, waits, and makes the
//! request anew. Under a policy of mode `normal` it answers at once for the codes
//! that are retryable and lets others decide the rest; under `always` the others
//! come first, and what they leave is retried without end.

mod policy;

use guest_support::json::{Json, Object};
use guest_support::{Error, config, hook_panics};

use policy::Answer;

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:llm-retry;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/random@0.1.0;
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

use bindings::dsh::plugin::random;
use bindings::exports::dsh::plugin::dispatch::{Entry, Guest, Subscription, Verdict};

/// The component.
pub struct Component;

/// A number of `[0, 1)`.
fn chance() -> f64 {
    let bytes = random::bytes(4);
    let bits = bytes
        .iter()
        .take(4)
        .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// `maxDelayMs` of the row.
fn cap(config: &str) -> Option<f64> {
    Json::parse(config)?.some("maxDelayMs")?.number()
}

fn retry(delay_ms: f64) -> String {
    Object::new()
        .string("kind", "retry")
        .raw("delayMs", &delay_ms.to_string())
        .build()
}

impl Guest for Component {
    fn subscriptions() -> Vec<Subscription> {
        vec![Subscription {
            event: "agent/request-error".to_owned(),
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
        let answer = policy::answer(&payload, cap(&config::get()), chance());
        let (verdict, carry) = match answer {
            Answer::Delegate => (Verdict::Proceed, None),
            Answer::Retry(delay) => (Verdict::Settle(retry(delay)), None),
            Answer::Unless(delay) => (Verdict::Proceed, Some(retry(delay))),
        };
        Ok(Entry { verdict, carry })
    }

    fn leave(_: String, carry: String, outcome: String) -> Result<Option<String>, Error> {
        hook_panics();
        Ok(unless_wanted(carry, &outcome))
    }
}

/// What others want already is theirs to say.
fn unless_wanted(carry: String, outcome: &str) -> Option<String> {
    let kind = Json::of_host(outcome).get("kind").and_then(Json::string);
    (kind.as_deref() != Some("retry")).then_some(carry)
}

#[cfg(test)]
mod tests;
