//! One session's run, put together from a composed profile: the store, the
//! sandbox, the mounted components, and the agent over them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use dsh_agent::compaction::{Compactor, Compactors, ComponentCompactor};
use dsh_agent::dispatch::{ComponentListener, Dispatch, FileEvents, Listener, check_subscription};
use dsh_agent::projection::Projections;
use dsh_agent::prompt::{ComponentPrompt, HostFacts, PromptSource, Prompts};
use dsh_agent::tools::{ComponentTool, ToolRegistry};
use dsh_agent::{
    Agent, AgentConfig, CallIdentity, Durability, EventSink, InboxPort, JournalPort, LlmPort, Log,
    Parts, Preset, RowWatch, SessionPort, SystemClock, pin_permissions,
};
use dsh_http::{Client, ClientConfig};
use dsh_model::{Gateway, Models};
use dsh_plugin::api::CallConfig;
use dsh_plugin::port::{PortSet, Watch};
use dsh_plugin::{CallContext, Engine};
use dsh_profile::{Composition, CredentialStore, Environment, PluginData, Row};
use dsh_sandbox::{Mode, RunnerKind, Sandbox, SandboxConfig, SessionConfig, SessionSandbox};
use dsh_session::{Kind, Value};
use dsh_store::Writer;

use crate::arguments::{Format, Model, Request};
use crate::attachments::Attachments;
use crate::boot::{self, Composed, Mount, proxies};
use crate::credentials::FromStore;
use crate::exit::Failure;
use crate::kv::SessionKv;
use crate::live::{self, Routes};
use crate::models;
use crate::open;
use crate::projections;
use crate::report;
use crate::route::Route;
use crate::row_lines::RowLines;
use crate::stream::Stream;
use crate::titles;

/// A started run.
pub(crate) struct Run {
    pub(crate) agent: Agent,
    pub(crate) log: Arc<Log>,
    /// Of a run whose events are the output.
    pub(crate) stream: Option<Stream>,
    models: Arc<Models>,
    model: Model,
    projections: Option<Arc<Projections>>,
    writer: Arc<Writer>,
    files: SessionSandbox,
}

impl Run {
    /// Opens the session and makes the agent that runs it.
    pub(crate) async fn start(
        composed: &Composed,
        request: &Request,
        attachments: &Attachments,
    ) -> Result<Self, Failure> {
        let engine = boot::engine(composed)?;
        let mounts = boot::mount(composed, &engine).await?;
        let preset = match request.permission {
            Some(preset) => preset,
            None => preset(&composed.rows)?,
        };
        let opened = open::session(composed, &request.session, request.cwd.is_some())?;
        let id = opened.session.id().to_string();
        let cwd = opened.cwd.to_string_lossy().into_owned();

        let writer = Arc::new(opened.writer);
        let log = Arc::new(Log::new(
            Arc::new(Mutex::new(opened.session)),
            Arc::new(SystemClock),
            vec![Arc::new(ToWriter(Arc::clone(&writer)))],
            Arc::new(ToWriter(Arc::clone(&writer))),
        ));
        let stream = (request.output == Format::StreamJson).then(|| Stream::start(&log));
        let route = log.read(|session| Route::choose(&composed.rows, session, request))?;
        let unpinned = log.read(|session| session.last_of(&Kind::SandboxMode).is_none());
        // A session keeps what it was told until it is told something else.
        if unpinned || request.permission.is_some() {
            pin_permissions(&log, preset).map_err(Failure::of)?;
        }

        let projections = projections::start(composed, &mounts, &log, opened.source)?;

        let kv = SessionKv {
            data: PluginData::at(&composed.place.home),
            profile: composed.profile.clone(),
            cwd: opened.cwd.clone(),
            session: id.clone(),
        };
        let file_events = Arc::new(FileEvents::default());
        let files = sandbox(composed, &log, &id, opened.cwd, &writer, &file_events)?;
        let inbox = Arc::new(InboxPort::default());
        let gateway = gateway(composed, attachments)?;
        let identity = |ports: PortSet| {
            Arc::new(CallIdentity {
                ports: Arc::new(ports),
                session_id: id.clone(),
                agent_id: id.clone(),
            })
        };
        let ports = PortSet {
            log: Some(Arc::new(RowLines::of(&mounts))),
            attachments: Some(Arc::new(attachments.clone())),
            pictures: Some(Arc::new(attachments.clone())),
            ..ports(&log, &files, &inbox, kv, projections.clone())
        };
        let routes = routes(composed, &engine, &mounts, &gateway, &route.model.provider)?;
        let llm = LlmPort::new(
            Arc::clone(&log),
            routes.auxiliary,
            identity(ports.clone()),
            &route.model.provider,
            &route.model.model,
        );
        let titles = titles::parts(composed, &mounts, &llm)?;
        let identity = identity(PortSet {
            llm: Some(Arc::new(llm)),
            ..ports
        });
        let dispatch = Arc::new(dispatch(composed, &mounts, &identity, &log)?);
        file_events.serve(&dispatch);
        let models = routes.main;
        let model = route.model.clone();
        let agent = Agent::new(Parts {
            models: Arc::clone(&models),
            titles,
            tools: Arc::new(tools(composed, &mounts, &identity)?),
            prompts: prompts(&composed.rows, &mounts, &identity, &log),
            dispatch,
            compactors: compactors(&mounts, &identity),
            guards: Vec::new(),
            config: agent_config(&composed.rows, route, &cwd),
            source: opened.source,
            log: Arc::clone(&log),
            identity,
            inbox: Some(inbox),
        })
        .map_err(Failure::of)?;
        Ok(Self {
            agent,
            log,
            stream,
            models,
            model,
            projections,
            writer,
            files,
        })
    }

