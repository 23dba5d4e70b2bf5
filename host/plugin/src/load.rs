//! How a component comes to be loaded: described, with machine code to mount.
//!
//! Machine code comes from this program itself, from the cache, or from the
//! compiler, in that order. An entry of the cache holds what the component's
//! sections say beside its code, so one that is named by its digest is loaded
//! without its bytes; what was checked when it was compiled is vouched for by
//! the entry's MAC.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::aot;
use crate::code::{self, Trusted};
use crate::component::{Component, Description, MAX_SIZE, Sections};
use crate::engine::{Engine, Inner};
use crate::error::Error;

impl Engine {
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
        let Some((header, code)) = aot::unpack(code, &self.inner().fingerprint) else {
            return self.load_bytes(wasm.to_vec()).await;
        };
        // The digest was taken when the code was made, of the same bytes.
        let description = Description::read_with_digest(wasm, header)?;
        match code::load(self.inner().wasm(), &Trusted::Bytes(code)) {
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
        let digest = &description.digest;
        let code = match self.inner().kept(digest) {
            Some((_, code)) => code,
            None => self.inner().compile(digest, wasm.into()).await?,
        };
        Ok(Arc::new(Component { description, code }))
    }
    /// A component by the SHA-256 of its bytes, in lower-case hex: from the cache
    /// by that alone where it was compiled before, else of the bytes that `wasm`
    /// gives, which must have that digest.
    ///
    /// # Errors
    /// The bytes cannot be read, or are others than those that were asked for;
    /// else as [`Engine::load_bytes`].
    pub async fn load_pinned(
        &self,
        digest: &str,
        wasm: impl FnOnce() -> io::Result<Vec<u8>> + Send,
    ) -> Result<Arc<Component>, Error> {
        if let Some((sections, code)) = self.inner().kept(digest) {
            let description = Description::of(sections, digest)?;
            return Ok(Arc::new(Component { description, code }));
        }
        let wasm = wasm().map_err(|source| Error::Bytes {
            digest: digest.to_owned(),
            source,
        })?;
        let description = Description::read(&wasm)?;
        if description.digest != digest {
            return Err(Error::Digest {
                expected: digest.to_owned(),
                found: description.digest,
            });
        }
        let code = self.inner().compile(digest, wasm.into()).await?;
        Ok(Arc::new(Component { description, code }))
    }
}

impl Inner {
    fn entry(&self, digest: &str) -> String {
        format!("{digest}-{}.cwasm", &self.fingerprint[..32])
    }

    /// What the cache holds of a component.
    fn kept(&self, digest: &str) -> Option<(Sections, wasmtime::component::Component)> {
        let cache = self.cache.as_ref()?;
        let name = self.entry(digest);
        let (file, sections) = cache.code(&name)?;
        let sections = serde_json::from_slice(&sections).ok()?;
        let code = code::load(self.wasm(), &Trusted::File(&file))
            .or_else(|_| {
                let whole = cache.get(&name).unwrap_or_default();
                code::load(self.wasm(), &Trusted::Bytes(&whole))
            })
            .ok()?;
        Some((sections, code))
    }

    /// Makes machine code, and keeps it.
    async fn compile(
        self: &Arc<Self>,
        digest: &str,
        wasm: Arc<[u8]>,
    ) -> Result<wasmtime::component::Component, Error> {
        let permit = self.compiling.acquire().await;
        let (inner, name) = (Arc::clone(self), self.entry(digest));
        let compiled = tokio::task::spawn_blocking(move || {
            let invalid = |error: wasmtime::Error| Error::Invalid(format!("{error:#}"));
            let code = inner.wasm().precompile_component(&wasm).map_err(invalid)?;
            if let Some(cache) = &inner.cache {
                let sections = serde_json::to_vec(&Sections::read(&wasm)?).unwrap_or_default();
                // Not being able to keep it costs time, next time.
                let _ = cache.put_code(&name, &code, &sections);
                cache.sweep(&inner.fingerprint);
            }
            code::load(inner.wasm(), &Trusted::Bytes(&code)).map_err(invalid)
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
