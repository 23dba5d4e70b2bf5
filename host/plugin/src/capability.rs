//! What a component may be given, a file per capability.
//!
//! Each follows one interface of `wit/host.wit`: how it is linked, what its
//! grant lets through, and which port is behind it. A component is linked to the
//! capabilities that it imports and was granted and to no other, so an import
//! that was not granted cannot be called, rather than be refused when it is.
//! Adding one is a file here and a line in [`ALL`].

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use wasmtime::component::Linker;

use crate::api::PluginError;
use crate::instance::{Exceeded, State};

mod attachments;
mod clock;
mod config;
mod inbox;
mod journal;
mod kv;
mod llm;
mod log;
mod pictures;
mod process;
mod random;
mod session;
mod spill;
mod work;
mod workspace;

pub(crate) use log::Lines;

/// One capability of the contract.
pub(crate) trait Capability: Sync {
    /// The interface's short name, by which a component imports it.
    fn interface(&self) -> &'static str;

    /// Links it.
    fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()>;
}

/// All that this host provides.
static ALL: [&dyn Capability; 16] = [
    &Types,
    &log::Capability,
    &config::Capability,
    &work::Capability,
    &clock::Capability,
    &random::Capability,
    &session::Capability,
    &journal::Capability,
    &workspace::Capability,
    &spill::Capability,
    &attachments::Capability,
    &pictures::Capability,
    &process::Capability,
    &inbox::Capability,
    &kv::Capability,
    &llm::Capability,
];

/// The capability behind an interface.
pub(crate) fn find(interface: &str) -> Option<&'static dyn Capability> {
    ALL.into_iter()
        .find(|capability| capability.interface() == interface)
}

/// Linkers by what they link. Making one costs as much as loading a small
/// component does, and most components import the same few capabilities.
#[derive(Default)]
pub(crate) struct Linkers {
    made: Mutex<HashMap<Vec<&'static str>, Arc<Linker<State>>>>,
}

impl Linkers {
    /// One that has these and no others.
    pub(crate) fn of(
        &self,
        engine: &wasmtime::Engine,
        capabilities: &[&dyn Capability],
    ) -> wasmtime::Result<Arc<Linker<State>>> {
        let mut names: Vec<_> = capabilities.iter().map(|one| one.interface()).collect();
        names.sort_unstable();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linker) = made.get(&names) {
            return Ok(Arc::clone(linker));
        }
        let mut linker = Linker::new(engine);
        for capability in capabilities {
            capability.link(&mut linker)?;
        }
        let linker = Arc::new(linker);
        made.insert(names, Arc::clone(&linker));
        Ok(linker)
    }
}

/// The shared vocabulary: types only.
struct Types;

impl Capability for Types {
    fn interface(&self) -> &'static str {
        "types"
    }

    fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        crate::contract::v0_1::types::add_to_linker::<_, wasmtime::component::HasSelf<_>>(
            linker,
            |state| state,
        )
    }
}

impl crate::contract::v0_1::types::Host for State {}

/// What a component is doing for the host, which bounds what it may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It says what it offers: `log`, `config` and `work` only, so that the
    /// answer depends on nothing else and may be kept.
    Offer,
    /// It folds the log into a read model: the same, so that the state depends on
    /// nothing but the events.
    Fold,
    /// It translates for a model: the time as well.
    Translate,
    /// It works.
    Work,
    /// It works as a tool of the model's: what it reads counts as read in the session.
    Run,
}

/// A call that the contract does not allow where it was made: it traps.
#[derive(Debug, thiserror::Error)]
#[error("it called {interface}, which it may not while it {doing}")]
pub(crate) struct Misplaced {
    interface: &'static str,
    doing: &'static str,
}

/// A function without an error to give was called, and nothing is behind it.
#[derive(Debug, thiserror::Error)]
#[error("it called {interface}, and this call has none")]
pub(crate) struct Missing {
    interface: &'static str,
}

impl State {
    /// Counts a call of an import; traps at the bound on them.
    fn called(&self) -> wasmtime::Result<()> {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        if before < self.row.limits.calls {
            return Ok(());
        }
        Err(Exceeded::Calls.into())
    }

    /// Whether stand-ins were called more often than a call may call imports.
    pub(crate) fn called_too_often(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > self.row.limits.calls
    }

    /// Counts what the call hands over to an import; traps at the bound on it.
    fn takes(&self, bytes: usize) -> wasmtime::Result<()> {
        let bytes = bytes as u64;
        let before = self.handed_over.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= self.row.limits.output {
            return Ok(());
        }
        Err(Exceeded::Output.into())
    }

    /// Traps unless the phase has come as far as the interface needs.
    fn require(&self, needed: Phase, interface: &'static str) -> wasmtime::Result<()> {
        self.called()?;
        if self.phase >= needed {
            return Ok(());
        }
        let doing = match self.phase {
            Phase::Offer => "says what it offers",
            Phase::Fold => "folds the log",
            Phase::Translate => "translates for a model",
            Phase::Work => "works",
            Phase::Run => "runs as a tool",
        };
        Err(Misplaced { interface, doing }.into())
    }

    /// Waits for a port, but no longer than until the call is cancelled.
    async fn answer<T>(
        &self,
        port: impl Future<Output = Result<T, PluginError>>,
    ) -> Result<T, PluginError> {
        if self.ctx.cancel.is_cancelled() {
            return Err(PluginError::cancelled());
        }
        let mut port = pin!(port);
        // Most answer at once, and then nobody needs to be woken by the token.
        let first = poll_fn(|cx| Poll::Ready(port.as_mut().poll(cx))).await;
        if let Poll::Ready(result) = first {
            return result;
        }
        tokio::select! {
            biased;
            () = self.ctx.cancel.cancelled() => Err(PluginError::cancelled()),
            result = port => result,
        }
    }
}

/// Links `$module` of the contract under `$name`.
macro_rules! capability {
    ($module:ident, $name:literal) => {
        pub(super) struct Capability;

        impl super::Capability for Capability {
            fn interface(&self) -> &'static str {
                $name
            }

            fn link(
                &self,
                linker: &mut wasmtime::component::Linker<crate::instance::State>,
            ) -> wasmtime::Result<()> {
                $module::add_to_linker::<_, wasmtime::component::HasSelf<_>>(linker, |state| state)
            }
        }
    };
}
use capability;
