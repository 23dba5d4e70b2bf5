//! A row in use.
//!
//! Mounting is where everything that can be known beforehand is refused: an
//! import without its grant, types that are not the contract's, an offer that
//! nobody could use. What is left to go wrong in a call is a [`CallError`].

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::component::Linker;

use crate::adapter::Adapter;
use crate::api::{
    JsonText, PluginError, ProjectionSpec, Subscription, ToolCall, ToolOutcome, ToolSpec,
};
use crate::call::CallContext;
use crate::capability::{self, Phase};
use crate::compaction::Compaction;
use crate::component::Component;
use crate::contract::v0_1::{Exports, ToolGuest};
use crate::dispatch::Dispatch;
use crate::engine::Inner;
use crate::error::{CallError, Error};
use crate::grants::{Grants, Need, need};
use crate::health::{Health, Task};
use crate::instance::{Call, Export, Linked, Live, RowInfo, State};
use crate::limits::Limits;
use crate::offer::{self, Offer};
use crate::port::Quarantine;
use crate::projection::Projection;
use crate::prompt::Prompt;
use crate::standin::{self, StandIns};
use crate::title::Title;

/// Interfaces that a component may be mounted for.
const MOUNTABLE: [&str; 7] = [
    "llm-adapter",
    "tool",
    "dispatch",
    "prompt",
    "compaction",
    "title",
    "projection",
];

/// A row of a profile, ready to be mounted.
#[derive(Debug, Clone)]
pub struct Row {
    /// The row's id in the profile.
    pub id: String,
    /// What it mounts.
    pub component: Arc<Component>,
    /// Its configuration: `config.get`.
    pub config: JsonText,
    /// What it may do.
    pub grants: Grants,
    /// What it may use up: see [`Limits::of`].
    pub limits: Limits,
}

/// What a row's handles share.
pub(crate) struct Shared {
    pub(crate) linked: Arc<Linked>,
    pub(crate) health: Health,
    /// Calls that were not made because the instance was on the stack.
    skipped: AtomicU64,
    component: Arc<Component>,
    offer: Offer,
}

impl Shared {
    pub(crate) fn id(&self) -> &str {
        &self.linked.row.id
    }

    pub(crate) fn projections(&self) -> &[ProjectionSpec] {
        &self.offer.projections
    }

    /// Counts how a call ended, and says so where that puts the row out of use.
    pub(crate) fn note<T>(&self, ctx: &CallContext, task: Task<'_>, result: &Result<T, CallError>) {
        let (Some(failures), Err(error)) = (self.health.note(task, result), result) else {
            return;
        };
        if let Some(watch) = &ctx.ports.watch {
            watch.quarantined(Quarantine {
                row: self.id().to_owned(),
                plugin: self.linked.row.plugin.clone(),
                reason: error.to_string(),
                failures,
            });
        }
    }

    /// A call that would wait for itself.
    pub(crate) fn skip(&self, function: &'static str) -> CallError {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        CallError::OnStack {
            row: self.id().to_owned(),
            function,
        }
    }

    /// A call on an instance that lives for it alone.
    pub(crate) async fn call_fresh<G, T, Fut>(
        &self,
        call: Call<'_>,
        body: impl FnOnce(Live<G>) -> Fut + Send + 'static,
    ) -> Result<T, CallError>
    where
        G: Export,
        T: Send + 'static,
        Fut: Future<Output = (Live<G>, wasmtime::Result<Result<T, PluginError>>)> + Send + 'static,
    {
        self.health.check(self.id())?;
        let (ctx, task) = (call.ctx, call.task());
        let (_, result) = self.linked.call(None, call, body).await;
        self.note(ctx, task, &result);
        result
    }
}

/// A mounted row. Cheap to clone; all clones are the same row.
#[derive(Clone)]
pub struct Mounted {
    shared: Arc<Shared>,
}

