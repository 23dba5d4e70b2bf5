//! Takes the middle out of long tool results when the conversation has to become
//! shorter: cheaper than a summary, and often enough. It acts where a summary is
//! about to be made and never by itself, so it needs no threshold of its own; and
//! a result that was pruned is short, so it acts once on each.

mod prune;

use guest_support::json::Json;
use guest_support::{Error, config, error, hook_panics};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:tool-result-pruner;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/session@0.1.0;
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

use bindings::dsh::plugin::session;
use bindings::exports::dsh::plugin::compaction::{Guest, Plan, Situation, Summary, Trim};
use bindings::exports::dsh::plugin::tool;

/// The compactor.
pub struct Component;

fn sizes() -> Result<prune::Sizes, Error> {
    hook_panics();
    prune::Sizes::read(&config::get()).map_err(|why| error("INVALID", format!("config: {why}")))
}

/// Whether a summary is about to be made.
fn pressing(more: Option<&str>) -> bool {
    let told = |more: &str| Json::parse(more)?.get("summarise")?.bool();
    more.and_then(told).unwrap_or(false)
}

impl Guest for Component {
    fn choose(situation: Situation) -> Result<Plan, Error> {
        hook_panics();
        if !pressing(situation.more.as_deref()) {
            return Ok(Plan::Nothing);
        }
        let sizes = sizes()?;
        let nodes = session::surface().nodes;
        let mut trims = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            // A result, and long enough to be worth reading.
            if node.calls != -1 || node.tokens < sizes.least_tokens() {
                continue;
            }
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let messages = session::messages(at, 1);
            if let Some(content) = messages.first().and_then(|message| sizes.prune(message)) {
                trims.push(Trim {
                    node: node.seq,
                    content,
                });
            }
        }
        Ok(if trims.is_empty() {
            Plan::Nothing
        } else {
            Plan::Trim(trims)
        })
    }

    fn summarise(_: Situation, _: (u32, u32)) -> Result<Summary, Error> {
        Err(error("INVALID", "tool-result-pruner writes no summaries"))
    }
}

/// It has no tools. What it is asked when it is mounted is where sizes that do
/// not go together, which no schema can say, cost the row at the start.
impl tool::Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        sizes().map(|_| Vec::new())
    }

    fn may_overlap(_: tool::Call) -> bool {
        false
    }

    fn run(_: tool::Call) -> Result<tool::Outcome, Error> {
        Err(error("INVALID", "tool-result-pruner has no tools"))
    }
}

#[cfg(test)]
mod tests {
    use super::pressing;

    #[test]
    fn it_acts_only_where_a_summary_is_about_to_be_made() {
        assert!(pressing(Some(r#"{"summarise":true}"#)));
        for more in [None, Some("{}"), Some(r#"{"summarise":false}"#), Some("x")] {
            assert!(!pressing(more));
        }
    }
}
