//! Routes that an adapter knows without being told. Data, in the shape of
//! profiles: `{ROUTE: {displayName?, baseURL, credential?, headers?, compat?, models:
//! [{id, name?, contextWindow, maxTokens, input, reasoningEfforts?, baseURL?,
//! compat?}]}}`; here `reasoningEfforts: true` says the usual levels, spelled as
//! they are called, and that it need not think.
//! Each route begins a line, `"ROUTE":{…`, and no other line begins so: one that is
//! configured is found by its line, and nothing but its own part is read as JSON.
//! Lines are looked for once, at the first route.

use std::cell::OnceCell;
use std::collections::HashMap;

use guest_support::json::Json;

/// The routes of one protocol.
#[derive(Debug)]
pub struct Catalogue {
    text: &'static str,
    /// Where each route's value begins; found once, as a row may have thousands of
    /// providers.
    places: OnceCell<HashMap<&'static str, usize>>,
}

impl Catalogue {
    /// Of this text, which is not read yet.
    pub const fn new(text: &'static str) -> Self {
        Self {
            text,
            places: OnceCell::new(),
        }
    }

    /// What it knows of a route.
    pub fn route(&self, provider: &str) -> Option<Json<'static>> {
        let places = self.places.get_or_init(|| places(self.text));
        Json::starting(&self.text[*places.get(provider)?..])
    }
}

fn places(text: &'static str) -> HashMap<&'static str, usize> {
    let lines = text.match_indices('\n').map(|(at, _)| at + 1);
    lines
        .filter_map(|at| {
            let (name, _) = text[at..].strip_prefix('"')?.split_once("\":")?;
            Some((name, at + name.len() + 3))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_found_by_its_line_and_nothing_else_is_read() {
        let catalogue =
            Catalogue::new("{\n\"a\":{\"x\":1,\n\"b\" :2},\n\"c\": {\"y\":[\n1]},\nbroken");
        assert!(catalogue.places.get().is_none(), "nothing was asked for");
        let raw = |name| catalogue.route(name).map(Json::raw);
        assert_eq!(raw("a"), Some("{\"x\":1,\n\"b\" :2}"));
        assert_eq!(raw("c"), Some("{\"y\":[\n1]}"));
        for unknown in ["", "x", "b", "a\":{\"x", "A", "a\n"] {
            assert_eq!(raw(unknown), None, "{unknown:?}");
        }
    }
}
