//! The parts of a run, for a protocol at a time: what `dsh` wires in `host/cli/src/run.rs`, without rows that have nothing
//! to do with model calls.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use dsh_agent::compaction::Compactors;
use dsh_agent::dispatch::{ComponentListener, Dispatch, Listener};
use dsh_agent::prompt::Prompts;
use dsh_agent::tools::{CallScope, Tool, ToolRegistry, ToolSpec};
use dsh_agent::{
    Agent, AgentConfig, CallIdentity, Durability, EventSink, Log, Parts, StartSource, SystemClock,
    text_block,
};
use dsh_http::{Allowed, Client, Origin, Reach};
use dsh_model::{
    Action, Adapter, Attempt, CallConfig, CallContext, ComponentAdapter, Credentials, EndCause,
    Gateway, GenerateRequest, LlmFailure, Models, NoPictures, Prepared, RouteGrant, Secret,
};
use dsh_plugin::api::{JsonText, PluginError, ToolCall, ToolOutcome};
use dsh_plugin::port::PortSet;
use dsh_plugin::{Engine, EngineConfig, Grants, Limits, Mounted, Row};
use dsh_session::{Event, Session};
use dsh_store::Writer;
use mock_provider::Protocol;
use serde_json::{Value, json};

/// The reference of every route's credential.
const KEY: &str = "SOAK_KEY";
/// The one model of every route.
pub const MODEL: &str = "m";
/// The one tool.
pub const TOOL: &str = "note";

/// How the routes of a rig are set up.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Of each route.
    pub idle_timeout_ms: u64,
    /// Of each route, as a profile has it.
    pub retry_policy: Value,
    /// `maxDelayMs` of the row `llm-retry`: waits are cut to this.
    pub longest_wait_ms: f64,
}

/// Components that are loaded once, and routes to one server.
pub struct Rig {
    adapters: Vec<(Protocol, Mounted, String)>,
    retry: Mounted,
}

/// Attempts that were opened and that were closed, by what the host told the adapters.
#[derive(Debug, Default)]
pub struct Attempts {
    opened: AtomicU64,
    closed: AtomicU64,
}

impl Attempts {
    /// How many were opened.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::SeqCst)
    }

    /// How many the adapters still keep.
    pub fn open(&self) -> u64 {
        self.opened() - self.closed.load(Ordering::SeqCst)
    }
}

/// The provider id that a rig gives to a protocol's route.
#[must_use]
pub fn provider(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::DeepSeek => "deepseek-official",
        Protocol::Completions => "soak-completions",
        Protocol::Responses => "soak-responses",
        Protocol::Messages => "soak-messages",
    }
}

/// Where the built components are.
fn components() -> PathBuf {
    let workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components");
    std::env::var_os("DSH_COMPONENTS").map_or_else(workspace, PathBuf::from)
}

fn file(component: &str) -> PathBuf {
    components().join(format!("{component}.wasm"))
}

impl Rig {
    /// Mounts the adapters of these protocols with a route to `server`, and `llm-retry`.
    ///
    /// # Errors
    /// A component that is not built, or cannot be mounted.
    pub async fn new(protocols: &[Protocol], server: &str, routes: &Routes) -> Result<Self> {
        let engine = engine()?;
        let mut adapters = Vec::new();
        for protocol in protocols.iter().copied() {
            let base = protocol.base(server);
            let grants = route(protocol, server);
            let config = config(protocol, &base, routes);
            let mounted = mount(&engine, protocol.component(), &config, &grants).await?;
            adapters.push((protocol, mounted, server.to_owned()));
        }
        let grants = json!({"decide": ["agent/request-error"], "random": true});
        let config = json!({"maxDelayMs": routes.longest_wait_ms});
        let retry = mount(&engine, "llm-retry", &config, &grants).await?;
        Ok(Self { adapters, retry })
    }

