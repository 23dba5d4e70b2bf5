//! The tools `glob` and `grep` (spec/loop.md §15.2). The host searches; this
//! component says how much of what was found is shown, and keeps the rest where
//! the model can read it.

mod render;

use guest_support::json::text;
use guest_support::{Error, hook_panics, tool};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:tool-fs-search;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/workspace@0.1.0;
                import dsh:plugin/spill@0.1.0;
                export dsh:plugin/tool@0.1.0;
            }",
        path: "../../wit",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
        },
    });
    // A native linker takes no such names as a component's exports have.
    #[cfg(target_family = "wasm")]
    export!(Component with_types_in self);
    #[cfg(target_family = "wasm")]
    use super::Component;
}

use bindings::dsh::plugin::{spill, workspace};
use bindings::exports::dsh::plugin::tool::{Call, Guest, Outcome};

/// Paths that are kept of a search, shown or spilled.
const PATHS: u32 = 100_000;

/// Matches that are kept; each may have `render::LINE` bytes.
const MATCHES: u32 = 4_000;

const GLOB: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","description":"As in `src/**/*.rs` or `*.{json,toml}`; one without a slash matches names at any depth."},"path":{"type":"string","description":"The directory to look in; the working directory if left out."}},"required":["pattern"]}"#;

const GREP: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","description":"A regular expression, matched within a line."},"path":{"type":"string","description":"The file or directory to search; the working directory if left out."},"include":{"type":"string","description":"Only files whose path matches this pattern, as in `*.rs` or `src/**/*.ts`."}},"required":["pattern"]}"#;

/// The tools.
pub struct Component;

impl Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        let glob = "Finds files by the pattern of their path. Hidden and ignored files count, version control's own do \
            not. Up to 100 paths, the oldest change first; of more, the whole list is kept in a file.";
        let grep = "Finds lines in files by a regular expression, and shows them by file with their numbers. Ignored and \
            binary files are left out. Up to 250 lines; where there are more, narrow the pattern, `path` or `include`.";
        Ok(vec![
            tool::listing("glob", glob, GLOB, false),
            tool::listing("grep", grep, GREP, false),
        ])
    }

    fn may_overlap(_: Call) -> bool {
        false
    }

    fn run(call: Call) -> Result<Outcome, Error> {
        hook_panics();
        let arguments = tool::arguments(&call.arguments)?;
        let pattern = tool::required(arguments, "pattern")?;
        let given = |name: &str| text(arguments, name).filter(|text| !text.is_empty());
        let path = given("path");
        // Without a place to keep the rest, the answer says so and stands.
        let keep = |name: &str, content: &str| spill::store(name, content.as_bytes()).ok();
        let answer = match call.name.as_str() {
            "glob" => render::paths(&workspace::glob(&pattern, path.as_deref(), PATHS)?, keep),
            "grep" => {
                let found = workspace::grep(
                    &pattern,
                    path.as_deref(),
                    given("include").as_deref(),
                    MATCHES,
                )?;
                render::matches(&found, keep)
            }
            other => return Err(tool::unknown(other)),
        };
        Ok(Outcome {
            content: vec![tool::text_block(&answer.text)],
            more: Some(answer.more),
        })
    }
}
