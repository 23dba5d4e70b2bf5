//! The tools `read`, `read_image`, `write` and `edit` (spec/loop.md §15.2). The host holds the
//! fence, the atomic write and the rule that what is changed was read before;
//! this component says what is shown, what is replaced, and with which words.

mod diff;
mod edit;
mod image;
mod path;
mod read;
mod schema;

use guest_support::json::{Json, Object, array};
use guest_support::{Error, error, hook_panics, tool};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:tool-fs;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/workspace@0.1.0;
                import dsh:plugin/attachments@0.1.0;
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

use bindings::dsh::plugin::attachments;
use bindings::dsh::plugin::workspace::{self, Guard, Slice};
use bindings::exports::dsh::plugin::tool::{Call, Guest, Outcome};

/// Bytes that are asked for at once.
const SLICE: u32 = 1024 * 1024;

/// The largest file that is changed, or read for a diff.
const WHOLE: u32 = 10 * 1024 * 1024;

/// Bytes of hunks that a result carries beside its text.
const DIFFS: usize = 256 * 1024;

/// The tools.
pub struct Component;

impl Guest for Component {
    fn list_tools() -> Result<Vec<String>, Error> {
        Ok(schema::listings())
    }

    fn may_overlap(call: Call) -> bool {
        ["read", "read_image"].contains(&call.name.as_str())
    }

    fn run(call: Call) -> Result<Outcome, Error> {
        hook_panics();
        let arguments = tool::arguments(&call.arguments)?;
        let path = tool::required(arguments, "file_path")?;
        let shown = path::shown(&workspace::root(), &path);
        match call.name.as_str() {
            "read" => read(arguments, &path, &shown),
            "read_image" => {
                image::check_model(call.more.as_deref(), &shown)?;
                read_image(&path, &shown)
            }
            "write" => write(arguments, &path, &shown),
            "edit" => edit(arguments, &path, &shown),
            other => Err(tool::unknown(other)),
        }
    }
}

fn read(arguments: Json<'_>, path: &str, shown: &str) -> Result<Outcome, Error> {
    let offset = tool::positive(arguments, "offset")?.unwrap_or(1);
    let limit = tool::positive(arguments, "limit")?.unwrap_or(read::LINES);
    let mut window = read::Window::new(offset, limit);
    slices(
        path,
        |offset| workspace::read(path, offset, SLICE),
        |slice| window.push(&slice.content),
    )?;
    let (text, facts) = window.finish(shown)?;
    Ok(outcome(&text, Some(&facts)))
}

fn read_image(path: &str, shown: &str) -> Result<Outcome, Error> {
    let (mut content, mut size) = (Vec::new(), 0.0);
    slices(
        path,
        |offset| workspace::read(path, offset, SLICE),
        |slice| {
            size = slice.metadata.size;
            content.extend_from_slice(&slice.content);
            size <= f64::from(image::MOST)
        },
    )?;
    image::check_size(shown, size)?;
    // The host says what it is by its content.
    let attachment = attachments::put(&content, "", shown.rsplit('/').next())
        .map_err(|why| error(&why.code, format!("{shown}: {}", why.message)))?;
    Ok(Outcome {
        content: image::content(shown, &attachment),
        more: None,
    })
}

fn write(arguments: Json<'_>, path: &str, shown: &str) -> Result<Outcome, Error> {
    let content = tool::required(arguments, "content")?;
    let before = match Before::read(path, &Guard::Overwrite) {
        Ok(before) => Some(before),
        Err(error) if error.code == "FS_NOT_FOUND" => None,
        Err(error) => return Err(error),
    };
    let guard = before.as_ref().map_or(Guard::Overwrite, Before::guard);
    workspace::write(path, content.as_bytes(), &guard)?;
    let done = if before.is_some() {
        "Updated file"
    } else {
        "Created file"
    };
    let before = before.and_then(|before| before.text().ok());
    let hunks = before
        .map(|before| diff::hunks(&before, &content))
        .unwrap_or_default();
    Ok(outcome(
        &envelope(shown, "file", done),
        Some(&diffs(path, &hunks)),
    ))
}

fn edit(arguments: Json<'_>, path: &str, shown: &str) -> Result<Outcome, Error> {
    let old = tool::required(arguments, "old_string")?;
    let new = tool::required(arguments, "new_string")?;
    let all = arguments
        .some("replace_all")
        .and_then(Json::bool)
        .unwrap_or(false);
    let before = Before::read(path, &Guard::Edit)?;
    let guard = before.guard();
    let before = before.text().map_err(|(code, what)| {
        error(code, format!("{shown} {what}; use a command to change it"))
    })?;
    let (after, count) = edit::replace(shown, &before, &old, &new, all)?;
    workspace::write(path, after.as_bytes(), &guard)?;
    let plural = if count == 1 { "" } else { "s" };
    let done = format!("Edited file: {count} replacement{plural}");
    Ok(outcome(
        &envelope(shown, "file", &done),
        Some(&diffs(path, &diff::hunks(&before, &after))),
    ))
}

/// A file as it is before a change. Reading it here is not the session's reading:
/// whether the session has read it is what the guard asks.
struct Before {
    version: String,
    /// None where it is larger than `WHOLE`.
    content: Option<Vec<u8>>,
}