    /// Says so where the chosen model takes no pictures; one that cannot be called
    /// says that in its first request.
    pub(crate) async fn warn_of_pictures(&self) {
        let config = CallConfig {
            provider: self.model.provider.clone(),
            model: self.model.model.clone(),
            ..CallConfig::default()
        };
        let prepared = self.models.prepare(&CallContext::default(), config).await;
        if prepared.is_ok_and(|call| !call.model().takes_images()) {
            report::line(format_args!(
                "{}/{} takes text only: it gets a note in the place of each attached picture; \
                 name a model that takes pictures with --model",
                self.model.provider, self.model.model
            ));
        }
    }

    /// Where the log is.
    pub(crate) fn path(&self) -> &Path {
        self.writer.path()
    }

    /// Gives up what still runs, and returns when the log is durable and closed
    /// and no command is left.
    pub(crate) async fn close(&self) -> Result<(), Failure> {
        let disposed = self.agent.dispose().await.map_err(Failure::of);
        if let Some(projections) = &self.projections {
            projections.close().await;
        }
        let closed = self.writer.close().await.map_err(|error| {
            Failure::of(format_args!(
                "the log {} is not complete: {error}",
                self.writer.path().display()
            ))
        });
        // A command that was told to end has its time for it.
        self.files.idle().await;
        disposed.and(closed)
    }
}

/// The store's writer, as the agent's log sees it.
struct ToWriter(Arc<Writer>);

impl EventSink for ToWriter {
    fn event(&self, event: &Arc<dsh_session::Event>) {
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

pub(crate) fn text<'a>(row: Option<&'a Row>, key: &str) -> Option<&'a str> {
    row?.config
        .get(key)?
        .as_str()
        .filter(|text| !text.trim().is_empty())
}

fn number(row: Option<&Row>, key: &str) -> Option<usize> {
    usize::try_from(row?.config.get(key)?.as_u64()?).ok()
}

fn preset(rows: &Composition) -> Result<Preset, Failure> {
    let mode = text(rows.host("sandbox-policy"), "mode").unwrap_or("read-only");
    Preset::named(mode).ok_or_else(|| {
        Failure::of(format_args!(
            "row sandbox-policy: there is no mode {mode:?}; set DSH_PERMISSION_MODE to \
             read-only, workspace-write or danger-full-access"
        ))
    })
}

/// `guardHome: false` of the row `sandbox-policy`: commands under full access
/// run as the person would run them, and may write to `$DSH_HOME`.
pub(crate) fn guards_home(rows: &Composition) -> bool {
    let written = rows
        .host("sandbox-policy")
        .and_then(|row| row.config.get("guardHome"));
    written.and_then(serde_json::Value::as_bool).unwrap_or(true)
}

fn sandbox(
    composed: &Composed,
    log: &Arc<Log>,
    id: &str,
    root: PathBuf,
    writer: &Writer,
    file_events: &Arc<FileEvents>,
) -> Result<SessionSandbox, Failure> {
    let home = composed.place.home.path();
    let sandbox = machine(&composed.env, home, guards_home(&composed.rows))?;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let of_log = Arc::clone(log);
    Ok(sandbox.session(SessionConfig {
        session_id: id.to_owned(),
        root,
        mode: Arc::new(move || mode(&of_log)),
        env: vec![
            ("DSH_HOME".to_owned(), path(home)),
            ("DSH_SHELL".to_owned(), "1".to_owned()),
            ("DSH_SESSION_ID".to_owned(), id.to_owned()),
            ("DSH_SESSION_JSONL".to_owned(), path(writer.path())),
        ],
        policy: Arc::<FileEvents>::clone(file_events),
        escalation: None,
        output: None,
    }))
}

