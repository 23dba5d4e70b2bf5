//! Messages that the host makes. Ids, roles and sources are stamped here and
//! nowhere else; the key order is that of the log (spec/session.md §1.2).

use dsh_session::{Json, Value};

use crate::error::AgentError;

/// A whole message: id fixed, text in the log's normal form.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    id: String,
    json: Json,
}

impl Message {
    /// A message from a person: one text block.
    #[must_use]
    pub fn from_person(text: &str) -> Self {
        Self::from_person_with(text, &[])
    }

    /// The same with pictures behind the text, an `attachment` each.
    #[must_use]
    pub fn from_person_with(text: &str, attachments: &[Json]) -> Self {
        let image = |attachment: &Json| {
            Json::object(|block| {
                block.str("type", "image").json("attachment", attachment);
            })
        };
        let mut content = vec![text_block(text)];
        content.extend(attachments.iter().map(image));
        Self::mint(
            &content,
            &Json::object(|source| {
                source.str("kind", "user");
            }),
        )
    }

    /// A `user` message with a fresh id.
    #[must_use]
    pub fn mint(content: &[Json], source: &Json) -> Self {
        let id = fresh_id();
        let json = Json::object(|message| {
            message.array("content", |blocks| {
                for block in content {
                    blocks.json(block);
                }
            });
            message
                .json("source", source)
                .str("role", "user")
                .str("id", &id);
        });
        Self { id, json }
    }

    /// Takes a message that is complete already.
    ///
    /// # Errors
    /// [`AgentError::Message`] when it lacks an id, a role, content or a source.
    pub fn complete(json: Json) -> Result<Self, AgentError> {
        let lacks = |what: &str| AgentError::Message {
            what: format!("lacks {what}"),
        };
        let id = json
            .get("id")
            .and_then(Value::text)
            .filter(|id| !id.is_empty())
            .ok_or_else(|| lacks("an id"))?;
        let id = id.into_owned();
        if json.get("role").and_then(Value::text).as_deref() != Some("user") {
            return Err(AgentError::Message {
                what: "needs the role `user`".into(),
            });
        }
        if !json.get("content").is_some_and(Value::is_array) {
            return Err(lacks("a list of content blocks"));
        }
        let kind = json.value().path(&["source", "kind"]).and_then(Value::text);
        if kind.is_none_or(|kind| kind.is_empty()) {
            return Err(lacks("a source with a kind"));
        }
        Ok(Self { id, json })
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.json
    }
}

/// `{type: "text", text}`.
#[must_use]
pub fn text_block(text: &str) -> Json {
    Json::object(|block| {
        block.str("type", "text").str("text", text);
    })
}

/// An id as the log has them.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The one message of a `tool/result`.
pub(crate) fn tool_result(call_id: &Json, content: &[Json], is_error: bool) -> Json {
    Json::object(|message| {
        message.object("source", |source| {
            source.str("kind", "tool").json("callId", call_id);
        });
        message.array("content", |blocks| {
            blocks.object(|block| {
                block.str("type", "tool-result").json("toolCallId", call_id);
                block.array("content", |inner| {
                    for item in content {
                        inner.json(item);
                    }
                });
                block.bool("isError", is_error);
            });
        });
        message.str("role", "user").str("id", &fresh_id());
    })
}

/// An assistant's message of these blocks.
pub(crate) fn assistant(
    content: &[Json],
    provider: &str,
    model: &str,
    replay_state: Option<&Json>,
) -> Json {
    Json::object(|message| {
        message.str("role", "assistant");
        message.array("content", |blocks| {
            for block in content {
                blocks.json(block);
            }
        });
        message.object("source", |source| {
            source
                .str("kind", "model")
                .str("provider", provider)
                .str("model", model);
            source.opt_json("replayState", replay_state);
        });
        message.str("id", &fresh_id());
    })
}