impl Mounted {
    /// The row's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.shared.id()
    }

    /// The component that it mounts.
    #[must_use]
    pub fn component(&self) -> &Arc<Component> {
        &self.shared.component
    }

    /// What it may do.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.shared.linked.row.grants
    }

    /// Its tools; empty for one that exports no `tool`.
    #[must_use]
    pub fn tools(&self) -> &[ToolSpec] {
        &self.shared.offer.tools
    }

    /// Its routes, a JSON text each; empty for one that exports no `llm-adapter`.
    #[must_use]
    pub fn routes(&self) -> &[JsonText] {
        &self.shared.offer.routes
    }

    /// What it listens to; empty for one that exports no `dispatch`.
    #[must_use]
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.shared.offer.subscriptions
    }

    /// Whether it exports this interface of the contract (`tool`, `prompt`, …).
    #[must_use]
    pub fn exports(&self, interface: &str) -> bool {
        self.shared
            .component
            .description
            .exports_interface(interface)
    }

    /// Whether it exports `prompt`.
    #[must_use]
    pub fn has_prompt(&self) -> bool {
        self.exports("prompt")
    }

    /// Why nothing of the row is called any more, once it is out of use.
    #[must_use]
    pub fn quarantine(&self) -> Option<CallError> {
        self.shared.health.check(self.id()).err()
    }

    /// How often the row was not called because its instance was already in the
    /// same chain of calls.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.shared.skipped.load(Ordering::Relaxed)
    }

    /// Runs a tool on a fresh instance. No bound on the wall clock but the
    /// caller's: cancel `ctx.cancel`.
    ///
    /// # Errors
    /// [`CallError::Plugin`] is the tool's own error; any other, how the call ended.
    pub async fn call_tool(
        &self,
        ctx: &CallContext,
        call: ToolCall,
    ) -> Result<ToolOutcome, CallError> {
        let how = Call {
            function: "tool.run",
            ctx,
            phase: Phase::Run,
            timed: false,
            place: None,
            event: "",
        };
        self.shared
            .call_fresh(how, |mut live: Live<ToolGuest>| async move {
                let outcome = live.guest.call_run(&mut live.store, &call.into()).await;
                (
                    live,
                    outcome.map(|outcome| outcome.map(Into::into).map_err(Into::into)),
                )
            })
            .await
    }

    /// Whether this call may overlap others; a failure means no.
    pub async fn may_overlap(&self, ctx: &CallContext, call: ToolCall) -> bool {
        let how = Call {
            function: "tool.may-overlap",
            ctx,
            phase: Phase::Work,
            timed: true,
            place: None,
            event: "",
        };
        self.shared
            .call_fresh(how, |mut live: Live<ToolGuest>| async move {
                let may = live
                    .guest
                    .call_may_overlap(&mut live.store, &call.into())
                    .await;
                (live, may.map(Ok))
            })
            .await
            .unwrap_or(false)
    }

    /// An adapter of its own for an agent; none if it exports no `llm-adapter`.
    #[must_use]
    pub fn adapter(&self) -> Option<Adapter> {
        self.exports("llm-adapter")
            .then(|| Adapter::new(Arc::clone(&self.shared)))
    }

    /// A prompt of its own for an agent; none if it exports no `prompt`.
    #[must_use]
    pub fn prompt(&self) -> Option<Prompt> {
        self.exports("prompt")
            .then(|| Prompt::new(Arc::clone(&self.shared)))
    }

    /// A projection of its own; none if it exports no `projection`.
    #[must_use]
    pub fn projection(&self) -> Option<Projection> {
        self.exports("projection")
            .then(|| Projection::new(Arc::clone(&self.shared)))
    }

    /// A maker of titles of its own for an agent; none if it exports no `title`.
    #[must_use]
    pub fn title(&self) -> Option<Title> {
        self.exports("title")
            .then(|| Title::new(Arc::clone(&self.shared)))
    }

    /// A compactor; none if it exports no `compaction`.
    #[must_use]
    pub fn compaction(&self) -> Option<Compaction> {
        self.exports("compaction")
            .then(|| Compaction::new(Arc::clone(&self.shared)))
    }

    /// A listener of its own for an agent; none if it exports no `dispatch`.
    #[must_use]
    pub fn dispatch(&self) -> Option<Dispatch> {
        self.exports("dispatch")
            .then(|| Dispatch::new(Arc::clone(&self.shared)))
    }
}

/// Mounts a row.
pub(crate) async fn mount(engine: &Arc<Inner>, row: Row) -> Result<Mounted, Error> {
    let component = Arc::clone(&row.component);
    let linked = prepare(engine, row, Standing::Granted)?;
    let offer = offer::read(&linked, &component.description).await?;
    offer.permitted(&linked.row)?;
    Ok(Mounted {
        shared: Arc::new(Shared {
            linked,
            health: Health::default(),
            skipped: AtomicU64::new(0),
            component,
            offer,
        }),
    })
}

