//! What a script's `match` is tried on.

use guest_support::json::{Json, text};

/// Forms of standing context: sent beside what is asked, and the same each time.
const STANDING: [&str; 3] = ["snapshot", "instructions", "catalog"];

/// The texts of user messages and tool results since the model last spoke, one
/// after another, a line end between them.
pub(crate) fn since_the_model_spoke(messages: &[Json<'_>]) -> String {
    let start = messages
        .iter()
        .rposition(|message| is(*message, "role", "assistant"))
        .map_or(0, |at| at + 1);
    let mut parts = Vec::new();
    for message in &messages[start..] {
        let standing = message
            .get("source")
            .and_then(|source| text(source, "form"))
            .is_some_and(|form| STANDING.contains(&form.as_str()));
        if is(*message, "role", "user") && !standing {
            texts(*message, &mut parts);
        }
    }
    parts.join("\n")
}

/// Texts of `content`, those of tool results included.
fn texts(of: Json<'_>, parts: &mut Vec<String>) {
    for block in of.get("content").into_iter().flat_map(Json::items) {
        if is(block, "type", "text") {
            parts.extend(text(block, "text"));
        } else if is(block, "type", "tool-result") {
            for inner in block.get("content").into_iter().flat_map(Json::items) {
                if is(inner, "type", "text") {
                    parts.extend(text(inner, "text"));
                }
            }
        }
    }
}

fn is(of: Json<'_>, name: &str, value: &str) -> bool {
    of.get(name)
        .and_then(Json::string)
        .is_some_and(|text| text == value)
}
