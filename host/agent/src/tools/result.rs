//! What became of a call, until it is logged.

use dsh_plugin::api::{PluginError, ToolOutcome, code};
use dsh_session::{Json, Value};

use super::schema::Schema;
use super::tool::Tool;
use crate::dispatch::own_message;
use crate::message::text_block;

/// A result in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallResult {
    pub(crate) content: Vec<Json>,
    pub(crate) is_error: bool,
    /// `{name, code}`; none for a failure that has no code.
    pub(crate) error: Option<(&'static str, String)>,
    pub(crate) value: Option<Json>,
    pub(crate) meta: Option<Json>,
    /// Whole messages for the next step.
    pub(crate) contexts: Vec<Json>,
    pub(crate) conclude: bool,
}

impl CallResult {
    /// A failure without a code.
    pub(crate) fn failure(message: &str) -> Self {
        Self {
            content: vec![text_block(&format!("Error: {message}"))],
            is_error: true,
            ..Self::default()
        }
    }

    /// A failure of the harness, with its code.
    pub(crate) fn coded(code: &str, message: &str) -> Self {
        Self {
            error: Some((error_name(code), code.to_owned())),
            ..Self::failure(message)
        }
    }

    /// The caller gave up while the body ran.
    pub(crate) fn aborted() -> Self {
        Self::coded("ABORTED", "tool call aborted")
    }

    /// The caller gave up before the body ran.
    pub(crate) fn aborted_before_dispatch() -> Self {
        Self::coded(
            "ABORTED_BEFORE_DISPATCH",
            "tool call aborted before dispatch",
        )
    }

    /// What a tool's body made of the call.
    pub(crate) fn of_body(
        tool: &dyn Tool,
        outcome: Result<ToolOutcome, PluginError>,
        cancelled: bool,
    ) -> Self {
        match outcome {
            Ok(outcome) => read_outcome(tool, &outcome)
                .unwrap_or_else(|what| Self::coded("INVALID_TOOL_OUTPUT", &what)),
            // What a component says when an import told it that the caller gave up.
            Err(error) if cancelled && error.code == code::CANCELLED => Self::aborted(),
            Err(error) if error.code.is_empty() => Self::failure(&error.message),
            Err(error) => Self::coded(&error.code, &error.message),
        }
    }

    /// This result, given up: what was said beside it stays.
    pub(crate) fn given_up(self, aborted: Self) -> Self {
        Self {
            contexts: self.contexts,
            ..aborted
        }
    }

    /// What `tools/post-execute` and `tools/result` show of it.
    pub(crate) fn view(&self) -> Json {
        Json::object(|result| {
            result.array("content", |blocks| {
                for block in &self.content {
                    blocks.json(block);
                }
            });
            result.bool("isError", self.is_error);
            if let Some((name, code)) = &self.error {
                result.object("error", |error| {
                    error.str("name", name).str("code", code);
                });
            }
            result
                .opt_json("value", self.value.as_ref())
                .opt_json("meta", self.meta.as_ref());
        })
    }
}

/// What is wrong with a structured result, if its tool declares a schema.
pub(crate) fn output_violations(schema: Option<&Schema>, value: &Json) -> Option<String> {
    let violations = schema?.violations(value.value());
    (!violations.is_empty()).then(|| format!("invalid tool output: {}", violations.join("; ")))
}

/// Content blocks of a result: `text` and `image`, as the contract has them.
pub(crate) fn content_blocks<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<Json>, String> {
    let block = |text: &str| {
        let block =
            Json::normalise(text).map_err(|error| format!("the tool's content is {error}"))?;
        match block.get("type").and_then(Value::text).as_deref() {
            Some("text" | "image") => Ok(block),
            // A call, or a result, of its own making is not a tool's to give.
            Some(_) => Err("the tool's content has a block that is neither text nor image".into()),
            None => Err("the tool's content has a block without a type".to_owned()),
        }
    };
    texts.map(block).collect()
}

fn read_outcome(tool: &dyn Tool, outcome: &ToolOutcome) -> Result<CallResult, String> {
    let content = content_blocks(outcome.content.iter().map(String::as_str))?;
    let more = match &outcome.more {
        None => Json::empty_object(),
        Some(more) => {
            Json::normalise(more).map_err(|error| format!("the tool's result is {error}"))?
        }
    };
    let flag = |name: &str| more.get(name).and_then(Value::bool).unwrap_or(false);
    let is_error = flag("isError");
    let value = more.get("value").map(Value::to_json);
    if let (Some(value), false) = (&value, is_error)
        && let Some(what) = output_violations(tool.spec().output.as_ref(), value)
    {
        return Err(what);
    }
    let standing = tool.standing();
    let contexts = more.get("context").into_iter().flat_map(Value::items);
    let contexts = contexts
        .map(|draft| own_message(&standing, draft))
        .collect::<Result<_, _>>();
    Ok(CallResult {
        content,
        is_error,
        error: None,
        value,
        meta: more
            .get("meta")
            .filter(|meta| !meta.is_null())
            .map(Value::to_json),
        contexts: contexts.map_err(|error| error.message)?,
        conclude: flag("concludeTurn") && !is_error,
    })
}

/// The names that logs have beside codes.
fn error_name(code: &str) -> &'static str {
    match code {
        "ABORTED" | "ABORTED_BEFORE_DISPATCH" => "AbortError",
        "TOOL_TIMEOUT" => "ToolTimeoutError",
        "SANDBOX_UNAVAILABLE" => "SandboxUnavailableError",
        code if code.starts_with("FS_") => "FsError",
        code if code.starts_with("SEARCH_") => "SearchError",
        _ => "ToolError",
    }
}
