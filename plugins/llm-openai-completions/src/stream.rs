//! Payloads of a completion stream in, chunks of the log out.

use adapter_support::profile::Switch;
use adapter_support::{
    Call, Emitter, Entry, Error, HttpRequest, Model, Pictures, Profile, Protocol, sse,
};

use crate::request;

/// The state of one stream.
#[derive(Debug, Default)]
pub(crate) struct Completions {}

impl Protocol for Completions {
    const API: &'static str = "openai-completions";
    const CATALOGUE: &'static str = include_str!("../../adapter/catalogue/openai-completions.json");
    const SWITCHES: &'static [Switch] = request::SWITCHES;

    fn request(
        profile: &Profile,
        model: &Model,
        call: &Call<'_>,
        history: &[Entry<'_>],
        pictures: &mut dyn Pictures,
    ) -> Result<HttpRequest, Error> {
        request::build(profile, model, call, history, pictures)
    }

    fn event(&mut self, _event: &sse::Event<'_>, _out: &mut Emitter) -> bool {
        true
    }

    fn end(&mut self, out: &mut Emitter) {
        out.fail("stream ended without a finish reason");
    }

    fn error_text(status: u16, body: &str) -> String {
        format!("{status}: {body}")
    }
}