    /// The routes, with adapter instances and a client of their own.
    ///
    /// # Errors
    /// A component that serves no route.
    pub fn models(&self, attempts: &Arc<Attempts>) -> Result<Arc<Models>> {
        let models = Models::new(Arc::new(Gateway {
            client: Client::new(),
            pictures: Arc::new(NoPictures),
            credentials: Box::new(Key),
            user_agent: "dsh-soak/0".to_owned(),
            anonymous_user_id: Box::new(|| "00000000-0000-4000-8000-000000000000".to_owned()),
        }));
        for (protocol, mounted, server) in &self.adapters {
            let adapter = ComponentAdapter::new(mounted)
                .with_context(|| format!("{} is no adapter", protocol.component()))?;
            let grant = RouteGrant {
                provider: provider(*protocol).to_owned(),
                origins: vec![Allowed {
                    origin: Origin::parse(server)?,
                    reach: Reach::Named,
                }],
                credential: Some(KEY.to_owned()),
            };
            let counted = Counted {
                adapter,
                attempts: Arc::clone(attempts),
            };
            models.register(counted, &[grant])?;
        }
        Ok(Arc::new(models))
    }

    /// The adapter of a protocol, with an instance of its own and nothing of the host around it.
    ///
    /// # Errors
    /// A protocol that the rig was not made for.
    pub fn adapter(&self, protocol: Protocol) -> Result<dsh_plugin::Adapter> {
        let mut adapters = self.adapters.iter();
        let found = adapters.find(|(own, ..)| *own == protocol);
        let found = found.and_then(|(_, mounted, _)| mounted.adapter());
        found.with_context(|| format!("{} is not mounted", protocol.component()))
    }

    /// An agent over a stored session, which asks this protocol's route.
    ///
    /// # Errors
    /// What the agent refuses.
    pub fn conversation(
        &self,
        models: &Arc<Models>,
        protocol: Protocol,
        (session, writer): (Session, Writer),
        source: StartSource,
    ) -> Result<Conversation> {
        let (id, writer) = (session.id().to_string(), Arc::new(writer));
        let log = Arc::new(Log::new(
            Arc::new(Mutex::new(session)),
            Arc::new(SystemClock),
            vec![Arc::new(ToWriter(Arc::clone(&writer)))],
            Arc::new(ToWriter(Arc::clone(&writer))),
        ));
        let identity = Arc::new(CallIdentity {
            ports: Arc::new(PortSet::default()),
            session_id: id.clone(),
            agent_id: id,
        });
        let dispatch = self.retry.dispatch().context("llm-retry listens")?;
        let listener = ComponentListener::new(
            &self.retry,
            dispatch,
            Vec::new(),
            Arc::clone(&identity),
            Arc::clone(&log),
        );
        let listener: Arc<dyn Listener> = Arc::new(listener);
        let tools = ToolRegistry::new(None)?;
        tools.register(Arc::new(Note::new()?))?;
        let agent = Agent::new(Parts {
            log: Arc::clone(&log),
            models: Arc::clone(models),
            tools: Arc::new(tools),
            prompts: Prompts::new(Vec::new()),
            dispatch: Arc::new(Dispatch::new(vec![listener])?),
            compactors: Compactors::default(),
            guards: Vec::new(),
            identity,
            config: AgentConfig::new(provider(protocol), MODEL, "/work"),
            titles: None,
            inbox: None,
            source,
        })?;
        Ok(Conversation { agent, log, writer })
    }
}

fn config(protocol: Protocol, base: &str, routes: &Routes) -> Value {
    let model = json!({"id": MODEL, "contextWindow": 400_000, "maxTokens": 4096});
    let profile = json!({
        "baseURL": base, "apiKeyEnv": KEY, "models": [model],
        "streamIdleTimeoutMs": routes.idle_timeout_ms, "retryPolicy": routes.retry_policy,
    });
    if protocol == Protocol::DeepSeek {
        return profile;
    }
    let mut profile = profile;
    profile["api"] = json!(protocol.api());
    json!({"providers": {provider(protocol): profile}})
}

/// The adapter of a protocol within other limits than a row has.
///
/// # Errors
/// A component that is not built, or cannot be mounted within them.
pub async fn adapter_within(
    protocol: Protocol,
    routes: &Routes,
    limits: &Value,
) -> Result<dsh_plugin::Adapter> {
    let server = "http://127.0.0.1:9";
    let config = config(protocol, &protocol.base(server), routes);
    let grants = route(protocol, server);
    let mounted = mount_within(&engine()?, protocol.component(), &config, &grants, limits).await?;
    mounted.adapter().context("it is an adapter")
}

fn engine() -> Result<Engine> {
    Ok(Engine::new(EngineConfig {
        host_version: "soak".to_owned(),
        ..EngineConfig::default()
    })?)
}

fn route(protocol: Protocol, server: &str) -> Value {
    json!({"route": [
        {"provider": provider(protocol), "origins": [server], "credential": KEY},
    ], "pictures": true})
}

