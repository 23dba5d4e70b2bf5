//! The one engine: nothing else names `wasmtime::Config`.
//!
//! Epochs interrupt, not fuel: they cost half as much and stop a loop within a
//! tick. `concurrency_support` is off, which makes a call four times cheaper;
//! the contract has no `async func`. Instances are allocated on demand: no slots
//! to run out of and nothing to pay before the first. Machine code carries no map
//! of addresses and no unwind tables, which nothing here reads and every start
//! would verify: traps name functions without them. Cranelift compiles; what it
//! makes is kept (`cache`).
//!
//! Compiling is the most that a component can make the host do before it runs
//! (350 MB for 12 MB of it), so one compiles at a time.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use wasmtime::{Config, WasmBacktraceDetails};

use crate::aot;
use crate::cache::Cache;
use crate::capability::Linkers;
use crate::component::{Description, hex};
use crate::error::Error;
use crate::mount::{self, Mounted, Row};
use crate::ticker::Ticker;

/// Of a component's own code; deep recursion ends here.
const WASM_STACK: usize = 512 << 10;

/// Of a fiber: the component's and, above it, the host's own frames in imports.
const FIBER_STACK: usize = 2 << 20;

/// The engine's configuration, the same for who compiles and who runs.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.concurrency_support(false);
    config.memory_init_cow(true);
    config.max_wasm_stack(WASM_STACK);
    config.async_stack_size(FIBER_STACK);
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config.generate_address_map(false);
    config.native_unwind_info(false);
    config
}

/// The engine as wasmtime has it.
pub(crate) fn wasmtime_engine() -> Result<wasmtime::Engine, Error> {
    wasmtime::Engine::new(&config()).map_err(|error| Error::Engine(format!("{error:#}")))
}

/// How an engine is set up.
#[derive(Debug, Clone, Default)]
pub struct EngineConfig {
    /// Where machine code and metadata are kept; nowhere without one.
    pub cache_dir: Option<PathBuf>,
    /// `version` of `config.about`.
    pub host_version: String,
    /// `$DSH_HOME`, which no folder of a grant may be, hold or lie in.
    pub home: Option<PathBuf>,
}

/// The engine that all components of a process run on. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What all that runs on an engine shares.
pub(crate) struct Inner {
    wasm: wasmtime::Engine,
    ticker: Ticker,
    guests: OnceLock<Runtime>,
    pub(crate) linkers: Linkers,
    pub(crate) compiling: Semaphore,
    /// Names machine code of this engine and no other.
    pub(crate) fingerprint: String,
    pub(crate) cache: Option<Cache>,
    cache_problem: Option<String>,
    pub(crate) host_version: String,
    pub(crate) home: Option<PathBuf>,
}

impl Inner {
    pub(crate) fn wasm(&self) -> &wasmtime::Engine {
        &self.wasm
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.ticker
    }

    /// The components' own runtime: what takes longer than one poll runs there.
    pub(crate) fn guests(&self) -> &Runtime {
        self.guests.get_or_init(|| {
            let threads = thread::available_parallelism()
                .map_or(2, usize::from)
                .clamp(2, 8);
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name("dsh-guest")
                // A component that computes gives way once a tick; looking at
                // I/O and timers every time keeps them a tick late, not sixty.
                .event_interval(1)
                .enable_all()
                .build()
                .expect("a process that cannot start threads cannot run components")
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Dropping a runtime waits, which async code may not.
        if let Some(guests) = self.guests.take() {
            guests.shutdown_background();
        }
    }
}

impl Engine {
    /// Makes the engine; no thread starts before a component runs. A cache
    /// that cannot be used is done without: see [`Engine::cache_problem`].
    ///
    /// # Errors
    /// The machine cannot run it.
    pub fn new(config: EngineConfig) -> Result<Self, Error> {
        let wasm = wasmtime_engine()?;
        let (cache, cache_problem) = match config.cache_dir.as_deref().map(Cache::open).transpose()
        {
            Ok(cache) => (cache, None),
            Err(error) => {
                let dir = config.cache_dir.unwrap_or_default();
                (
                    None,
                    Some(format!(
                        "components are compiled anew each time: cannot use {}: {error}",
                        dir.display()
                    )),
                )
            }
        };
        Ok(Self {
            inner: Arc::new(Inner {
                ticker: Ticker::new(wasm.weak()),
                guests: OnceLock::new(),
                linkers: Linkers::default(),
                compiling: Semaphore::new(1),
                fingerprint: aot::fingerprint(&wasm),
                cache,
                cache_problem,
                host_version: config.host_version,
                home: config.home,
                wasm,
            }),
        })
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Why nothing is cached, where a cache was asked for: a line for people.
    #[must_use]
    pub fn cache_problem(&self) -> Option<&str> {
        self.inner.cache_problem.as_deref()
    }

    /// Removes from the cache what nobody used for long. Compiling does so by
    /// itself; this is for who changes what is installed.
    pub fn sweep_cache(&self) {
        if let Some(cache) = &self.inner.cache {
            cache.sweep(&self.inner.fingerprint);
        }
    }

    /// Mounts a row: checks its grants, links it, and asks it once what it offers.
    ///
    /// # Errors
    /// See [`Error`]: each names the row and what to do.
    pub async fn mount(&self, row: Row) -> Result<Mounted, Error> {
        mount::mount(&self.inner, row).await
    }

    /// Machine code of a component with what [`Engine::load_embedded`] checks:
    /// what the binary `dsh-aot` writes.
    ///
    /// # Errors
    /// As [`Engine::load_bytes`].
    pub fn precompile(wasm: &[u8]) -> Result<Vec<u8>, Error> {
        let description = Description::read(wasm)?;
        let engine = wasmtime_engine()?;
        let code = engine
            .precompile_component(wasm)
            .map_err(|error| Error::Invalid(format!("{error:#}")))?;
        Ok(aot::pack(
            &aot::fingerprint(&engine),
            &description.digest,
            &code,
        ))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Engine")
            .field(&hex(&self.inner.fingerprint.as_bytes()[..4]))
            .finish()
    }
}
