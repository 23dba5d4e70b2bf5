//! A linked component, its instances, and a call of one.
//!
//! Linking is done once, when the row is mounted; an instance is a store with
//! the row's limits and what was linked, and costs microseconds. Whether it
//! outlives a call is up to who calls: a tool's does not, an adapter's does.
//! After a trap, a bound or a cancel that had to interrupt, the instance is
//! dropped in whatever state it was, and nothing of it is used again.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use wasmtime::component::{Instance, InstancePre};
use wasmtime::{ResourceLimiter, Store, Trap, UpdateDeadline};

use crate::api::PluginError;
use crate::call::CallContext;
use crate::capability::{Lines, Phase};
use crate::contract::v0_1::Exports;
use crate::engine::Inner;
use crate::error::CallError;
use crate::grants::Grants;
use crate::health::Task;
use crate::limits::Limits;
use crate::port::Level;
use crate::run::{self, Bounds, Meter, Stopped};
use crate::standin::{Folder, Wasi};
use crate::{stack, ticker};

/// What a row's instances have in common.
pub(crate) struct RowInfo {
    pub(crate) id: String,
    /// The plugin's own name, or the row's where it has no manifest.
    pub(crate) plugin: String,
    pub(crate) namespace: String,
    /// Event kinds that its manifest names.
    pub(crate) appends: Vec<String>,
    /// Message source kinds that its manifest names.
    pub(crate) sources: Vec<String>,
    pub(crate) config: String,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    pub(crate) host_version: String,
    /// Bytes that it stored through `spill`.
    pub(crate) spilled: AtomicU64,
    /// Bytes that it put through `attachments`.
    pub(crate) attached: AtomicU64,
    /// Folders of the grant `dir`, held open.
    pub(crate) folders: Vec<Folder>,
}

/// A store's data: all that an import can see.
pub(crate) struct State {
    pub(crate) row: Arc<RowInfo>,
    pub(crate) ctx: CallContext,
    pub(crate) phase: Phase,
    pub(crate) lines: Lines,
    pub(crate) meter: Arc<Meter>,
    /// Imports that the call called, and bytes that it handed to them.
    pub(crate) calls: AtomicU64,
    pub(crate) handed_over: AtomicU64,
    /// What stand-ins of WASI keep, once one was called.
    pub(crate) wasi: Option<Box<Wasi>>,
    usage: Usage,
}

/// Tables of an instance; what they hold is bounded on its own.
const TABLES: usize = 32;

/// What a growth that was refused was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Nothing,
    Memory,
    Elements,
}

/// What an instance holds. Memories and tables are charged together, so that
/// many small ones do not add up to more than one large one.
struct Usage {
    memory: usize,
    max_memory: usize,
    elements: usize,
    max_elements: usize,
    max_instances: usize,
    max_memories: usize,
    /// A growth that was allowed; taken back if it then fails.
    last: usize,
    refused: Refused,
}

impl Usage {
    fn under(limits: &Limits) -> Self {
        let number = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            memory: 0,
            max_memory: number(limits.memory),
            elements: 0,
            max_elements: number(limits.tables),
            max_instances: number(limits.instances),
            max_memories: number(limits.memories),
            last: 0,
            refused: Refused::Nothing,
        }
    }
}

impl ResourceLimiter for Usage {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let allowed = self
            .memory
            .checked_add(more)
            .is_some_and(|sum| sum <= self.max_memory);
        if allowed {
            self.memory += more;
            self.last = more;
        } else {
            self.refused = Refused::Memory;
            self.last = 0;
        }
        Ok(allowed)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory -= std::mem::take(&mut self.last);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let allowed = self
            .elements
            .checked_add(more)
            .is_some_and(|sum| sum <= self.max_elements);
        if allowed {
            self.elements += more;
        } else {
            self.refused = Refused::Elements;
        }
        Ok(allowed)
    }

    fn instances(&self) -> usize {
        self.max_instances
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        self.max_memories
    }
}

/// The cpu bound, raised from inside.
#[derive(Debug, thiserror::Error)]
#[error("the cpu bound is used up")]
struct Exhausted;

/// A bound on what a call does through its imports, raised where it is passed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(crate) enum Exceeded {
    #[error("the bound on calls of imports is used up")]
    Calls,
    #[error("the bound on what a call hands over is used up")]
    Output,
}

/// An export of the contract, with its functions looked up.
pub(crate) trait Export: Sized + Send + 'static {
    /// Its interface's short name.
    const INTERFACE: &'static str;

    /// Nothing if the component does not export it.
    fn load(
        exports: &Exports,
        store: &mut Store<State>,
        instance: &Instance,
    ) -> Option<wasmtime::Result<Self>>;
}

