//! Entries of the history as messages. Texts are escaped throughout.

use std::borrow::Cow;

use adapter_support::history::{Assistant, Block, Image, Piece, is_blank};
use adapter_support::{Entry, Error, Model, Pictures, Profile, arguments, body};
use guest_support::json::{Json, Object, array, escape, unescape};

use crate::dialect::Dialect;
use crate::stream::reasoning_fields;

const NO_OUTPUT: &str = "(no output)";
const SEE_IMAGE: &str = "(see the attached image)";
const IMAGES: &str = "Images of the tool results above:";
/// What the model is made to say where a server wants it to speak after a tool.
const READ: &str = "I have read the tool results.";

/// A message, until it is written.
pub(crate) struct Message {
    pub(crate) role: &'static str,
    content: Option<Content>,
    /// Further members, in order.
    more: Vec<(String, String)>,
}

enum Content {
    /// Escaped.
    Text(String),
    Parts(Vec<Part>),
    Null,
}

enum Part {
    /// Escaped.
    Text(String, Option<&'static str>),
    /// A JSON object.
    Raw(String),
}

impl Message {
    /// A message of one text, escaped.
    pub(crate) fn text(role: &'static str, text: &str) -> Self {
        Self {
            role,
            content: Some(Content::Text(text.to_owned())),
            more: Vec::new(),
        }
    }

    /// Puts a cache marker at its last text; false where there is none.
    pub(crate) fn mark(&mut self, marker: &'static str) -> bool {
        match &mut self.content {
            Some(Content::Text(text)) if !text.is_empty() => {
                let text = std::mem::take(text);
                self.content = Some(Content::Parts(vec![Part::Text(text, Some(marker))]));
                true
            }
            Some(Content::Parts(parts)) => {
                let last = parts.iter_mut().rev().find_map(|part| match part {
                    Part::Text(_, mark) => Some(mark),
                    Part::Raw(_) => None,
                });
                last.map(|mark| *mark = Some(marker)).is_some()
            }
            _ => false,
        }
    }

    pub(crate) fn build(self) -> String {
        let object = Object::new().string("role", self.role);
        let object = match self.content {
            Some(Content::Text(text)) => object.escaped("content", &text),
            Some(Content::Parts(parts)) => {
                object.raw("content", &array(parts.into_iter().map(Part::build)))
            }
            Some(Content::Null) => object.raw("content", "null"),
            None => object,
        };
        self.more
            .iter()
            .fold(object, |object, (name, value)| object.raw(name, value))
            .build()
    }
}

impl Part {
    fn build(self) -> String {
        match self {
            Part::Text(text, marker) => Object::new()
                .string("type", "text")
                .escaped("text", &text)
                .maybe("cache_control", marker)
                .build(),
            Part::Raw(json) => json,
        }
    }
}

/// Appends the messages of a history.
pub(crate) fn translate(
    history: &[Entry<'_>],
    profile: &Profile,
    model: &Model,
    dialect: &Dialect,
    pictures: &mut dyn Pictures,
    out: &mut Vec<Message>,
) -> Result<(), Error> {
    let mut writer = Writer {
        profile,
        model,
        dialect,
        pictures,
        out,
        after_result: false,
        images: Vec::new(),
    };
    for entry in history {
        writer.entry(entry)?;
    }
    writer.flush_images();
    Ok(())
}

struct Writer<'a> {
    profile: &'a Profile,
    model: &'a Model,
    dialect: &'a Dialect,
    pictures: &'a mut dyn Pictures,
    out: &'a mut Vec<Message>,
    /// The last message is a tool's.
    after_result: bool,
    /// Pictures of the run of results under way.
    images: Vec<Part>,
}

impl Writer<'_> {
    fn entry(&mut self, entry: &Entry<'_>) -> Result<(), Error> {
        match entry {
            Entry::User { parts } => {
                self.flush_images();
                self.bridge();
                let content = self.user(parts)?;
                self.push("user", content, Vec::new());
            }
            Entry::Assistant(assistant) => {
                self.flush_images();
                self.assistant(assistant);
            }
            Entry::Result {
                call_id,
                tool_name,
                parts,
                ..
            } => {
                let content = self.result(parts)?;
                let mut more = vec![("tool_call_id".to_owned(), quoted(call_id))];
                if self.dialect.tool_result_name {
                    more.push(("name".to_owned(), quoted(tool_name)));
                }
                self.push("tool", Content::Text(content), more);
                self.after_result = true;
            }
        }
        Ok(())
    }

    fn push(&mut self, role: &'static str, content: Content, more: Vec<(String, String)>) {
        self.after_result = false;
        self.out.push(Message {
            role,
            content: Some(content),
            more,
        });
    }

    /// Some servers take nothing of a user right behind a tool's result.
    fn bridge(&mut self) {
        if self.after_result && self.dialect.assistant_after_tool_result {
            self.push("assistant", Content::Text(READ.to_owned()), Vec::new());
        }
    }

