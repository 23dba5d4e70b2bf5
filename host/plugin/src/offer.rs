//! What a component offers: its tools, routes and subscriptions.
//!
//! Asked once per component, row and configuration, on instances of their own,
//! and checked before anybody uses it. While it answers, a component may call
//! `log`, `config` and `work` only, so the answer depends on nothing else and is
//! kept in the cache as machine code is: a mounted component that nobody uses in
//! a run is not even instantiated.

use std::collections::HashSet;
use std::future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::{Concurrency, JsonText, ProjectionSpec, Subscription, ToolSpec};
use crate::call::CallContext;
use crate::capability::Phase;
use crate::component::Description;
use crate::contract::v0_1::{
    AdapterGuest, DispatchGuest, ProjectionGuest, PromptGuest, TitleGuest, ToolGuest,
};
use crate::error::{CallError, Error};
use crate::instance::{Call, Linked, RowInfo};

/// What the component said, checked.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) routes: Vec<JsonText>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) projections: Vec<ProjectionSpec>,
}

/// What it said, as it is kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Said {
    tools: Vec<JsonText>,
    routes: Vec<JsonText>,
    subscriptions: Vec<Listens>,
    projections: Vec<Projects>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Projects {
    key: String,
    version: u32,
    kinds: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Listens {
    event: String,
    only: Vec<String>,
    beside: bool,
}

/// Asks the component, or the cache where it was asked before.
pub(crate) async fn read(linked: &Arc<Linked>, component: &Description) -> Result<Offer, Error> {
    let cache = linked.engine.cache.as_ref();
    let name = name(linked, component);
    let kept = cache.and_then(|cache| serde_json::from_slice(&cache.get(&name)?).ok());
    if let Some(said) = kept {
        return check(linked, said);
    }
    let said = ask(linked, component).await?;
    let text = serde_json::to_vec(&said).unwrap_or_default();
    let offer = check(linked, said)?;
    if let Some(cache) = cache {
        // Not being able to keep it costs time, next time.
        let _ = cache.put(&name, &[&text]);
    }
    Ok(offer)
}

/// All that the answer may depend on. The engine is part of it, so that types
/// which another engine took are checked again.
fn name(linked: &Linked, component: &Description) -> String {
    let row = &linked.row;
    let mut hasher = blake3::Hasher::new();
    for part in [
        &component.digest,
        &linked.engine.fingerprint,
        &row.host_version,
        &row.id,
        &row.config,
    ] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    format!("{}.offer", hasher.finalize().to_hex())
}

async fn ask(linked: &Arc<Linked>, component: &Description) -> Result<Said, Error> {
    let ctx = CallContext::default();
    let call = |function| Call {
        function,
        ctx: &ctx,
        phase: Phase::Offer,
        timed: true,
        place: None,
        event: "",
    };
    let failed = |function| {
        move |error: CallError| Error::Asking {
            row: linked.row.id.clone(),
            function,
            source: Box::new(error),
        }
    };
    let mut said = Said::default();
    if component.exports_interface("tool") {
        let (_, tools) = linked
            .call::<ToolGuest, _, _>(None, call("tool.list-tools"), |mut live| async move {
                let tools = live.guest.call_list_tools(&mut live.store).await;
                (live, tools.map(|tools| tools.map_err(Into::into)))
            })
            .await;
        said.tools = tools.map_err(failed("tool.list-tools"))?;
    }
    if component.exports_interface("llm-adapter") {
        let (_, routes) = linked
            .call::<AdapterGuest, _, _>(
                None,
                call("llm-adapter.list-routes"),
                |mut live| async move {
                    let routes = live.guest.call_list_routes(&mut live.store).await;
                    (live, routes.map(|routes| routes.map_err(Into::into)))
                },
            )
            .await;
        said.routes = routes.map_err(failed("llm-adapter.list-routes"))?;
    }
    if component.exports_interface("dispatch") {
        let (_, subscriptions) = linked
            .call::<DispatchGuest, _, _>(
                None,
                call("dispatch.subscriptions"),
                |mut live| async move {
                    let subscriptions = live.guest.call_subscriptions(&mut live.store).await;
                    (live, subscriptions.map(Ok))
                },
            )
            .await;
        let listens = |to: crate::contract::v0_1::dispatch::Subscription| Listens {
            event: to.event,
            only: to.only,
            beside: to.beside,
        };
        said.subscriptions = subscriptions
            .map_err(failed("dispatch.subscriptions"))?
            .into_iter()
            .map(listens)
            .collect();
    }
    if component.exports_interface("projection") {
        let (_, specs) = linked
            .call::<ProjectionGuest, _, _>(
                None,
                call("projection.list-projections"),
                |mut live| async move {
                    let specs = live.guest.call_list_projections(&mut live.store).await;
                    (live, specs.map(|specs| specs.map_err(Into::into)))
                },
            )
            .await;
        said.projections = specs
            .map_err(failed("projection.list-projections"))?
            .into_iter()
            .map(|spec| Projects {
                key: spec.key,
                version: spec.version,
                kinds: spec.kinds,
            })
            .collect();
    }
    if component.exports_interface("prompt") {
        // It has nothing to say yet; that it starts and fits is seen now.
        let (_, fits) = linked
            .call::<PromptGuest, _, _>(None, call("prompt"), |live| {
                future::ready((live, Ok(Ok(()))))
            })
            .await;
        fits.map_err(failed("prompt"))?;
    }
    if component.exports_interface("title") {
        let (_, fits) = linked
            .call::<TitleGuest, _, _>(None, call("title"), |live| {
                future::ready((live, Ok(Ok(()))))
            })
            .await;
        fits.map_err(failed("title"))?;
    }
    Ok(said)
}

fn check(linked: &Linked, said: Said) -> Result<Offer, Error> {
    let row = &linked.row;
    let bad = |function| {
        move |reason: String| Error::Metadata {
            row: row.id.clone(),
            function,
            reason,
        }
    };
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(said.tools.len());
    for text in said.tools {
        let tool = tool(text).map_err(bad("tool.list-tools"))?;
        if !names.insert(tool.name.clone()) {
            return Err(bad("tool.list-tools")(format!(
                "the tool {} is listed twice",
                tool.name
            )));
        }
        tools.push(tool);
    }
    if let Some(tool) = tools
        .iter()
        .find(|tool| !row.grants.may_name_tool(&tool.name))
    {
        return Err(Error::ExportNotGranted {
            row: row.id.clone(),
            what: format!("the component offers the tool {}", tool.name),
            grant: format!("tool-names={}", tool.name),
        });
    }
    for route in &said.routes {
        provider(route).map_err(bad("llm-adapter.list-routes"))?;
    }
    if let Some(strange) = said.subscriptions.iter().find(|to| !is_event(&to.event)) {
        return Err(bad("dispatch.subscriptions")(format!(
            "{:?} is no event's name, like tools/pre-execute",
            strange.event
        )));
    }
    let mut keys = HashSet::new();
    for Projects { key, .. } in &said.projections {
        let sound = (1..=64).contains(&key.len()) && !key.chars().any(char::is_control);
        if !sound || !keys.insert(key) {
            return Err(bad("projection.list-projections")(format!(
                "{key:?} is listed twice, or is no key: 1 to 64 bytes without control characters"
            )));
        }
    }
    let projects = |spec: Projects| ProjectionSpec {
        key: spec.key,
        version: spec.version,
        kinds: spec.kinds,
    };
    let listens = |to: Listens| Subscription {
        event: to.event,
        only: to.only,
        beside: to.beside,
    };
    Ok(Offer {
        tools,
        routes: said.routes,
        subscriptions: said.subscriptions.into_iter().map(listens).collect(),
        projections: said.projections.into_iter().map(projects).collect(),
    })
}

impl Offer {
    /// Refuses what the row's grants do not let through.
    pub(crate) fn permitted(&self, row: &RowInfo) -> Result<(), Error> {
        let not_granted = |event: &Subscription| Error::ExportNotGranted {
            row: row.id.clone(),
            what: format!("the component listens to {}", event.event),
            grant: format!("observe={}", event.event),
        };
        self.subscriptions
            .iter()
            .find(|event| !row.grants.may_listen(&event.event))
            .map_or(Ok(()), |event| Err(not_granted(event)))
    }
}

fn is_event(name: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
    name.len() <= 128 && name.contains('/') && name.bytes().all(sound)
}

/// An entry of `list-tools`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    name: String,
    description: String,
    parameters: Box<RawValue>,
    output: Option<Box<RawValue>>,
    timeout_ms: Option<u64>,
    concurrent: Option<Value>,
    view: Option<Box<RawValue>>,
}

