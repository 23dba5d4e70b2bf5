//! What there is to list: the routes of every adapter row, and what speaks against each.

use dsh_check::did_you_mean;
use dsh_http::Origin;
use dsh_model::{CallConfig, ModelInfo, Route, RouteGrant, check_key};
use dsh_plugin::{Engine, EngineConfig};
use dsh_profile::{
    Composition, CredentialStore, Environment, Inputs, Packages, Profile, Row, Scope, Settings,
    Source,
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::arguments::{Model, usage};
use crate::boot::{Place, mount_row};
use crate::exit::Failure;
use crate::models::Offer;
use crate::run::text;

/// All that is said of a profile's models.
pub(super) struct Listing {
    pub(super) profile: String,
    pub(super) providers: Vec<Provider>,
    /// The default model, and why it cannot be called.
    pub(super) default: Option<(Model, Option<String>)>,
    /// Rows that serve models and were left out, with the reason.
    pub(super) rows: Vec<(String, String)>,
}

/// A provider.
pub(super) struct Provider {
    pub(super) id: String,
    pub(super) name: String,
    /// None where nobody serves it.
    pub(super) row: Option<String>,
    pub(super) api: Option<String>,
    pub(super) base_url: Option<String>,
    /// The credential's name, and the place in words that has a value for it.
    pub(super) credential: Option<(String, Option<String>)>,
    /// Why it cannot be called.
    pub(super) problem: Option<String>,
    pub(super) models: Vec<Listed>,
}

/// A model.
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) window: Option<u64>,
    pub(super) cap: Option<u32>,
    pub(super) inputs: Option<Vec<String>>,
    pub(super) efforts: Vec<String>,
    pub(super) default_effort: Option<String>,
    pub(super) default: bool,
}

/// Where credentials are looked for.
struct Keys<'a> {
    place: &'a Place,
    store: Result<CredentialStore, String>,
}

pub(super) fn listing(place: &Place, name: &str) -> Result<Listing, Failure> {
    let env = Environment::process(std::env::vars_os())
        .with_files(&place.cwd, place.home.path())
        .map_err(Failure::of)?;
    let settings = Settings::load(&place.home).map_err(Failure::of)?;
    let profile = match Profile::find(&place.home, name).map_err(Failure::of)? {
        Some(profile) => profile,
        None if name == "headless" => Profile::fresh(&place.home),
        // It says what would make it.
        None => Profile::open(&place.home, name).map_err(Failure::of)?,
    };
    let inputs = Inputs {
        env: &env,
        home: &place.home,
        settings: &settings,
        cwd: &place.cwd,
    };
    let rows = profile
        .compose(Scope::All(&[]))
        .and_then(|tree| tree.rows(&inputs))
        .map_err(Failure::of)?;
    let keys = Keys {
        place,
        store: CredentialStore::open(&place.home, env.clone()).map_err(|e| e.to_string()),
    };
    let mut listing = Listing {
        profile: name.to_owned(),
        providers: Vec::new(),
        default: default(&rows),
        rows: left_out(&rows),
    };
    let lock = profile.lock_path();
    let mut offers = Vec::new();
    for (row, mount) in mounted(place, &rows)? {
        let offer = mount
            .map_err(|fault| fault.text(row, &lock))
            .and_then(|mounted| Offer::of(row, &mounted));
        match offer {
            Ok(None) => {}
            Ok(Some(offer)) => {
                let routes = offer.routes().into_iter();
                let provider = |route| Provider::of(row, route, &offer.grants, &keys);
                listing.providers.extend(routes.map(provider));
                offers.push(offer);
            }
            Err(reason) => {
                let prefix = format!("row {}: ", row.id);
                let reason = reason.strip_prefix(&prefix).unwrap_or(&reason).to_owned();
                listing.providers.extend(Provider::lost(row, &reason));
                listing.rows.push((row.id.clone(), reason));
            }
        }
    }
    let known = |listing: &Listing, id: &str| listing.providers.iter().any(|one| one.id == id);
    for one in &rows.unserved {
        // Beside the row that has its name, which comes first.
        if one.taken_by.is_some() || !known(&listing, &one.provider) {
            listing.providers.push(Provider::unserved(one));
        }
    }
    listing.mark_default();
    if let Some((model, problem @ None)) = &mut listing.default {
        let effort = text(rows.host("agent-default-model"), "reasoningEffort");
        *problem = fault(&offers, model, effort)?;
    }
    Ok(listing)
}

/// Why the adapter of a model would not take a call of it.
fn fault(offers: &[Offer], model: &Model, effort: Option<&str>) -> Result<Option<String>, Failure> {
    let serves = |route: &Route| route.provider == model.provider;
    let Some(offer) = offers.iter().find(|one| one.routes().iter().any(serves)) else {
        return Ok(None);
    };
    Ok(runtime()?.block_on(offer.fault(CallConfig {
        provider: model.provider.clone(),
        model: model.model.clone(),
        reasoning_effort: effort.map(str::to_owned),
        ..CallConfig::default()
    })))
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of(format_args!("cannot start threads: {error}")))
}

