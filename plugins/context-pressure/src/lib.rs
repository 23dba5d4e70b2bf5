//! `contextPressure`: how full the model's context is (spec/session.md §10.6).
//!
//! What the provider counted last is exact and soon out of date; what came to the
//! surface since is estimated and added.

mod estimate;
mod state;

use guest_support::fold::{Event, configured_key, malformed_state};
use guest_support::{Error, hook_panics};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:context-pressure;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                export dsh:plugin/projection@0.1.0;
            }",
        path: "../../wit",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
            "dsh:plugin/config@0.1.0": guest_support::config,
        },
    });
    // A native linker takes no such names as a component's exports have.
    #[cfg(target_family = "wasm")]
    export!(Component with_types_in self);
    #[cfg(target_family = "wasm")]
    use super::Component;
}

use bindings::exports::dsh::plugin::projection::{Guest, Spec};
use state::State;

/// The value's usual name.
const KEY: &str = "contextPressure";

/// Of the state's shape and meaning, which are upstream's.
const VERSION: u32 = 4;

/// All: a price that compaction names is good for the very next event, so every one
/// has to be seen. Nine in ten are chunks, which it reads anyway.
const KINDS: [&str; 0] = [];

/// The projection.
pub struct Component;

impl Guest for Component {
    fn list_projections() -> Result<Vec<Spec>, Error> {
        hook_panics();
        Ok(vec![Spec {
            key: configured_key(KEY),
            version: VERSION,
            kinds: KINDS.map(str::to_owned).into(),
        }])
    }

    fn fold(_: String, state: Option<String>, events: Vec<String>) -> Result<String, Error> {
        hook_panics();
        let mut state = read(state.as_deref())?;
        for line in &events {
            state.fold(Event::read(line))?;
        }
        Ok(state.text())
    }

    fn view(_: String, state: String) -> Result<String, Error> {
        hook_panics();
        Ok(read(Some(&state))?.view())
    }
}

fn read(state: Option<&str>) -> Result<State, Error> {
    match state {
        None => Ok(State::default()),
        Some(text) => State::read(text).ok_or_else(|| malformed_state(KEY)),
    }
}

#[cfg(test)]
mod tests;
