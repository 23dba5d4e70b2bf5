//! Loading machine code: the only `unsafe` of the workspace.
//!
//! wasmtime checks that code was made by the same version with a compatible
//! configuration for this CPU, and refuses the rest; it cannot check that the
//! code does what the component says. So what comes here is either built into
//! this program, or was verified against the cache's key, which only this user
//! can read.
#![allow(unsafe_code)]

use wasmtime::component::Component;

/// Machine code whose origin was checked by the caller: see the module's head.
pub(crate) struct Trusted<'a>(pub(crate) &'a [u8]);

/// Makes a component of machine code.
///
/// # Errors
/// The code is of another engine, or damaged.
pub(crate) fn load(engine: &wasmtime::Engine, code: &Trusted<'_>) -> wasmtime::Result<Component> {
    // SAFETY: the bytes are what `Engine::precompile_component` returned: they
    // are part of this executable, or carry a valid MAC under the cache's key.
    unsafe { Component::deserialize(engine, code.0) }
}
