//! The instructions that people leave beside their work, in `AGENTS.md` and
//! `CLAUDE.md`, brought before the model (spec/cli.md §8.3, spec/loop.md §14).
//!
//! The baseline (the person's own file, then those from the project's directory
//! down to the working directory) is told before a session's first step, what
//! lies deeper once a tool touched it, and what changed as a change. Every
//! message says in its source what it told of which file, by digest; that record
//! in the log is the component's only memory, so a resumed session repeats
//! nothing, and what a compaction put away is told again.

mod files;
mod known;
mod render;
mod settings;
mod sha1;
mod work;

use std::cell::RefCell;

use guest_support::host::Host;
use guest_support::json::{Json, Object, array, text};
use guest_support::{Error, config, hook_panics, workspace};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:agent-instructions;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/session@0.1.0;
                import dsh:plugin/workspace@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
            }",
        path: "../../wit",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
            "dsh:plugin/config@0.1.0": guest_support::config,
            "dsh:plugin/session@0.1.0": guest_support::session,
            "dsh:plugin/workspace@0.1.0": guest_support::workspace,
        },
    });
    // A native linker takes no such names as a component's exports have.
    #[cfg(target_family = "wasm")]
    export!(Component with_types_in self);
    #[cfg(target_family = "wasm")]
    use super::Component;
}

use bindings::exports::dsh::plugin::dispatch::{Entry, Guest, Subscription, Verdict};

use work::Instructions;

/// The listener.
pub struct Component;

thread_local! {
    static STATE: RefCell<Option<Instructions>> = const { RefCell::new(None) };
}

fn with_state<T>(work: impl FnOnce(&mut Instructions) -> T) -> T {
    STATE.with_borrow_mut(|state| {
        work(state.get_or_insert_with(|| Instructions::new(&config::get())))
    })
}

impl Guest for Component {
    fn subscriptions() -> Vec<Subscription> {
        let to = |event: &str| Subscription {
            event: event.to_owned(),
            only: Vec::new(),
            beside: false,
        };
        vec![to("agent/pre-step"), to("fs/observed")]
    }

    fn notify(_: String, payloads: Vec<String>) {
        hook_panics();
        with_state(|state| {
            for payload in &payloads {
                let payload = Json::of_host(payload);
                // Where nothing is, nothing was read.
                if payload.some("version").is_some()
                    && let Some(path) = text(payload, "path")
                {
                    state.touch(&path);
                }
            }
        });
    }

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(_: String, payload: String) -> Result<Entry, Error> {
        hook_panics();
        let parsed = Json::of_host(&payload);
        let messages = || parsed.get("messages").into_iter().flat_map(Json::items);
        let first = parsed.get("step").and_then(Json::whole) == Some(1);
        let proceed = Entry {
            verdict: Verdict::Proceed,
            carry: None,
        };
        // A turn without input ends before it begins, and is to stay so.
        if first && messages().next().is_none() {
            return Ok(proceed);
        }
        let message = with_state(|state| state.before_step(first, workspace::root, &Host, &Host));
        let Some(message) = message else {
            return Ok(proceed);
        };
        let messages = messages().map(Json::raw).chain([message.as_str()]);
        let messages = array(messages);
        let mut rewritten = Object::new();
        for (name, value) in parsed.members() {
            let value = if name == "messages" {
                &messages
            } else {
                value.raw()
            };
            rewritten = rewritten.raw(name, value);
        }
        Ok(Entry {
            verdict: Verdict::Rewrite(rewritten.build()),
            carry: None,
        })
    }

    fn leave(_: String, _: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }
}
