//! What the official components share.
//!
//! [`json`] reads and writes JSON text without losing any of it; [`follow`] says
//! which of a component's own messages the model sees; [`fold`] reads events for
//! projections. The rest is the part of
//! the contract that several use: bindings that a component's own refer to, so
//! that one `Error` goes through all of them, and the panic hook that makes a
//! panic readable, as a component without WASI has no stderr. What a component
//! does not call it does not import, though the bindings are here.

pub mod disk;
pub mod fold;
pub mod follow;
pub mod host;
pub mod json;
pub mod paths;
pub mod pattern;
mod slots;
pub mod tool;
pub mod words;

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:guest-support;
            world support {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/session@0.1.0;
                import dsh:plugin/workspace@0.1.0;
            }",
        path: "../../wit",
        generate_all,
    });
}

pub use bindings::dsh::plugin::{config, log, session, types, workspace};
pub use slots::Slots;
pub use types::Error;

/// A failure with a code of the contract's and a message that says what to do.
pub fn error(code: &str, message: impl Into<String>) -> Error {
    Error {
        code: code.to_owned(),
        message: message.into(),
        details: None,
    }
}

/// Sends the text of a panic to the host's log. Called first in every export
/// that can do more than answer a constant; doing it twice costs nothing.
pub fn hook_panics() {
    #[cfg(target_family = "wasm")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            std::panic::set_hook(Box::new(|panic| {
                log::write(log::Level::Error, &panic.to_string())
            }));
        });
    }
}
