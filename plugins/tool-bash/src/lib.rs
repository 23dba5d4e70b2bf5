//! The `bash` tool: one command in a fresh shell, under the session's sandbox
//! mode (spec/loop.md §15.2). The host runs it, ends it and keeps what is too
//! long; this component says how it is asked for and how its output reads.
//!
//! `run_in_background` is not in the schema until there are background jobs: a
//! parameter that does nothing would mislead the model.

mod command;
mod render;

use guest_support::json::Json;
use guest_support::{Error, config, hook_panics, tool};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:tool-bash;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/session@0.1.0;
                import dsh:plugin/process@0.1.0;
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

use bindings::dsh::plugin::{process, session};
use bindings::exports::dsh::plugin::tool::{Call, Guest, Outcome};
use command::Settings;

/// The tool.
pub struct Component;

fn settings() -> Settings {
    hook_panics();
    Settings::read(&config::get())
}

/// The mode in force, as the log has it.
fn mode() -> Option<String> {
    let event = session::last(&["sandbox/mode".to_owned()], None)?;
    let data = Json::parse(&event)?.get("data")?;
    guest_support::json::text(data, "mode")
}

impl Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        Ok(vec![command::listing(&settings())])
    }

    fn may_overlap(_: Call) -> bool {
        false
    }

    fn run(call: Call) -> Result<Outcome, Error> {
        if call.name != command::NAME {
            return Err(tool::unknown(&call.name));
        }
        let settings = settings();
        let asked = command::read(&call.arguments, &settings)?;
        let output = process::run(&asked.command)?;
        let text = render::text(&output, &asked, settings.escalation, mode);
        Ok(Outcome {
            content: vec![tool::text_block(&text)],
            more: None,
        })
    }
}
