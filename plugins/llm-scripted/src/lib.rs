//! A model adapter without a wire: it plays a script, so that a whole run needs
//! no network and gives the same log each time. Provider `scripted`, model
//! `script`; the script is the row's configuration (docs/scripted.md).
//!
//! The first entry that is not spent and whose `match` finds something in what
//! came in since the model last spoke answers. What was spent is state of the
//! instance, so a retried attempt gets the next answer, as from a real provider.

mod input;
mod play;
mod script;

use std::cell::RefCell;
use std::collections::VecDeque;

use guest_support::json::{Json, Object, array, quote};
use guest_support::types::{CallConfig, GenerateRequest};
use guest_support::{Error, Slots, config, error, hook_panics};

use script::Script;

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:llm-scripted;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                export dsh:plugin/llm-adapter@0.1.0;
            }",
        path: "../../wit",
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

use bindings::exports::dsh::plugin::llm_adapter::{Action, Emission, EndCause, Guest, Prepared};

const PROVIDER: &str = "scripted";
const MODEL: &str = "script";

/// The adapter.
pub struct Component;

/// What lives as long as the instance.
#[derive(Default)]
struct State {
    script: Option<Script>,
    attempts: Slots<VecDeque<Emission>>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Runs `work` on the state, with the script read from the configuration first.
fn with_script<T>(work: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
    hook_panics();
    STATE.with_borrow_mut(|state| {
        if state.script.is_none() {
            state.script = Some(Script::read(&config::get()).map_err(|why| error("INVALID", why))?);
        }
        work(state)
    })
}

impl State {
    fn script(&mut self) -> &mut Script {
        self.script.get_or_insert_default()
    }
}

fn model(script: &Script) -> String {
    Object::new()
        .string("id", MODEL)
        .string("name", "Script")
        .raw(
            "context",
            &Object::new()
                .number("contextWindow", script.context_window)
                .build(),
        )
        .raw("inputModalities", &array([quote("text")]))
        .build()
}

impl Guest for Component {
    fn list_routes() -> Result<Vec<String>, Error> {
        with_script(|state| {
            let route = Object::new()
                .string("provider", PROVIDER)
                .string("name", "Scripted")
                .raw("models", &array([model(state.script())]));
            Ok(vec![route.build()])
        })
    }

    fn prepare(config: CallConfig) -> Result<Prepared, Error> {
        with_script(|state| {
            if config.model != MODEL {
                let message = format!(
                    "the provider {PROVIDER} has one model, {MODEL}, not {}",
                    config.model
                );
                return Err(error("UNKNOWN_MODEL", message));
            }
            if let Some(effort) = &config.reasoning_effort {
                let message =
                    format!("the model {MODEL} has no reasoning effort; {effort} was asked for");
                return Err(error("UNSUPPORTED_REASONING_EFFORT", message));
            }
            Ok(Prepared {
                config,
                defaulted: Vec::new(),
                model: model(state.script()),
            })
        })
    }

    fn open(request: GenerateRequest) -> Result<u32, Error> {
        with_script(|state| {
            let messages: Vec<_> = request
                .messages
                .iter()
                .filter_map(|message| Json::parse(message))
                .collect();
            let input = input::since_the_model_spoke(&messages);
            let answer = state.script().answer(&input, request.purpose.as_deref());
            let seen = play::Seen::of(&request);
            let emissions = match answer {
                Ok(entry) => play::emissions(entry, &seen),
                Err(why) => play::refusal("SCRIPT_EXHAUSTED", &why),
            };
            Ok(state.attempts.insert(emissions))
        })
    }

    fn next(attempt: u32) -> Result<Action, Error> {
        STATE.with_borrow_mut(|state| {
            let left = state.attempts.get_mut(attempt);
            let left =
                left.ok_or_else(|| error("INVALID", format!("no attempt {attempt} is open")))?;
            Ok(left.pop_front().map_or(Action::Done, Action::Emit))
        })
    }

    fn head(_: u32, _: u16, _: Vec<(String, String)>) {}

    fn body(_: u32, _: Vec<u8>) -> Vec<String> {
        Vec::new()
    }

    fn end(_: u32, _: EndCause) -> Vec<String> {
        Vec::new()
    }

    fn close(attempt: u32) {
        STATE.with_borrow_mut(|state| state.attempts.remove(attempt));
    }
}

#[cfg(test)]
mod tests;