/// Whether a person has decided what a row may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may do what its grants say.
    Granted,
    /// Nobody has said yet: it is asked what it offers, and nothing else of it is
    /// ever called. All its imports are linked, and all but `log`, `config` and
    /// `work` trap while it answers ([`Phase::Offer`]).
    Surveyed,
}

/// Checks a row and links it.
pub(crate) fn prepare(
    engine: &Arc<Inner>,
    row: Row,
    standing: Standing,
) -> Result<Arc<Linked>, Error> {
    let component = row.component;
    let description = &component.description;
    let manifest = description.manifest.as_ref();
    let home = engine.home.as_deref();
    let folders = standin::open_folders(&row.id, description, row.grants.dirs(), home)?;
    let info = Arc::new(RowInfo {
        plugin: manifest.map_or_else(|| row.id.clone(), |manifest| manifest.plugin.name.clone()),
        namespace: manifest
            .map(|manifest| manifest.plugin.namespace().to_owned())
            .unwrap_or_default(),
        appends: manifest
            .map(|manifest| manifest.events.appends.clone())
            .unwrap_or_default(),
        sources: manifest
            .map(|manifest| manifest.events.sources.clone())
            .unwrap_or_default(),
        spilled: AtomicU64::new(0),
        attached: AtomicU64::new(0),
        folders,
        id: row.id,
        config: row.config,
        grants: row.grants,
        limits: row.limits,
        host_version: engine.host_version.clone(),
    });
    let linker = link(engine, &component, &info, standing)?;
    if !MOUNTABLE
        .iter()
        .any(|interface| description.exports_interface(interface))
    {
        let exports = description
            .exports
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        let exports = if exports.is_empty() {
            "it exports nothing".to_owned()
        } else {
            exports.join(", ")
        };
        return Err(Error::NothingToMount {
            row: info.id.clone(),
            exports,
        });
    }
    let adapter = description.exports_interface("llm-adapter");
    if adapter && standing == Standing::Granted && !info.grants.has("route") {
        return Err(Error::ExportNotGranted {
            row: info.id.clone(),
            what: "the component is a model adapter and would be sent conversations".to_owned(),
            grant: "route".to_owned(),
        });
    }
    let mismatch = |error: wasmtime::Error| Error::Mismatch {
        row: info.id.clone(),
        reason: format!("{error:#}"),
    };
    let pre = linker.instantiate_pre(&component.code).map_err(mismatch)?;
    let exports =
        Exports::find(&pre, |name| description.exports_interface(name)).map_err(mismatch)?;
    Ok(Arc::new(Linked {
        engine: Arc::clone(engine),
        row: Arc::clone(&info),
        pre,
        exports,
    }))
}

/// Links what the component imports and its row was granted.
fn link(
    engine: &Inner,
    component: &Component,
    row: &RowInfo,
    standing: Standing,
) -> Result<Arc<Linker<State>>, Error> {
    let mismatch = |error: wasmtime::Error| Error::Mismatch {
        row: row.id.clone(),
        reason: format!("{error:#}"),
    };
    let mut capabilities = Vec::new();
    let mut met = Vec::new();
    for import in &component.description.imports {
        let not_provided = |what: String| Error::NotProvided {
            row: row.id.clone(),
            import: import.to_string(),
            what,
        };
        match need(import) {
            Need::Always => {}
            Need::StandIn => {
                met.push(import);
                continue;
            }
            Need::Grant(grant) if standing == Standing::Surveyed || row.grants.has(grant) => {}
            Need::Grant(grant) => {
                return Err(Error::NotGranted {
                    row: row.id.clone(),
                    import: import.to_string(),
                    grant: grant.to_owned(),
                });
            }
            Need::NotYet(what) => return Err(not_provided(what.to_owned())),
            Need::Unknown => return Err(not_provided("it".to_owned())),
        }
        let capability = import
            .of_contract()
            .and_then(|(name, _)| capability::find(name));
        capabilities.push(capability.ok_or_else(|| not_provided("it".to_owned()))?);
    }
    let linker = engine
        .linkers
        .of(engine.wasm(), &capabilities)
        .map_err(mismatch)?;
    if met.is_empty() {
        return Ok(linker);
    }
    // What stand-ins are made of is the component's own.
    let mut linker = Linker::clone(&linker);
    let mut stand_ins = StandIns::default();
    for import in met {
        stand_ins
            .link(&mut linker, import, &component.code)
            .map_err(mismatch)?;
    }
    Ok(Arc::new(linker))
}
