//! An agent with a scripted model, fake tools, a clock that counts and no disk.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_model::{
    Action, Adapter, Attempt, CallConfig, CallContext, Credentials, Emission, EndCause, Gateway,
    GenerateRequest, LlmFailure, Models, Prepared, Secret,
};
use dsh_plugin::Mounted;
use dsh_plugin::api::{Concurrency, JsonText, PluginError, ToolCall, ToolOutcome};
use dsh_plugin::port::PortSet;
use dsh_session::{Event, Header, Json, Kind, Seq, Session, Value};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::compaction::Compactors;
use crate::dispatch::{
    ComponentListener, Dispatch, Entry, EventContext, Listener, ListenerError, Standing,
    Subscription,
};
use crate::prompt::{PromptSource, Prompts};
use crate::tools::{CallScope, Guard, Tool, ToolRegistry, ToolSpec};
use crate::{
    Agent, AgentConfig, CallIdentity, Clock, Durability, LlmPort, Log, Message, Parts, Proposer,
    StartSource, TitleParts, Titler,
};

/// One attempt of the model.
#[derive(Clone)]
pub(super) enum Say {
    /// Chunks, then what the adapter does about the end.
    Chunks(Vec<String>),
    /// These chunks, then silence until a permit comes.
    Held(Vec<String>, Arc<Semaphore>, Vec<String>),
}

pub(super) fn text(text: &str) -> Say {
    Say::Chunks(vec![
        r#"{"type":"block-start","index":0,"blockType":"text"}"#.into(),
        format!(
            r#"{{"type":"text-delta","index":0,"text":{}}}"#,
            Json::string(text)
        ),
        finish("stop"),
    ])
}

pub(super) fn calls(calls: &[(&str, &str, &str)]) -> Say {
    let mut chunks: Vec<String> = calls
        .iter()
        .enumerate()
        .map(|(index, call)| call_block(index, *call))
        .collect();
    chunks.push(finish("tool-calls"));
    Say::Chunks(chunks)
}

