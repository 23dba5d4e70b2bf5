//! The one engine: nothing else names `wasmtime::Config`.
//!
//! Epochs interrupt, not fuel: they cost half as much and stop a loop within a
//! tick. `concurrency_support` is off, which makes a call four times cheaper;
//! the contract has no `async func`. Instances are allocated on demand: no slots
//! to run out of and nothing to pay before the first. Backtraces are kept for the
//! log of who works on a component. Cranelift compiles; what it makes is kept
//! (`cache`).
//!
//! Compiling is the most that a component can make the host do before it runs
//! (350 MB for 12 MB of it), so one compiles at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use wasmtime::{Config, WasmBacktraceDetails};

use crate::aot;
use crate::cache::Cache;
use crate::code::{self, Trusted};
use crate::component::{Component, Description, MAX_SIZE, hex};
use crate::error::Error;
use crate::mount::{self, Mounted, Row};
use crate::ticker::Ticker;

/// Of a component's own code; deep recursion ends here.
const WASM_STACK: usize = 512 << 10;

/// Of a fiber: the component's and, above it, the host's own frames in imports.
const FIBER_STACK: usize = 2 << 20;

/// The engine's configuration, the same for who compiles and who runs.
fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.concurrency_support(false);
    config.memory_init_cow(true);
    config.max_wasm_stack(WASM_STACK);
    config.async_stack_size(FIBER_STACK);
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
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
    compiling: Semaphore,
    /// Names machine code of this engine and no other.
    pub(crate) fingerprint: String,
    pub(crate) cache: Option<Cache>,
    cache_problem: Option<String>,
    pub(crate) host_version: String,
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

    /// Machine code of a component: kept from before, or compiled now.
    async fn code(
        self: &Arc<Self>,
        digest: &str,
        wasm: Arc<[u8]>,
    ) -> Result<wasmtime::component::Component, Error> {
        let name = format!("{digest}-{}.cwasm", &self.fingerprint[..32]);
        let kept = self.cache.as_ref().and_then(|cache| cache.get(&name));
        if let Some(component) = kept.and_then(|code| code::load(&self.wasm, &Trusted(&code)).ok())
        {
            return Ok(component);
        }
        let permit = self.compiling.acquire().await;
        let inner = Arc::clone(self);
        let compiled = tokio::task::spawn_blocking(move || {
            let code = inner
                .wasm
                .precompile_component(&wasm)
                .map_err(|error| Error::Invalid(format!("{error:#}")))?;
            if let Some(cache) = &inner.cache {
                // Not being able to keep it costs time, next time.
                let _ = cache.put(&name, &code);
            }
            code::load(&inner.wasm, &Trusted(&code))
                .map_err(|error| Error::Invalid(format!("{error:#}")))
        })
        .await;
        drop(permit);
        match compiled {
            Ok(result) => result,
            Err(error) if error.is_panic() => {
                Err(Error::Invalid("the compiler failed on it".to_owned()))
            }
            Err(_) => Err(Error::Invalid("compiling was given up".to_owned())),
        }
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
                compiling: Semaphore::new(1),
                fingerprint: aot::fingerprint(&wasm),
                cache,
                cache_problem,
                host_version: config.host_version,
                wasm,
            }),
        })
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Why nothing is cached, where a cache was asked for: a line for people.
    #[must_use]
    pub fn cache_problem(&self) -> Option<&str> {
        self.inner.cache_problem.as_deref()
    }

    /// A component that was built into this program, with machine code made by
    /// `dsh-aot` beside it (may be empty). Code of another engine or CPU is
    /// passed over, and the component is compiled through the cache.
    ///
    /// # Errors
    /// As [`Engine::load_bytes`].
    pub async fn load_embedded(
        &self,
        wasm: &'static [u8],
        code: &'static [u8],
    ) -> Result<Arc<Component>, Error> {
        let Some((header, code)) = aot::unpack(code, &self.inner.fingerprint) else {
            return self.load_bytes(wasm.to_vec()).await;
        };
        // The digest was taken when the code was made, of the same bytes.
        let description = Description::read_with_digest(wasm, header)?;
        match code::load(&self.inner.wasm, &Trusted(code)) {
            Ok(code) => Ok(Arc::new(Component { description, code })),
            Err(_) => self.load_bytes(wasm.to_vec()).await,
        }
    }

    /// A component from a file.
    ///
    /// # Errors
    /// Not readable, or as [`Engine::load_bytes`].
    pub async fn load_file(&self, path: &Path) -> Result<Arc<Component>, Error> {
        let io = |source| Error::Io {
            doing: "read",
            path: path.to_owned(),
            source,
        };
        let meta = tokio::fs::metadata(path).await.map_err(io)?;
        if !meta.is_file() {
            return Err(io(std::io::Error::other("it is not a file")));
        }
        if meta.len() > MAX_SIZE {
            return Err(Error::TooLarge {
                size: meta.len(),
                max: MAX_SIZE,
            });
        }
        self.load_bytes(tokio::fs::read(path).await.map_err(io)?)
            .await
    }

    /// A component from its bytes: described, then compiled or taken from the
    /// cache.
    ///
    /// # Errors
    /// Not a component, too large, of an unknown contract version, not valid.
    pub async fn load_bytes(&self, wasm: Vec<u8>) -> Result<Arc<Component>, Error> {
        let description = Description::read(&wasm)?;
        let code = self.inner.code(&description.digest, wasm.into()).await?;
        Ok(Arc::new(Component { description, code }))
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
