//! What a provider says of a failure: the text that is shown and classified.

use adapter_support::classify;
use adapter_support::failure::Failure;
use guest_support::json::Json;
use guest_support::words::start;

/// Bytes kept of a text: it is shown, logged and searched for words.
const KEPT: usize = 8_000;

/// Codes by which a provider says that the fault is its own or that it has too much
/// to do. They hold no number, so the words alone would not tell (§7.5), and such
/// a call is worth repeating.
const BUSY: &[&str] = &[
    "internal_error",
    "internal_server_error",
    "overloaded_error",
    "server_error",
    "server_is_overloaded",
    "service_unavailable",
    "slow_down",
];

/// Whether an `error` member tells of one: not `null`, `false`, `""`, `{}`.
pub(crate) fn is_some(error: Json<'_>) -> bool {
    !matches!(error.raw(), "null" | "false" | "\"\"" | "0" | "{}" | "[]")
}

/// The failure that an error object (or text) of a stream tells of; `what` is said
/// where it holds nothing.
pub(crate) fn failure(error: Json<'_>, what: &str) -> Failure {
    let part = |name: &str| {
        let part = error.some(name)?;
        let text = part
            .string()
            .map_or_else(|| part.raw().to_owned(), std::borrow::Cow::into_owned);
        Some(text).filter(|text| !text.is_empty())
    };
    // The event's own type says no more than that it is one.
    let kind = part("type").filter(|kind| !matches!(kind.as_str(), "error" | "response.error"));
    let code = part("code").or_else(|| kind.clone());
    let text = match (code.as_deref(), part("message"), error.string()) {
        (Some(code), Some(message), _) => format!("{code}: {message}"),
        (None, Some(message), _) => message,
        (_, None, Some(text)) if !text.is_empty() => text.into_owned(),
        (Some(code), None, _) => code.to_owned(),
        (None, None, _) if error.is_object() => error.raw().to_owned(),
        (None, None, _) => format!("the provider sent an event `{what}` without a reason"),
    };
    let busy = [code, kind]
        .into_iter()
        .flatten()
        .any(|code| BUSY.contains(&&*code));
    let failure = plain(&text);
    match failure.code.as_str() {
        "PI_AI_ERROR" if busy => Failure {
            code: "SERVER".to_owned(),
            ..failure
        },
        _ => failure,
    }
}

/// A failure that its words alone tell of.
pub(crate) fn plain(text: &str) -> Failure {
    let text = start(text, KEPT);
    Failure::new(classify::of_text(text), text)
}
