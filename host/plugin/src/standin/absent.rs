//! Interfaces of WASI that nothing is behind: there, and a trap when called.
//!
//! A JavaScript engine with `fetch` imports `wasi:http` whether a program uses it
//! or not. An error of its own would have to be made of the types of another
//! package, for a request that could not be built either; a trap says what was
//! called and why there is nothing.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceType};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable};

use crate::instance::State;

/// A function without anything behind it was called.
#[derive(Debug, thiserror::Error)]
#[error("it called {function} of {interface}, which this host does not provide")]
struct Absent {
    interface: String,
    function: String,
}

/// Links the instance that the component imports by this name.
pub(super) fn link(
    linker: &mut Linker<State>,
    import: &str,
    component: &Component,
) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    let ty = component.component_type();
    let wanted = ty.imports(&engine).find(|(name, _)| *name == import);
    let Some(ComponentItem::ComponentInstance(wanted)) = wanted.map(|(_, wanted)| wanted.ty) else {
        return Ok(());
    };
    let mut instance = linker.instance(import)?;
    for (name, item) in wanted.exports(&engine) {
        match item.ty {
            ComponentItem::ComponentFunc(_) => {
                let (interface, function) = (import.to_owned(), name.to_owned());
                instance.func_new(name, move |_, _, _, _| {
                    Err(Absent {
                        interface: interface.clone(),
                        function: function.clone(),
                    }
                    .into())
                })?;
            }
            ComponentItem::Resource(_) => {
                instance.resource(name, resource(name), |_, _| Ok(()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a resource is: those that other interfaces have too must be theirs.
fn resource(name: &str) -> ResourceType {
    match name {
        "input-stream" => ResourceType::host::<DynInputStream>(),
        "output-stream" => ResourceType::host::<DynOutputStream>(),
        "pollable" => ResourceType::host::<DynPollable>(),
        "io-error" => ResourceType::host::<wasmtime::Error>(),
        _ => ResourceType::host::<()>(),
    }
}
