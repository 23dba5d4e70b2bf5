//! What a provider says of a failure: the text that is shown, and the code that all
//! of its words give, those included that the text leaves out.

use std::borrow::Cow;

use adapter_support::classify;
use adapter_support::failure::Failure;
use guest_support::json::Json;
use guest_support::words::start;

/// Bytes kept of a text: it is shown, logged and searched for words.
const KEPT: usize = 8_000;

/// Whether an `error` member tells of one: not `null`, `false`, `""`, `{}`.
pub(crate) fn is_some(error: Json<'_>) -> bool {
    !matches!(error.raw(), "null" | "false" | "\"\"" | "0" | "{}" | "[]")
}

/// The failure that an error object (or text) of a stream tells of; `what` is said
/// where it holds nothing.
pub(crate) fn failure(error: Json<'_>, what: &str) -> Failure {
    let part = |name: &str| {
        let part = error.some(name)?;
        let text = part.string().unwrap_or(Cow::Borrowed(part.raw()));
        Some(start(&text, KEPT).to_owned()).filter(|text| !text.is_empty())
    };
    // The event's own type says no more than that it is one.
    let kind = part("type").filter(|kind| !matches!(kind.as_str(), "error" | "response.error"));
    let code = part("code").or_else(|| kind.clone());
    let text = match (code, part("message"), error.string()) {
        (Some(code), Some(message), _) => format!("{code}: {message}"),
        (None, Some(message), _) => message,
        (_, None, Some(text)) if !text.is_empty() => text.into_owned(),
        (Some(code), None, _) => code,
        (None, None, _) if error.is_object() => error.raw().to_owned(),
        (None, None, _) => format!("the provider sent an event `{what}` without a reason"),
    };
    let text = start(&text, KEPT);
    let words = format!("{text} {}", kind.unwrap_or_default());
    Failure::new(classify::of_text(&words), text)
}

/// A failure that its words alone tell of.
pub(crate) fn plain(text: &str) -> Failure {
    let text = start(text, KEPT);
    Failure::new(classify::of_text(text), text)
}