fn default(rows: &Composition) -> Option<(Model, Option<String>)> {
    let row = rows.host("agent-default-model");
    let (provider, model) = text(row, "provider").zip(text(row, "model"))?;
    let model = Model {
        provider: provider.to_owned(),
        model: model.to_owned(),
    };
    Some((model, None))
}

/// Whether a row may serve routes: no other is mounted for a list.
fn serves(row: &Row) -> bool {
    row.grants.get("route").is_some()
}

fn left_out(rows: &Composition) -> Vec<(String, String)> {
    let known = |id: &str| id.starts_with("llm-");
    let problems = rows.problems.iter();
    problems
        .filter_map(|problem| Some((problem.row.clone()?, problem.message.clone())))
        .filter(|(row, _)| known(row))
        .map(|(row, message)| {
            let reason = message.strip_prefix(&format!("row {row}: "));
            let reason = reason.unwrap_or(&message).trim_end_matches("; left out");
            let reason = reason.to_owned();
            (row, reason)
        })
        .collect()
}

type Mounting<'a> = Vec<(&'a Row, Result<dsh_plugin::Mounted, crate::unusable::Fault>)>;

fn mounted<'a>(place: &Place, rows: &'a Composition) -> Result<Mounting<'a>, Failure> {
    let cache = place.home.path().join("cache");
    let engine = Engine::new(EngineConfig {
        // A list makes nothing that is not there.
        cache_dir: Some(cache).filter(|cache| cache.is_dir()),
        host_version: env!("CARGO_PKG_VERSION").to_owned(),
        home: Some(place.home.path().to_owned()),
    })
    .map_err(Failure::of)?;
    let packages = Packages::at(&place.home);
    let runtime = runtime()?;
    let rows: Vec<&Row> = rows.components().filter(|row| serves(row)).collect();
    let mounts = join_all(rows.iter().map(|row| mount_row(&engine, &packages, row)));
    Ok(rows.iter().copied().zip(runtime.block_on(mounts)).collect())
}

impl Provider {
    fn of(row: &Row, route: Route, grants: &[RouteGrant], keys: &Keys<'_>) -> Self {
        let grant = grants.iter().find(|one| one.provider == route.provider);
        // What is sent is what was granted, whatever the adapter wishes.
        let name = grant.and_then(|grant| grant.credential.clone());
        let wants = route.credential.is_some();
        let (credential, keyless) = match name {
            Some(name) => {
                let found = keys.find(&name, &route.provider);
                let (place, problem) =
                    found.map_or_else(|why| (None, Some(why)), |p| (Some(p), None));
                (Some((name, place)), problem)
            }
            None if wants && route.base_url.is_some() => (
                None,
                Some(String::from(
                    "its grant names no credential, and its adapter wants one",
                )),
            ),
            None => (None, None),
        };
        let base_url = route.base_url.filter(|url| Origin::parse(url).is_ok());
        let ungranted = base_url.as_ref().and_then(|url| ungranted(url, grant, row));
        let models = route.models.iter();
        let models = models.filter_map(|model| Listed::of(model.as_str(), &route.provider));
        Self {
            models: models.collect(),
            problem: route.problem.or(ungranted).or(keyless),
            id: route.provider,
            name: route.name,
            row: Some(row.id.clone()),
            api: route.api,
            base_url: base_url.map(without_query),
            credential,
        }
    }

    fn unserved(one: &dsh_profile::Unserved) -> Self {
        Self::broken(&one.provider, &one.name, None, one.problem.clone())
    }

    /// Those that a row would serve if it could be used.
    fn lost<'a>(row: &'a Row, reason: &'a str) -> impl Iterator<Item = Self> + 'a {
        let routes = match &row.grants["route"] {
            Value::Array(routes) => routes.as_slice(),
            one => std::slice::from_ref(one),
        };
        routes.iter().filter_map(move |route| {
            let id = route.get("provider")?.as_str()?;
            let problem = format!("row {}, which serves it, is left out: {reason}", row.id);
            Some(Self::broken(id, id, Some(&row.id), problem))
        })
    }

    fn broken(id: &str, name: &str, row: Option<&String>, problem: String) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            row: row.cloned(),
            api: None,
            base_url: None,
            credential: None,
            problem: Some(problem),
            models: Vec::new(),
        }
    }
}

/// An address as it is shown: people put keys into queries.
fn without_query(mut url: String) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    url.truncate(end);
    url
}

