//! A tool call as the model wrote it, and what its arguments are. The raw text
//! is kept: it goes into the log and in front of hooks as it was.

use dsh_plugin::api::ToolCall;
use dsh_session::{Json, JsonError, Value};

use super::tool::Tool;

/// One call of a message.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The model's id, a JSON string as it stands.
    pub(crate) id: Json,
    /// The model's id, decoded.
    pub(crate) id_text: String,
    /// The tool's name.
    pub(crate) name: String,
    /// The arguments as the model wrote them, a JSON string as it stands.
    pub(crate) raw: Json,
    /// The arguments' value; the raw text where that is no JSON.
    pub(crate) arguments: Json,
    fault: Option<JsonError>,
}

impl Call {
    /// Reads a `tool-call` block.
    pub(crate) fn read(block: Value<'_>) -> Self {
        let string = |key: &str| {
            block
                .get(key)
                .filter(|value| value.string().is_some())
                .map(Value::to_json)
        };
        let decoded = |json: &Json| json.value().text().unwrap_or_default().into_owned();
        let id = string("id").unwrap_or_else(|| Json::string(""));
        let raw = string("arguments").unwrap_or_else(|| Json::string(""));
        let text = decoded(&raw);
        let (arguments, fault) = if text.is_empty() {
            (Json::empty_object(), None)
        } else {
            match Json::normalise(&text) {
                Ok(arguments) => (arguments, None),
                Err(fault) => (raw.clone(), Some(fault)),
            }
        };
        let name = string("name")
            .map(|name| decoded(&name))
            .unwrap_or_default();
        Self {
            id_text: decoded(&id),
            id,
            name,
            raw,
            arguments,
            fault,
        }
    }

    /// What is wrong with the arguments, by the tool's schema.
    pub(crate) fn violations(&self, tool: &dyn Tool) -> Vec<String> {
        match self.fault {
            Some(JsonError::NotLossless) => {
                vec!["the arguments must be a lossless JSON value".to_owned()]
            }
            _ => tool.spec().parameters.violations(self.arguments.value()),
        }
    }

    /// The call as it is handed to a tool.
    pub(crate) fn for_tool(&self, turn: u64, step: u64, images: bool) -> ToolCall {
        let more = Json::object(|more| {
            more.object("model", |model| {
                model.bool("images", images);
            });
        });
        ToolCall {
            id: self.id_text.clone(),
            name: self.name.clone(),
            arguments: self.arguments.as_str().to_owned(),
            turn: u32::try_from(turn).unwrap_or(u32::MAX),
            step: u32::try_from(step).unwrap_or(u32::MAX),
            more: Some(more.as_str().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Call;
    use dsh_session::Json;

    fn call(raw: &str) -> Call {
        let block = Json::object(|block| {
            block
                .str("type", "tool-call")
                .str("id", "c1")
                .str("name", "t")
                .str("arguments", raw);
        });
        Call::read(block.value())
    }

    #[test]
    fn no_text_means_no_arguments() {
        assert_eq!(call("").arguments.as_str(), "{}");
        assert_eq!(call("").raw.as_str(), "\"\"");
    }

    #[test]
    fn text_that_is_no_json_stays_the_value() {
        assert_eq!(call("{\"a\":").arguments.as_str(), r#""{\"a\":""#);
        assert_eq!(call("{\"a\": 1.0}").arguments.as_str(), r#"{"a":1}"#);
    }
}