pub(super) fn call_block(index: usize, (id, name, arguments): (&str, &str, &str)) -> String {
    let block = Json::object(|block| {
        block
            .str("type", "tool-call")
            .str("id", id)
            .str("name", name)
            .str("arguments", arguments);
    });
    format!(r#"{{"type":"block-end","index":{index},"block":{block}}}"#)
}

pub(super) fn finish(kind: &str) -> String {
    format!(r#"{{"type":"finish","reason":{{"kind":"{kind}"}}}}"#)
}

pub(super) fn error_finish(code: &str) -> String {
    format!(
        r#"{{"type":"finish","reason":{{"kind":"error","failure":{{"message":"it broke","code":"{code}"}}}}}}"#
    )
}

pub(super) fn max_tokens(text: &str) -> Say {
    Say::Chunks(vec![
        format!(
            r#"{{"type":"text-delta","index":0,"text":{}}}"#,
            Json::string(text)
        ),
        finish("max-tokens"),
    ])
}

pub(super) struct ScriptedModel {
    script: Mutex<VecDeque<Say>>,
    pub(super) requests: Mutex<Vec<GenerateRequest>>,
}

#[async_trait]
impl Adapter for ScriptedModel {
    fn list_routes(&self) -> Vec<JsonText> {
        let soon = r#""backoff":{"initialDelayMs":1,"maxDelayMs":1}"#;
        [("p", ""), ("q", ""), ("soon", soon)]
            .map(|(name, retry)| {
                format!(r#"{{"provider":"{name}","name":"{name}","retryPolicy":{{{retry}}}}}"#)
            })
            .to_vec()
    }

    async fn prepare(
        &self,
        _ctx: &CallContext,
        mut config: CallConfig,
    ) -> Result<Prepared, LlmFailure> {
        let mut defaulted = Vec::new();
        if config.max_tokens.is_none() {
            config.max_tokens = Some(1000);
            defaulted.push("maxTokens".to_owned());
        }
        if config.reasoning_effort.is_none() {
            config.reasoning_effort = Some("high".to_owned());
            defaulted.push("reasoningEffort".to_owned());
        }
        let model = format!(
            r#"{{"id":"{}","name":"M","context":{{"contextWindow":10000}},"reasoning":{{"efforts":[{{"id":"high","name":"h"}},{{"id":"low","name":"l"}}],"defaultEffort":"high"}}}}"#,
            config.model
        );
        Ok(Prepared {
            config,
            defaulted,
            model,
        })
    }

    async fn open(
        &self,
        _ctx: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        self.requests.lock().unwrap().push(request);
        let say = self.script.lock().unwrap().pop_front();
        let actions = match say {
            None => {
                return Err(LlmFailure::new(
                    "SCRIPT_EXHAUSTED",
                    "the script has no more answers",
                ));
            }
            Some(Say::Chunks(chunks)) => VecDeque::from([Next::Emit(chunks)]),
            Some(Say::Held(first, gate, rest)) => {
                VecDeque::from([Next::Emit(first), Next::Wait(gate), Next::Emit(rest)])
            }
        };
        Ok(Box::new(ScriptedAttempt { actions }))
    }
}

enum Next {
    Emit(Vec<String>),
    Wait(Arc<Semaphore>),
}

struct ScriptedAttempt {
    actions: VecDeque<Next>,
}

#[async_trait]
impl Attempt for ScriptedAttempt {
    async fn next(&mut self, ctx: &CallContext) -> Result<Action, LlmFailure> {
        loop {
            match self.actions.pop_front() {
                None => return Ok(Action::Done),
                Some(Next::Emit(chunks)) => {
                    return Ok(Action::Emit(Emission {
                        after_ms: 0,
                        chunks,
                    }));
                }
                Some(Next::Wait(gate)) => tokio::select! {
                    permit = gate.acquire() => permit.unwrap().forget(),
                    () = ctx.cancel.cancelled() => return Err(LlmFailure::aborted()),
                },
            }
        }
    }

    async fn head(
        &mut self,
        _: &CallContext,
        _: u16,
        _: Vec<(String, String)>,
    ) -> Result<(), LlmFailure> {
        Ok(())
    }

    async fn body(&mut self, _: &CallContext, _: &[u8]) -> Result<Vec<JsonText>, LlmFailure> {
        Ok(Vec::new())
    }

    async fn end(&mut self, _: &CallContext, _: EndCause) -> Result<Vec<JsonText>, LlmFailure> {
        Ok(Vec::new())
    }

    async fn close(&mut self, _: &CallContext) {}
}

struct NoCredentials;

impl Credentials for NoCredentials {
    fn resolve(&self, _reference: &str) -> Result<Option<Secret>, LlmFailure> {
        Ok(None)
    }
}

/// Every event a millisecond later.
#[derive(Default)]
struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(super) struct Disk {
    pub(super) flushes: AtomicUsize,
    /// Flushes fail from this one on, counted from 1; 0 for never.
    pub(super) broken_from: AtomicUsize,
}

#[async_trait]
impl Durability for Disk {
    async fn flush(&self) -> Result<(), String> {
        let flush = self.flushes.fetch_add(1, Ordering::Relaxed) + 1;
        let broken_from = self.broken_from.load(Ordering::Relaxed);
        if broken_from > 0 && flush >= broken_from {
            Err("the disk is full".to_owned())
        } else {
            Ok(())
        }
    }
}

type Body = Box<dyn Fn(ToolCall, CancellationToken) -> BodyFuture + Send + Sync>;
type BodyFuture =
    std::pin::Pin<Box<dyn std::future::Future<Output = Result<ToolOutcome, PluginError>> + Send>>;

type Overlaps = Box<dyn Fn(&ToolCall) -> bool + Send + Sync>;

/// A tool made of a function.
pub(super) struct FakeTool {
    spec: ToolSpec,
    overlaps: Option<Overlaps>,
    body: Body,
}

#[async_trait]
impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn may_overlap(&self, call: &ToolCall, _scope: &CallScope) -> bool {
        self.overlaps
            .as_ref()
            .is_some_and(|overlaps| overlaps(call))
    }

    async fn run(&self, call: ToolCall, scope: &CallScope) -> Result<ToolOutcome, PluginError> {
        (self.body)(call, scope.cancel.clone()).await
    }
}

pub(super) const ANY: &str = r#"{"type":"object"}"#;

pub(super) fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "a tool", ANY).unwrap()
}

