//! A provider's profile as people write it (`spec/llm.md` §7.1), checked for its
//! shape. What its members mean together is the adapter's to say.

use crate::shape::{Rule, Table, check, fault, mapping};
use crate::yaml::{Fault, Kind, Node};
use serde_json::{Map, Value};

/// The section of `settings.yaml`, and the row of the same id.
pub(crate) const SECTION: &str = "llm-pi-ai";

/// The protocols that a profile may name.
pub(crate) const APIS: &[&str] = &[
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
];

const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const INPUTS: &[&str] = &["text", "image"];

/// Members of older versions, and what stands for them. Upstream refuses them too.
const OLD: [(&str, &str); 3] = [
    (
        "provider",
        "the provider's name is the key that the profile stands under",
    ),
    (
        "maxRetries",
        "write retryPolicy: {mode: normal, maxRetries: N}",
    ),
    (
        "maxRetryDelayMs",
        "write retryPolicy: {mode: normal, backoff: {maxDelayMs: N}}",
    ),
];

const MODEL: Table = &[
    ("id", Rule::Text),
    ("name", Rule::Text),
    ("contextWindow", Rule::Count),
    ("maxTokens", Rule::Count),
    ("input", Rule::Choices(INPUTS)),
    ("reasoningEfforts", Rule::Efforts(LEVELS)),
    ("compat", Rule::Switches),
];

const PROFILE: Table = &[
    ("apiKeyEnv", Rule::Name),
    ("displayName", Rule::Text),
    ("api", Rule::Choice(APIS)),
    ("baseURL", Rule::Url),
    ("models", Rule::List(&Rule::Map(MODEL))),
    ("modelOverrides", Rule::Each(&Rule::Map(MODEL))),
    ("compat", Rule::Switches),
    ("defaultContextWindow", Rule::Count),
    ("defaultMaxTokens", Rule::Count),
    ("defaultInput", Rule::Choices(INPUTS)),
    // An empty one takes a header of ours away.
    ("headers", Rule::Each(&Rule::Line)),
    ("reasoning", Rule::Choice(LEVELS)),
    (
        "thinkingBudgets",
        Rule::Map(&[
            ("minimal", Rule::Count),
            ("low", Rule::Count),
            ("medium", Rule::Count),
            ("high", Rule::Count),
        ]),
    ),
    ("cacheRetention", Rule::Choice(&["none", "short", "long"])),
    (
        "transport",
        Rule::Choice(&["sse", "websocket", "websocket-cached", "auto"]),
    ),
    ("timeoutMs", Rule::Count),
    ("websocketConnectTimeoutMs", Rule::Count),
    ("streamIdleTimeoutMs", Rule::Count),
    ("maxRequestImageBytes", Rule::Count),
    ("requestImagePixelBudget", Rule::Count),
    ("requestImageMaxBytes", Rule::Count),
    ("retryPolicy", Rule::Map(RETRY)),
];

/// The values of `retryPolicy` are read where they are used; a misspelt member
/// would be passed over there.
pub(crate) const RETRY: Table = &[
    ("mode", Rule::Choice(&["normal", "always"])),
    ("maxRetries", Rule::Any),
    ("retryableCodes", Rule::Any),
    ("backoff", Rule::Any),
];

/// Checks the section of `settings.yaml`.
pub(crate) fn check_section(section: &Node) -> Result<(), Fault> {
    if matches!(section.kind, Kind::Null) {
        return Ok(());
    }
    let Some(providers) = mapping(SECTION, section)?.get("providers") else {
        return Ok(());
    };
    match &providers.kind {
        Kind::Null => Ok(()),
        Kind::Map(map) => map.0.iter().try_for_each(|(name, node)| {
            check_profile(&format!("{SECTION}.providers.{name}"), name, node)
        }),
        _ => Err(fault(providers, not_a_mapping(providers))),
    }
}

/// `providers` of another kind than a mapping: a list is an older version's.
pub(crate) fn not_a_mapping(providers: &Node) -> String {
    let old = if matches!(providers.kind, Kind::Seq(_)) {
        "; a list is the shape of older versions: write each provider's name as the key of its profile"
    } else {
        ""
    };
    format!(
        "`{SECTION}.providers` must be a mapping of providers' names to their profiles, this is {}{old}",
        providers.noun()
    )
}

fn check_profile(at: &str, name: &str, node: &Node) -> Result<(), Fault> {
    if name.trim().is_empty() || name.contains(char::is_whitespace) || name.contains('/') {
        let message = format!(
            "`{at}`: a provider's name has no spaces and no `/`, as --model PROVIDER/MODEL names it"
        );
        return Err(fault(node, message));
    }
    if let Kind::Map(map) = &node.kind {
        for (key, instead) in OLD {
            if let Some(node) = map.get(key) {
                return Err(fault(
                    node,
                    format!("`{at}.{key}` is a member of older versions; take it out: {instead}"),
                ));
            }
        }
    }
    check(at, node, Rule::Map(PROFILE))
}

/// A profile of a row's config, or what is wrong with it in words.
pub(super) fn read(name: &str, written: &Value) -> Result<Map<String, Value>, String> {
    check_profile(name, name, &Node::of(written)).map_err(|fault| fault.message)?;
    // A row's grants are read as a whole: what they would not take is found here,
    // where it costs this provider alone.
    if !is_legible(name, 255) {
        return Err(String::from(
            "its name has characters that are neither letters, digits nor ASCII marks, or is \
             longer than 255 bytes; give it another one",
        ));
    }
    let url = written.get("baseURL").and_then(Value::as_str);
    if !is_legible(&crate::route::origin(url.unwrap_or_default()), 1024) {
        // Not repeated, as nobody could read it.
        return Err(String::from(
            "the host of its baseURL has characters that no host has, or is longer than 1,024 \
             bytes; set it to an address like https://api.example.com/v1",
        ));
    }
    Ok(match written {
        Value::Object(profile) => profile.clone(),
        // A key alone: a shipped provider as it is.
        _ => Map::new(),
    })
}

/// Whether a text is what it looks like, wherever it is shown.
fn is_legible(text: &str, most: usize) -> bool {
    let seen = |c: char| c.is_alphanumeric() || c.is_ascii_punctuation();
    text.len() <= most && text.chars().all(seen)
}

/// How a profile names its provider for people.
pub(super) fn display_name(provider: &str, written: &Value) -> String {
    let name = written.get("displayName").and_then(Value::as_str);
    let name = name.filter(|name| !name.trim().is_empty());
    name.unwrap_or(provider).to_owned()
}
