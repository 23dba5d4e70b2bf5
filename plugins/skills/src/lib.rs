//! Skills: instructions for a kind of task, which the model reads when the task
//! comes (spec/cli.md §8.2, spec/loop.md §14).
//!
//! Three ways lead to one: the list of them, a message that is told when it is
//! news; the `skill` tool, which reads the file anew each time; and `/name` in
//! what a person writes. A file that cannot be read as a skill costs that skill
//! and a warning, as does a `/name` that calls none.

mod catalog;
mod content;
mod front;
mod invoke;
mod scan;
mod settings;
mod work;

use std::cell::RefCell;

use guest_support::host::Host;
use guest_support::json::{Json, Object, array, text};
use guest_support::{Error, config, error, hook_panics, tool, workspace};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:skills;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/session@0.1.0;
                import dsh:plugin/workspace@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
                export dsh:plugin/tool@0.1.0;
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

use bindings::exports::dsh::plugin::dispatch::{self, Entry, Subscription, Verdict};
use bindings::exports::dsh::plugin::tool::{self as exported, Call, Outcome};

use work::Skills;

/// The listener and the tool.
pub struct Component;

const TOOL: &str = "skill";

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"The skill's exact name, as the list of skills has it."}},"required":["name"],"additionalProperties":false}"#;

const DESCRIPTION: &str = "Gets the instructions of a skill, by its name. Use it before you start on a task that one of \
    the listed skills is for. It only tells what to do: the doing is yours, with your other tools.";

/// Names that a refusal lists.
const MAX_NAMES: usize = 50;

thread_local! {
    static STATE: RefCell<Option<Skills>> = const { RefCell::new(None) };
}

fn with_state<T>(work: impl FnOnce(&mut Skills) -> T) -> T {
    STATE.with_borrow_mut(|state| work(state.get_or_insert_with(|| Skills::new(&config::get()))))
}

impl dispatch::Guest for Component {
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
                if let Some(path) = text(payload, "path") {
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
        let payload = Json::of_host(&payload);
        let messages = || payload.get("messages").into_iter().flat_map(Json::items);
        let first = payload.get("step").and_then(Json::whole) == Some(1);
        let mut entry = Entry {
            verdict: Verdict::Proceed,
            carry: None,
        };
        // A turn without input ends before it begins, and is to stay so.
        if first && messages().next().is_none() {
            return Ok(entry);
        }
        let called = invoke::candidates(messages());
        let told =
            with_state(|state| state.before_step(first, &called, workspace::root, &Host, &Host));
        if !told.is_empty() {
            entry.carry = Some(array(told));
        }
        Ok(entry)
    }

    /// Behind what the host adds, so that the list stands after the runtime context.
    fn leave(_: String, carry: String, outcome: String) -> Result<Option<String>, Error> {
        let outcome = Json::of_host(&outcome);
        if text(outcome, "kind").as_deref() != Some("enter") {
            return Ok(None);
        }
        let own = Json::parse(&carry).ok_or_else(|| error("INVALID", "the carry is no JSON"))?;
        let messages = outcome.get("messages").into_iter().flat_map(Json::items);
        let messages = array(messages.chain(own.items()).map(Json::raw));
        let mut rewritten = Object::new();
        for (name, value) in outcome.members() {
            let value = if name == "messages" {
                &messages
            } else {
                value.raw()
            };
            rewritten = rewritten.raw(name, value);
        }
        Ok(Some(rewritten.build()))
    }
}

impl exported::Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        Ok(vec![tool::listing(TOOL, DESCRIPTION, SCHEMA, false)])
    }

    fn may_overlap(_: Call) -> bool {
        false
    }

    fn run(call: Call) -> Result<Outcome, Error> {
        hook_panics();
        if call.name != TOOL {
            return Err(tool::unknown(&call.name));
        }
        let name = tool::required(tool::arguments(&call.arguments)?, "name")?;
        let skills = with_state(|state| state.all(workspace::root, &Host));
        let Some(skill) = skills.get(&name).filter(|skill| skill.model) else {
            return Err(error("NOT_FOUND", refusal(&name, &skills)));
        };
        Ok(Outcome {
            content: vec![tool::text_block(&content::read(skill, usize::MAX, &Host)?)],
            more: None,
        })
    }
}

fn refusal(name: &str, skills: &std::collections::BTreeMap<String, scan::Skill>) -> String {
    if skills.contains_key(name) {
        return format!("the skill \"{name}\" is for the person to call, by /{name}");
    }
    let names: Vec<&str> = skills
        .values()
        .filter(|skill| skill.model)
        .map(|skill| skill.name.as_str())
        .collect();
    match names.len() {
        0 => format!("there is no skill \"{name}\", and no other"),
        many if many > MAX_NAMES => {
            format!("there is no skill \"{name}\"; the list of skills has {many} others")
        }
        _ => format!(
            "there is no skill \"{name}\"; there are {}",
            names.join(", ")
        ),
    }
}
