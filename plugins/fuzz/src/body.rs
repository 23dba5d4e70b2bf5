//! An adapter fed with any bytes: however they are cut it makes the same chunks, and they are chunks of one attempt.

use adapter_support::Protocol;
use adapter_support::bindings::exports::dsh::plugin::llm_adapter::EndCause;

use crate::adapters::{self, DeepSeek, Driven};
use crate::grammar;
use crate::random::Random;

const STATUSES: [u16; 8] = [200, 200, 200, 200, 200, 429, 400, 503];
/// A byte of a stream makes less than so many bytes of chunks, beyond what every stream makes: ids and names are said
/// again in each delta.
const PER_BYTE: usize = 4096;

pub(crate) fn deepseek(bytes: &[u8]) {
    check("deepseek-official", DeepSeek::new, bytes);
}

pub(crate) fn completions(bytes: &[u8]) {
    shared::<llm_openai_completions::Completions>(bytes);
}

pub(crate) fn responses(bytes: &[u8]) {
    shared::<llm_openai_responses::Responses>(bytes);
}

pub(crate) fn messages(bytes: &[u8]) {
    shared::<llm_anthropic::Messages>(bytes);
}

fn shared<P: Protocol>(bytes: &[u8]) {
    check(adapters::PROVIDER, adapters::of::<P>, bytes);
}

/// The first byte says how the others are cut and what the answer's status is, the second how it ends.
fn check<D: Driven>(provider: &str, adapter: impl FnOnce() -> D, bytes: &[u8]) {
    let [cut, end, body @ ..] = bytes else {
        return;
    };
    let status = STATUSES[usize::from(end >> 5)];
    let cause = || match end % 4 {
        0 => EndCause::Failed(guest_support::error("TRANSPORT", "reset")),
        1 => EndCause::Aborted,
        _ => EndCause::Complete,
    };
    // One instance for all, as a run has it.
    let mut adapter = adapter();
    let mut play = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let message = r#"{"id":"u","role":"user","content":[{"type":"text","text":"Hi."}],"source":{"kind":"user"}}"#;
        let request = adapters::request(provider, vec![message.to_owned()]);
        let attempt = adapter.open(request).expect("a plain request");
        adapter.sent(attempt);
        let headers = vec![("retry-after".to_owned(), "3".to_owned())];
        adapter.head(attempt, status, headers);
        let mut chunks: Vec<String> = Vec::new();
        for piece in pieces {
            chunks.extend(adapter.body(attempt, piece));
        }
        chunks.extend(adapter.end(attempt, cause()));
        adapter.close(attempt);
        chunks
    };
    let whole = play(&mut [body].into_iter());
    let finished = grammar::check(&whole);
    if status != 200 && end % 4 != 1 {
        assert!(finished, "an answer with the status {status} is no failure");
    }
    let size: usize = whole.iter().map(String::len).sum();
    assert!(
        size < (body.len() + 64) * PER_BYTE,
        "{size} bytes of chunks of {}",
        body.len()
    );
    let pieces = Random::new(u64::from(*cut)).pieces(body);
    assert_eq!(play(&mut pieces.into_iter()), whole, "cut by {cut}");
    assert_eq!(play(&mut body.chunks(1)), whole, "byte by byte");
}