/// The sandbox of this process.
pub(crate) fn machine(
    env: &Environment,
    home: &Path,
    guard_home: bool,
) -> Result<Sandbox, Failure> {
    let asked = env.get("DSH_SANDBOX").filter(|text| !text.is_empty());
    let named = |name: &str| {
        RunnerKind::named(name).ok_or_else(|| {
            Failure::of(format_args!(
                "DSH_SANDBOX is {name:?}; set it to bwrap or landlock, or leave it unset"
            ))
        })
    };
    let force = asked.map(named).transpose()?;
    let helper = std::env::current_exe()
        .map_err(|error| Failure::of(format_args!("cannot tell where dsh itself is: {error}")))?;
    Ok(Sandbox::new(SandboxConfig {
        dsh_home: home.to_owned(),
        temp_dir: std::env::temp_dir(),
        helper,
        force,
        guard_home,
        inherited_env: std::env::vars_os().collect(),
    }))
}

/// The mode that the log says; the narrowest where it says none.
fn mode(log: &Log) -> Mode {
    log.read(|session| {
        let last = session.last_of(&Kind::SandboxMode)?;
        let name = last.data.get("mode").and_then(Value::text)?;
        name.parse().ok()
    })
    .unwrap_or(Mode::ReadOnly)
}

/// Logs and reports rows that are put out of use.
pub(crate) fn watch(log: &Arc<Log>) -> Arc<dyn Watch> {
    Arc::new(RowWatch::new(Arc::clone(log), |quarantine| {
        report::line(format_args!(
            "row {}: out of use after {} failures in a row, the last: {}",
            quarantine.row, quarantine.failures, quarantine.reason
        ));
    }))
}

fn ports(
    log: &Arc<Log>,
    files: &SessionSandbox,
    inbox: &Arc<InboxPort>,
    kv: SessionKv,
    projections: Option<Arc<Projections>>,
) -> PortSet {
    let session = SessionPort::new(Arc::clone(log)).with_projections(projections);
    PortSet {
        inbox: Some(Arc::<InboxPort>::clone(inbox)),
        kv: Some(Arc::new(kv)),
        watch: Some(watch(log)),
        session: Some(Arc::new(session)),
        journal: Some(Arc::new(JournalPort::new(Arc::clone(log)))),
        workspace: Some(Arc::new(files.clone())),
        spill: Some(Arc::new(files.clone())),
        process: Some(Arc::new(files.clone())),
        ..PortSet::default()
    }
}

/// How dsh calls itself.
pub(crate) const USER_AGENT: &str = concat!("dsh/", env!("CARGO_PKG_VERSION"));

/// What requests of every route go out through.
fn gateway(composed: &Composed, attachments: &Attachments) -> Result<Arc<Gateway>, Failure> {
    let credentials =
        CredentialStore::open(&composed.place.home, composed.env.clone()).map_err(Failure::of)?;
    let (home, id) = (composed.place.home.clone(), OnceLock::new());
    Ok(Arc::new(Gateway {
        client: Client::with(ClientConfig {
            proxies: proxies(),
            ..ClientConfig::default()
        }),
        credentials: Box::new(FromStore(credentials)),
        pictures: Arc::new(attachments.clone()),
        user_agent: USER_AGENT.to_owned(),
        anonymous_user_id: Box::new(move || id.get_or_init(|| home.anonymous_user_id()).clone()),
    }))
}

/// All routes; `asked` is the provider that has to be among them.
fn routes(
    composed: &Composed,
    engine: &Engine,
    mounts: &[Mount],
    gateway: &Arc<Gateway>,
    asked: &str,
) -> Result<Routes, Failure> {
    let routes = live::routes(composed, engine, mounts, gateway)?;
    let serves = |mount: &Mount| {
        let subscriptions = mount.mounted.subscriptions().iter();
        let mut events = subscriptions.map(|own| own.event.as_str());
        events.any(|event| event == "llm/stream")
    };
    // That the row which would serve it was left out is the reason, rather than that
    // nothing is there; but a listener may serve a provider that no adapter does.
    if !routes
        .main
        .providers()
        .iter()
        .any(|known| known.id == asked)
        && !mounts.iter().any(serves)
        && let Some(reason) = composed.left_out.reason(asked)
    {
        return Err(Failure::of(format_args!(
            "nothing serves {asked:?}, the provider of the chosen model: {reason}"
        )));
    }
    for one in composed
        .rows
        .unserved
        .iter()
        .filter(|one| one.taken_by.is_some())
    {
        composed.left_out.note(one)?;
    }
    // Of the one that is asked it is the answer's to say.
    for (provider, problem) in models::problems(&routes.main) {
        if provider != asked {
            composed.left_out.note(format_args!(
                "provider {provider} cannot be called: {problem}"
            ))?;
        }
    }
    Ok(routes)
}