pub(super) fn ok(text: &str) -> Result<ToolOutcome, PluginError> {
    Ok(ToolOutcome {
        content: vec![crate::text_block(text).as_str().to_owned()],
        more: None,
    })
}

pub(super) fn ok_with(text: &str, more: &str) -> Result<ToolOutcome, PluginError> {
    Ok(ToolOutcome {
        more: Some(more.to_owned()),
        ..ok(text)?
    })
}

/// A tool that answers at once.
pub(super) fn tool(
    spec: ToolSpec,
    body: impl Fn(ToolCall) -> Result<ToolOutcome, PluginError> + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    waiting_tool(spec, move |call, _| {
        let outcome = body(call);
        Box::pin(async move { outcome })
    })
}

/// A tool whose body waits for something.
pub(super) fn waiting_tool(
    spec: ToolSpec,
    body: impl Fn(ToolCall, CancellationToken) -> BodyFuture + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    Arc::new(FakeTool {
        spec,
        overlaps: None,
        body: Box::new(body),
    })
}

/// A tool that is asked whether a call may overlap others.
pub(super) fn asking_tool(
    name: &str,
    overlaps: impl Fn(&ToolCall) -> bool + Send + Sync + 'static,
    body: impl Fn(ToolCall, CancellationToken) -> BodyFuture + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let spec = spec(name).with_concurrency(Concurrency::Ask);
    Arc::new(FakeTool {
        spec,
        overlaps: Some(Box::new(overlaps)),
        body: Box::new(body),
    })
}

/// What a rig is made of; the rest has defaults.
#[derive(Default)]
pub(super) struct Setup {
    pub(super) say: Vec<Say>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) listeners: Vec<Arc<dyn Listener>>,
    /// Rows that listen before all of `listeners`.
    pub(super) mounted: Vec<Mounted>,
    pub(super) ports: PortSet,
    pub(super) prompts: Vec<Arc<dyn PromptSource>>,
    pub(super) guards: Vec<Arc<dyn Guard>>,
    pub(super) compactors: Compactors,
    pub(super) session: Option<Session>,
    /// What names the session; without it, nothing does.
    pub(super) titlers: Option<Vec<Arc<dyn Proposer>>>,
    /// What the model says that is asked beside the loop.
    pub(super) beside: Vec<Say>,
    pub(super) configure: Option<fn(&mut AgentConfig)>,
}

fn scripted(say: Vec<Say>) -> (Arc<ScriptedModel>, Models) {
    let model = Arc::new(ScriptedModel {
        script: Mutex::new(say.into()),
        requests: Mutex::default(),
    });
    let models = Models::new(Arc::new(Gateway {
        client: dsh_http::Client::new(),
        credentials: Box::new(NoCredentials),
        pictures: Arc::new(dsh_model::NoPictures),
        user_agent: "dsh-tests/0".into(),
        anonymous_user_id: Box::new(String::new),
    }));
    let adapter: Arc<dyn Adapter> = model.clone();
    models.register(adapter, &[]).unwrap();
    (model, models)
}

