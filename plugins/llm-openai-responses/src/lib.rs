//! OpenAI's responses protocol, as its own and other servers speak it (spec/llm.md
//! §7.7): neutral requests into a body ([`request`], [`ids`]), the events of a stream
//! ([`event`], [`told`]) into chunks ([`stream`], [`sign`]). What is the same for all
//! adapters is in `adapter-support`.
//!
//! Nothing is kept at the provider (`store: false`): each request carries the whole
//! conversation, with the reasoning of this model as it came, encrypted.

mod event;
mod ids;
mod request;
mod sign;
mod stream;
mod told;

use adapter_support::profile::Switch;
use adapter_support::{
    Call, Emitter, Entry, Error, HttpRequest, Model, Pictures, Profile, Protocol, sse,
};

/// The protocol.
#[derive(Debug, Default)]
pub struct Responses {
    stream: stream::Stream,
}

impl Protocol for Responses {
    const API: &'static str = "openai-responses";
    const CATALOGUE: &'static str = include_str!("../../adapter/catalogue/openai-responses.json");

    const SWITCHES: &'static [Switch] = &[
        Switch::flag("supportsDeveloperRole"),
        Switch::flag("supportsStrictMode"),
        Switch::flag("supportsLongCacheRetention"),
    ];

    fn call_id(_model: &Model, _profile: &Profile, id: &str) -> Option<String> {
        Some(ids::foreign_call_id(id))
    }

    fn request(
        profile: &Profile,
        model: &Model,
        call: &Call<'_>,
        history: &[Entry<'_>],
        pictures: &mut dyn Pictures,
    ) -> Result<HttpRequest, Error> {
        request::build(profile, model, call, history, pictures)
    }

    fn event(&mut self, event: &sse::Event<'_>, out: &mut Emitter) -> bool {
        self.stream.take(event.name, event.data, out)
    }

    fn end(&mut self, out: &mut Emitter) {
        out.fail("the stream ended before the event that ends an answer (response.completed)");
    }

    fn error_text(status: u16, body: &str) -> String {
        request::error_text(status, body)
    }
}

adapter_support::component!(Responses);

#[cfg(test)]
mod cases_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod replay_tests;