fn tools(
    composed: &Composed,
    mounts: &[Mount],
    identity: &Arc<CallIdentity>,
) -> Result<ToolRegistry, Failure> {
    let order = composed
        .rows
        .components()
        .find(|row| row.id == "system-prompt")
        .and_then(|row| row.config.get("toolOrder")?.as_array())
        .map(|names| {
            names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect()
        });
    let registry = match ToolRegistry::new(order) {
        Ok(registry) => registry,
        Err(error) => {
            // The tools are there all the same, in the order of their names.
            composed.left_out.note(format_args!(
                "row system-prompt: {error}; mend or take out toolOrder in the row's config"
            ))?;
            ToolRegistry::new(None).map_err(Failure::of)?
        }
    };
    for mount in mounts {
        let tools = match ComponentTool::all(&mount.mounted, identity) {
            Ok(tools) => tools,
            Err(error) => {
                composed.left_out.row(&mount.row, &error.to_string())?;
                continue;
            }
        };
        for tool in tools {
            if let Err(error) = registry.register(tool) {
                composed.left_out.row(&mount.row, &error.to_string())?;
            }
        }
    }
    Ok(registry)
}

fn prompts(
    rows: &Composition,
    mounts: &[Mount],
    identity: &Arc<CallIdentity>,
    log: &Arc<Log>,
) -> Prompts {
    let host: Vec<Arc<dyn PromptSource>> = vec![Arc::new(HostFacts::new(Arc::clone(log)))];
    let (mut own, mut guests) = (Vec::new(), Vec::new());
    for mount in mounts {
        let Some(prompt) = mount.mounted.prompt() else {
            continue;
        };
        let source = ComponentPrompt::new(&mount.row.id, prompt, Arc::clone(identity));
        let into = if mount.row.plugin.is_some() {
            &mut guests
        } else {
            &mut own
        };
        into.push(Arc::new(source) as Arc<dyn PromptSource>);
    }
    let installed: Vec<String> = guests.iter().map(|guest| guest.name().to_owned()).collect();
    let prompts = Prompts::new(vec![host, own]).with_guests(guests, move |row, why| {
        let fix = if installed.iter().any(|known| known == row) {
            format!("if that stays so, run `dsh plugin disable {row}`")
        } else {
            format!("configure it, or disable one of the two by a patch: `- id: {row}` with `disabled: true`")
        };
        report::line(format_args!("row {row} is left out of the prompt: {why}; {fix}"));
    });
    let row = rows.components().find(|row| row.id == "system-prompt");
    let included = row.and_then(|row| row.config.get("includeRuntimeContext")?.as_bool());
    if included == Some(false) {
        prompts.without_context()
    } else {
        prompts
    }
}

fn compactors(mounts: &[Mount], identity: &Arc<CallIdentity>) -> Compactors {
    let row = |mount: &Mount| {
        let compaction = mount.mounted.compaction()?;
        let row = ComponentCompactor::new(&mount.row.id, compaction, Arc::clone(identity));
        Some(Arc::new(row) as Arc<dyn Compactor>)
    };
    Compactors::new(mounts.iter().filter_map(row).collect(), |line| {
        report::line(format_args!("{line}"));
    })
}

fn dispatch(
    composed: &Composed,
    mounts: &[Mount],
    identity: &Arc<CallIdentity>,
    log: &Arc<Log>,
) -> Result<Dispatch, Failure> {
    let mut listeners: Vec<Arc<dyn Listener>> = Vec::new();
    for mount in mounts {
        if let Some(listener) = mount.mounted.dispatch() {
            let subscriptions = mount.mounted.subscriptions().iter();
            let mut unfit =
                subscriptions.filter_map(|own| check_subscription(&own.event, own.beside).err());
            if let Some(what) = unfit.next() {
                let reason =
                    format!("{what}; use a version of it for this dsh, or disable the row");
                composed.left_out.row(&mount.row, &reason)?;
                continue;
            }
            listeners.push(Arc::new(ComponentListener::new(
                &mount.mounted,
                listener,
                sources(&mount.mounted),
                Arc::clone(identity),
                Arc::clone(log),
            )));
        }
    }
    let dispatch = Dispatch::new(listeners).map_err(Failure::of)?;
    Ok(dispatch.reporting(|failure| report::line(failure)))
}

/// The message source kinds that a component's manifest names.
fn sources(mounted: &dsh_plugin::Mounted) -> Vec<String> {
    let manifest = mounted.component().manifest();
    manifest
        .map(|manifest| manifest.events.sources.clone())
        .unwrap_or_default()
}

fn agent_config(rows: &Composition, route: Route, cwd: &str) -> AgentConfig {
    let mut config = AgentConfig::new(route.model.provider, route.model.model, cwd);
    config.reasoning_effort = route.effort;
    if let Some(width) = number(rows.host("agent-loop"), "maxParallelToolCalls") {
        config.max_parallel_tool_calls = width.max(1);
    }
    config
}