pub(super) struct Rig {
    pub(super) agent: Agent,
    pub(super) log: Arc<Log>,
    pub(super) model: Arc<ScriptedModel>,
    /// The model that is asked beside the loop, and what asks it.
    pub(super) beside: Arc<ScriptedModel>,
    pub(super) llm: LlmPort,
    pub(super) registry: Arc<ToolRegistry>,
    pub(super) disk: Arc<Disk>,
    pub(super) first: Seq,
}

pub(super) fn session() -> Session {
    Session::new(Header::new("s1", 0)).unwrap()
}

/// The same log, as another process finds it.
pub(super) fn reopened(rig: &Rig) -> Session {
    let events = rig.log.read(|session| session.log().to_vec().unwrap());
    Session::restore(Header::new("s1", 0), events, 0).unwrap()
}

fn listening(mounted: &Mounted, identity: &Arc<CallIdentity>, log: &Arc<Log>) -> Arc<dyn Listener> {
    let dispatch = mounted.dispatch().unwrap();
    let (identity, log) = (Arc::clone(identity), Arc::clone(log));
    let listener = ComponentListener::new(mounted, dispatch, Vec::new(), identity, log);
    Arc::new(listener)
}

impl Rig {
    /// A row's listener, for this rig's session.
    pub(super) fn listener(&self, mounted: &Mounted) -> Arc<dyn Listener> {
        let identity = Arc::new(CallIdentity {
            ports: Arc::default(),
            session_id: "s1".into(),
            agent_id: "a1".into(),
        });
        listening(mounted, &identity, &self.log)
    }

    pub(super) fn new(setup: Setup) -> Self {
        let resumed = setup.session.is_some();
        let session = setup.session.unwrap_or_else(session);
        let first = session.next_seq();
        let disk = Arc::new(Disk::default());
        let durability: Arc<dyn Durability> = disk.clone();
        let log = Arc::new(Log::new(
            Arc::new(Mutex::new(session)),
            Arc::new(Ticks::default()),
            Vec::new(),
            durability,
        ));
        let (model, models) = scripted(setup.say);
        let (beside, models_beside) = scripted(setup.beside);
        let identity = Arc::new(CallIdentity {
            ports: Arc::new(PortSet::default()),
            session_id: "s1".into(),
            agent_id: "a1".into(),
        });
        let llm = LlmPort::new(
            Arc::clone(&log),
            Arc::new(models_beside),
            Arc::clone(&identity),
            "p",
            "m",
        );
        let titler = |(at, title)| Titler {
            row: format!("titles-{at}"),
            provider: format!("titler-{at}"),
            source: format!("dsh-titles-{at}"),
            title,
        };
        let titles = setup.titlers.map(|titlers| TitleParts {
            titlers: titlers.into_iter().enumerate().map(titler).collect(),
            llm: Some(llm.clone()),
            ..TitleParts::default()
        });
        let registry = Arc::new(ToolRegistry::new(None).unwrap());
        for tool in setup.tools {
            registry.register(tool).unwrap();
        }
        let mut config = AgentConfig::new("p", "m", "/work");
        if let Some(configure) = setup.configure {
            configure(&mut config);
        }
        let identity = Arc::new(CallIdentity {
            ports: Arc::new(setup.ports),
            session_id: "s1".into(),
            agent_id: "a1".into(),
        });
        let of_row = |mounted: &Mounted| listening(mounted, &identity, &log);
        let mut listeners: Vec<_> = setup.mounted.iter().map(of_row).collect();
        listeners.extend(setup.listeners);
        // So that every payload of every test is made, and is of its shape.
        listeners.push(Arc::new(super::events::Everything::default()));
        let agent = Agent::new(Parts {
            log: Arc::clone(&log),
            models: Arc::new(models),
            tools: Arc::clone(&registry),
            prompts: Prompts::new(vec![setup.prompts]),
            dispatch: Arc::new(Dispatch::new(listeners).unwrap()),
            compactors: setup.compactors,
            guards: setup.guards,
            identity,
            config,
            titles,
            inbox: None,
            source: if resumed {
                StartSource::Resume
            } else {
                StartSource::Startup
            },
        })
        .unwrap();
        Self {
            agent,
            log,
            model,
            beside,
            llm,
            registry,
            disk,
            first,
        }
    }

