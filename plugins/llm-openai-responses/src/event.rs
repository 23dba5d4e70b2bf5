//! One event of a responses stream, its members found in one pass. Servers leave
//! members out, so each is optional, and none is decoded that is only passed on.

use std::borrow::Cow;

use guest_support::json::{Json, escape};

/// What an event may hold; texts are escaped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) kind: Option<&'a str>,
    /// The provider's number, as it wrote it.
    pub(crate) output_index: Option<&'a str>,
    pub(crate) item_id: Option<&'a str>,
    pub(crate) item: Option<Json<'a>>,
    pub(crate) response: Option<Json<'a>>,
    pub(crate) delta: Option<&'a str>,
    /// The whole of what the deltas brought.
    pub(crate) text: Option<&'a str>,
    pub(crate) refusal: Option<&'a str>,
    pub(crate) arguments: Option<&'a str>,
    /// What failed, an object or a text.
    pub(crate) error: Option<Json<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads an event's payload; of two members of one name the last counts.
    pub(crate) fn of(event: Json<'a>) -> Self {
        let mut fields = Self::default();
        for (name, value) in event.members() {
            let value = Some(value).filter(|value| value.raw() != "null");
            let text = value.and_then(Json::escaped);
            match name {
                "type" => fields.kind = text,
                "output_index" => fields.output_index = value.map(Json::raw),
                "item_id" => fields.item_id = text.filter(|text| !text.is_empty()),
                "item" => fields.item = value.filter(|value| value.is_object()),
                "response" => fields.response = value.filter(|value| value.is_object()),
                "delta" => fields.delta = text.filter(|text| !text.is_empty()),
                "text" => fields.text = text.filter(|text| !text.is_empty()),
                "refusal" => fields.refusal = text.filter(|text| !text.is_empty()),
                "arguments" => fields.arguments = text.filter(|text| !text.is_empty()),
                "error" => fields.error = value,
                _ => {}
            }
        }
        fields
    }
}

/// An item of the answer.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) json: Json<'a>,
    pub(crate) kind: ItemKind,
    /// Escaped, as the other texts.
    pub(crate) id: Option<&'a str>,
    pub(crate) call_id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    /// Some servers send them as an object.
    pub(crate) arguments: Option<Cow<'a, str>>,
    pub(crate) phase: Option<&'a str>,
    pub(crate) encrypted: bool,
    content: Option<Json<'a>>,
    summary: Option<Json<'a>>,
}

/// What an item becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Reasoning,
    Message,
    Call,
    /// Nothing: searches and the like, which the provider ran itself.
    Other,
}

impl<'a> Item<'a> {
    /// One of which only events are known.
    pub(crate) fn unannounced(kind: ItemKind, id: Option<&'a str>) -> Self {
        Self {
            json: Json::of_host("{}"),
            kind,
            id,
            call_id: None,
            name: None,
            arguments: None,
            phase: None,
            encrypted: false,
            content: None,
            summary: None,
        }
    }

    pub(crate) fn of(json: Json<'a>) -> Self {
        let mut item = Self {
            json,
            ..Self::unannounced(ItemKind::Other, None)
        };
        for (name, value) in json.members() {
            let text = value.escaped().filter(|text| !text.is_empty());
            match name {
                "type" => {
                    item.kind = match text {
                        Some("reasoning") => ItemKind::Reasoning,
                        Some("message") => ItemKind::Message,
                        Some("function_call") => ItemKind::Call,
                        _ => ItemKind::Other,
                    };
                }
                "id" => item.id = text,
                "call_id" => item.call_id = text,
                "name" => item.name = text,
                "arguments" if value.is_object() => {
                    let mut text = String::with_capacity(value.raw().len() + 16);
                    escape(value.raw(), &mut text);
                    item.arguments = Some(Cow::Owned(text));
                }
                "arguments" => item.arguments = text.map(Cow::Borrowed),
                "phase" => item.phase = text,
                "encrypted_content" => item.encrypted = text.is_some(),
                "content" => item.content = Some(value),
                "summary" => item.summary = Some(value),
                _ => {}
            }
        }
        item
    }

    /// The final text, escaped; empty where the item does not tell it.
    pub(crate) fn text(&self) -> String {
        match self.kind {
            ItemKind::Message => joined(self.content, ""),
            ItemKind::Reasoning => {
                let summary = joined(self.summary, "\\n\\n");
                if summary.is_empty() {
                    joined(self.content, "\\n\\n")
                } else {
                    summary
                }
            }
            ItemKind::Call => self.arguments.as_deref().unwrap_or_default().to_owned(),
            ItemKind::Other => String::new(),
        }
    }
}

/// The texts of an item's parts; a bare text stands for one part.
fn joined(parts: Option<Json<'_>>, between: &str) -> String {
    let Some(parts) = parts else {
        return String::new();
    };
    if let Some(text) = parts.escaped() {
        return text.to_owned();
    }
    let mut out = String::new();
    for part in parts.items() {
        let text = part.members().find_map(|(name, value)| {
            matches!(name, "text" | "refusal").then(|| value.escaped())?
        });
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            if !out.is_empty() {
                out.push_str(between);
            }
            out.push_str(text);
        }
    }
    out
}

/// JSON text without the space between its tokens.
pub(crate) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if !quoted && matches!(c, ' ' | '\n' | '\r' | '\t') {
            continue;
        }
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && c == '\\' && !escaped;
        out.push(c);
    }
    out
}
