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
