//! The adapter of Anthropic's messages (spec/llm.md §7.8), and of the servers that
//! speak the same for other models. Its parts: the request ([`request`], with the
//! history in [`history`] and the share of thinking in [`thinking`]) and the
//! stream ([`stream`]). Profiles, replay states, chunks and the component itself
//! are `adapter-support`'s.

mod history;
mod request;
mod stream;
mod thinking;

use adapter_support::profile::{Model, Profile, Switch};
use adapter_support::{Call, Emitter, Entry, Error, HttpRequest, Pictures, Protocol, sse};
use guest_support::json::Json;

/// Characters that an id of a call may have.
const MAX_ID: usize = 64;

/// The protocol.
#[derive(Debug, Default)]
pub struct Messages(stream::Stream);

impl Protocol for Messages {
    const API: &'static str = "anthropic-messages";

    const SWITCHES: &'static [Switch] = &[
        Switch::flag("supportsEagerToolInputStreaming"),
        Switch::flag("supportsLongCacheRetention"),
        Switch::flag("supportsCacheControlOnTools"),
        Switch::flag("supportsTemperature"),
        Switch::flag("forceAdaptiveThinking"),
        Switch::flag("allowEmptySignature"),
        Switch::flag("supportsStrictTools"),
    ];

    const CATALOGUE: &'static str = include_str!("../../adapter/catalogue/anthropic-messages.json");

    const FLUSHES: bool = true;

    /// Letters, digits, `_` and `-`, 64 at most: anything else is refused. The end
    /// of a longer one is told apart by a hash.
    fn call_id(_: &Model, _: &Profile, id: &str) -> Option<String> {
        let id = guest_support::json::unescape(id);
        let taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        // As UTF-16 counts them, so that ids become what they always became.
        let mut mended: String = id
            .chars()
            .flat_map(|c| std::iter::repeat_n(if taken(c) { c } else { '_' }, c.len_utf16()))
            .collect();
        if mended.is_empty() {
            mended.push_str("call");
        } else if mended.len() > MAX_ID {
            mended.truncate(MAX_ID - 17);
            mended.push_str(&format!("_{:016x}", hash(&id)));
        }
        Some(mended)
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
        self.0.event(event, out)
    }

    fn end(&mut self, out: &mut Emitter) {
        self.0.end(out);
    }

    /// `<status> <body>`; where a body is an object with a message of its own, as
    /// gateways have it, `<status> <message>`.
    fn error_text(status: u16, body: &str) -> String {
        let body = body.trim();
        if body.is_empty() {
            return format!("{status} status code (no body)");
        }
        let json = Json::parse(body);
        let message = json.and_then(|json| json.some("message")?.string());
        match message.as_deref().filter(|text| !text.is_empty()) {
            Some(message) => format!("{status} {message}"),
            None => format!("{status} {body}"),
        }
    }
}

/// FNV-1a: ids have to differ, and nobody gains by two that do not.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

adapter_support::component!(Messages);

#[cfg(test)]
mod cases_tests;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;
