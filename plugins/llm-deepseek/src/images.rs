//! The pictures of a request, in document order: what each becomes
//! (spec/llm.md §6.7). They go inside of the body, in base64.
//!
//! A picture that cannot be shown, as its attachment is gone or damaged, becomes a
//! text that says so: a session outlives its files.

use std::collections::HashMap;

use adapter_support::{Pictures, body};
use guest_support::json::{Json, Object, quote, text};
use guest_support::{Error, error};

use crate::offload::left_out;
use crate::settings::{Budget, Settings};

/// Stands where a picture was that went over the request's bounds.
const LEFT_OUT: &str =
    "[An earlier image is left out here, to keep the request within its limits.]";

/// One picture of the history, as it is sent.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    /// The text before it, escaped, and the part that it is.
    Picture { handle: String, part: String },
    /// A text in its place, escaped.
    Note(String),
}

/// An occurrence of a picture.
struct Occurrence {
    attachment: String,
    bytes: u64,
}

/// What each picture of these messages becomes, in document order.
pub(crate) fn shown(
    messages: &[Json<'_>],
    settings: &Settings,
    model: &str,
    pictures: &mut dyn Pictures,
) -> Result<Vec<Shown>, Error> {
    let mut found = Vec::new();
    for message in messages {
        let before = found.len();
        collect(*message, &mut found);
        let user = message.get("role").and_then(Json::escaped) == Some("user");
        if found.len() > before && !user {
            let message = "DeepSeek takes pictures in what a user says and a tool answers, and one is in another message";
            return Err(error("UNSUPPORTED_CONTENT", message));
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let Some(budget) = settings.pictures(model) else {
        let message =
            format!("the model {model} takes no pictures; its inputModalities would say so");
        return Err(error("UNSUPPORTED_CONTENT", message));
    };
    let raw: Vec<u64> = found
        .iter()
        .map(|one| one.bytes.min(budget.bytes.into()))
        .collect();
    let gone = left_out(&raw, &settings.files);
    let mut shown = vec![(Shown::Note(LEFT_OUT.to_owned()), 0); gone];
    let mut rendered = HashMap::new();
    for one in &found[gone..] {
        let picture = match rendered.get(&one.attachment) {
            Some(picture) => Clone::clone(picture),
            None => {
                let picture = render(&one.attachment, budget, pictures)?;
                rendered.insert(&one.attachment, picture.clone());
                picture
            }
        };
        shown.push(picture);
    }
    let inline: Vec<u64> = shown.iter().map(|(_, base64)| *base64).collect();
    // What is out already takes nothing and is no picture any more.
    let gone = gone + left_out(&inline[gone..], &settings.inline);
    let mut shown: Vec<Shown> = shown.into_iter().map(|(shown, _)| shown).collect();
    for one in &mut shown[..gone] {
        if matches!(one, Shown::Picture { .. }) {
            *one = Shown::Note(LEFT_OUT.to_owned());
        }
    }
    Ok(shown)
}

/// Pictures of a message or of a tool's result, in order.
fn collect(of: Json<'_>, found: &mut Vec<Occurrence>) {
    for block in of.get("content").into_iter().flat_map(Json::items) {
        match block.get("type").and_then(Json::escaped) {
            Some("image") => {
                let attachment = block.some("attachment");
                let id = attachment.and_then(|attachment| text(attachment, "attachmentId"));
                let bytes = attachment.and_then(|attachment| attachment.some("bytes")?.whole());
                found.push(Occurrence {
                    attachment: id.unwrap_or_default(),
                    bytes: bytes.unwrap_or(0),
                });
            }
            Some("tool-result") => collect(block, found),
            _ => {}
        }
    }
}

/// A picture within the model's budget, and the length of its base64.
fn render(
    attachment: &str,
    budget: Budget,
    pictures: &mut dyn Pictures,
) -> Result<(Shown, u64), Error> {
    match pictures.render(attachment, Some(budget.pixels), Some(budget.bytes)) {
        Ok(picture) => {
            let handle = format!("[Image {attachment}, {}x{}]", picture.width, picture.height);
            let url = Object::new().escaped(
                "url",
                &format!(
                    "data:{};base64,{}",
                    picture.media_type,
                    body::picture(&picture.id)
                ),
            );
            let part = Object::new()
                .string("type", "image_url")
                .raw("image_url", &url.build())
                .build();
            let base64 = u64::from(picture.bytes).div_ceil(3) * 4;
            Ok((
                Shown::Picture {
                    handle: escaped(&handle),
                    part,
                },
                base64,
            ))
        }
        Err(error) if error.code == "CANCELLED" => Err(error),
        Err(error) => {
            let short: String = attachment.chars().take("sha256:".len() + 8).collect();
            let note = format!("[Image {short}: not shown, because {}]", error.message);
            Ok((Shown::Note(escaped(&note)), 0))
        }
    }
}

/// The inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = quote(text);
    quoted[1..quoted.len() - 1].to_owned()
}
