//! The list: its schema, the event that holds it, the sentence that counts it.

use guest_support::json::{Json, Object, array, text};
use guest_support::{Error, tool};

pub(crate) const NAME: &str = "todo_write";

const SCHEMA: &str = r#"{"type":"object","properties":{"todos":{"type":"array","description":"The whole list, in the order of work; it replaces the one before.","items":{"type":"object","properties":{"content":{"type":"string","description":"What is to be done, as an instruction."},"status":{"type":"string","enum":["pending","in_progress","completed"]}},"required":["content","status"],"additionalProperties":false}}},"required":["todos"]}"#;

const STATES: [&str; 3] = ["pending", "in_progress", "completed"];

#[derive(Debug)]
pub(crate) struct List {
    /// Of the `todo/write` event.
    pub(crate) data: String,
    /// What the model reads.
    pub(crate) summary: String,
}

pub(crate) fn listing(parallel: bool) -> String {
    let one = if parallel {
        "what is being worked on is"
    } else {
        "exactly one entry, the one being worked on, is"
    };
    let description = format!(
        "Keeps the list of what this task still needs, for you and for the person who watches. Worth it for work of \
         three steps or more, or when several things are asked at once; not for a single simple step. Send the whole \
         list each time: {one} `in_progress`, and an entry is `completed` as soon as it is done and checked, not in \
         batches. Add what turns up on the way, drop what no longer matters."
    );
    tool::listing(NAME, &description, SCHEMA, false)
}

/// Reads a call's arguments.
pub(crate) fn read(arguments: &str, parallel: bool) -> Result<List, Error> {
    let todos = tool::arguments(arguments)?
        .get("todos")
        .filter(|todos| todos.is_array());
    let todos = todos.ok_or_else(|| tool::invalid("missing required property \"todos\""))?;
    let mut counts = [0usize; STATES.len()];
    let mut entries = Vec::new();
    for (at, todo) in todos.items().enumerate() {
        let content = todo.get("content").and_then(Json::escaped);
        let content = content.ok_or_else(|| {
            tool::invalid(&format!(
                "missing required property \"todos[{at}].content\""
            ))
        })?;
        let status = text(todo, "status").unwrap_or_default();
        let state = STATES.iter().position(|state| *state == status);
        let state = state.ok_or_else(|| {
            tool::invalid(&format!("todos[{at}].status must be one of {STATES:?}"))
        })?;
        counts[state] += 1;
        entries.push(
            Object::new()
                .escaped("content", content)
                .string("status", STATES[state])
                .build(),
        );
    }
    if !parallel && counts[1] > 1 {
        let violation = format!("at most one entry may be in_progress, {} are", counts[1]);
        return Err(tool::invalid(&violation));
    }
    let [pending, active, done] = counts;
    Ok(List {
        data: Object::new().raw("todos", &array(entries)).build(),
        summary: format!(
            "Updated todo list: {pending} pending, {active} in progress, {done} completed."
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn todos(states: &[&str]) -> String {
        let list: Vec<_> = states
            .iter()
            .map(|state| json!({"content": "do it", "status": state}))
            .collect();
        json!({"todos": list}).to_string()
    }

    #[test]
    fn the_whole_list_is_logged_and_counted() {
        let list = read(
            &todos(&["completed", "in_progress", "pending", "pending"]),
            true,
        )
        .unwrap();
        assert_eq!(
            list.summary,
            "Updated todo list: 2 pending, 1 in progress, 1 completed."
        );
        let data: Value = serde_json::from_str(&list.data).unwrap();
        assert_eq!(
            data["todos"][1],
            json!({"content": "do it", "status": "in_progress"})
        );
        assert_eq!(
            read(r#"{"todos":[]}"#, true).unwrap().data,
            r#"{"todos":[]}"#
        );
    }

    #[test]
    fn texts_are_logged_as_they_were_written() {
        let list = read(
            r#"{"todos":[{"status":"pending","content":"a\ud800\"\u00e9"}]}"#,
            true,
        )
        .unwrap();
        assert_eq!(
            list.data,
            r#"{"todos":[{"content":"a\ud800\"\u00e9","status":"pending"}]}"#
        );
    }

    #[test]
    fn several_at_once_only_where_the_row_allows_it() {
        let two = todos(&["in_progress", "in_progress"]);
        assert!(read(&two, true).is_ok());
        let error = read(&two, false).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.contains("at most one")),
            ("INVALID_ARGS", true)
        );
    }

    #[test]
    fn the_listing_is_json() {
        for parallel in [true, false] {
            let tool: Value = serde_json::from_str(&listing(parallel)).unwrap();
            assert_eq!(tool["name"], "todo_write");
            assert_eq!(
                tool["parameters"]["properties"]["todos"]["items"]["additionalProperties"],
                false
            );
        }
    }
}
