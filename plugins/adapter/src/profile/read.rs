//! Reading a profile: every key is looked at, and what is wrong with one is said
//! by its name. Nothing is guessed: a key that nobody knows is refused, as the
//! person who wrote it expects something of it.

use std::borrow::Cow;

use guest_support::json::{Json, text};

use super::model::LEVELS;
use super::values::{known_keys, one_of, string, timeout, tokens, whole};
use super::{
    Budgets, Cache, Catalogue, Compat, Efforts, IDLE_TIMEOUT_MS, Model, PictureBounds, Profile,
    Switch,
};

const CONTEXT_WINDOW: u64 = 262_144;
const MAX_TOKENS: u32 = 32_768;
const KEYS: &[&str] = &[
    "apiKeyEnv",
    "displayName",
    "api",
    "baseURL",
    "models",
    "modelOverrides",
    "compat",
    "defaultContextWindow",
    "defaultMaxTokens",
    "defaultInput",
    "headers",
    "reasoning",
    "thinkingBudgets",
    "cacheRetention",
    "transport",
    "timeoutMs",
    "websocketConnectTimeoutMs",
    "streamIdleTimeoutMs",
    "maxRequestImageBytes",
    "requestImagePixelBudget",
    "requestImageMaxBytes",
    "retryPolicy",
];

const MODEL_KEYS: &[&str] = &[
    "id",
    "name",
    "contextWindow",
    "maxTokens",
    "input",
    "reasoningEfforts",
    "compat",
];

const TRANSPORTS: &[&str] = &["sse", "websocket", "websocket-cached", "auto"];

/// What a protocol brings to its profiles.
#[derive(Debug)]
pub struct Protocol {
    /// Its name.
    pub api: &'static str,
    /// Its switches.
    pub switches: &'static [Switch],
    /// Its routes.
    pub catalogue: Catalogue,
}

impl Profile {
    /// Reads the profile of a provider; the error names the key, and says what to
    /// write.
    pub fn read(provider: &str, json: Json<'_>, protocol: &Protocol) -> Result<Self, String> {
        if !json.is_object() {
            return Err("the profile must be an object".to_owned());
        }
        known_keys(json, KEYS, "")?;
        let known = protocol.catalogue.route(provider);
        match one_of(
            json,
            "api",
            &[
                "openai-completions",
                "openai-responses",
                "anthropic-messages",
            ],
        )? {
            Some(api) if api != protocol.api => {
                return Err(format!("api is {api}, which this row does not speak"));
            }
            Some(_) => {}
            None if known.is_some() => {}
            None => {
                return Err(
                    "api is missing: openai-completions, openai-responses or anthropic-messages"
                        .to_owned(),
                );
            }
        }
        let own_base_url = string(json, "baseURL")?;
        let base_url = own_base_url
            .clone()
            .or_else(|| known.and_then(|known| text(known, "baseURL")))
            .ok_or("baseURL is missing: where the server is, such as http://127.0.0.1:8000/v1")?;
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            return Err(format!(
                "baseURL must start with http:// or https://, not {base_url}"
            ));
        }
        one_of(json, "transport", TRANSPORTS)?;
        timeout(json, "websocketConnectTimeoutMs")?;
        let mut profile = Self {
            provider: provider.to_owned(),
            name: string(json, "displayName")?
                .or_else(|| known.and_then(|known| text(known, "displayName")))
                .unwrap_or_else(|| provider.to_owned()),
            own_base_url: own_base_url.is_some(),
            base_url,
            credential: string(json, "apiKeyEnv")?
                .or_else(|| known.and_then(|known| text(known, "credential"))),
            headers: headers(json, known)?,
            reasoning: one_of(json, "reasoning", &LEVELS)?,
            budgets: budgets(json)?,
            cache: match one_of(json, "cacheRetention", &["none", "short", "long"])?.as_deref() {
                Some("none") => Cache::None,
                Some("long") => Cache::Long,
                _ => Cache::Short,
            },
            timeout_ms: timeout(json, "timeoutMs")?.map(|ms| ms as u32),
            idle_timeout_ms: timeout(json, "streamIdleTimeoutMs")?.unwrap_or(IDLE_TIMEOUT_MS),
            retry_policy: json
                .get("retryPolicy")
                .map(|policy| match policy.is_object() {
                    true => Ok(policy.raw().to_owned()),
                    false => Err("retryPolicy must be an object".to_owned()),
                })
                .transpose()?,
            pictures: pictures(json)?,
            models: Vec::new(),
        };
        profile.models = models(json, known, protocol)?;
        Ok(profile)
    }
}