/// Why nothing is sent to an address.
fn ungranted(url: &str, grant: Option<&RouteGrant>, row: &Row) -> Option<String> {
    let origin = Origin::parse(url).ok()?;
    let granted = grant.is_some_and(|grant| grant.origins.iter().any(|one| one.origin == origin));
    (!granted).then(|| {
        let fix = match &row.plugin {
            Some(plugin) => format!("run `dsh plugin grant {} route=…`", plugin.name),
            None => format!("grant it by a patch of row {}", row.id),
        };
        format!("its row is not granted to send to {origin}; {fix}")
    })
}

impl Keys<'_> {
    /// Where the value of a credential stands, or why there is none that can be sent.
    fn find(&self, name: &str, provider: &str) -> Result<String, String> {
        let store = self.store.as_ref().map_err(Clone::clone)?;
        let home = self.place.home.path();
        let found = store.resolve(name).map_err(|error| error.to_string())?;
        let Some((value, source)) = found else {
            return Err(format!(
                "its credential {name} has no value in the environment, in {}, in {} or in {}; \
                 run `dsh credentials set {name}`, or name another one by apiKeyEnv of {provider}",
                home.join(".credentials.yaml").display(),
                self.place.cwd.join(".env").display(),
                home.join(".env").display(),
            ));
        };
        check_key(name, &dsh_model::Secret::new(value.expose().to_owned()))
            .map_err(|failure| failure.message)?;
        Ok(match source {
            Source::Process => String::from("the environment"),
            Source::File => home.join(".credentials.yaml").display().to_string(),
            Source::ProjectEnv => self.place.cwd.join(".env").display().to_string(),
            Source::UserEnv => home.join(".env").display().to_string(),
        })
    }
}

impl Listed {
    /// None where an adapter lists what is no model.
    fn of(text: &str, provider: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let id = value["id"].as_str().filter(|id| !id.is_empty())?.to_owned();
        // An adapter may say no more than a name; what it says else is as of a call.
        let info = ModelInfo::parse(text, provider, &id).ok();
        let description = value["description"].as_str().map(str::to_owned);
        let name = value["name"].as_str().unwrap_or(&id).to_owned();
        let reasoning = info.as_ref().and_then(|info| info.reasoning.clone());
        Some(Self {
            name,
            description,
            window: info.as_ref().and_then(|info| info.context_window),
            cap: info.as_ref().and_then(|info| info.default_max_tokens),
            inputs: info.and_then(|info| info.input_modalities),
            default_effort: reasoning
                .as_ref()
                .and_then(|one| one.default_effort.clone()),
            efforts: reasoning
                .map(|one| one.efforts.into_iter().map(|effort| effort.id).collect())
                .unwrap_or_default(),
            default: false,
            id,
        })
    }
}

impl Listing {
    fn mark_default(&mut self) {
        let Some((default, problem)) = &mut self.default else {
            return;
        };
        let known = self.providers.iter().map(|one| one.id.as_str());
        let hint = did_you_mean(&default.provider, known);
        let mut providers = self.providers.iter_mut();
        let Some(provider) = providers.find(|one| one.id == default.provider) else {
            *problem = Some(format!(
                "no row serves the provider {}{hint}; set another one in agent-default-model",
                default.provider
            ));
            return;
        };
        problem.clone_from(&provider.problem);
        let mut models = provider.models.iter_mut();
        if let Some(model) = models.find(|model| model.id == default.model) {
            model.default = true;
        }
    }

    /// Leaves one provider.
    pub(super) fn only(&mut self, id: &str) -> Result<(), Failure> {
        let known: Vec<&str> = self.providers.iter().map(|one| one.id.as_str()).collect();
        if !known.contains(&id) {
            return Err(usage(format_args!(
                "no provider is called {id:?}{}; there are: {}",
                did_you_mean(id, known.iter().copied()),
                known.join(", ")
            )));
        }
        self.providers.retain(|one| one.id == id);
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        let model = |model: &Listed| {
            json!({
                "id": model.id,
                "name": model.name,
                "description": model.description,
                "contextWindow": model.window,
                "defaultMaxTokens": model.cap,
                "inputModalities": model.inputs,
                "efforts": model.efforts,
                "defaultEffort": model.default_effort,
                "default": model.default,
            })
        };
        let provider = |one: &Provider| {
            json!({
                "provider": one.id,
                "name": one.name,
                "row": one.row,
                "api": one.api,
                "baseURL": one.base_url,
                "credential": one.credential.as_ref().map(|(name, place)| json!({"name": name, "from": place})),
                "callable": one.problem.is_none(),
                "problem": one.problem,
                "models": one.models.iter().map(model).collect::<Vec<_>>(),
            })
        };
        let default = self.default.as_ref().map(|(model, problem)| {
            json!({"provider": model.provider, "model": model.model, "problem": problem})
        });
        let row = |(row, reason): &(String, String)| json!({"row": row, "problem": reason});
        json!({
            "profile": self.profile,
            "default": default,
            "providers": self.providers.iter().map(provider).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
