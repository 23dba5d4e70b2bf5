//! A linked component, its instances, and a call of one.
//!
//! Linking is done once, when the row is mounted; an instance is a store with
//! the row's limits and what was linked, and costs microseconds. Whether it
//! outlives a call is up to who calls: a tool's does not, an adapter's does.
//! After a trap, a bound or a cancel that had to interrupt, the instance is
//! dropped in whatever state it was, and nothing of it is used again.

use std::future::Future;
use std::sync::Arc;

use wasmtime::component::{Instance, InstancePre};
use wasmtime::{ResourceLimiter, Store, Trap, UpdateDeadline};

use crate::api::PluginError;
use crate::call::CallContext;
use crate::capability::{Lines, Phase};
use crate::contract::v0_1::Exports;
use crate::engine::Inner;
use crate::error::CallError;
use crate::grants::Grants;
use crate::limits::Limits;
use crate::port::Level;
use crate::run::{self, Bounds, Meter, Stopped};
use crate::ticker;

/// What a row's instances have in common.
pub(crate) struct RowInfo {
    pub(crate) id: String,
    /// The plugin's own name, or the row's where it has no manifest.
    pub(crate) plugin: String,
    pub(crate) namespace: String,
    /// Event kinds that its manifest names.
    pub(crate) appends: Vec<String>,
    pub(crate) config: String,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    pub(crate) host_version: String,
}

/// A store's data: all that an import can see.
pub(crate) struct State {
    pub(crate) row: Arc<RowInfo>,
    pub(crate) ctx: CallContext,
    pub(crate) phase: Phase,
    pub(crate) lines: Lines,
    pub(crate) meter: Arc<Meter>,
    usage: Usage,
}

/// Elements of all tables of an instance together.
const TABLE_ELEMENTS: usize = 20_000;

/// What an instance holds. Memories and tables are charged together, so that
/// many small ones do not add up to more than one large one.
struct Usage {
    memory: usize,
    max_memory: usize,
    elements: usize,
    /// A growth that was allowed; taken back if it then fails.
    last: usize,
    refused: bool,
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
            self.refused = true;
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
            .is_some_and(|sum| sum <= TABLE_ELEMENTS);
        if allowed {
            self.elements += more;
        }
        Ok(allowed)
    }

    // The largest that guests of C, Rust, JavaScript, Python and Go need is a
    // dozen core instances and two memories.
    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        32
    }

    fn memories(&self) -> usize {
        8
    }
}

/// The cpu bound, raised from inside.
#[derive(Debug, thiserror::Error)]
#[error("the cpu bound is used up")]
struct Exhausted;

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
            cancel: call.ctx.cancel.clone(),
        };
        let (linked, ctx) = (Arc::clone(self), call.ctx.clone());
        let meter_inside = Arc::clone(&meter);
        let future = Box::pin(async move {
            let live = match live {
                Some(live) => live.again(ctx, phase),
                None => match linked.instantiate(ctx, phase, meter_inside, function).await {
                    Ok(live) => live,
                    Err(error) => return (None, Err(error)),
                },
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
        });
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
        let usage = Usage {
            memory: 0,
            max_memory: usize::try_from(self.row.limits.memory).unwrap_or(usize::MAX),
            elements: 0,
            last: 0,
            refused: false,
        };
        let state = State {
            row: Arc::clone(&self.row),
            ctx,
            phase,
            lines: Lines::default(),
            meter: Arc::clone(meter),
            usage,
        };
        let mut store = Store::new(self.engine.wasm(), state);
        store.set_hostcall_fuel(usize::try_from(self.row.limits.output).unwrap_or(usize::MAX));
        store.limiter(|state| &mut state.usage);
        store.set_epoch_deadline(1);
        let (engine, meter) = (Arc::clone(&self.engine), Arc::clone(meter));
        store.epoch_deadline_callback(move |_| {
            if meter.exhausted(engine.ticker().now()) {
                Err(Exhausted.into())
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
        let root = error.root_cause().to_string();
        // The engine's own type for this is not public.
        if root.contains("fuel allocated for hostcalls") {
            return CallError::Output {
                row,
                function,
                limit: limits.output,
            };
        }
        // One that cannot start without it, or a guest's allocator giving up.
        let trap = error.downcast_ref::<Trap>();
        if state.usage.refused && matches!(trap, None | Some(Trap::UnreachableCodeReached)) {
            return CallError::Memory {
                row,
                function,
                limit: limits.memory,
            };
        }
        // With the component's own backtrace: for who works on it.
        state.log(Level::Error, &format!("crashed in {function}: {error:?}"));
        let said = state.lines.last_error();
        let reason = match trap {
            Some(Trap::UnreachableCodeReached) => {
                said.map_or_else(|| "it panicked".to_owned(), str::to_owned)
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
    fn again(mut self, ctx: CallContext, phase: Phase) -> Self {
        // A deadline that passed between calls would cost a needless yield.
        self.store.set_epoch_deadline(1);
        let state = self.store.data_mut();
        state.ctx = ctx;
        state.phase = phase;
        state.usage.refused = false;
        self
    }
}
