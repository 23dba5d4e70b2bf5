//! Which models a run may call: the adapters among its rows, the routes that they
//! serve as configured, and where each may send.
//!
//! A route that cannot be used stays known with the reason in words, so that who
//! asks for it is told why and no other route is lost. Such reasons come from three
//! places: the profile ([`Unserved`]), the address that was written (here), and the
//! adapter itself.

use async_trait::async_trait;
use dsh_http::{Allowed, Origin, Reach};
use dsh_model::{
    Adapter, Attempt, CallConfig, CallContext, ComponentAdapter, GenerateRequest, LlmFailure,
    ModelError, ModelInfo, Models, Prepared, Route, RouteGrant,
};
use dsh_plugin::Mounted;
use dsh_profile::{Endpoint, Row, Unserved};
use serde_json::{Value, json};

/// What a mounted row brings to [`Models`].
pub(crate) struct Offer {
    pub(crate) adapter: Barred,
    pub(crate) grants: Vec<RouteGrant>,
}

impl Offer {
    /// Of a row; none where its component is no adapter.
    ///
    /// # Errors
    /// Why nothing of the row can be used.
    pub(crate) fn of(row: &Row, mounted: &Mounted) -> Result<Option<Self>, String> {
        let Some(adapter) = ComponentAdapter::new(mounted) else {
            return Ok(None);
        };
        let granted = mounted.grants().routes();
        let Granted { grants, refused } = route_grants(&row.endpoints, granted)?;
        let adapter = Barred { adapter, refused };
        Ok(Some(Self { adapter, grants }))
    }

    /// Its routes, with what is wrong with each.
    pub(crate) fn routes(&self) -> Vec<Route> {
        let routes = self.adapter.list_routes();
        routes
            .iter()
            .filter_map(|text| Route::parse(text).ok())
            .collect()
    }

    /// Why a call of this model would not be prepared; nothing is sent.
    pub(crate) async fn fault(&self, config: CallConfig) -> Option<String> {
        let (provider, model) = (config.provider.clone(), config.model.clone());
        match self.adapter.prepare(&CallContext::default(), config).await {
            Err(failure) => Some(failure.message),
            Ok(prepared) => ModelInfo::parse(&prepared.model, &provider, &model)
                .and_then(|info| info.resolve(prepared.config))
                .err()
                .map(|error| error.to_string()),
        }
    }
}

/// An adapter some of whose routes cannot be used as they are configured.
pub(crate) struct Barred {
    adapter: ComponentAdapter,
    /// Providers, and what is wrong with each.
    refused: Vec<(String, String)>,
}

#[async_trait]
impl Adapter for Barred {
    fn list_routes(&self) -> Vec<String> {
        let routes = self.adapter.list_routes().into_iter();
        let refused = |text: &String| {
            let route = match Route::parse(text) {
                Ok(route) => route,
                Err(error) => return unreadable(text, error),
            };
            let (_, problem) = self.refused.iter().find(|(id, _)| *id == route.provider)?;
            // What is wrong with it in itself comes first.
            let problem = route.problem.as_ref().unwrap_or(problem);
            Some(refused_route(&route.provider, &route.name, problem))
        };
        routes.map(|text| refused(&text).unwrap_or(text)).collect()
    }

    async fn prepare(&self, ctx: &CallContext, config: CallConfig) -> Result<Prepared, LlmFailure> {
        self.adapter.prepare(ctx, config).await
    }

    async fn open(
        &self,
        ctx: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        self.adapter.open(ctx, request).await
    }
}

/// Providers that no row serves, so that they are known and say why.
#[derive(Default)]
pub(crate) struct Nobody(Vec<Unserved>);

impl Nobody {
    /// Of those that no other adapter has meanwhile.
    pub(crate) fn serves(unserved: &[Unserved], models: &Models) -> Self {
        let known = models.providers();
        let free = |one: &&Unserved| known.iter().all(|other| other.id != one.provider);
        Self(unserved.iter().filter(free).cloned().collect())
    }
}

