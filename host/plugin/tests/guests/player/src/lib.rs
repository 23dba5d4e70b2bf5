//! Tools whose results are configuration, and a person whose answers are: what a
//! recorded session had, given again to whoever plays it back.
//!
//! ```json
//! {"tools": ["bash", "read"],
//!  "results": {"call_1": {"content": [...], "isError": false, "error": {"code", "message"},
//!                         "meta": {...}, "context": [...], "after": "call_2", "wait": "file",
//!                         "ask": "why", "answer": "allowed-once"}}}
//! ```
//!
//! Every call has an instance of its own, so a result is found by the call's id
//! and not by its place. `after` holds a result back until that call is in the
//! log too, which is how bodies that overlapped overlap again; `wait` makes that
//! file and never answers by itself, so that the caller can give up. `ask` lets a person be
//! asked before the body, and `answer` is what that person says.

use guest_support::json::{Json, Object, text};
use guest_support::types::Error;
use guest_support::{config, error, hook_panics};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../../../wit",
        inline: "
            package dsh:player;
            world player {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/clock@0.1.0;
                import dsh:plugin/session@0.1.0;
                import dsh:plugin/workspace@0.1.0;
                export dsh:plugin/tool@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
            }
        ",
        world: "dsh:player/player",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
            "dsh:plugin/config@0.1.0": guest_support::config,
        },
    });
    export!(Component with_types_in self);
    use super::Component;
}

use bindings::dsh::plugin::{clock, session, workspace};
use bindings::exports::dsh::plugin::{dispatch, tool};

/// The component.
pub struct Component;

/// One result, of the row's configuration.
fn result_of<'a>(config: &'a str, call: &str) -> Option<Json<'a>> {
    Json::parse(config)?.some("results")?.some(call)
}

/// Whether the log has this call.
fn started(call: &str) -> bool {
    let last = session::last(&["tool/call".to_owned()], None);
    last.is_some_and(|event| {
        Json::parse(&event)
            .and_then(|event| text(event.some("data")?, "callId"))
            .is_some_and(|id| id == call)
    })
}

impl tool::Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        hook_panics();
        let config = config::get();
        let config = Json::parse(&config);
        let tools = config.and_then(|config| config.some("tools"));
        let listed = tools.into_iter().flat_map(Json::items).filter_map(|name| {
            let name = name.string()?;
            // As the tools of these names are.
            let overlaps = name == "read";
            Some(guest_support::tool::listing(
                &name,
                "Gives what it gave when it was recorded.",
                r#"{"type":"object"}"#,
                overlaps,
            ))
        });
        Ok(listed.collect())
    }

    fn may_overlap(_: tool::Call) -> bool {
        true
    }

    fn run(call: tool::Call) -> Result<tool::Outcome, Error> {
        hook_panics();
        let config = config::get();
        let Some(result) = result_of(&config, &call.id) else {
            return Err(error("NO_RESULT", format!("nothing was recorded of {}", call.id)));
        };
        if let Some(file) = text(result, "wait") {
            workspace::write(&file, &[], &workspace::Guard::Overwrite)?;
            // Until whoever called gives up, which is an error that says so.
            clock::wait(u32::MAX)?;
        }
        if let Some(other) = text(result, "after") {
            while !started(&other) {
                clock::wait(1)?;
            }
        }
        if let Some(failure) = result.some("error") {
            let part = |name| text(failure, name).unwrap_or_default();
            return Err(error(&part("code"), part("message")));
        }
        let content = result.some("content").into_iter().flat_map(Json::items);
        let more = Object::new()
            .maybe("isError", result.some("isError").map(Json::raw))
            .maybe("meta", result.some("meta").map(Json::raw))
            .maybe("context", result.some("context").map(Json::raw));
        Ok(tool::Outcome {
            content: content.map(|block| block.raw().to_owned()).collect(),
            more: Some(more.build()),
        })
    }
}

impl dispatch::Guest for Component {
    fn subscriptions() -> Vec<dispatch::Subscription> {
        let asks = config::get().contains("\"ask\"");
        let events = asks.then_some(["tools/pre-execute", "approval/request"]);
        let subscription = |event: &str| dispatch::Subscription {
            event: event.to_owned(),
            only: vec![],
            beside: false,
        };
        events.into_iter().flatten().map(subscription).collect()
    }

    fn notify(_: String, _: Vec<String>) {}

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(event: String, payload: String) -> Result<dispatch::Entry, Error> {
        hook_panics();
        let config = config::get();
        let call = Json::parse(&payload).and_then(|payload| text(payload, "callId"));
        let of_call = |name| text(result_of(&config, call.as_deref()?)?, name);
        let settled = if event == "approval/request" {
            of_call("answer").map(|outcome| Object::new().string("outcome", &outcome))
        } else {
            let ask = |reason: String| Object::new().string("kind", "ask").string("reason", &reason);
            of_call("ask").map(ask)
        };
        Ok(dispatch::Entry {
            verdict: settled.map_or(dispatch::Verdict::Proceed, |result| {
                dispatch::Verdict::Settle(result.build())
            }),
            carry: None,
        })
    }

    fn leave(_: String, _: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }
}
