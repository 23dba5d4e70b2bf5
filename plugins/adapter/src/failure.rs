//! A failed attempt, as the log has it (spec/llm.md §1.8), and what a response's
//! headers add to it.

use std::borrow::Cow;

use guest_support::json::{Object, quote};
use guest_support::words::start;

/// Bytes that a message, and what it is classified by, may have. Nothing stands
/// behind a cut: a key is known by its head only at the end of a text.
pub const MAX_MESSAGE: usize = 16 * 1024;

/// Why an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// One of §4's.
    pub code: String,
    /// For people; not empty.
    pub message: String,
    /// Of the HTTP response, where that was the failure.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after_ms: Option<u64>,
    /// The provider's name for the request.
    pub request_id: Option<String>,
}

impl Failure {
    /// One that is known by its code and told by its message alone.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// With what an answer's status and headers tell beside its body.
    #[must_use]
    pub fn of_response(mut self, status: u16, headers: &[(String, String)]) -> Self {
        // The log has no place for a status that HTTP does not know: said in words.
        if (100..=599).contains(&status) {
            self.status = Some(status);
        } else if !self.message.contains(&status.to_string()) {
            self.message = format!("HTTP status {status}: {}", self.message);
        }
        self.retry_after_ms = retry_after_ms(headers);
        self.request_id = ["x-request-id", "request-id", "x-deepseek-request-id"]
            .into_iter()
            .find_map(|name| header(headers, name))
            .map(str::to_owned);
        self
    }
}

/// The chunk that ends an attempt with this failure.
pub fn finish_error(failure: &Failure) -> String {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let facts = Object::new()
        .string("message", &unescaped(start(&failure.message, MAX_MESSAGE)))
        .string("code", &failure.code)
        .maybe("status", number(failure.status.map(u64::from)).as_deref())
        .maybe(
            "providerRetryAfterMs",
            number(failure.retry_after_ms).as_deref(),
        )
        .maybe(
            "requestId",
            failure.request_id.as_deref().map(quote).as_deref(),
        )
        .build();
    let reason = Object::new()
        .string("kind", "error")
        .raw("failure", &facts)
        .build();
    Object::new()
        .string("type", "finish")
        .raw("reason", &reason)
        .build()
}

/// The text with what JSON need not escape as it is. A message shows parts of a
/// body as they stand, and some servers write `/` as `\/` and `=` as `\u003d`:
/// a key that they echo would not be found in it, and so not redacted.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (shown, length) = match rest.as_bytes().get(1) {
            Some(b'/') => ('/', 2),
            Some(b'u') => match rest.get(2..6).and_then(printable) {
                Some(shown) => (shown, 6),
                None => ('\\', 1),
            },
            // Both, so that the second one begins nothing.
            Some(b'\\') => {
                plain.push('\\');
                ('\\', 2)
            }
            _ => ('\\', 1),
        };
        plain.push(shown);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The character of four hexadecimal digits, where it is one of a key and stands
/// for itself in JSON.
fn printable(digits: &str) -> Option<char> {
    let byte = digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())??;
    let shown = char::from_u32(byte).filter(char::is_ascii_graphic)?;
    (!matches!(shown, '"' | '\\')).then_some(shown)
}

/// A header's value, trimmed; none where it is empty.
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(found.1.trim()).filter(|value| !value.is_empty())
}

/// How long the provider asks to wait: seconds, or a date, which is measured
/// against the response's own, as the adapter has no clock.
pub fn retry_after_ms(headers: &[(String, String)]) -> Option<u64> {
    let value = header(headers, "retry-after")?;
    let ms = if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than fits is longer than anybody waits, and not nothing.
        Some(u64::from(value.parse().unwrap_or(u32::MAX)) * 1000)
    } else {
        let wait = http_date(value)? - http_date(header(headers, "date")?)?;
        u64::try_from(wait).ok().map(|seconds| seconds * 1000)
    };
    ms.filter(|ms| *ms > 0)
}

/// Seconds since 1970 of `Wed, 21 Oct 2015 07:28:00 GMT`.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day: i64 = parts.next()?.parse().ok()?;
    let name = parts.next().filter(|name| name.len() == 3)?;
    let month = MONTHS.find(name).filter(|at| at % 3 == 0)? as i64 / 3 + 1;
    let year: i64 = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let mut clock = parts
        .next()?
        .split(':')
        .map(|part| part.parse::<u8>().ok().map(i64::from));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    if parts.next() != Some("GMT") || !(1..=31).contains(&day) {
        return None;
    }
    // Days from the civil calendar, with March as the first month of a year.
    let (years, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let in_year = (153 * months + 2) / 5 + day - 1;
    let days =
        years * 365 + years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400) + in_year
            - 719_468;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
