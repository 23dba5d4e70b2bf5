//! What an answer other than 2xx means (spec/llm.md §4, §6.6).

use guest_support::json::{Json, Object, quote};

use crate::classify::{is_overflow, is_quota};

/// The chunk that ends an attempt with this failure, `{message, code, ...}`.
pub(crate) fn finish(failure: &str) -> String {
    let reason = Object::new()
        .string("kind", "error")
        .raw("failure", failure)
        .build();
    Object::new()
        .string("type", "finish")
        .raw("reason", &reason)
        .build()
}

/// The failure that a status, its headers and its body tell of.
pub(crate) fn of_response(status: u16, headers: &[(String, String)], body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    let told = Json::parse(&body).and_then(|json| json.some("error"));
    let part = |name: &str| {
        let part = told.and_then(|error| error.some(name));
        part.map(|part| {
            part.string()
                .map_or_else(|| part.raw().to_owned(), std::borrow::Cow::into_owned)
        })
        .filter(|part| !part.is_empty())
    };
    let detail: Vec<_> = ["code", "type", "message"]
        .into_iter()
        .filter_map(part)
        .collect();
    let message = told
        .and_then(|error| error.some("message")?.string())
        .filter(|message| !message.is_empty())
        .map_or_else(
            || format!("DeepSeek answered with the HTTP status {status}"),
            std::borrow::Cow::into_owned,
        );
    let retry = retry_after_ms(headers).map(|ms| ms.to_string());
    let id = header(headers, "x-request-id").or_else(|| header(headers, "x-deepseek-request-id"));
    Object::new()
        .string("message", &message)
        .string("code", &code(status, &detail.join(" ")))
        .number("status", status.into())
        .maybe("providerRetryAfterMs", retry.as_deref())
        .maybe("requestId", id.map(quote).as_deref())
        .build()
}

fn code(status: u16, detail: &str) -> String {
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

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(found.1.trim()).filter(|value| !value.is_empty())
}

/// How long the provider asks to wait: seconds, or a date, which is measured
/// against the response's own, as the adapter has no clock.
fn retry_after_ms(headers: &[(String, String)]) -> Option<u64> {
    let value = header(headers, "retry-after")?;
    let ms = if value.bytes().all(|byte| byte.is_ascii_digit()) {
        value
            .parse::<u32>()
            .ok()
            .map(|seconds| u64::from(seconds) * 1000)
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
mod tests {
    use super::*;

    fn of(status: u16, headers: &[(&str, &str)], body: &str) -> serde_json::Value {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        serde_json::from_str(&of_response(status, &headers, body.as_bytes())).unwrap()
    }

    #[test]
    fn a_status_and_its_words_make_the_code() {
        let told = |message: &str| format!(r#"{{"error":{{"message":"{message}","type":"t"}}}}"#);
        for (status, message, code) in [
            (401, "no", "AUTH"),
            (403, "insufficient_quota", "AUTH"),
            (413, "big", "INVALID_REQUEST"),
            (402, "Insufficient Balance", "QUOTA"),
            (429, "slow down", "RATE_LIMIT"),
            (
                400,
                "This model's maximum context length is 9 tokens",
                "CONTEXT_WINDOW_EXCEEDED",
            ),
            (400, "bad field", "INVALID_REQUEST"),
            (503, "overloaded", "SERVER"),
            (404, "gone", "HTTP_404"),
        ] {
            let failure = of(status, &[], &told(message));
            assert_eq!(
                (&failure["code"], &failure["message"]),
                (&code.into(), &message.into()),
                "{status}"
            );
        }
    }

    #[test]
    fn a_body_that_is_no_json_still_makes_a_failure() {
        let failure = of(502, &[("X-Request-Id", "r1")], "<html>");
        assert_eq!(failure["code"], "SERVER");
        assert_eq!(failure["requestId"], "r1");
        assert!(failure["message"].as_str().unwrap().contains("502"));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_against_the_response_s_own() {
        let wait = |headers: &[(&str, &str)]| of(429, headers, "")["providerRetryAfterMs"].as_u64();
        let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(wait(&[("retry-after", "7")]), Some(7000));
        assert_eq!(wait(&[("retry-after", "0")]), None);
        assert_eq!(wait(&[("retry-after", "1.5")]), None);
        assert_eq!(wait(&[("retry-after", "99999999999999999999")]), None);
        assert_eq!(
            wait(&[("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT"), date]),
            Some(90_000)
        );
        assert_eq!(
            wait(&[
                ("retry-after", "Tue, 01 Mar 2016 00:00:00 GMT"),
                ("date", "Mon, 29 Feb 2016 23:59:59 GMT")
            ]),
            Some(1000)
        );
        assert_eq!(
            wait(&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), date]),
            None
        );
        assert_eq!(
            wait(&[("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT")]),
            None
        );
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }
}
