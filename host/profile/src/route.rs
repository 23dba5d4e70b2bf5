//! A route's grant follows what a person wrote (design/plugins.md, `route`).
//!
//! Where an adapter may send, and with whose credential, is a grant. An endpoint
//! that stands in a row's config, a patch, or the settings was written by a
//! person, so its origin counts as granted, and so does the credential's name.
//! The component itself cannot add one: its own default is a want.

use crate::Endpoint;
use serde_json::{Map, Value, json};

/// Adds `config.baseURL`'s origin to the `origins` of `grants.route` and puts
/// `config.apiKeyEnv` into its `credential`. A grant of several routes is a list;
/// what is written then counts for each, as a row has one endpoint. Origins are
/// cut to `scheme://host[:port]`.
pub(crate) fn grant_what_was_written(grants: &mut Value, config: &Value) {
    match grants.get_mut("route") {
        Some(Value::Object(route)) => widen(route, config),
        Some(Value::Array(routes)) => {
            for route in routes.iter_mut().filter_map(Value::as_object_mut) {
                widen(route, config);
            }
        }
        _ => {}
    }
}

/// The grant of one provider: what is listed for it, with what a person wrote in its
/// place, and the address where one is written. A key is for the server that it was
/// listed with, so a written address leaves no listed origin; and one for which no
/// credential is named has none.
pub(crate) fn of_provider(
    listed: Option<Value>,
    provider: &str,
    profile: &Map<String, Value>,
) -> (Value, Option<Endpoint>) {
    let mut grant = listed.unwrap_or_else(|| json!({"provider": provider, "origins": []}));
    let written = text(profile, "baseURL");
    if let Some(url) = written {
        grant["origins"] = json!([origin(url)]);
    }
    if let Some(name) = text(profile, "apiKeyEnv") {
        grant["credential"] = json!(name);
    }
    let endpoint = written.map(|url| Endpoint {
        provider: Some(provider.to_owned()),
        url: url.to_owned(),
    });
    (grant, endpoint)
}

/// The address that a row has for all that it serves.
pub(crate) fn written(config: &Value) -> Vec<Endpoint> {
    let url = config
        .as_object()
        .and_then(|config| text(config, "baseURL"));
    url.map(|url| Endpoint {
        provider: None,
        url: url.to_owned(),
    })
    .into_iter()
    .collect()
}

fn text<'a>(config: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    let text = config.get(key)?.as_str();
    text.filter(|text| !text.trim().is_empty())
}

fn widen(route: &mut Map<String, Value>, config: &Value) {
    let text = |key: &str| text(config.as_object()?, key);
    let mut origins: Vec<String> = match route.get("origins") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(origin).collect(),
        _ => Vec::new(),
    };
    origins.extend(text("baseURL").map(origin));
    let mut kept = Vec::new();
    for origin in origins {
        if !kept.contains(&origin) {
            kept.push(origin);
        }
    }
    route.insert("origins".into(), json!(kept));
    if let Some(name) = text("apiKeyEnv") {
        route.insert("credential".into(), json!(name));
    }
}

/// A URL without its path; whatever is no URL stays as it is, for the grant's own
/// parser to refuse.
pub(crate) fn origin(url: &str) -> String {
    let url = url.trim();
    let Some(scheme) = url.find("://") else {
        return url.to_owned();
    };
    let host = scheme + "://".len();
    let end = url[host..]
        .find(['/', '?', '#', '\\'])
        .map_or(url.len(), |at| host + at);
    url[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_a_written_endpoint_is_granted() {
        let cases = [
            ("https://api.deepseek.com", "https://api.deepseek.com"),
            ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080"),
            ("https://x.example?q#f", "https://x.example"),
            (" https://x.example\\@evil ", "https://x.example"),
            ("nonsense", "nonsense"),
        ];
        for (url, wanted) in cases {
            let mut grants = json!({"route": {"provider": "p", "origins": []}});
            grant_what_was_written(&mut grants, &json!({"baseURL": url}));
            assert_eq!(grants["route"]["origins"], json!([wanted]));
        }
    }

    #[test]
    fn origins_are_kept_once_and_the_credential_follows_the_config() {
        let mut grants =
            json!({"route": {"origins": ["https://a/v1", "https://a"], "credential": "A"}});
        grant_what_was_written(
            &mut grants,
            &json!({"baseURL": "https://b", "apiKeyEnv": "B"}),
        );
        assert_eq!(
            grants,
            json!({"route": {"origins": ["https://a", "https://b"], "credential": "B"}})
        );
    }

    #[test]
    fn a_row_without_a_route_is_granted_none() {
        let mut grants = json!({"http": ["https://a"]});
        grant_what_was_written(&mut grants, &json!({"baseURL": "https://b"}));
        assert_eq!(grants, json!({"http": ["https://a"]}));
    }
}
