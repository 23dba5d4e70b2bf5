//! One call through an adapter, by the code of a run, with a recording where the network is.

use std::sync::{Arc, Mutex, PoisonError};

use dsh_http::{Allowed, Bytes, Client, Origin, Reach};
use dsh_model::{
    BlockAssembler, CallContext, ComponentAdapter, Credentials, FinishReason, Gateway, LlmFailure,
    Models, Request, Route, RouteGrant, Secret,
};
use dsh_plugin::port::PortSet;
use dsh_plugin::{Component, Engine, Grants, Limits, Row};
use dsh_session::{Draft, Header, Json, Kind, Messages, Session};
use serde_json::json;

use super::case::{Case, Shape};
use crate::attachments::Attachments;
use crate::row_config;

/// What needs a grant to be imported. Behind it are the time, chance, and the home's pictures, which are only looked at
/// where the case has one; the rest has no port here.
const IMPORTS: [&str; 12] = [
    "attachments",
    "clock",
    "inbox",
    "journal",
    "kv",
    "llm",
    "pictures",
    "process",
    "random",
    "session",
    "spill",
    "workspace",
];

/// What was sent, and what came of it.
pub(super) struct Played {
    /// In order; more than one where the adapter asks more than once.
    pub(super) requests: Vec<Sent>,
    pub(super) chunks: Vec<Json>,
}

/// A request as it would have gone out.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) method: String,
    pub(super) url: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// The case's one credential, by whatever name.
struct Key(Option<String>);

impl Credentials for Key {
    fn resolve(&self, _: &str) -> Result<Option<Secret>, LlmFailure> {
        Ok(self.0.as_deref().map(Secret::new))
    }
}

/// Plays the case; `body` is what comes back.
///
/// # Errors
/// Why the component cannot be asked, or what of the case it cannot be asked with.
pub(super) async fn play(
    engine: &Engine,
    component: Arc<Component>,
    case: &Case,
    body: Option<Vec<u8>>,
    attachments: &Attachments,
) -> Result<Played, String> {
    let messages = case.list("messages");
    // What the loop would ask is checked before anything runs, so that the message names its member.
    let surface = surface(&messages)?;
    let schema = component
        .manifest()
        .and_then(|manifest| manifest.config.schema.as_ref());
    if let Some(fault) = schema.and_then(|schema| row_config::fault(schema, &case.config)) {
        return Err(format!("the case's {fault}"));
    }
    let mounted = engine
        .mount(row(component, case)?)
        .await
        .map_err(|error| error.to_string())?;
    let routes = mounted
        .routes()
        .iter()
        .filter_map(|route| Route::parse(route).ok());
    let grants: Vec<RouteGrant> = routes.map(|route| grant(&route, case)).collect();
    let adapter = ComponentAdapter::new(&mounted).ok_or("it is no model adapter")?;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let models = Models::new(Arc::new(gateway(
        case,
        body,
        attachments,
        Arc::clone(&sent),
    )));
    models
        .register(adapter, &grants)
        .map_err(|error| format!("with the case's config: {error}"))?;

    let ctx = CallContext {
        ports: Arc::new(PortSet {
            attachments: Some(Arc::new(attachments.clone())),
            pictures: Some(Arc::new(attachments.clone())),
            ..PortSet::default()
        }),
        ..CallContext::default()
    };
    let mut chunks = Vec::new();
    match models.prepare(&ctx, case.call()).await {
        // Where nothing is left to stream, the refusal stands for the stream.
        Err(error) => chunks.push(FinishReason::Error(error.into_failure()).to_chunk()),
        Ok(call) => {
            let request = match case.text("purpose") {
                Some(purpose) => Request::auxiliary(purpose, messages),
                None => Request::of_surface(surface),
            };
            let mut request = request
                .system(case.text("system"))
                .tools(case.list("tools"));
            request.session_id = case.text("sessionId");
            let abort_after = case
                .response
                .as_ref()
                .and_then(|response| response.abort_after);
            let mut stream = call.stream(ctx.clone(), &request);
            while let Some(chunk) = stream.next().await {
                chunks.push(chunk);
                if abort_after == Some(chunks.len() as u64) {
                    ctx.cancel.cancel();
                }
            }
        }
    }
    let requests = std::mem::take(&mut *sent.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Played { requests, chunks })
}

