//! What tools share: how they are listed, how they read arguments that the host
//! has checked against their schema, how they answer.

use crate::json::{Json, Object, text};
use crate::types::Error;

/// A tool as `list-tools` shows it; `parameters` is a JSON Schema.
pub fn listing(name: &str, description: &str, parameters: &str, concurrent: bool) -> String {
    let listed = Object::new()
        .string("name", name)
        .string("description", description)
        .raw("parameters", parameters);
    listed
        .maybe("concurrent", concurrent.then_some("true"))
        .build()
}

/// A content block of text.
pub fn text_block(text: &str) -> String {
    Object::new()
        .string("type", "text")
        .string("text", text)
        .build()
}

/// Refuses arguments that the schema let through.
pub fn invalid(violation: &str) -> Error {
    crate::error("INVALID_ARGS", format!("invalid arguments: {violation}"))
}

/// A call's arguments.
pub fn arguments(arguments: &str) -> Result<Json<'_>, Error> {
    Json::parse(arguments)
        .filter(|json| json.is_object())
        .ok_or_else(|| invalid("must be an object"))
}

/// A text that must be there.
pub fn required(arguments: Json<'_>, name: &str) -> Result<String, Error> {
    text(arguments, name).ok_or_else(|| invalid(&format!("missing required property \"{name}\"")))
}

/// A whole number from 1 on, where it is given.
pub fn positive(arguments: Json<'_>, name: &str) -> Result<Option<u64>, Error> {
    let refused = || invalid(&format!("\"{name}\" must be a whole number from 1 on"));
    match arguments.some(name) {
        Some(value) => value
            .whole()
            .filter(|number| *number > 0)
            .map(Some)
            .ok_or_else(refused),
        None => Ok(None),
    }
}

/// For a name that the component does not have.
pub fn unknown(name: &str) -> Error {
    crate::error("UNKNOWN_TOOL", format!("unknown tool \"{name}\""))
}