#[async_trait]
impl Adapter for Nobody {
    fn list_routes(&self) -> Vec<String> {
        let route = |one: &Unserved| refused_route(&one.provider, &one.name, &one.problem);
        self.0.iter().map(route).collect()
    }

    async fn prepare(&self, _: &CallContext, config: CallConfig) -> Result<Prepared, LlmFailure> {
        Err(unserved(&config.provider))
    }

    async fn open(
        &self,
        _: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        Err(unserved(&request.config.provider))
    }
}

fn unserved(provider: &str) -> LlmFailure {
    LlmFailure::new("INVALID_CONFIG", format!("no row serves {provider}"))
}

/// A route whose facts cannot be used, as one that says why: the others of its adapter
/// are not lost for it. One without a name stays as it is, and is the adapter's fault.
fn unreadable(text: &str, error: ModelError) -> Option<String> {
    let route: Value = serde_json::from_str(text).ok()?;
    let provider = route["provider"]
        .as_str()
        .filter(|name| !name.trim().is_empty())?;
    let problem = match error {
        ModelError::InvalidAdapter(what) => what,
        other => other.to_string(),
    };
    let own = format!("{provider}: ");
    let problem = problem.strip_prefix(&own).unwrap_or(&problem);
    let problem = format!("{problem}; mend it in the provider's profile");
    Some(refused_route(provider, provider, &problem))
}

fn refused_route(provider: &str, name: &str, problem: &str) -> String {
    json!({"provider": provider, "name": name, "problem": problem}).to_string()
}

/// What is wrong with routes, a line each.
pub(crate) fn problems(models: &Models) -> Vec<(String, String)> {
    let routes = models.routes().into_iter();
    routes
        .filter_map(|route| Some((route.provider, route.problem?)))
        .collect()
}

/// The headers that people wrote, of each provider of a row's config: provider, name
/// and value. An empty one takes a header away, and is not sent.
fn headers(config: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    let providers = config["providers"].as_object().into_iter().flatten();
    providers.flat_map(|(provider, profile)| {
        let headers = profile["headers"].as_object().into_iter().flatten();
        headers.filter_map(move |(name, value)| {
            let value = value.as_str().filter(|value| !value.is_empty())?;
            Some((provider.as_str(), name.as_str(), value))
        })
    })
}

/// Headers that hold a key themselves: provider and header. Only what is named by
/// reference is kept out of messages.
pub(crate) fn keys_in_headers(config: &Value) -> Vec<(String, String)> {
    const OF_KEYS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
    let own = headers(config).filter(|(_, name, value)| {
        let of_keys = OF_KEYS.iter().any(|key| name.eq_ignore_ascii_case(key));
        of_keys && !value.contains("{credential}")
    });
    own.map(|(provider, name, _)| (provider.to_owned(), name.to_owned()))
        .collect()
}

/// Where a row's routes may go.
#[derive(Debug)]
struct Granted {
    grants: Vec<RouteGrant>,
    /// Providers whose own address is none.
    refused: Vec<(String, String)>,
}

