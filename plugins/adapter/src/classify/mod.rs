//! What a provider's words tell of a failure (spec/llm.md §4, §7.5). Pure
//! functions over texts, matched on words and by patterns of two wildcards, so
//! that no regular-expression engine comes along.
//!
//! The order is the specification's, which a retry depends on: what is exhausted
//! is known before what is only busy. Two things are ours: an *overload* is
//! `SERVER` also where no number says so, since it passes and is to be retried,
//! and a page of HTML is told as such.

mod like;
mod phrases;

pub use phrases::{is_overflow, is_quota};

use crate::emit::{Stop, Usage};
use like::like;

/// How providers say that a request does not fit, beside [`is_overflow`].
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "exceeds [the ][model's ]maximum context length of # token",
    "exceeds [the ][model's ]maximum context length (#)",
    "input token count*exceeds the maximum",
    "maximum prompt length is #",
    "reduce the length of the messages",
    "maximum context length is # token",
    "exceeds [the ]maximum allowed input length of #",
    "input (# tokens) is longer than the model's context length",
    "exceeds the limit of #",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "too large for model with # maximum context length",
    "prompt has # tokens, but the configured context size is #",
    "model_context_window_exceeded",
    "prompt too long; exceeded [max ]context length",
    "range of input length should be",
    "context length exceeded",
    "context_length_exceeded",
    "too many tokens",
    "token limit exceeded",
];

/// What says that a request was one too many, not one too large.
const BUSY: &[&str] = &[
    "rate limit",
    "rate_limit",
    "rate-limit",
    "too many requests",
    "too_many_requests",
    "service unavailable",
];

const TOO_LARGE: &[&str] = &[
    "payload too large",
    "payload_too_large",
    "request entity too large",
    "request body too large",
    "content too large",
    "body too large",
    "request too large",
];

const TIMEOUT: &[&str] = &["timed out", "timeout", "time out", "time-out"];

const BROKEN: &[&str] = &[
    "network",
    "connection",
    "socket",
    "fetch failed",
    "failed to fetch",
    "econn",
    "other side closed",
    "terminated",
    "premature close",
];

/// What passes by itself, though no number says so.
const TROUBLE: &[&str] = &[
    "overloaded",
    "server_error",
    "internal server error",
    "service unavailable",
    "service_unavailable",
    "bad gateway",
    "slow_down",
];

/// The code of a failure that is known by its text alone.
pub fn of_text(text: &str) -> &'static str {
    let lower = text.to_ascii_lowercase();
    let any = |phrases: &[&str]| phrases.iter().any(|phrase| like(&lower, phrase));
    let number = |wanted: fn(&str) -> bool| numbers(&lower).any(wanted);
    if told_overflow(&lower) || is_overflow(text) {
        return "CONTEXT_WINDOW_EXCEEDED";
    }
    if number(|n| n == "401" || n == "403") {
        "AUTH"
    } else if is_quota(text) {
        "QUOTA"
    } else if number(|n| n == "429") || any(&BUSY[..5]) {
        "RATE_LIMIT"
    } else if number(|n| n == "413" || n == "400")
        || any(TOO_LARGE)
        || any(&["invalid request", "invalid_request"])
    {
        "INVALID_REQUEST"
    } else if number(|n| n.len() == 3 && n.starts_with('5')) || any(TROUBLE) {
        "SERVER"
    } else if any(TIMEOUT) {
        "TIMEOUT"
    } else if any(&["stream ended before", "stream ended without"]) || any(BROKEN) {
        "TRANSPORT"
    } else {
        "PI_AI_ERROR"
    }
}

/// The code of a DeepSeek answer other than 2xx (§6.6); `detail` is code, type
/// and message, joined by a space.
pub fn of_status(status: u16, detail: &str) -> String {
    let code = match status {
        401 | 403 => "AUTH",
        413 => "INVALID_REQUEST",
        _ if is_quota(detail) => "QUOTA",
        429 => "RATE_LIMIT",
        400 if is_overflow(detail) => "CONTEXT_WINDOW_EXCEEDED",
        400 => "INVALID_REQUEST",
        500.. => "SERVER",
        _ => return format!("HTTP_{status}"),
    };
    code.to_owned()
}

/// Whether an answer's end and counts say that its request did not fit, though
/// the provider calls it a success.
pub fn is_silent_overflow(stop: Stop, usage: &Usage, context_window: u64) -> bool {
    let input = usage.input + usage.cache_read;
    match stop {
        Stop::Stop => input > context_window,
        Stop::Length => usage.output == 0 && input as f64 >= context_window as f64 * 0.99,
        Stop::ToolUse => false,
    }
}

fn told_overflow(lower: &str) -> bool {
    let empty = ["400", "413"].iter().any(|status| {
        lower.strip_prefix(status).is_some_and(|rest| {
            let rest = rest.trim_start();
            let rest = rest.strip_prefix("status code").unwrap_or(rest);
            rest.trim_start().starts_with("(no body)")
        })
    });
    (empty || OVERFLOW.iter().any(|phrase| like(lower, phrase)))
        && !BUSY.iter().any(|phrase| like(lower, phrase))
}

/// Numbers that stand on their own.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