fn tool(text: JsonText) -> Result<ToolSpec, String> {
    let listing: Listing =
        serde_json::from_str(&text).map_err(|error| format!("an entry is not valid: {error}"))?;
    let name = listing.name;
    // What providers take as a function's name.
    let sound = (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !sound {
        return Err(format!(
            "{name:?} is no tool's name: 1 to 64 letters, digits, `_` and `-`"
        ));
    }
    let concurrency = match &listing.concurrent {
        None | Some(Value::Null | Value::Bool(false)) => Concurrency::Never,
        Some(Value::Bool(true)) => Concurrency::Always,
        Some(Value::String(ask)) if ask == "ask" => Concurrency::Ask,
        Some(other) => {
            return Err(format!(
                "`concurrent` of {name} is {other}, and must be true, false or \"ask\""
            ));
        }
    };
    for (member, schema) in [
        ("parameters", Some(&listing.parameters)),
        ("output", listing.output.as_ref()),
    ] {
        if schema.is_some_and(|schema| !schema.get().starts_with('{')) {
            return Err(format!(
                "`{member}` of {name} must be a JSON Schema, an object"
            ));
        }
    }
    Ok(ToolSpec {
        name,
        description: listing.description,
        parameters: listing.parameters.get().to_owned(),
        output: listing.output.map(|raw| raw.get().to_owned()),
        timeout_ms: listing.timeout_ms,
        concurrency,
        view: listing.view.map(|raw| raw.get().to_owned()),
        text,
    })
}

fn provider(route: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Route {
        provider: String,
    }
    serde_json::from_str(route)
        .map(|route: Route| route.provider)
        .map_err(|error| format!("a route is not valid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_keeps_its_schemas_as_they_were_written() {
        let text = r#"{"name":"read","description":"d","parameters":{ "b":1, "a":2 },"concurrent":"ask","timeoutMs":5,"x":0}"#;
        let spec = tool(text.to_owned()).unwrap();
        assert_eq!(spec.parameters, r#"{ "b":1, "a":2 }"#);
        assert_eq!(spec.concurrency, Concurrency::Ask);
        assert_eq!(spec.timeout_ms, Some(5));
        assert_eq!(spec.text, text);
    }

    #[test]
    fn listings_that_no_model_could_be_given_are_refused() {
        for text in [
            "",
            "[]",
            r#"{"name":"a b","description":"","parameters":{}}"#,
            r#"{"name":"","description":"","parameters":{}}"#,
            r#"{"name":"a","description":"","parameters":true}"#,
            r#"{"name":"a","parameters":{}}"#,
            r#"{"name":"a","description":"","parameters":{},"concurrent":"yes"}"#,
        ] {
            assert!(tool(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_route_names_its_provider() {
        assert_eq!(provider(r#"{"provider":"d","models":[]}"#).unwrap(), "d");
        assert!(provider("{}").is_err());
    }
}