/// The models: those that the profile lists, else the catalogue's, with the
/// profile's overrides over them.
fn models(
    json: Json<'_>,
    known: Option<Json<'static>>,
    protocol: &Protocol,
) -> Result<Vec<Model>, String> {
    let shipped = |id: &str| {
        let models = known?.some("models")?;
        models
            .items()
            .find(|model| text(*model, "id").as_deref() == Some(id))
    };
    let overrides = json.get("modelOverrides");
    if overrides.is_some_and(|overrides| !overrides.is_object()) {
        return Err("modelOverrides must be an object, {MODEL: {...}}".to_owned());
    }
    let over = |id: &str| {
        overrides
            .and_then(|overrides| overrides.get(id))
            .map(|over| (over, format!("modelOverrides.{id}")))
    };
    let mut models: Vec<Model> = Vec::new();
    let mut add = |id: String, layers: Vec<(Json<'_>, String)>| {
        if models.iter().any(|model| model.id == id) {
            return Err(format!("models lists {id} twice"));
        }
        models.push(model(id, json, known, &layers, protocol)?);
        Ok(())
    };
    match json.get("models") {
        Some(list) => {
            if !list.is_array() || list.items().next().is_none() {
                return Err("models must be a list with at least one model, {id: ...}".to_owned());
            }
            for (at, entry) in list.items().enumerate() {
                let key = format!("models[{at}]");
                known_keys(entry, MODEL_KEYS, &key)?;
                let id = text(entry, "id")
                    .filter(|id| !id.is_empty())
                    .ok_or_else(|| format!("{key}.id is missing"))?;
                let layers = shipped(&id)
                    .map(|shipped| (shipped, String::new()))
                    .into_iter()
                    .chain([(entry, key)])
                    .chain(over(&id));
                let layers = layers.collect();
                add(id, layers)?;
            }
        }
        None => {
            let shipped = known
                .and_then(|known| known.some("models"))
                .ok_or("models is missing: which models it has, [{id: ...}]")?;
            for entry in shipped.items() {
                let id = text(entry, "id").unwrap_or_default();
                let layers = [(entry, String::new())].into_iter().chain(over(&id));
                let layers = layers.collect();
                add(id, layers)?;
            }
        }
    }
    for (id, over) in overrides.into_iter().flat_map(Json::members) {
        let id = guest_support::json::unescape(id);
        known_keys(over, &MODEL_KEYS[1..], &format!("modelOverrides.{id}"))?;
        if !models.iter().any(|model| model.id == id) {
            return Err(format!(
                "modelOverrides.{id} is of no model that the provider has"
            ));
        }
    }
    Ok(models)
}