impl Before {
    fn read(path: &str, guard: &Guard) -> Result<Self, Error> {
        let mut before = Self {
            version: String::new(),
            content: Some(Vec::new()),
        };
        before.version = slices(
            path,
            |offset| workspace::read_for(path, guard, offset, SLICE),
            |slice| {
                if slice.metadata.size > f64::from(WHOLE) {
                    before.content = None;
                }
                let Some(content) = &mut before.content else {
                    return false;
                };
                content.extend_from_slice(&slice.content);
                true
            },
        )?;
        Ok(before)
    }

    /// Holds as long as it is still so.
    fn guard(&self) -> Guard {
        Guard::Version(self.version.clone())
    }

    /// Its text, or the code and the words for why it has none.
    fn text(self) -> Result<String, (&'static str, String)> {
        let content = self
            .content
            .ok_or_else(|| ("FS_TOO_LARGE", format!("has more than {WHOLE} bytes")))?;
        let text = String::from_utf8(content)
            .ok()
            .filter(|text| !text.contains('\0'));
        text.ok_or_else(|| ("FS_NOT_TEXT", "is not UTF-8 text".to_owned()))
    }
}

/// Reads a file from its start, until `take` wants no more; returns its version.
/// A file that changes meanwhile is told, not shown half old and half new.
fn slices(
    path: &str,
    read: impl Fn(f64) -> Result<Slice, Error>,
    mut take: impl FnMut(&Slice) -> bool,
) -> Result<String, Error> {
    let mut offset = 0u64;
    let mut version = None;
    loop {
        let slice = read(offset as f64)?;
        let version = version.get_or_insert_with(|| slice.metadata.version.clone());
        if *version != slice.metadata.version {
            return Err(error(
                "FS_STALE_VERSION",
                format!("{path} changed while it was read; read it again"),
            ));
        }
        offset += slice.content.len() as u64;
        let last = slice.content.is_empty() || offset as f64 >= slice.metadata.size;
        if !take(&slice) || last {
            return Ok(std::mem::take(version));
        }
    }
}

/// A text result, with facts for people's views.
fn outcome(text: &str, facts: Option<&str>) -> Outcome {
    let more = facts.map(|facts| Object::new().raw("meta", facts).build());
    Outcome {
        content: vec![tool::text_block(text)],
        more,
    }
}

/// The frame that all four answer in.
fn envelope(path: &str, kind: &str, content: &str) -> String {
    format!("<path>{path}</path>\n<type>{kind}</type>\n<content>\n{content}\n</content>")
}

/// `{diffs: [{path, oldText, newText}]}`; without hunks where they are too long.
fn diffs(path: &str, hunks: &[(String, String)]) -> String {
    let size: usize = hunks.iter().map(|(old, new)| old.len() + new.len()).sum();
    let hunks = if size > DIFFS { &[] } else { hunks };
    let hunk = |(old, new): &(String, String)| {
        Object::new()
            .string("path", path)
            .string("oldText", old)
            .string("newText", new)
            .build()
    };
    Object::new()
        .raw("diffs", &array(hunks.iter().map(hunk)))
        .build()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_schemas_are_as_agreed() {
        let tools: Vec<Value> = schema::listings()
            .iter()
            .map(|tool| serde_json::from_str(tool).unwrap())
            .collect();
        let shape = |tool: &Value| {
            let properties = tool["parameters"]["properties"].as_object().unwrap();
            let types: Vec<_> = properties
                .iter()
                .map(|(name, schema)| format!("{name}: {}", schema["type"].as_str().unwrap()))
                .collect();
            (
                tool["name"].clone(),
                types.join(", "),
                tool["parameters"]["required"].clone(),
                tool["concurrent"].clone(),
            )
        };
        assert_eq!(
            shape(&tools[0]),
            (
                json!("read"),
                "file_path: string, limit: number, offset: number".to_owned(),
                json!(["file_path"]),
                json!(true)
            )
        );
        assert_eq!(
            shape(&tools[1]),
            (
                json!("read_image"),
                "file_path: string".to_owned(),
                json!(["file_path"]),
                json!(true)
            )
        );
        assert_eq!(
            shape(&tools[2]),
            (
                json!("write"),
                "content: string, file_path: string".to_owned(),
                json!(["file_path", "content"]),
                Value::Null
            )
        );
        assert_eq!(
            shape(&tools[3]),
            (
                json!("edit"),
                "file_path: string, new_string: string, old_string: string, replace_all: boolean"
                    .to_owned(),
                json!(["file_path", "old_string", "new_string"]),
                Value::Null
            )
        );
    }

    #[test]
    fn facts_of_a_change_name_the_path_as_it_was_given() {
        let hunks = [("a".to_owned(), "b\"".to_owned())];
        assert_eq!(
            diffs("x.txt", &hunks),
            r#"{"diffs":[{"path":"x.txt","oldText":"a","newText":"b\""}]}"#
        );
        assert_eq!(
            diffs("x.txt", &[("a".repeat(DIFFS), "b".to_owned())]),
            r#"{"diffs":[]}"#
        );
    }
}
