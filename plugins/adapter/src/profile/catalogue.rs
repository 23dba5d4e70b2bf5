//! Routes that an adapter knows without being told. Data, in the shape of
//! profiles: `{ROUTE: {displayName?, baseURL, credential?, headers?, compat?, models:
//! [{id, name?, contextWindow, maxTokens, input, reasoningEfforts?, baseURL?,
//! compat?}]}}`; here `reasoningEfforts: true` says the usual levels, spelled as
//! they are called, and that it need not think.
//! It is read where a route is configured, and only that route's part.

use guest_support::json::Json;

/// The routes of one protocol.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue(pub &'static str);

impl Catalogue {
    /// What it knows of a route.
    pub fn route(&self, provider: &str) -> Option<Json<'static>> {
        Json::parse(self.0)?.some(provider)
    }
}