    /// The pictures of the results before: only users may send some.
    fn flush_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        self.bridge();
        let mut parts = vec![Part::Text(IMAGES.to_owned(), None)];
        parts.append(&mut self.images);
        self.push("user", Content::Parts(parts), Vec::new());
    }

    fn user(&mut self, pieces: &[Piece<'_>]) -> Result<Content, Error> {
        if let [Piece::Text(text)] = pieces {
            return Ok(Content::Text(text.clone().into_owned()));
        }
        if pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) {
            let texts = pieces.iter().filter_map(|piece| match piece {
                Piece::Text(text) => Some(&**text),
                Piece::Image(_) => None,
            });
            return Ok(Content::Text(texts.collect()));
        }
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => parts.push(Part::Text(text.clone().into_owned(), None)),
                Piece::Image(image) => parts.push(self.image(image)?),
            }
        }
        Ok(Content::Parts(parts))
    }

    /// A result's text; its pictures wait for the end of the run.
    fn result(&mut self, pieces: &[Piece<'_>]) -> Result<String, Error> {
        let mut texts = Vec::new();
        let mut has_images = false;
        for piece in pieces {
            match piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => texts.push(&**text),
                Piece::Image(image) => {
                    has_images = true;
                    let part = self.image(image)?;
                    self.images.push(part);
                }
            }
        }
        let text = texts.join("\\n");
        Ok(match text.is_empty() {
            false => text,
            true if has_images => SEE_IMAGE.to_owned(),
            true => NO_OUTPUT.to_owned(),
        })
    }

    fn image(&mut self, image: &Image<'_>) -> Result<Part, Error> {
        let bounds = &self.profile.pictures;
        let picture =
            self.pictures
                .render(&image.attachment, Some(bounds.pixels), Some(bounds.bytes))?;
        let url = format!(
            "data:{};base64,{}",
            picture.media_type,
            body::picture(&picture.id)
        );
        // The marks of a picture are no JSON: the text is put in as it stands.
        let url = Object::new().escaped("url", &url).build();
        Ok(Part::Raw(
            Object::new()
                .string("type", "image_url")
                .raw("image_url", &url)
                .build(),
        ))
    }

    fn assistant(&mut self, assistant: &Assistant<'_>) {
        let mut text = String::new();
        let mut thoughts: Vec<&str> = Vec::new();
        let mut field = None;
        let mut calls = Vec::new();
        let mut details = Vec::new();
        for block in &assistant.blocks {
            match block {
                Block::Text { text: part, .. } if !is_blank(part) => text.push_str(part),
                Block::Thinking {
                    text, signature, ..
                } if !is_blank(text) => {
                    if thoughts.is_empty() {
                        field = signature.as_deref();
                    }
                    thoughts.push(text);
                }
                Block::Call {
                    id,
                    name,
                    arguments,
                    signature,
                } => {
                    calls.push(call(id, name, arguments));
                    details.extend(signature.as_deref().and_then(detail));
                }
                _ => {}
            }
        }
        let mut more = Vec::new();
        let mut content = if !text.is_empty() {
            Content::Text(text)
        } else if self.dialect.assistant_after_tool_result {
            // What wants an assistant after a tool wants it to say something.
            Content::Text(String::new())
        } else {
            Content::Null
        };
        let mut has_reasoning_content = false;
        if !thoughts.is_empty() {
            if self.dialect.thinking_as_text {
                let mut parts = vec![Part::Text(thoughts.join("\\n\\n"), None)];
                if let Content::Text(text) = content
                    && !text.is_empty()
                {
                    parts.push(Part::Text(text, None));
                }
                content = Content::Parts(parts);
            } else if let Some(field) = field
                && reasoning_fields(self.model).any(|known| known == field)
            {
                has_reasoning_content = field == "reasoning_content";
                more.push((field.to_owned(), quoted(&thoughts.join("\\n"))));
            }
        }
        if self.dialect.reasoning_content_always && self.model.reasons() && !has_reasoning_content {
            more.push(("reasoning_content".to_owned(), "\"\"".to_owned()));
        }
        let says = match &content {
            Content::Text(text) => !text.is_empty(),
            Content::Parts(_) => true,
            Content::Null => false,
        };
        if !says && calls.is_empty() {
            return;
        }
        if !calls.is_empty() {
            more.push(("tool_calls".to_owned(), array(calls)));
        }
        if !details.is_empty() {
            more.push(("reasoning_details".to_owned(), array(details)));
        }
        self.push("assistant", content, more);
    }
}

fn call(id: &str, name: &str, arguments: &str) -> String {
    let mut escaped = String::with_capacity(arguments.len() + 16);
    escape(arguments, &mut escaped);
    let function = Object::new()
        .escaped("name", name)
        .escaped("arguments", &escaped)
        .build();
    Object::new()
        .escaped("id", id)
        .string("type", "function")
        .raw("function", &function)
        .build()
}

/// The reasoning detail that a call's signature holds, as JSON.
fn detail(signature: &str) -> Option<String> {
    let text: Cow<'_, str> = unescape(signature);
    let json = Json::parse(&text).filter(|json| json.is_object())?;
    Some(arguments::compact(json.raw()))
}

fn quoted(escaped: &str) -> String {
    format!("\"{escaped}\"")
}
