//! An instance that outlives its calls.
//!
//! Its calls wait for each other, as a component is never entered twice. One
//! that ends badly takes the instance with it; the next call gets a new one, and
//! a handle from before is told that it is gone. Memory is a hint, never the
//! state: what must survive is in the log.
//!
//! Who is called from inside of its own call does not wait, as it would wait for
//! itself: it is told so, and counted (`stack.rs`).

use std::future::Future;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::api::PluginError;
use crate::error::CallError;
use crate::instance::{Call, Export, Live};
use crate::mount::Shared;
use crate::stack::{self, Place};

/// The instance's place.
struct Slot<G> {
    live: Option<Live<G>>,
    /// Counts the instances that were here.
    generation: u64,
}

/// One export of a row with an instance of its own. Clones share it.
pub(crate) struct Warm<G> {
    shared: Arc<Shared>,
    slot: Arc<Mutex<Slot<G>>>,
}

impl<G> Clone for Warm<G> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            slot: Arc::clone(&self.slot),
        }
    }
}

impl<G: Export> Warm<G> {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            slot: Arc::new(Mutex::new(Slot {
                live: None,
                generation: 0,
            })),
        }
    }

    fn place(&self) -> Place {
        Arc::as_ptr(&self.slot).addr()
    }

    /// Whether the caller is inside of a call of this very instance.
    pub(crate) fn is_on_the_stack(&self) -> bool {
        stack::holds(self.place())
    }

    /// Makes a call, on this generation's instance where one is named. Returns
    /// the generation that it was made on.
    pub(crate) async fn call<T, Fut>(
        &self,
        generation: Option<u64>,
        call: Call<'_>,
        body: impl FnOnce(Live<G>) -> Fut + Send + 'static,
    ) -> Result<(u64, T), CallError>
    where
        T: Send + 'static,
        Fut: Future<Output = (Live<G>, wasmtime::Result<Result<T, PluginError>>)> + Send + 'static,
    {
        self.call_checked(generation, call, body, |_| Ok(())).await
    }

    /// As `call`, with an answer that the row may not give counted as a failure
    /// of its own.
    pub(crate) async fn call_checked<T, Fut>(
        &self,
        generation: Option<u64>,
        call: Call<'_>,
        body: impl FnOnce(Live<G>) -> Fut + Send + 'static,
        check: impl FnOnce(&T) -> Result<(), CallError>,
    ) -> Result<(u64, T), CallError>
    where
        T: Send + 'static,
        Fut: Future<Output = (Live<G>, wasmtime::Result<Result<T, PluginError>>)> + Send + 'static,
    {
        let (function, ctx, task) = (call.function, call.ctx, call.task());
        if self.is_on_the_stack() {
            return Err(self.shared.skip(function));
        }
        let mut slot = match self.slot.try_lock() {
            Ok(slot) => slot,
            Err(_) => self.slot.lock().await,
        };
        if generation.is_some_and(|wanted| slot.live.is_none() || wanted != slot.generation) {
            return Err(CallError::Gone {
                row: self.shared.id().to_owned(),
                function,
            });
        }
        self.shared.health.check(self.shared.id())?;
        let live = slot.live.take();
        if live.is_none() {
            slot.generation += 1;
        }
        let call = Call {
            place: Some(self.place()),
            ..call
        };
        let (live, result) = self.shared.linked.call(live, call, body).await;
        let (live, result) = match result.and_then(|value| check(&value).map(|()| value)) {
            Err(error) if error.is_failure_of_component() => (None, Err(error)),
            result => (live, result),
        };
        slot.live = live;
        self.shared.note(ctx, task, &result);
        result.map(|value| (slot.generation, value))
    }
}
