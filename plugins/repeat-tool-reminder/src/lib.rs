//! A model that makes the same call again and again is told so: a message before
//! its next step, at a few counts, and never a refusal (spec/loop.md §12.1).
//!
//! The count is of this agent's instance and starts anew with it. It is taken
//! where results are reviewed, so a denied call counts like any other, and in
//! the order in which results are logged.

mod counter;
mod key;
mod settings;

use std::cell::RefCell;

use guest_support::json::{Json, Object};
use guest_support::{Error, config, hook_panics, tool};

use counter::Counter;
use settings::Settings;

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:repeat-tool-reminder;
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
    static STATE: RefCell<Option<(Settings, Counter)>> = const { RefCell::new(None) };
}

/// Runs with the settings, read once, and the count.
fn with<T>(f: impl FnOnce(&Settings, &mut Counter) -> T) -> T {
    hook_panics();
    STATE.with_borrow_mut(|state| {
        let (settings, counter) = state.get_or_insert_with(|| {
            let settings = Settings::read(&config::get());
            let settings = settings.unwrap_or_else(|fault| panic!("config: {fault}"));
            (settings, Counter::default())
        });
        f(settings, counter)
    })
}

impl Guest for Component {
    fn subscriptions() -> Vec<Subscription> {
        let Some(only) = with(|settings, _| settings.only()) else {
            return Vec::new();
        };
        let to = |event: &str, only| Subscription {
            event: event.to_owned(),
            only,
            beside: false,
        };
        vec![
            to("agent/pre-step", Vec::new()),
            to("tools/post-execute", only),
        ]
    }

    fn notify(_: String, _: Vec<String>) {}

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(event: String, payload: String) -> Result<Entry, Error> {
        let carry = with(|settings, counter| {
            if event == "agent/pre-step" {
                if from_a_person(&payload) {
                    *counter = Counter::default();
                }
                return None;
            }
            reminder(settings, counter, &payload)
        });
        Ok(Entry {
            verdict: Verdict::Proceed,
            carry,
        })
    }

    fn leave(_: String, carry: String, outcome: String) -> Result<Option<String>, Error> {
        hook_panics();
        Ok(Some(with_context(&carry, &outcome)))
    }
}

/// Whether a person's message is among those that a step begins with.
fn from_a_person(payload: &str) -> bool {
    let messages = Json::of_host(payload).first("messages");
    let mut messages = messages.into_iter().flat_map(Json::items);
    messages.any(|message| {
        let kind = message.get("source").and_then(|source| source.get("kind"));
        kind.and_then(Json::string)
            .is_some_and(|kind| kind == "user")
    })
}

/// Counts a call; a draft of the reminder that it brings.
fn reminder(settings: &Settings, counter: &mut Counter, payload: &str) -> Option<String> {
    let call = Json::of_host(payload);
    let name = call.first("name")?.string()?;
    if !settings.tracks(&name) {
        return None;
    }
    let arguments = key::canonical(call.first("arguments")?);
    let count = counter.count(&name, &arguments);
    let text = settings.text(count, &name, &arguments)?;
    let source = Object::new()
        .string("form", "notice")
        .string("summary", &format!("{name} × {count}"));
    let draft = Object::new()
        .raw("content", &format!("[{}]", tool::text_block(&text)))
        .raw("source", &source.build());
    Some(draft.build())
}

/// The outcome with one more message, before those that are there.
fn with_context(draft: &str, outcome: &str) -> String {
    let outcome = Json::of_host(outcome);
    let mut drafts = vec![draft];
    let mut with = Object::new();
    for (name, value) in outcome.members() {
        if name == "additionalContexts" {
            drafts.extend(value.items().map(Json::raw));
        } else {
            with = with.raw(name, value.raw());
        }
    }
    let drafts = guest_support::json::array(drafts);
    with.raw("additionalContexts", &drafts).build()
}

#[cfg(test)]
mod tests;
