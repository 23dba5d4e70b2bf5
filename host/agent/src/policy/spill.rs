//! A result too long for the model is kept whole in a file, and the model gets
//! its beginning, its end and the path (spec/loop.md §7.3).
//!
//! The policy is the outermost reviewer: first in row order, so last on the way
//! out, over what all others made of the result.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::port::Spill;
use dsh_session::{Json, Value};

use crate::dispatch::{Entry, EventContext, Listener, ListenerError, Subscription};
use crate::message::text_block;

/// What stays inline where the profile says nothing else, in UTF-8 bytes.
pub const MAX_INLINE_BYTES: usize = 50_000;

/// Spills text results above a cap. `read` is exempt: its own output is bounded,
/// and spilling it would send the model round in circles.
pub struct SpillPolicy {
    max_inline_bytes: usize,
    store: Arc<dyn Spill>,
}

impl SpillPolicy {
    /// Spills what is longer than `max_inline_bytes` to this store.
    #[must_use]
    pub fn new(max_inline_bytes: usize, store: Arc<dyn Spill>) -> Self {
        Self {
            max_inline_bytes,
            store,
        }
    }
}

#[async_trait]
impl Listener for SpillPolicy {
    fn name(&self) -> &str {
        "spill-policy"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::all("tools/post-execute")]
    }

    async fn enter(
        &self,
        _event: &str,
        payload: &Json,
        _cx: &EventContext,
    ) -> Result<Entry, ListenerError> {
        if payload
            .get("name")
            .and_then(Value::string)
            .is_some_and(|name| name.is("read"))
        {
            return Ok(Entry::proceed());
        }
        // What the result is if nobody inside replaces it.
        let carried = Json::object(|carry| {
            if let Some(id) = payload.get("callId") {
                carry.value("callId", id);
            }
            if let Some(content) = payload.value().path(&["result", "content"]) {
                carry.value("content", content);
            }
        });
        Ok(Entry::carrying(carried.as_str()))
    }

    async fn leave(
        &self,
        _event: &str,
        carry: String,
        outcome: &Json,
        _cx: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        let accepted = outcome
            .get("kind")
            .and_then(Value::string)
            .is_some_and(|kind| kind.is("accept"));
        if !accepted || outcome.get("value").is_some() {
            return Ok(None);
        }
        let Ok(carry) = Json::normalise(&carry) else {
            return Ok(None);
        };
        let Some(text) = outcome
            .get("content")
            .or_else(|| carry.get("content"))
            .and_then(plain_text)
        else {
            return Ok(None);
        };
        if text.len() <= self.max_inline_bytes {
            return Ok(None);
        }
        let call = carry
            .get("callId")
            .and_then(Value::text)
            .unwrap_or_default();
        let name = format!("{}.txt", file_name(&call));
        // A store that fails leaves the result as it was: long, but whole.
        let Ok(locator) = self.store.store(&name, text.clone().into_bytes()).await else {
            return Ok(None);
        };
        let Some(short) = shortened(&text, self.max_inline_bytes, &locator) else {
            return Ok(None);
        };
        Ok(Some(Json::object(|object| {
            for (key, value) in outcome
                .value()
                .entries()
                .filter(|(key, _)| !key.is("content"))
            {
                object.value(&key.decode(), value);
            }
            object.array("content", |blocks| {
                blocks.json(&text_block(&short));
            });
        })))
    }
}

/// The text of a content that is nothing but text.
fn plain_text(content: Value<'_>) -> Option<String> {
    let mut text = String::new();
    for block in content.items() {
        if !block.get("type").and_then(Value::string)?.is("text") {
            return None;
        }
        text.push_str(&block.get("text").and_then(Value::text)?);
    }
    Some(text)
}

/// Beginning and end of a text with a notice of what is missing, at most `cap`
/// bytes; none if that is not possible. The notice is priced as if everything
/// were missing, so that its own length does not depend on where the cut falls.
pub(crate) fn shortened(text: &str, cap: usize, locator: &str) -> Option<String> {
    let notice = |omitted: usize, after: usize| {
        format!(
            "({omitted} bytes are left out after the first {after}. Full formatted result stored at: {locator}. \
             Use read with offset and limit, or grep, to see the rest.)"
        )
    };
    let worst = notice(text.len(), text.len()).len();
    let budget = cap.saturating_sub(worst + 2);
    let head = &text[..floor_boundary(text, budget.div_ceil(2))];
    let tail = &text[ceil_boundary(text, text.len() - budget / 2)..];
    let shown = head.len() + tail.len();
    let preview = if shown == 0 {
        String::new()
    } else {
        format!("{head}{tail}\n\n")
    };
    let short = format!("{preview}{}", notice(text.len() - shown, head.len()));
    (short.len() <= cap).then_some(short)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}

/// A call's id as a file name: it is the model's text and may hold anything.
fn file_name(call_id: &str) -> String {
    let clean = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    let name: String = call_id.chars().take(80).map(clean).collect();
    if name.is_empty() {
        "result".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
