//! The `todo_write` tool: the plan that people see beside the work. Each call
//! replaces the list; what counts is the newest `todo/write` in the log, so the
//! component keeps nothing.

mod list;

use guest_support::json::Json;
use guest_support::{Error, config, hook_panics, tool};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:tool-todo;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/journal@0.1.0;
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

use bindings::dsh::plugin::journal::{self, NewEvent};
use bindings::exports::dsh::plugin::tool::{Call, Guest, Outcome};

/// The tool.
pub struct Component;

/// Whether several entries may be in progress at once.
fn parallel() -> bool {
    hook_panics();
    let config = config::get();
    Json::parse(&config)
        .and_then(|config| config.some("allowParallelInProgress")?.bool())
        .unwrap_or(true)
}

impl Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        Ok(vec![list::listing(parallel())])
    }

    fn may_overlap(_: Call) -> bool {
        false
    }

    fn run(call: Call) -> Result<Outcome, Error> {
        if call.name != list::NAME {
            return Err(tool::unknown(&call.name));
        }
        let list = list::read(&call.arguments, parallel())?;
        journal::append(
            &[NewEvent {
                kind: "todo/write".to_owned(),
                data: list.data,
            }],
            None,
        )?;
        Ok(Outcome {
            content: vec![tool::text_block(&list.summary)],
            more: None,
        })
    }
}