fn row(component: Arc<Component>, case: &Case) -> Result<Row, String> {
    let told = |error: dsh_plugin::Error| error.to_string();
    let imports = component
        .description()
        .imports
        .iter()
        .filter_map(|import| import.of_contract());
    let mut grants = json!({"route": {"provider": case.provider}});
    for (name, _) in imports.filter(|(name, _)| IMPORTS.contains(name)) {
        // No program at all.
        grants[name] = if name == "process" {
            json!([])
        } else {
            json!(true)
        };
    }
    Ok(Row {
        id: "replay".to_owned(),
        config: case.config.to_string(),
        grants: Grants::parse(&grants).map_err(told)?,
        limits: Limits::of(&component, &serde_json::Value::Null).map_err(told)?,
        component,
    })
}

/// The case's own address and the one that the route names, as a person's words for them would grant.
fn grant(route: &Route, case: &Case) -> RouteGrant {
    let named = [Some(&case.base), route.base_url.as_ref()];
    let origins = named
        .into_iter()
        .flatten()
        .filter_map(|url| Origin::parse(url).ok());
    RouteGrant {
        provider: route.provider.clone(),
        origins: origins
            .map(|origin| Allowed {
                origin,
                reach: Reach::Named,
            })
            .collect(),
        credential: route.credential.clone(),
    }
}

fn gateway(
    case: &Case,
    body: Option<Vec<u8>>,
    attachments: &Attachments,
    sent: Arc<Mutex<Vec<Sent>>>,
) -> Gateway {
    let shape = case.response.clone().unwrap_or_else(Shape::usual);
    let recording = shape.with(&body.unwrap_or_default());
    let anonymous = case.anonymous.clone();
    Gateway {
        client: Client::playing(move |request| {
            let headers = request.headers.iter();
            let headers = headers
                .map(|header| (header.name.to_ascii_lowercase(), header.value.clone()))
                .collect();
            sent.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Sent {
                    method: request.method.clone(),
                    url: request.url.clone(),
                    headers,
                    body: request.body.clone(),
                });
            recording.clone()
        }),
        credentials: Box::new(Key(case.key.clone())),
        pictures: Arc::new(attachments.clone()),
        user_agent: crate::run::USER_AGENT.to_owned(),
        anonymous_user_id: Box::new(move || anonymous.clone()),
    }
}

/// A surface with these messages: requests of the loop are made of nothing else.
fn surface(messages: &[Json]) -> Result<Messages, String> {
    let mut session = Session::new(Header::new("replay", 0)).map_err(|error| error.to_string())?;
    for (at, message) in messages.iter().enumerate() {
        session
            .append(Draft::new(Kind::UserMessage, message.clone()).append(), 0)
            .map_err(|error| format!("`generate.messages[{at}]` is no message: {error}"))?;
    }
    session
        .messages()
        .map_err(|error| format!("`generate.messages`: {error}"))
}

/// `assembled` of the recordings.
pub(super) fn assembled(chunks: &[Json]) -> Json {
    let mut assembler = BlockAssembler::new();
    chunks.iter().for_each(|chunk| assembler.push(chunk));
    let list = |blocks: &[Json]| {
        Json::array(|list| {
            for block in blocks {
                list.json(block);
            }
        })
    };
    Json::object(|o| {
        o.json("blocks", &list(&assembler.blocks()));
        o.json("finish", &assembler.finish().to_json());
        o.opt_json("usage", assembler.usage());
        o.opt_json("replayState", assembler.replay_state().as_ref());
        o.json("interruptedBlocks", &list(&assembler.interrupted_blocks()));
    })
}
