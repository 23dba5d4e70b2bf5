//! What an answer other than 2xx means (spec/llm.md §4, §6.6).

use adapter_support::classify;
use adapter_support::failure::Failure;
use adapter_support::opening::error_words;
use guest_support::json::Json;

/// The failure that a status, its headers and its body tell of.
pub(crate) fn of_response(status: u16, headers: &[(String, String)], body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(body);
    let (message, detail) = Json::parse(&body)
        .and_then(|json| json.some("error"))
        .map_or_else(Default::default, error_words);
    let message =
        message.unwrap_or_else(|| format!("DeepSeek answered with the HTTP status {status}"));
    Failure::new(&classify::of_status(status, &detail), message).of_response(status, headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        of_response(status, &headers, body.as_bytes())
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
                (failure.code.as_str(), failure.message.as_str()),
                (code, message),
                "{status}"
            );
        }
    }

    #[test]
    fn a_body_that_is_no_json_still_makes_a_failure() {
        let failure = of(502, &[("X-Request-Id", "r1")], "<html>");
        assert_eq!(failure.code, "SERVER");
        assert_eq!(failure.request_id.as_deref(), Some("r1"));
        assert!(failure.message.contains("502"));
    }
}
