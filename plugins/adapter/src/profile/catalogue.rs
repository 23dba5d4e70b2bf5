//! Routes that an adapter knows without being told. Data, in the shape of
//! profiles: `{ROUTE: {displayName?, baseURL, credential?, headers?, compat?, models:
//! [{id, name?, contextWindow, maxTokens, input, reasoningEfforts?, baseURL?,
//! compat?}]}}`; here `reasoningEfforts: true` says the usual levels, spelled as
//! they are called, and that it need not think.
//! Each route begins a line, `"ROUTE":{…`, and no other line begins so: one that is
//! configured is found by its line, and nothing but its own part is read as JSON.

use guest_support::json::Json;

/// The routes of one protocol.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue(pub &'static str);

impl Catalogue {
    /// What it knows of a route.
    pub fn route(&self, provider: &str) -> Option<Json<'static>> {
        // A name that JSON would escape is none of ours, and must not match across members.
        if provider.contains(|c: char| c == '"' || c == '\\' || c.is_control()) {
            return None;
        }
        let line = format!("\n\"{provider}\":");
        let at = self.0.find(&line)? + line.len();
        Json::starting(&self.0[at..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_found_by_its_line_and_nothing_else_is_read() {
        let catalogue = Catalogue("{\n\"a\":{\"x\":1,\n\"b\" :2},\n\"c\": {\"y\":[\n1]},\nbroken");
        let raw = |name| catalogue.route(name).map(Json::raw);
        assert_eq!(raw("a"), Some("{\"x\":1,\n\"b\" :2}"));
        assert_eq!(raw("c"), Some("{\"y\":[\n1]}"));
        for unknown in ["", "x", "b", "a\":{\"x", "A", "a\n"] {
            assert_eq!(raw(unknown), None, "{unknown:?}");
        }
    }
}
