//! The request (spec/llm.md §7.8): its address, its headers, and its body around
//! the history.
//!
//! What servers of other makers refuse can be left out by switches of the model
//! and by headers of the profile, which stand in place of these here. The adapter
//! never sees a key, so it cannot tell one kind of key from another: who may use
//! a bearer token says so in a header.

use adapter_support::profile::{Budgets, Cache, Model, Off, PictureBounds, Profile};
use adapter_support::{Call, Entry, Error, HttpRequest, Picture, Pictures, body, error};
use guest_support::json::{Json, escape, quote};

use crate::history;
use crate::thinking::{self, Thinking, Wish};

const VERSION: &str = "2023-06-01";

const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
const FINE_GRAINED: &str = "fine-grained-tool-streaming-2025-05-14";

/// The request of one attempt.
pub(crate) fn build(
    profile: &Profile,
    model: &Model,
    call: &Call<'_>,
    history: &[Entry<'_>],
    pictures: &mut dyn Pictures,
) -> Result<HttpRequest, Error> {
    let switches = Switches::of(model);
    let has_tools = !call.request.tools.is_empty();
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "application/json".to_owned()),
        ("anthropic-version".to_owned(), VERSION.to_owned()),
        (
            "anthropic-dangerous-direct-browser-access".to_owned(),
            "true".to_owned(),
        ),
    ];
    if let Some(beta) = beta(&switches, has_tools) {
        headers.push(("anthropic-beta".to_owned(), beta));
    }
    let keyed = |name: &str| {
        ["x-api-key", "authorization"]
            .iter()
            .any(|key| name.eq_ignore_ascii_case(key))
    };
    if profile.credential.is_some() && !profile.headers.iter().any(|(name, _)| keyed(name)) {
        headers.push(("x-api-key".to_owned(), "{credential}".to_owned()));
    }
    let mut images = Images {
        pictures,
        bounds: profile.pictures,
    };
    let text = text(profile, model, call, history, &switches, &mut images)?;
    Ok(HttpRequest {
        method: "POST".to_owned(),
        url: address(model.base_url(profile)),
        headers,
        body: body::parts(text),
        timeout_ms: None,
    })
}

/// Where messages go. People know base URLs with and without `/v1`;
/// a query stays behind the path.
fn address(base: &str) -> String {
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    format!("{base}/v1/messages{query}")
}

/// What this protocol's switches say of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) eager: bool,
    pub(crate) long_cache: bool,
    pub(crate) cache_on_tools: bool,
    pub(crate) temperature: bool,
    pub(crate) adaptive: bool,
    pub(crate) empty_signature: bool,
    pub(crate) strict: bool,
}

impl Switches {
    fn of(model: &Model) -> Self {
        let on = |name: &str, default: bool| model.compat.flag(name).unwrap_or(default);
        Self {
            eager: on("supportsEagerToolInputStreaming", true),
            long_cache: on("supportsLongCacheRetention", true),
            cache_on_tools: on("supportsCacheControlOnTools", true),
            temperature: on("supportsTemperature", true),
            adaptive: on("forceAdaptiveThinking", false),
            empty_signature: on("allowEmptySignature", false),
            strict: on("supportsStrictTools", false),
        }
    }
}

/// The features that a request asks for. Adaptive models think between tools
/// anyway.
fn beta(switches: &Switches, has_tools: bool) -> Option<String> {
    let interleaved = (!switches.adaptive).then_some(INTERLEAVED);
    let fine = (has_tools && !switches.eager).then_some(FINE_GRAINED);
    let features: Vec<_> = interleaved.into_iter().chain(fine).collect();
    (!features.is_empty()).then(|| features.join(","))
}