/// The routes that a row was granted, by plugins.md `route`. What a person wrote may
/// be a server of their own; all else is on the public net.
fn route_grants(
    endpoints: &[Endpoint],
    granted: &[dsh_plugin::RouteGrant],
) -> Result<Granted, String> {
    let mut written: Vec<(Option<&str>, Origin)> = Vec::new();
    let mut refused = Vec::new();
    for endpoint in endpoints.iter().filter(|one| !one.url.trim().is_empty()) {
        match (Origin::parse(&endpoint.url), &endpoint.provider) {
            (Ok(origin), provider) => written.push((provider.as_deref(), origin)),
            // The URL itself is not repeated: a password may stand in it.
            (Err(error), Some(provider)) => refused.push((
                provider.clone(),
                format!(
                    "its baseURL: {error}; set it to an address like https://api.example.com/v1"
                ),
            )),
            (Err(error), None) => {
                return Err(format!(
                    "baseURL: {error}; set it, or the variable that it comes from \
                     (DEEPSEEK_BASE_URL), to an address like https://api.deepseek.com"
                ));
            }
        }
    }
    let grant = |route: &dsh_plugin::RouteGrant| {
        let allowed = |url: &String| {
            // An origin that is none permits nothing.
            let origin = Origin::parse(url).ok()?;
            let own = written.iter().any(|(provider, written)| {
                provider.is_none_or(|provider| provider == route.provider) && *written == origin
            });
            let reach = if own { Reach::Named } else { Reach::Public };
            Some(Allowed { origin, reach })
        };
        RouteGrant {
            provider: route.provider.clone(),
            origins: route.origins.iter().filter_map(allowed).collect(),
            credential: route.credential.clone(),
        }
    };
    Ok(Granted {
        grants: granted.iter().map(grant).collect(),
        refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_in_a_header_itself_is_seen_and_not_shown() {
        for (name, value, key) in [
            ("x-team", "a", false),
            ("Authorization", "Bearer sk-in-it", true),
            ("authorization", "Bearer {credential}", false),
            ("x-api-key", "", false),
            ("X-Api-Key", "sk-in-it", true),
        ] {
            let config = json!({"providers": {"p": {"headers": {name: value}}, "q": {}}});
            let keys = keys_in_headers(&config);
            assert_eq!(keys.len(), usize::from(key), "{name}: {keys:?}");
            assert!(!format!("{keys:?}").contains("sk-in-it"));
        }
    }

    fn granted(provider: &str, origins: &[&str]) -> dsh_plugin::RouteGrant {
        dsh_plugin::RouteGrant {
            provider: provider.to_owned(),
            origins: origins.iter().map(ToString::to_string).collect(),
            credential: None,
        }
    }

    fn endpoint(provider: Option<&str>, url: &str) -> Endpoint {
        Endpoint {
            provider: provider.map(str::to_owned),
            url: url.to_owned(),
        }
    }

    /// Whether a provider reaches servers of this machine, by what was written.
    #[test]
    fn only_a_written_address_reaches_what_is_not_public_and_only_for_its_provider() {
        const LOCAL: &str = "http://127.0.0.1:9";
        let cases = [
            (vec![], Reach::Public),
            (vec![endpoint(None, LOCAL)], Reach::Named),
            (
                vec![endpoint(Some("a"), "http://127.0.0.1:9/v1")],
                Reach::Named,
            ),
            (vec![endpoint(Some("b"), LOCAL)], Reach::Public),
            (
                vec![endpoint(Some("a"), "http://127.0.0.1:8")],
                Reach::Public,
            ),
            (
                vec![endpoint(Some("a"), "https://127.0.0.1:9")],
                Reach::Public,
            ),
        ];
        for (endpoints, reach) in cases {
            let found = route_grants(&endpoints, &[granted("a", &[LOCAL])]).unwrap();
            assert_eq!(found.grants[0].origins[0].reach, reach, "{endpoints:?}");
        }
    }

    #[test]
    fn an_address_that_is_none_costs_its_provider_or_the_row_that_it_is_for() {
        let bad = "https://me:pass-word@x:99999";
        let two = [granted("a", &[bad]), granted("b", &["https://b"])];
        let found = route_grants(&[endpoint(Some("a"), bad)], &two).unwrap();
        assert_eq!(found.refused[0].0, "a");
        assert!(!found.refused[0].1.contains("pass-word"));
        assert!(found.grants[0].origins.is_empty());
        assert_eq!(found.grants[1].origins.len(), 1);
        let error = route_grants(&[endpoint(None, bad)], &two).unwrap_err();
        assert!(!error.contains("pass-word"), "{error}");
    }
}
