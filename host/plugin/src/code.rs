//! Loading machine code: the only `unsafe` of the workspace.
//!
//! wasmtime checks that code was made by the same version with a compatible
//! configuration for this CPU, and refuses the rest; it cannot check that the
//! code does what the component says. So what comes here is either built into
//! this program, or was verified against the cache's key, which only this user
//! can read.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

use wasmtime::component::Component;

/// Machine code whose origin was checked by the caller: see the module's head.
pub(crate) enum Trusted<'a> {
    Bytes(&'a [u8]),
    /// At the start of a file, which is mapped: nothing writes to it any more.
    File(&'a File),
}

/// Makes a component of machine code.
///
/// # Errors
/// The code is of another engine, or damaged; a file cannot be mapped, as where
/// there is no `/proc` or nothing of its file system may run.
pub(crate) fn load(engine: &wasmtime::Engine, code: &Trusted<'_>) -> wasmtime::Result<Component> {
    match code {
        // SAFETY: the bytes are what `Engine::precompile_component` returned: they
        // are part of this executable, come from the compiler just now, or carry a
        // valid MAC under the cache's key.
        Trusted::Bytes(bytes) => unsafe { Component::deserialize(engine, bytes) },
        Trusted::File(file) => {
            // The descriptor that was verified, by the one name that it has: what
            // its path leads to by now may be another file.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            // SAFETY: as above, and the cache writes to no file that has its name.
            unsafe { Component::deserialize_file(engine, path) }
        }
    }
}