fn text(
    profile: &Profile,
    model: &Model,
    call: &Call<'_>,
    history: &[Entry<'_>],
    switches: &Switches,
    images: &mut Images<'_>,
) -> Result<String, Error> {
    let request = call.request;
    let cache = match profile.cache {
        Cache::None => None,
        Cache::Long if switches.long_cache => Some(r#"{"type":"ephemeral","ttl":"1h"}"#),
        Cache::Short | Cache::Long => Some(r#"{"type":"ephemeral"}"#),
    };
    let (thinking, cap) = thinking::decide(&Wish {
        reasons: model.reasons(),
        can_stop: model.off() != Off::Unsupported,
        adaptive: switches.adaptive,
        level: call.effort,
        spelling: call.effort.and_then(|level| model.mapped(level)),
        budget: call
            .effort
            .and_then(|level| budget(&profile.budgets, level)),
        cap: call.cap,
        most: model.max_tokens,
        room: call.room,
    });

    let messages: usize = request.messages.iter().map(String::len).sum();
    let tools: usize = request.tools.iter().map(String::len).sum();
    let mut out = String::with_capacity(messages + messages / 8 + tools + 4096);
    out.push_str(r#"{"model":"#);
    out.push_str(&quote(&model.id));
    out.push_str(r#","messages":"#);
    let style = history::Style {
        cache,
        empty_signature: switches.empty_signature,
    };
    history::write(history, &style, images, &mut out)?;
    out.push_str(r#","max_tokens":"#);
    out.push_str(&cap.to_string());
    out.push_str(r#","stream":true"#);
    if let Some(system) = request
        .system
        .as_deref()
        .filter(|text| !text.trim().is_empty())
    {
        out.push_str(r#","system":[{"type":"text","text":""#);
        escape(system, &mut out);
        out.push('"');
        history::close(cache, &mut out);
        out.push(']');
    }
    if let Some(temperature) = request.config.temperature.filter(|heat| heat.is_finite())
        && switches.temperature
        && !thinking.is_on()
    {
        out.push_str(r#","temperature":"#);
        out.push_str(&temperature.to_string());
    }
    write_tools(&request.tools, switches, cache, &mut out)?;
    match thinking {
        Thinking::Unsaid => {}
        Thinking::Off => out.push_str(r#","thinking":{"type":"disabled"}"#),
        Thinking::Adaptive(effort) => {
            out.push_str(r#","thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"#);
            out.push_str(&quote(&effort));
            out.push('}');
        }
        Thinking::Budget(tokens) => {
            out.push_str(r#","thinking":{"type":"enabled","budget_tokens":"#);
            out.push_str(&tokens.to_string());
            out.push_str(r#","display":"summarized"}"#);
        }
    }
    out.push('}');
    Ok(out)
}

/// What a profile gives to a level; the highest share one.
fn budget(budgets: &Budgets, level: &str) -> Option<u32> {
    match level {
        "minimal" => budgets.minimal,
        "low" => budgets.low,
        "medium" => budgets.medium,
        _ => budgets.high,
    }
}

/// Appends the tools, where there are some. Of a schema goes what every server
/// knows; whole it goes only where a tool asks to be held to it and the model can.
fn write_tools(
    tools: &[String],
    switches: &Switches,
    cache: Option<&str>,
    out: &mut String,
) -> Result<(), Error> {
    if tools.is_empty() {
        return Ok(());
    }
    out.push_str(r#","tools":["#);
    for (at, tool) in tools.iter().enumerate() {
        let tool =
            Json::parse(tool).ok_or_else(|| error("INVALID", format!("tool {at} is not JSON")))?;
        history::comma(out);
        out.push_str(r#"{"name":"#);
        out.push_str(tool.some("name").map_or(r#""""#, Json::raw));
        if let Some(description) = tool.some("description") {
            out.push_str(r#","description":"#);
            out.push_str(description.raw());
        }
        if switches.eager {
            out.push_str(r#","eager_input_streaming":true"#);
        }
        let strict = is_held(tool) && switches.strict;
        if strict {
            out.push_str(r#","strict":true"#);
        }
        out.push_str(r#","input_schema":{"type":"object","properties":"#);
        let schema = tool.some("parameters");
        let member = |name: &str| schema.and_then(|schema| schema.some(name));
        out.push_str(member("properties").map_or("{}", Json::raw));
        out.push_str(r#","required":"#);
        out.push_str(member("required").map_or("[]", Json::raw));
        if strict {
            for (name, value) in schema.into_iter().flat_map(Json::members) {
                if !matches!(name, "type" | "properties" | "required") {
                    out.push_str(",\"");
                    out.push_str(name);
                    out.push_str("\":");
                    out.push_str(value.raw());
                }
            }
        }
        out.push('}');
        let last = at + 1 == tools.len();
        history::close(cache.filter(|_| last && switches.cache_on_tools), out);
    }
    out.push(']');
    Ok(())
}

/// Whether a tool asks that its arguments follow its schema to the letter.
fn is_held(tool: Json<'_>) -> bool {
    let sampling = tool.some("constrainedSampling");
    sampling.and_then(|sampling| sampling.get("type")?.escaped()) == Some("json_schema")
}

/// Pictures of one request, within the profile's bounds.
pub(crate) struct Images<'a> {
    pictures: &'a mut dyn Pictures,
    bounds: PictureBounds,
}

impl Images<'_> {
    pub(crate) fn render(&mut self, attachment: &str) -> Result<Picture, Error> {
        let PictureBounds { pixels, bytes, .. } = self.bounds;
        self.pictures.render(attachment, Some(pixels), Some(bytes))
    }
}
