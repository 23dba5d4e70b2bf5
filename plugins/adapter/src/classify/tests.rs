use super::*;

#[test]
fn an_overflow_is_known_by_its_words() {
    for text in [
        "context_length_exceeded",
        "Context Window Overflow",
        "context-length-limit-exceeded",
        "This model's maximum context length is 131072 tokens.",
        "over the max allowed context window",
        "messages are too long for the model's context window",
        "Prompt is too large for this model",
        "the input of 12 tokens exceeds the model's context length",
        "Your request is larger than what fits the context window",
        "request of forty tokens or so overflows model context",
    ] {
        assert!(is_overflow(text), "{text}");
    }
    for text in [
        "context  length exceeded",
        "xcontext_length_exceeded1",
        "max_context_length must be a number",
        "the context is fine",
        "exceeds the context of an input",
        "request too large",
        "the request exceeds the rate that we allow you for now, and to say more about it: context",
    ] {
        assert!(!is_overflow(text), "{text}");
    }
}

#[test]
fn a_used_up_quota_is_known_by_its_words() {
    for text in [
        "Insufficient Balance",
        "insufficient_quota",
        "You exceeded your current quota, please check",
        "Quota reached",
        "usage limit exceeded",
        "credits depleted",
        "You are out of credits",
        "out of budget",
    ] {
        assert!(is_quota(text), "{text}");
    }
    for text in [
        "Rate limit reached",
        "quota",
        "balance of loads",
        "insufficient permissions",
    ] {
        assert!(!is_quota(text), "{text}");
    }
}

#[test]
fn a_failure_s_words_make_its_code() {
    for (text, code) in [
        // Overflow, by the providers' phrases.
        (
            "prompt is too long: 213462 tokens > 200000 maximum",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "413 {\"error\":{\"type\":\"request_too_large\"}}",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "input is too long for requested model",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "Your input exceeds the context window of this model",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "exceeds the model's maximum context length of 8,192 tokens",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "it exceeds maximum context length (4096)",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "The input token count (9) exceeds the maximum number",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "This model's maximum prompt length is 131072",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "Please reduce the length of the messages",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "endpoint's maximum context length is 10 tokens",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "exceeds the maximum allowed input length of 7",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "The input (12 tokens) is longer than the model's context length",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "prompt token count of 5 exceeds the limit of 4",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "the request exceeds the available context size",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "tokens to keep is greater than the context length",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "invalid params, context window exceeds limit",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "Your request exceeded model token limit: 8",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "Prompt is too large for model with 32768 maximum context length",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "prompt has 9 tokens, but the configured context size is 8",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "finish_reason model_context_window_exceeded",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "prompt too long; exceeded max context length by 3",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "Range of input length should be [1, 98304]",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        ("context length exceeded", "CONTEXT_WINDOW_EXCEEDED"),
        ("too many tokens", "CONTEXT_WINDOW_EXCEEDED"),
        ("token limit exceeded", "CONTEXT_WINDOW_EXCEEDED"),
        ("413 status code (no body)", "CONTEXT_WINDOW_EXCEEDED"),
        ("400 (no body)", "CONTEXT_WINDOW_EXCEEDED"),
        // Unless it says that there were too many.
        ("Too many requests: too many tokens a minute", "RATE_LIMIT"),
        ("429: rate limit: token limit exceeded", "RATE_LIMIT"),
        // Then the order of the specification.
        ("401: {\"message\":\"no\"}", "AUTH"),
        ("403 quota exceeded", "AUTH"),
        ("429: You exceeded your current quota", "QUOTA"),
        ("402 insufficient_balance", "QUOTA"),
        ("429: slow", "RATE_LIMIT"),
        ("Rate limit reached", "RATE_LIMIT"),
        ("rate_limit_error", "RATE_LIMIT"),
        ("413: length limit", "INVALID_REQUEST"),
        ("Payload Too Large", "INVALID_REQUEST"),
        ("400: bad field", "INVALID_REQUEST"),
        ("invalid_request_error", "INVALID_REQUEST"),
        ("500: {\"message\":\"boom\"}", "SERVER"),
        ("server_error: internal failure 500", "SERVER"),
        ("502 Bad Gateway: timeout", "SERVER"),
        ("{\"type\":\"overloaded_error\"}", "SERVER"),
        ("server_error Provider gone", "SERVER"),
        ("Service Unavailable", "SERVER"),
        ("Request timed out.", "TIMEOUT"),
        ("deadline: timeout", "TIMEOUT"),
        ("the stream ended before a finish_reason", "TRANSPORT"),
        ("Connection error.", "TRANSPORT"),
        ("socket hang up", "TRANSPORT"),
        ("read ECONNRESET", "TRANSPORT"),
        ("other side closed", "TRANSPORT"),
        ("Premature close", "TRANSPORT"),
        ("finish_reason network_error", "TRANSPORT"),
        // Numbers that are not on their own say nothing.
        ("gpt-5001 said 5000 words, 4290 of them odd", "PI_AI_ERROR"),
        ("a_500_b", "PI_AI_ERROR"),
        ("odd", "PI_AI_ERROR"),
        ("", "PI_AI_ERROR"),
    ] {
        assert_eq!(of_text(text), code, "{text}");
    }
}

#[test]
fn a_status_and_its_words_make_deepseek_s_code() {
    for (status, detail, code) in [
        (401, "insufficient quota", "AUTH"),
        (413, "context length exceeded", "INVALID_REQUEST"),
        (402, "Insufficient Balance", "QUOTA"),
        (429, "", "RATE_LIMIT"),
        (400, "context_length_exceeded", "CONTEXT_WINDOW_EXCEEDED"),
        (400, "", "INVALID_REQUEST"),
        (500, "context_length_exceeded", "SERVER"),
        (599, "", "SERVER"),
        (404, "", "HTTP_404"),
        (302, "", "HTTP_302"),
    ] {
        assert_eq!(of_status(status, detail), code, "{status} {detail}");
    }
}

#[test]
fn an_answer_that_did_not_fit_is_known_by_its_counts() {
    let usage = |input, cache_read, output| Usage {
        input,
        cache_read,
        output,
        cache_write: 0,
    };
    for (stop, counts, overflows) in [
        (Stop::Stop, usage(1000, 0, 1), false),
        (Stop::Stop, usage(600, 401, 1), true),
        (Stop::ToolUse, usage(2000, 0, 1), false),
        (Stop::Length, usage(990, 0, 0), true),
        (Stop::Length, usage(500, 490, 0), true),
        (Stop::Length, usage(989, 0, 0), false),
        (Stop::Length, usage(2000, 0, 1), false),
    ] {
        assert_eq!(
            is_silent_overflow(stop, &counts, 1000),
            overflows,
            "{stop:?} {counts:?}"
        );
    }
}

#[test]
fn hostile_words_cost_little() {
    // As long as an error's text may be.
    for word in [
        "input token count ",
        "context ",
        "request exceeds ",
        "400 ",
        "[",
    ] {
        let text = word.repeat(16 * 1024 / word.len());
        let _ = of_text(&text);
    }
}
