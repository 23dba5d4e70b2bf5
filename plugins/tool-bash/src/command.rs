//! What the model asks for, and the command that it becomes.

use guest_support::json::{Json, Object, text};
use guest_support::{Error, tool};

use crate::bindings::dsh::plugin::process::Command;

pub(crate) const NAME: &str = "bash";

/// Milliseconds that a command may run where neither call nor row says.
const TIMEOUT_MS: u64 = 120_000;

/// The longest that a call may ask for.
const LONGEST_MS: u64 = 600_000;

/// Bytes kept of each stream.
pub(crate) const KEPT: u32 = 64_000;

/// Colours, pagers and cursor tricks are for terminals.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

const MODES: &str = r#"{"type":"string","enum":["workspace-write","danger-full-access"],"description":"Only to repeat a command that the sandbox denied: the narrowest wider mode that it needs. A person decides. Needs `justification`."}"#;

/// The row's configuration.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) timeout_ms: u64,
    /// Whether a call may ask for a wider sandbox mode.
    pub(crate) escalation: bool,
}

impl Settings {
    pub(crate) fn read(config: &str) -> Self {
        let config = Json::parse(config);
        let member = |name: &str| config.and_then(|config| config.some(name));
        Self {
            timeout_ms: member("timeoutMs")
                .and_then(Json::whole)
                .unwrap_or(TIMEOUT_MS)
                .clamp(1, LONGEST_MS),
            escalation: member("escalation").and_then(Json::bool).unwrap_or(true),
        }
    }
}

/// A call that can be run.
pub(crate) struct Asked {
    pub(crate) command: Command,
    pub(crate) timeout_ms: u64,
    /// It asks for a wider mode.
    pub(crate) wider: bool,
}

pub(crate) fn listing(settings: &Settings) -> String {
    let string = |description: &str| {
        Object::new()
            .string("type", "string")
            .string("description", description)
            .build()
    };
    let number = |description: String| {
        Object::new()
            .string("type", "number")
            .string("description", &description)
            .build()
    };
    let limit = format!(
        "When to end it, in milliseconds; {} if left out, {LONGEST_MS} at most.",
        settings.timeout_ms
    );
    let mut properties = Object::new()
        .raw(
            "command",
            &string("The command line, as `bash -c` takes it."),
        )
        .raw(
            "description",
            &string("What it does, in a few words, for the person who watches."),
        )
        .raw("timeoutMs", &number(limit))
        .raw(
            "workdir",
            &string("The directory to run it in; the session's working directory if left out."),
        );
    if settings.escalation {
        properties = properties.raw("sandbox_permissions", MODES).raw(
            "justification",
            &string("Why the wider mode is needed, for the person who decides."),
        );
    }
    let schema = Object::new()
        .string("type", "object")
        .raw("properties", &properties.build())
        .raw("required", r#"["command","description"]"#)
        .build();
    let description = "Runs a command with bash and returns what it printed. Each call starts a fresh shell: \
        directory changes, variables and functions do not carry over, so chain what belongs together with `&&`, or \
        set `workdir`. Standard error follows standard output under `[stderr]`; a status other than 0 is told in the \
        last line. Of long output the end is kept, and the whole goes to a file that is named. Nothing answers \
        prompts: pass the flags that make a program ask nothing.";
    tool::listing(NAME, description, &schema, false)
}

/// Reads a call's arguments.
pub(crate) fn read(arguments: &str, settings: &Settings) -> Result<Asked, Error> {
    let arguments = tool::arguments(arguments)?;
    let command = tool::required(arguments, "command")?;
    if command.contains('\0') {
        return Err(tool::invalid("\"command\" must not hold a NUL character"));
    }
    let timeout_ms = match arguments.some("timeoutMs") {
        None => settings.timeout_ms,
        Some(value) => match value.number() {
            Some(ms) if ms > 0.0 => (ms.ceil() as u64).min(LONGEST_MS),
            _ => return Err(tool::invalid("\"timeoutMs\" must be above 0")),
        },
    };
    let wider = text(arguments, "sandbox_permissions").filter(|_| settings.escalation);
    let justification = text(arguments, "justification")
        .filter(|why| settings.escalation && !why.trim().is_empty());
    let more = match (&wider, justification) {
        (Some(mode), Some(why)) => Some(
            Object::new()
                .string("sandbox", mode)
                .string("justification", &why)
                .build(),
        ),
        (None, None) => None,
        _ => {
            return Err(tool::invalid(
                "\"sandbox_permissions\" and \"justification\" go together: give both or none",
            ));
        }
    };
    let command = Command {
        program: "bash".to_owned(),
        arguments: vec!["-c".to_owned(), command],
        cwd: text(arguments, "workdir").filter(|dir| !dir.is_empty()),
        env: ENVIRONMENT
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        stdin: None,
        timeout_ms: Some(timeout_ms as u32),
        max_output: KEPT,
        more,
    };
    Ok(Asked {
        command,
        timeout_ms,
        wider: wider.is_some(),
    })
}