    pub(super) fn saying(say: Vec<Say>) -> Self {
        Self::new(Setup {
            say,
            ..Setup::default()
        })
    }

    /// Sends a prompt and waits until the agent is idle.
    pub(super) async fn run(&self, prompt: &str) {
        self.agent.followup(&Message::from_person(prompt)).unwrap();
        self.agent.when_idle().await;
    }

    /// Waits until the log has an event of this summary.
    pub(super) async fn until(&self, line: &str) {
        let mut events = self.log.follow();
        while !self.events().iter().any(|event| event == line) {
            events
                .recv()
                .await
                .expect("the log is followed while its agent lives");
        }
    }

    /// This agent's part of the log, a line for each event, runs of chunks as one.
    pub(super) fn events(&self) -> Vec<String> {
        let lines = self.log.read(|session| {
            session
                .events_from(self.first)
                .map(|event| line(&event.unwrap()))
                .collect()
        });
        let mut lines: Vec<String> = lines;
        lines.dedup_by(|next, before| next == "chunks" && before == "chunks");
        lines
    }

    pub(super) fn assert(&self, expected: &[&str]) {
        let events = self.events();
        assert_eq!(events, expected, "\n{}", events.join("\n"));
    }

    /// The content of a call's result, joined.
    pub(super) fn result(&self, call: &str) -> String {
        let data = self.log.read(|session| {
            let events = session.log().to_vec().unwrap();
            let results = events.iter().filter(|event| event.kind == Kind::ToolResult);
            results
                .map(|event| event.data.clone())
                .find(|data| call_id(data.value()) == call)
        });
        let data = data.unwrap_or_else(|| panic!("{call} has no result"));
        let block = first_block(data.value());
        texts(block.get("content").unwrap())
    }
}

