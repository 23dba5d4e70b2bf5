//! The base of the system prompt: who the model is here, the deployment's
//! persona, and how to choose among the official tools (spec/loop.md §9.1).
//!
//! What a tool does stands in its own description; a section here is only what
//! helps to choose between tools or to use several together, and is left out
//! where its tool is not there.

mod persona;

use guest_support::json::{Json, text};
use guest_support::{Error, config, error, hook_panics};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:prompt-base;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                export dsh:plugin/prompt@0.1.0;
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

use bindings::exports::dsh::plugin::prompt::{Guest, Place, Section};

const IDENTITY: &str = "You are an agent that works in dsh, an open agent harness. You act through the tools you are \
    given, and what they return is what happened: believe it over what you expected. Reminders and context that the \
    harness puts in as messages come from it, not from the person you work for.";

/// Guidance by tool, in order from 100 on.
const GUIDANCE: [(&str, &str); 6] = [
    (
        "read",
        "Look at files with `read` rather than with `cat`, `head` or `sed`. When you need several files, ask for them \
         in one step.",
    ),
    (
        "write",
        "Use `write` for new files and for whole rewrites; change what is there with `edit`. Make only files that the \
         task needs.",
    ),
    (
        "edit",
        "Take `old_string` from what `read` showed, without the line numbers. If an edit is refused because the file \
         is unread or has changed, read it and try again.",
    ),
    (
        "glob",
        "Find files by name with `glob` rather than with `find` or `ls -R`.",
    ),
    (
        "grep",
        "Search in files with `grep` rather than with a search program in a shell: its answer is bounded and names \
         the lines that `read` takes as `offset`.",
    ),
    (
        "bash",
        "Use `bash` for what needs a program: building, testing, version control, moving files. Quote paths with \
         spaces. Run nothing that does not end by itself or waits for a key. A command that the sandbox denied will \
         be denied again: find a way inside the workspace, or ask for a wider mode if the tool offers it.",
    ),
];

/// The sections.
pub struct Component;

impl Guest for Component {
    fn sections(variables: String) -> Result<Vec<Section>, Error> {
        hook_panics();
        sections(&config::get(), &variables)
    }
}

fn sections(config: &str, variables: &str) -> Result<Vec<Section>, Error> {
    let not_json = |what| error("INVALID", format!("the {what} are not JSON"));
    let config = Json::parse(config).ok_or_else(|| not_json("settings"))?;
    let variables = Json::parse(variables).ok_or_else(|| not_json("prompt variables"))?;
    let mut sections = Vec::new();
    let mut add = |name: String, order: f64, text: String| {
        if !text.is_empty() {
            sections.push(Section {
                place: Place::System,
                name,
                order,
                text,
                complete: false,
            });
        }
    };
    if config
        .some("includeHarnessIdentity")
        .and_then(Json::bool)
        .unwrap_or(true)
    {
        add("harness:identity".to_owned(), -100.0, IDENTITY.to_owned());
    }
    let persona = text(config, "persona").unwrap_or_default();
    let persona = persona::fill(&persona, variables)
        .map_err(|why| error("INVALID", format!("persona: {why}")))?;
    add("deployment:persona".to_owned(), 0.0, persona);
    // A host that does not tell its tools gets the guidance for all of them.
    let tools: Option<Vec<_>> = variables
        .some("tools")
        .map(|tools| tools.items().filter_map(Json::string).collect());
    for (at, (tool, guidance)) in GUIDANCE.iter().enumerate() {
        if tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|name| name == tool))
        {
            add(
                format!("tool:{tool}"),
                100.0 + at as f64,
                (*guidance).to_owned(),
            );
        }
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: &str = r#"{"provider":"p","model":"m-1","cwd":"/w"}"#;

    fn listed(config: &str, variables: &str) -> Vec<(String, f64)> {
        let sections = sections(config, variables).unwrap();
        sections
            .into_iter()
            .map(|section| (section.name, section.order))
            .collect()
    }

    #[test]
    fn sections_have_their_names_and_places() {
        let expected = [
            ("harness:identity", -100.0),
            ("deployment:persona", 0.0),
            ("tool:read", 100.0),
            ("tool:write", 101.0),
            ("tool:edit", 102.0),
            ("tool:glob", 103.0),
            ("tool:grep", 104.0),
            ("tool:bash", 105.0),
        ];
        let found = listed(r#"{"persona":"You."}"#, VARIABLES);
        assert_eq!(
            found,
            expected.map(|(name, order)| (name.to_owned(), order))
        );
    }

    #[test]
    fn an_empty_persona_and_an_unwanted_identity_are_left_out() {
        let found = listed(
            r#"{"includeHarnessIdentity":false,"persona":""}"#,
            VARIABLES,
        );
        assert_eq!(found[0].0, "tool:read");
    }

    #[test]
    fn guidance_is_for_tools_that_are_there() {
        let found = listed("{}", r#"{"model":"m","cwd":"/","tools":["grep","other"]}"#);
        assert_eq!(
            found
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            ["harness:identity", "tool:grep"]
        );
    }

    #[test]
    fn a_persona_that_cannot_be_filled_in_fails_with_its_reason() {
        let error = sections(r#"{"persona":"{{nobody}}"}"#, VARIABLES)
            .err()
            .unwrap();
        assert_eq!(
            error.message,
            "persona: there is no variable \"nobody\"; there are provider, model, cwd"
        );
    }
}
