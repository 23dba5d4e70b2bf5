//! A session's title, by one small model call about its first prompt
//! (spec/loop.md §14).
//!
//! It proposes and nothing else: the host cleans and cuts what it says, logs what
//! it asked, and asks it beside the turn. A prompt that is too long, or an answer
//! that is no title, leaves the session with the name that it has.

mod call;
mod settings;

use guest_support::{Error, config, hook_panics};

use settings::Settings;

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:title-first-prompt;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/llm@0.1.0;
                export dsh:plugin/title@0.1.0;
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

use bindings::dsh::plugin::llm::{self, Question};
use bindings::exports::dsh::plugin::title::Guest;

/// The component.
pub struct Component;

impl Guest for Component {
    fn propose(prompts: Vec<String>, _: Option<String>) -> Result<Option<String>, Error> {
        hook_panics();
        let settings = Settings::read(&config::get());
        let settings = settings.unwrap_or_else(|fault| panic!("config: {fault}"));
        let Some(first) = prompts.first() else {
            return Ok(None);
        };
        let answer = llm::ask(&Question {
            purpose: "session-title".to_owned(),
            config: call::config(&settings),
            prefix: None,
            system: Some(call::system(&settings)),
            messages: vec![call::draft(&settings, first)?],
            timeout_ms: Some(settings.timeout_ms),
        })?;
        call::title(&answer.finish, &answer.content).map(Some)
    }
}

#[cfg(test)]
mod tests;
