//! Summarises the older part of a conversation when it fills most of the model's
//! context window, when a provider refused it as too long, and when somebody asks
//! (spec/loop.md §10).
//!
//! The summary is written by the conversation's own model over the same system
//! prompt, tools and messages, so that what the provider has cached of them is
//! used, unless the row names another model.

mod answer;
mod decide;
mod instruction;
mod range;
mod settings;

use decide::{Facts, Fault, Why};
use guest_support::json::{Json, Object, quote, text};
use guest_support::{Error, config, error, hook_panics};
use range::Node;
use settings::Settings;

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:compaction-basic;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/session@0.1.0;
                import dsh:plugin/llm@0.1.0;
                export dsh:plugin/compaction@0.1.0;
                export dsh:plugin/tool@0.1.0;
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

use bindings::dsh::plugin::{llm, session};
use bindings::exports::dsh::plugin::compaction::{Guest, Plan, Situation, Summary, Trigger};
use bindings::exports::dsh::plugin::tool;

/// The compactor.
pub struct Component;

fn settings() -> Result<Settings, Error> {
    hook_panics();
    Settings::read(&config::get()).map_err(|why| error("INVALID", format!("config: {why}")))
}

/// Provider and model of the last request.
fn route() -> Option<(String, String)> {
    let event = session::last(&["request/context".to_owned()], None)?;
    let data = Json::parse(&event)?.get("data")?;
    Some((text(data, "provider")?, text(data, "model")?))
}

fn surface() -> Vec<Node> {
    let node = |node: session::Node| Node {
        seq: node.seq,
        tokens: node.tokens,
        calls: node.calls,
    };
    session::surface().nodes.into_iter().map(node).collect()
}

fn failed(fault: Fault) -> Error {
    error(fault.code, fault.message)
}

/// A person's words, of a situation's `more`.
fn words(more: Option<&str>) -> Option<String> {
    text(Json::parse(more?)?, "instructions")
}

impl Guest for Component {
    fn choose(situation: Situation) -> Result<Plan, Error> {
        let settings = settings()?;
        // Read only where it matters: this runs before every step.
        let matters = settings.knows_models() || situation.context_window.is_none();
        let route = matters.then(route).flatten();
        let facts = Facts {
            why: match situation.trigger {
                Trigger::Pressure => Why::Pressure,
                Trigger::Overflow => Why::Overflow,
                Trigger::Manual => Why::Manual,
            },
            tokens: situation.tokens,
            window: situation.context_window,
            round: situation.round,
            recoveries: situation.recoveries,
            route: route.as_ref(),
        };
        let chosen = decide::decide(&settings, facts, surface).map_err(failed)?;
        Ok(chosen.map_or(Plan::Nothing, Plan::Summarise))
    }

    fn summarise(situation: Situation, nodes: (u32, u32)) -> Result<Summary, Error> {
        let settings = settings()?;
        let route = settings.knows_models().then(route).flatten();
        let policy = settings.of(route.as_ref());
        let mut config = Object::new().number("maxTokens", policy.max_tokens);
        if let Some((provider, model)) = &policy.writer {
            config = config
                .raw("provider", &quote(provider))
                .raw("model", &quote(model));
        }
        let words = words(situation.more.as_deref());
        let answer = llm::ask(&llm::Question {
            purpose: "compaction".to_owned(),
            config: config.build(),
            prefix: Some(nodes),
            system: None,
            messages: vec![instruction::message(words.as_deref())],
            timeout_ms: None,
        })?;
        let content = answer::text_of(&answer.content, &answer.finish).map_err(failed)?;
        let origin = answer::origin(&answer.config, &answer.content, answer.usage.as_deref());
        Ok(Summary { content, origin })
    }
}

/// It has no tools. What it is asked when it is mounted is where a configuration
/// that no schema can refuse, as of two members that do not go together, costs
/// the row at the start and not the first step that needs it.
impl tool::Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        settings().map(|_| Vec::new())
    }

    fn may_overlap(_: tool::Call) -> bool {
        false
    }

    fn run(_: tool::Call) -> Result<tool::Outcome, Error> {
        Err(error("INVALID", "compaction-basic has no tools"))
    }
}