fn first_block(data: Value<'_>) -> Value<'_> {
    data.path(&["message", "content"])
        .unwrap()
        .items()
        .next()
        .unwrap()
}

fn call_id(data: Value<'_>) -> String {
    first_block(data)
        .get("toolCallId")
        .unwrap()
        .text()
        .unwrap()
        .into_owned()
}

fn texts(content: Value<'_>) -> String {
    content
        .items()
        .filter_map(|block| block.get("text"))
        .filter_map(Value::text)
        .collect()
}

pub(super) fn line(event: &Event) -> String {
    let data = &event.data;
    let text = |path: &[&str]| {
        data.value()
            .path(path)
            .and_then(Value::text)
            .unwrap_or_default()
            .into_owned()
    };
    let number = |key: &str| data.get(key).and_then(Value::u64).unwrap_or(0);
    let kind = event.kind.as_str();
    match event.kind {
        Kind::TurnStart => format!("turn/start {}", number("turn")),
        Kind::TurnEnd => {
            let detail = match text(&["reason", "kind"]).as_str() {
                "aborted" => format!(":{}", text(&["reason", "reason", "kind"])),
                "error" => format!(":{}", text(&["reason", "error", "code"])),
                _ => String::new(),
            };
            format!(
                "turn/end {} {}{detail}",
                number("turn"),
                text(&["reason", "kind"])
            )
        }
        Kind::StepStart | Kind::StepEnd => format!("{kind} {}.{}", number("turn"), number("step")),
        Kind::InboxSpliced => {
            let inserted = data.get("inserted").map_or(0, |list| list.items().count());
            let mut line = format!("inbox {}", text(&["target"]));
            if number("removedCount") > 0 {
                line.push_str(&format!(" -{}", number("removedCount")));
            }
            if inserted > 0 {
                line.push_str(&format!(" +{inserted}"));
            }
            if data.get("outcome").is_some() {
                line.push_str(" canceled");
            }
            line
        }
        Kind::UserMessage => {
            let said = texts(data.get("content").unwrap());
            match text(&["source", "kind"]).as_str() {
                "user" => format!("user/message {said}"),
                source => format!("user/message ({source} {})", text(&["source", "plugin"])),
            }
        }
        Kind::AssistantChunk => "chunks".to_owned(),
        Kind::AssistantMessage => {
            let blocks = data.value().path(&["message", "content"]).unwrap();
            let types: Vec<_> = blocks
                .items()
                .map(|block| block.get("type").unwrap().text().unwrap())
                .collect();
            let interrupted = if data.get("interrupted").is_some() {
                " interrupted"
            } else {
                ""
            };
            format!("assistant/message {}{interrupted}", types.join(","))
                .trim_end()
                .to_owned()
        }
        Kind::RequestHeader => format!("request/header {}", text(&["reason"])),
        Kind::RequestContext => format!(
            "request/context {}/{}",
            text(&["provider"]),
            text(&["model"])
        ),
        Kind::ToolCall => format!("tool/call {}", text(&["callId"])),
        Kind::ToolResult => {
            let code = text(&["error", "code"]);
            let failed = first_block(data.value())
                .get("isError")
                .and_then(Value::bool)
                == Some(true);
            let detail = match (failed, code.is_empty()) {
                (false, _) => String::new(),
                (true, true) => " error".to_owned(),
                (true, false) => format!(" {code}"),
            };
            format!("tool/result {}{detail}", call_id(data.value()))
        }
        Kind::LlmRetry | Kind::LlmRetryStarted => format!("{kind} {}", number("retry")),
        _ => kind.to_owned(),
    }
}

type OnEnter = Box<dyn Fn(&Json) -> Result<Entry, ListenerError> + Send + Sync>;
type OnJson = Box<dyn Fn(&Json) -> Option<Json> + Send + Sync>;

/// A listener made of functions of a payload.
#[derive(Default)]
pub(super) struct FakeListener {
    pub(super) name: &'static str,
    pub(super) event: &'static str,
    pub(super) enter: Option<OnEnter>,
    pub(super) leave: Option<OnJson>,
    pub(super) decide: Option<OnJson>,
    pub(super) told: Option<tokio::sync::mpsc::UnboundedSender<(String, Json)>>,
    pub(super) row: bool,
}

#[async_trait]
impl Listener for FakeListener {
    fn name(&self) -> &str {
        self.name
    }

    fn standing(&self) -> Standing {
        if self.row {
            Standing::Row {
                row: self.name.to_owned(),
                sources: vec!["own-kind".to_owned()],
            }
        } else {
            Standing::Host
        }
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::all(self.event)]
    }

    async fn enter(
        &self,
        _event: &str,
        payload: &Json,
        _cx: &EventContext,
    ) -> Result<Entry, ListenerError> {
        match &self.enter {
            Some(enter) => enter(payload),
            None if self.leave.is_some() => Ok(Entry::carrying("")),
            None => Ok(Entry::proceed()),
        }
    }

    async fn leave(
        &self,
        _event: &str,
        _carry: String,
        outcome: &Json,
        _cx: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        Ok(self.leave.as_ref().and_then(|leave| leave(outcome)))
    }

    async fn decide(
        &self,
        _event: &str,
        payload: &Json,
        _cx: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        Ok(self.decide.as_ref().and_then(|decide| decide(payload)))
    }

    async fn notify(&self, event: &str, payloads: &[Json]) -> Result<(), ListenerError> {
        if let Some(told) = &self.told {
            for payload in payloads {
                let _ = told.send((event.to_owned(), payload.clone()));
            }
        }
        Ok(())
    }
}

pub(super) fn json(text: &str) -> Json {
    Json::normalise(text).unwrap()
}
