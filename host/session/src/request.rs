//! Request header and request context. `spec/session.md` §4.

use std::sync::Arc;

use crate::{Error, Json, Value};

/// What a model request carries besides its messages, in canonical form.
#[derive(Clone, Debug)]
pub struct RequestHeader {
    text: Json,
}

impl RequestHeader {
    /// Canonicalises a header object `{config, adapterDefaults?, system?, tools?}`: key order fixed, empty members and
    /// unknown ones dropped.
    ///
    /// # Errors
    /// [`Error::RequestHeaderShape`] when it is not an object.
    pub fn canonical(header: Value<'_>) -> Result<RequestHeader, Error> {
        let _ = header;
        todo!()
    }

    /// The canonical text.
    pub fn json(&self) -> &Json {
        &self.text
    }

    /// `config`: `{provider, model, reasoningEffort?, temperature?, maxTokens?, stop?}`.
    pub fn config(&self) -> Option<Value<'_>> {
        todo!()
    }

    /// The system text.
    pub fn system(&self) -> Option<crate::JStr<'_>> {
        todo!()
    }

    /// The tool list.
    pub fn tools(&self) -> Option<Value<'_>> {
        todo!()
    }

    /// Equality as §4 defines it: config field by field, markers, system, tools by text.
    pub fn same(&self, other: &RequestHeader) -> bool {
        let _ = other;
        todo!()
    }
}

/// Where requests go and how much the model takes.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestContext {
    /// The provider's name.
    pub provider: Arc<str>,
    /// The model's name.
    pub model: Arc<str>,
    /// Tokens the model can take, when known.
    pub context_window: Option<f64>,
}