/// A model, from what says something of it: the catalogue first, which has no
/// key, then what was written.
fn model(
    id: String,
    profile: Json<'_>,
    known: Option<Json<'_>>,
    layers: &[(Json<'_>, String)],
    protocol: &Protocol,
) -> Result<Model, String> {
    let mut found = Model {
        name: id.clone(),
        id,
        base_url: None,
        context_window: whole(profile, "defaultContextWindow", u64::MAX)?.unwrap_or(CONTEXT_WINDOW),
        max_tokens: tokens(profile, "defaultMaxTokens")?.unwrap_or(MAX_TOKENS),
        default_max_tokens: None,
        vision: input(profile, "defaultInput")?.unwrap_or(false),
        efforts: None,
        compat: Compat::default(),
    };
    let (api, switches) = (protocol.api, protocol.switches);
    let routes = known.and_then(|known| known.some("compat"));
    found.compat.lay(routes, switches, api, "compat")?;
    // The route's switches stand over the catalogue's, its models' included.
    for (layer, key) in layers.iter().filter(|(_, key)| key.is_empty()) {
        found.compat.lay(layer.some("compat"), switches, api, key)?;
        if profile.get("baseURL").is_none() {
            found.base_url = text(*layer, "baseURL");
        }
    }
    found
        .compat
        .lay(profile.get("compat"), switches, api, "compat")?;
    for (layer, key) in layers {
        let named = |why: String| format!("{key}.{why}");
        if let Some(name) = string(*layer, "name").map_err(named)? {
            found.name = name;
        }
        if let Some(window) = whole(*layer, "contextWindow", u64::MAX).map_err(named)? {
            found.context_window = window;
        }
        if let Some(cap) = tokens(*layer, "maxTokens").map_err(named)? {
            found.max_tokens = cap;
            if !key.is_empty() {
                found.default_max_tokens = Some(cap);
            }
        }
        if let Some(vision) = input(*layer, "input").map_err(named)? {
            found.vision = vision;
        }
        if let Some(efforts) = layer.get("reasoningEfforts") {
            found.efforts = if key.is_empty() && efforts.bool() == Some(true) {
                Some(usual_efforts())
            } else {
                efforts_of(efforts).map_err(named)?
            };
        }
        if !key.is_empty() {
            let compat = format!("{key}.compat");
            found
                .compat
                .lay(layer.get("compat"), switches, api, &compat)?;
        }
    }
    Ok(found)
}

/// What the catalogue means by `true`.
fn usual_efforts() -> Efforts {
    let level = |level: &'static str| (level, Some(level.to_owned()));
    Efforts(vec![
        ("off", None),
        level("minimal"),
        level("low"),
        level("medium"),
        level("high"),
    ])
}

fn efforts_of(json: Json<'_>) -> Result<Option<Efforts>, String> {
    const KEY: &str = "reasoningEfforts";
    if json.bool() == Some(false) {
        return Ok(None);
    }
    if !json.is_object() {
        return Err(format!(
            "{KEY} must be false or an object, {{LEVEL: spelling}}"
        ));
    }
    for (level, value) in json.members() {
        if !LEVELS.contains(&level) {
            return Err(format!(
                "{KEY}.{level} is no level: there are {}",
                LEVELS.join(", ")
            ));
        }
        match value.string() {
            Some(text) if !text.is_empty() => {}
            None if value.raw() == "null" && level == "off" => {}
            _ if level == "off" => {
                return Err(format!("{KEY}.off must be a text, or null to send nothing"));
            }
            _ => return Err(format!("{KEY}.{level} must be a text")),
        }
    }
    let levels: Vec<_> = LEVELS
        .into_iter()
        .filter_map(|level| Some((level, json.get(level)?.string().map(Cow::into_owned))))
        .collect();
    if !levels.iter().any(|(level, _)| *level != "off") {
        return Err(format!(
            "{KEY} must have a level beside off; false says that it does not think"
        ));
    }
    Ok(Some(Efforts(levels)))
}

fn input(json: Json<'_>, key: &str) -> Result<Option<bool>, String> {
    let Some(list) = json.get(key) else {
        return Ok(None);
    };
    let must = || format!("{key} must be a list of text and image");
    if !list.is_array() {
        return Err(must());
    }
    let mut vision = None;
    for kind in list.items() {
        match kind.escaped() {
            Some("image") => vision = Some(true),
            Some("text") => vision = vision.or(Some(false)),
            _ => return Err(must()),
        }
    }
    Ok(vision)
}

/// The person's over the catalogue's.
fn headers(json: Json<'_>, known: Option<Json<'_>>) -> Result<Vec<(String, String)>, String> {
    let mut found: Vec<(String, String)> = Vec::new();
    for headers in [known, Some(json)] {
        let Some(headers) = headers.and_then(|layer| layer.get("headers")) else {
            continue;
        };
        if !headers.is_object() {
            return Err("headers must be an object, {NAME: value}".to_owned());
        }
        for (name, value) in headers.members() {
            let name = guest_support::json::unescape(name).into_owned();
            let token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(token) {
                return Err(format!("headers.{name} is no header's name"));
            }
            if is_the_client_s(&name) {
                return Err(format!(
                    "headers.{name} is made by the HTTP client itself: leave it out"
                ));
            }
            let value = value
                .string()
                .filter(|value| !value.contains(['\r', '\n', '\0']))
                .ok_or_else(|| format!("headers.{name} must be a text on one line"))?;
            found.retain(|(key, _)| !key.eq_ignore_ascii_case(&name));
            found.push((name, value.into_owned()));
        }
    }
    Ok(found)
}

/// Headers that frame or route a request: the host sends none that is written, so
/// what would fail each call is told here, where the profile is read.
fn is_the_client_s(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || name.starts_with("proxy-")
}

fn budgets(json: Json<'_>) -> Result<Budgets, String> {
    let Some(budgets) = json.get("thinkingBudgets") else {
        return Ok(Budgets::default());
    };
    let named = |why: String| format!("thinkingBudgets.{why}");
    if !budgets.is_object() {
        return Err("thinkingBudgets must be an object, {LEVEL: tokens}".to_owned());
    }
    known_keys(
        budgets,
        &["minimal", "low", "medium", "high"],
        "thinkingBudgets",
    )?;
    Ok(Budgets {
        minimal: tokens(budgets, "minimal").map_err(named)?,
        low: tokens(budgets, "low").map_err(named)?,
        medium: tokens(budgets, "medium").map_err(named)?,
        high: tokens(budgets, "high").map_err(named)?,
    })
}

fn pictures(json: Json<'_>) -> Result<PictureBounds, String> {
    let default = PictureBounds::default();
    Ok(PictureBounds {
        request_bytes: tokens(json, "maxRequestImageBytes")?.unwrap_or(default.request_bytes),
        pixels: tokens(json, "requestImagePixelBudget")?.unwrap_or(default.pixels),
        bytes: tokens(json, "requestImageMaxBytes")?.unwrap_or(default.bytes),
    })
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