/// An instance that can be called.
pub(crate) struct Live<G> {
    pub(crate) store: Store<State>,
    pub(crate) guest: G,
    meter: Arc<Meter>,
}

/// How a call is made.
pub(crate) struct Call<'a> {
    pub(crate) function: &'static str,
    pub(crate) ctx: &'a CallContext,
    pub(crate) phase: Phase,
    /// Whether the wall clock bounds it.
    pub(crate) timed: bool,
    /// The warm instance that it enters, by its place.
    pub(crate) place: Option<stack::Place>,
    /// What a listener is called for; else empty.
    pub(crate) event: &'a str,
}

impl<'a> Call<'a> {
    pub(crate) fn task(&self) -> Task<'a> {
        Task {
            function: self.function,
            event: self.event,
        }
    }
}

/// A component linked to what its row was granted.
pub(crate) struct Linked {
    pub(crate) engine: Arc<Inner>,
    pub(crate) row: Arc<RowInfo>,
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Exports,
}

/// What a call gives back: the instance where it may be used again, and the
/// outcome.
pub(crate) type Returned<G, T> = (Option<Live<G>>, Result<T, CallError>);

impl Linked {
    /// Makes one call, on an instance that is left from another or on a new one.
    pub(crate) async fn call<G, T, Fut>(
        self: &Arc<Self>,
        live: Option<Live<G>>,
        call: Call<'_>,
        body: impl FnOnce(Live<G>) -> Fut + Send + 'static,
    ) -> Returned<G, T>
    where
        G: Export,
        T: Send + 'static,
        Fut: Future<Output = (Live<G>, wasmtime::Result<Result<T, PluginError>>)> + Send + 'static,
    {
        let Call {
            function,
            phase,
            timed,
            ..
        } = call;
        let limits = self.row.limits;
        let meter = live
            .as_ref()
            .map_or_else(Arc::default, |live| Arc::clone(&live.meter));
        meter.reset(ticker::ticks(limits.cpu));
        let bounds = Bounds {
            call: timed.then_some(limits.call),
            cancel: &call.ctx.cancel,
        };
        let linked = Arc::clone(self);
        let live = match live {
            Some(mut live) => {
                live.again(call.ctx, phase);
                Ok(live)
            }
            None => Err((call.ctx.clone(), Arc::clone(&meter))),
        };
        let future = Box::pin(stack::within(call.place, async move {
            let live = match live {
                Ok(live) => live,
                // Boxed, as it is large and most calls have an instance: a future is moved when it is boxed.
                Err((ctx, meter)) => {
                    match Box::pin(linked.instantiate(ctx, phase, meter, function)).await {
                        Ok(live) => live,
                        Err(error) => return (None, Err(error)),
                    }
                }
            };
            let (mut live, result) = body(live).await;
            let result = match result {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(error)) => Err(CallError::Plugin(error)),
                Err(error) => {
                    let ended = linked.ended(live.store.data(), function, &error);
                    live.store.data_mut().close_log();
                    return (None, Err(ended));
                }
            };
            live.store.data_mut().close_log();
            (Some(live), result)
        }));
        let row = || self.row.id.clone();
        match run::run(&self.engine, meter, bounds, future).await {
            Ok(returned) => returned,
            Err(Stopped::Cancelled) => (
                None,
                Err(CallError::Cancelled {
                    row: row(),
                    function,
                }),
            ),
            Err(Stopped::Timeout) => {
                let limit_ms = limits.call.as_millis().try_into().unwrap_or(u64::MAX);
                (
                    None,
                    Err(CallError::Timeout {
                        row: row(),
                        function,
                        limit_ms,
                    }),
                )
            }
        }
    }

    async fn instantiate<G: Export>(
        &self,
        ctx: CallContext,
        phase: Phase,
        meter: Arc<Meter>,
        function: &'static str,
    ) -> Result<Live<G>, CallError> {
        let mut store = self.store(ctx, phase, &meter);
        let instance = match self.pre.instantiate_async(&mut store).await {
            Ok(instance) => instance,
            Err(error) => return Err(self.ended(store.data(), function, &error)),
        };
        let row = || self.row.id.clone();
        match G::load(&self.exports, &mut store, &instance) {
            Some(Ok(guest)) => Ok(Live {
                store,
                guest,
                meter,
            }),
            Some(Err(error)) => {
                let reason = format!(
                    "its {} does not fit the contract: {}",
                    G::INTERFACE,
                    error.root_cause()
                );
                Err(CallError::Trap {
                    row: row(),
                    function,
                    reason,
                })
            }
            None => Err(CallError::NotExported {
                row: row(),
                interface: G::INTERFACE,
            }),
        }
    }

    fn store(&self, ctx: CallContext, phase: Phase, meter: &Arc<Meter>) -> Store<State> {
        let limits = &self.row.limits;
        let state = State {
            row: Arc::clone(&self.row),
            ctx,
            phase,
            lines: Lines::default(),
            meter: Arc::clone(meter),
            calls: AtomicU64::new(0),
            handed_over: AtomicU64::new(0),
            wasi: None,
            usage: Usage::under(limits),
        };
        let mut store = Store::new(self.engine.wasm(), state);
        // Of one hand-over; what they come to together is counted in `capability/`.
        let in_one_go = limits.text.min(limits.output);
        store.set_hostcall_fuel(usize::try_from(in_one_go).unwrap_or(usize::MAX));
        store.limiter(|state| &mut state.usage);
        store.set_max_component_handles(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        let (engine, meter) = (Arc::clone(&self.engine), Arc::clone(meter));
        store.epoch_deadline_callback(move |store| {
            if meter.exhausted(engine.ticker().now()) {
                Err(Exhausted.into())
            } else if store.data().called_too_often() {
                Err(Exceeded::Calls.into())
            } else {
                Ok(UpdateDeadline::Yield(1))
            }
        });
        store
    }

    /// What an error of the engine's says about the component.
    fn ended(&self, state: &State, function: &'static str, error: &wasmtime::Error) -> CallError {
        let row = self.row.id.clone();
        let limits = self.row.limits;
        if error.is::<Exhausted>() {
            let limit_ms = limits.cpu.as_millis().try_into().unwrap_or(u64::MAX);
            return CallError::Cpu {
                row,
                function,
                limit_ms,
            };
        }
        let output = |row| CallError::Output {
            row,
            function,
            limit: limits.output,
        };
        match error.downcast_ref() {
            Some(Exceeded::Calls) => {
                return CallError::Calls {
                    row,
                    function,
                    limit: limits.calls,
                };
            }
            Some(Exceeded::Output) => return output(row),
            None => {}
        }
        let root = error.root_cause().to_string();
        // The engine's own types for these are not public.
        if root.contains("fuel allocated for hostcalls") {
            if limits.output < limits.text {
                return output(row);
            }
            return CallError::Text {
                row,
                function,
                limit: limits.text,
            };
        }
        for (what, said, limit) in [
            ("instance", "instance count too high", limits.instances),
            ("memory", "memory count too high", limits.memories),
            ("table", "table count too high", TABLES as u64),
            ("handle", "handle limit exceeded", limits.handles),
        ] {
            if root.contains(said) {
                return CallError::Parts {
                    row,
                    function,
                    what,
                    limit,
                };
            }
        }
        // One that cannot start without it, or a guest's allocator giving up.
        let trap = error.downcast_ref::<Trap>();
        let gave_up = matches!(trap, None | Some(Trap::UnreachableCodeReached));
        match state.usage.refused {
            Refused::Memory if gave_up => {
                return CallError::Memory {
                    row,
                    function,
                    limit: limits.memory,
                };
            }
            Refused::Elements if gave_up => {
                return CallError::Tables {
                    row,
                    function,
                    limit: limits.tables,
                };
            }
            _ => {}
        }
        // With the component's own backtrace: for who works on it.
        state.log(Level::Error, &format!("crashed in {function}: {error:?}"));
        let reason = match trap {
            Some(Trap::UnreachableCodeReached) => {
                state.said().unwrap_or_else(|| "it panicked".to_owned())
            }
            Some(trap) => trap.to_string(),
            None => root,
        };
        CallError::Trap {
            row,
            function,
            reason,
        }
    }
}

impl<G> Live<G> {
    /// Prepares an instance for another call.
    fn again(&mut self, ctx: &CallContext, phase: Phase) {
        // A deadline that passed between calls would cost a needless yield.
        self.store.set_epoch_deadline(1);
        let state = self.store.data_mut();
        state.ctx.become_as(ctx);
        state.phase = phase;
        if let Some(wasi) = &mut state.wasi {
            wasi.begin(&state.row.id, &state.ctx, state.row.limits.log_lines);
        }
        state.usage.refused = Refused::Nothing;
        *state.calls.get_mut() = 0;
        *state.handed_over.get_mut() = 0;
    }
}
