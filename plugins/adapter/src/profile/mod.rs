//! Profiles: what a person wrote about a provider, laid over what the catalogue
//! knows of it (spec/llm.md §7.1). One that cannot work is told in words that
//! name the key, and costs only its own provider.
//!
//! Defaults of the wire (which role a system prompt has, what a cap is called)
//! are the protocols': they ask [`Compat`] what was written and decide the rest.

mod catalogue;
mod compat;
mod model;
mod read;
mod values;

use guest_support::json::{Object, array, quote};
use guest_support::{Error, error};

pub use catalogue::Catalogue;
pub use compat::{Compat, Switch, Takes};
pub use model::{Efforts, LEVELS, Model, Off};
pub use read::Protocol as Speaks;

/// Milliseconds without a byte after which an attempt is given up.
const IDLE_TIMEOUT_MS: u64 = 300_000;

/// A provider, as it can be called.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The route.
    pub provider: String,
    /// What people call it.
    pub name: String,
    /// Without a slash at its end only where it was written so.
    pub base_url: String,
    /// Whether a person wrote the base URL; otherwise it is the catalogue's.
    pub own_base_url: bool,
    /// The credential's name; none where a provider needs none.
    pub credential: Option<String>,
    /// Sent with each request, but for `user-agent`.
    pub headers: Vec<(String, String)>,
    /// The level where a call names none.
    pub reasoning: Option<String>,
    /// Tokens to think with.
    pub budgets: Budgets,
    /// How long the provider is to keep a prompt's prefix.
    pub cache: Cache,
    /// For a whole exchange.
    pub timeout_ms: Option<u32>,
    /// Without a byte.
    pub idle_timeout_ms: u64,
    /// As it was written, a JSON text.
    pub retry_policy: Option<String>,
    /// What pictures may cost.
    pub pictures: PictureBounds,
    /// At least one, ids unique.
    pub models: Vec<Model>,
}

/// `thinkingBudgets`: where one is absent, the protocol knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Budgets {
    pub minimal: Option<u32>,
    pub low: Option<u32>,
    pub medium: Option<u32>,
    pub high: Option<u32>,
}

/// `cacheRetention`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// Not at all.
    None,
    /// As the provider does by itself.
    #[default]
    Short,
    /// As long as it can.
    Long,
}

/// What the pictures of a request may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureBounds {
    /// Bytes of base64, of all together.
    pub request_bytes: u32,
    /// Of one.
    pub pixels: u32,
    /// Of one, before base64.
    pub bytes: u32,
}

impl Default for PictureBounds {
    fn default() -> Self {
        Self {
            request_bytes: 20 * 1024 * 1024,
            pixels: 4_194_304,
            bytes: 1024 * 1024,
        }
    }
}

impl Profile {
    /// The model of this id.
    pub fn model(&self, id: &str) -> Result<&Model, Error> {
        self.models
            .iter()
            .find(|model| model.id == id)
            .ok_or_else(|| {
                // The host adds which names are near.
                let message = format!("{} has no model {id}", self.provider);
                error("UNKNOWN_MODEL", message)
            })
    }

    /// The level of a call, checked: what it asks for, else the profile's. None:
    /// nothing is said about thinking.
    pub fn effort<'a>(
        &'a self,
        model: &Model,
        asked: Option<&'a str>,
    ) -> Result<Option<&'a str>, Error> {
        let Some(level) = asked.or(self.reasoning.as_deref()) else {
            return Ok(None);
        };
        if model
            .efforts
            .as_ref()
            .is_some_and(|efforts| efforts.has(level))
        {
            return Ok(Some(level));
        }
        let (provider, id) = (&self.provider, &model.id);
        let mut message = match &model.efforts {
            Some(efforts) => {
                let known: Vec<_> = efforts.levels().collect();
                format!(
                    "{id} of {provider} has the reasoning efforts {}, not {level}",
                    known.join(", ")
                )
            }
            None => format!(
                "{id} of {provider} takes no reasoning effort, so {level} cannot be asked of it"
            ),
        };
        if asked.is_none() {
            message.push_str(": change providers.");
            message.push_str(provider);
            message.push_str(".reasoning");
        }
        Err(error("UNSUPPORTED_REASONING_EFFORT", message))
    }

    /// The route, as the contract's `list-routes` wants it.
    pub fn route(&self, api: &str) -> String {
        let models = self.models.iter().map(|model| model.info(self));
        let credential = self.credential.as_deref().map(quote);
        let mut route = Object::new()
            .string("provider", &self.provider)
            .string("name", &self.name)
            .string("api", api)
            .string("baseURL", &self.base_url)
            .maybe("credential", credential.as_deref())
            .number("idleTimeoutMs", self.idle_timeout_ms)
            .maybe("retryPolicy", self.retry_policy.as_deref());
        if self.own_base_url {
            route = route.raw("ownBaseURL", "true");
        }
        route.raw("models", &array(models)).build()
    }
}
