//! What the adapters share. An adapter is a pure translation of neutral requests
//! into one wire protocol and of its streams into chunks; what differs from
//! protocol to protocol is a [`Protocol`], and all the rest is here once: the
//! events of a stream ([`sse`]), what a failure means ([`classify`], [`failure`]),
//! the profiles of a row's configuration ([`profile`]), the history as a target
//! takes it ([`history`]), the cap on an answer ([`cap`]), the chunks of the log
//! ([`emit`]), and the exports of the component ([`component!`]).
//!
//! Texts go from message to body and from stream to chunk *escaped as they
//! stand*: where a doc comment says "escaped", the value is the inside of a JSON
//! string, and nothing is decoded that is only passed on.

pub mod arguments;
pub mod body;
mod bound;
pub mod cap;
pub mod classify;
pub mod component;
pub mod emit;
pub mod failure;
pub mod history;
pub mod opening;
pub mod profile;
pub mod sse;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use emit::{Emitter, Kind, Stop, Usage};
pub use guest_support::types::{CallConfig, GenerateRequest, HttpRequest, Part};
pub use guest_support::{Error, error};
pub use history::Entry;
pub use profile::{Model, Profile};

#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod bindings {
    //! The contract's `llm-adapter`, which [`crate::component!`] exports.
    wit_bindgen::generate!({
        inline: "
            package dsh:adapter-support;
            world adapter {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/pictures@0.1.0;
                export dsh:plugin/llm-adapter@0.1.0;
            }",
        path: "../../wit",
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
            "dsh:plugin/config@0.1.0": guest_support::config,
            "dsh:plugin/pictures@0.1.0": generate,
        },
        pub_export_macro: true,
        export_macro_name: "export_adapter",
        default_bindings_module: "adapter_support::bindings",
    });
}

pub use bindings::dsh::plugin::pictures::Picture;

/// Makes an attachment into a picture that a request can carry.
pub trait Pictures {
    /// The variant within these bounds. Its bytes are the host's: a body names it
    /// by [`body::picture`].
    fn render(
        &mut self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<Picture, Error>;
}

/// A text as it stands inside of a JSON string.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    guest_support::json::escape(text, &mut out);
    out
}

/// The URL of an endpoint under a base URL: slashes at the base's end do not
/// double, and a query of it stays behind the path.
pub fn url(base: &str, path: &str) -> String {
    match base.split_once('?') {
        Some((base, query)) => format!("{}{path}?{query}", base.trim_end_matches('/')),
        None => format!("{}{path}", base.trim_end_matches('/')),
    }
}

/// One call, as far as it is not history.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// System prompt, tools, temperature, session.
    pub request: &'a GenerateRequest,
    /// The level that the model is to think at, checked against the model; none
    /// where it is not to think: none was asked for, or `off`.
    pub effort: Option<&'a str>,
    /// Tokens that the answer may have, as the body is to say (§7.2).
    pub cap: u32,
    /// Tokens that the model's window leaves after the request; at least 1. A
    /// protocol that adds to the cap, for thinking, stays within it.
    pub room: u32,
}

/// A wire protocol; a value is the state of one attempt's stream.
pub trait Protocol: Default {
    /// As profiles and replay states name it.
    const API: &'static str;

    /// The `compat` switches that it has.
    const SWITCHES: &'static [profile::Switch];

    /// Routes that it knows without being told; the JSON text that
    /// [`profile::Catalogue`] reads.
    const CATALOGUE: &'static str = "{}";

    /// Whether an event counts that no blank line ends (§7.8).
    const FLUSHES: bool = false;

    /// The id of a tool call of another model, as this protocol takes it; given
    /// and returned escaped. None: as it is (§7.3).
    fn call_id(_model: &Model, _profile: &Profile, _id: &str) -> Option<String> {
        None
    }

    /// The request of one attempt. Headers of the profile and `user-agent` are
    /// added to it, and the profile's `timeoutMs`.
    fn request(
        profile: &Profile,
        model: &Model,
        call: &Call<'_>,
        history: &[Entry<'_>],
        pictures: &mut dyn Pictures,
    ) -> Result<HttpRequest, Error>;

    /// Called once, before the first event, for what a stream's meaning depends on.
    fn begin(&mut self, _profile: &Profile, _model: &Model, _history: &[Entry<'_>]) {}

    /// Takes in one event; false: nothing after it counts. It has called
    /// [`Emitter::finish`] or [`Emitter::fail`] then, or [`Protocol::end`] is
    /// called next.
    fn event(&mut self, event: &sse::Event<'_>, out: &mut Emitter) -> bool;

    /// The body ended cleanly, or an event said that nothing more counts, and
    /// there was neither `finish` nor `fail` yet.
    fn end(&mut self, out: &mut Emitter);

    /// What a failed answer's text is (§7.5, last line): classified and shown.
    fn error_text(status: u16, body: &str) -> String;
}