async fn mount(engine: &Engine, name: &str, config: &Value, grants: &Value) -> Result<Mounted> {
    // As the rows of adapters have it.
    let limits = json!({"memory": "256MiB"});
    mount_within(engine, name, config, grants, &limits).await
}

async fn mount_within(
    engine: &Engine,
    name: &str,
    config: &Value,
    grants: &Value,
    limits: &Value,
) -> Result<Mounted> {
    let path = file(name);
    if !path.exists() {
        bail!("{} is missing; run `cargo xtask plugins`", path.display());
    }
    let component = engine.load_file(&path).await?;
    let row = Row {
        id: name.to_owned(),
        limits: Limits::of(&component, limits)?,
        component,
        config: config.to_string(),
        grants: Grants::parse(grants)?,
    };
    Ok(engine.mount(row).await?)
}

/// A running agent, its log, and the file behind it.
pub struct Conversation {
    /// Answers.
    pub agent: Agent,
    /// What it wrote so far.
    pub log: Arc<Log>,
    writer: Arc<Writer>,
}

impl Conversation {
    /// Ends the agent and closes the file.
    ///
    /// # Errors
    /// What could not be written.
    pub async fn close(self) -> Result<()> {
        self.agent.dispose().await?;
        self.writer.close().await?;
        Ok(())
    }
}

struct Key;

impl Credentials for Key {
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure> {
        Ok((reference == KEY).then(|| Secret::new("sk-soak-0123456789")))
    }
}

struct ToWriter(Arc<Writer>);

impl EventSink for ToWriter {
    fn event(&self, event: &Arc<Event>) {
        // The next barrier reports what stopped the writer.
        let _ = self.0.enqueue(Arc::clone(event));
    }
}

#[async_trait]
impl Durability for ToWriter {
    async fn flush(&self) -> Result<(), String> {
        self.0.flush().await.map_err(|error| error.to_string())
    }
}

/// A tool that says what it was told.
struct Note(ToolSpec);

impl Note {
    fn new() -> Result<Self> {
        let schema =
            r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
        Ok(Self(ToolSpec::new(TOOL, "Keeps a note.", schema)?))
    }
}

#[async_trait]
impl Tool for Note {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn may_overlap(&self, _: &ToolCall, _: &CallScope) -> bool {
        true
    }

    async fn run(&self, call: ToolCall, _: &CallScope) -> Result<ToolOutcome, PluginError> {
        Ok(ToolOutcome {
            content: vec![text_block(&call.arguments).as_str().to_owned()],
            more: None,
        })
    }
}

/// An adapter that counts its attempts.
struct Counted {
    adapter: ComponentAdapter,
    attempts: Arc<Attempts>,
}

#[async_trait]
impl Adapter for Counted {
    fn list_routes(&self) -> Vec<JsonText> {
        self.adapter.list_routes()
    }

    async fn prepare(&self, ctx: &CallContext, config: CallConfig) -> Result<Prepared, LlmFailure> {
        self.adapter.prepare(ctx, config).await
    }

    async fn open(
        &self,
        ctx: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        let attempt = self.adapter.open(ctx, request).await?;
        self.attempts.opened.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(CountedAttempt {
            attempt,
            attempts: Arc::clone(&self.attempts),
        }))
    }
}

struct CountedAttempt {
    attempt: Box<dyn Attempt>,
    attempts: Arc<Attempts>,
}

#[async_trait]
impl Attempt for CountedAttempt {
    async fn next(&mut self, ctx: &CallContext) -> Result<Action, LlmFailure> {
        self.attempt.next(ctx).await
    }

    async fn head(
        &mut self,
        ctx: &CallContext,
        status: u16,
        headers: Vec<(String, String)>,
    ) -> Result<(), LlmFailure> {
        self.attempt.head(ctx, status, headers).await
    }

    async fn body(&mut self, ctx: &CallContext, data: &[u8]) -> Result<Vec<JsonText>, LlmFailure> {
        self.attempt.body(ctx, data).await
    }

    async fn end(
        &mut self,
        ctx: &CallContext,
        cause: EndCause,
    ) -> Result<Vec<JsonText>, LlmFailure> {
        self.attempt.end(ctx, cause).await
    }

    async fn close(&mut self, ctx: &CallContext) {
        self.attempt.close(ctx).await;
        self.attempts.closed.fetch_add(1, Ordering::SeqCst);
    }
}
