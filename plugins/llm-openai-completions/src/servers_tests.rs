//! What servers beside OpenAI's own send, as they send it: each fixture is written
//! after a server's own answers, and holds one habit of it.

#![allow(
    clippy::needless_pass_by_value,
    reason = "values that `json!` makes are passed on as they are made"
)]

use adapter_support::Protocol as _;
use adapter_support::bindings::exports::dsh::plugin::llm_adapter::EndCause;
use adapter_support::component::Adapter;
use adapter_support::testing::{Drawn, generate};
use serde_json::{Value, json};

use crate::Completions;

/// Plays a body against a profile; returns the blocks, the usage and the finish.
fn play(profile: &Value, body: &str) -> (Vec<Value>, Value, Value) {
    let mut whole = None;
    for cut in [body.len().max(1), 1, 3] {
        let played = play_cut(profile, body, cut);
        assert_eq!(
            *whole.get_or_insert_with(|| played.clone()),
            played,
            "cut {cut}"
        );
    }
    let chunks = whole.unwrap();
    let of = |kind: &str| -> Vec<Value> {
        chunks
            .iter()
            .filter(|chunk| chunk["type"] == kind)
            .cloned()
            .collect()
    };
    let blocks = of("block-end")
        .iter()
        .map(|chunk| chunk["block"].clone())
        .collect();
    let usage = of("usage")
        .pop()
        .map_or(Value::Null, |chunk| chunk["usage"].clone());
    (blocks, usage, of("finish").pop().unwrap_or(Value::Null))
}

fn play_cut(profile: &Value, body: &str, cut: usize) -> Vec<Value> {
    let mut base = json!({"api": Completions::API, "baseURL": "http://127.0.0.1:8000/v1", "models": [{"id": "m"}]});
    for (key, value) in profile.as_object().unwrap() {
        base[key] = value.clone();
    }
    let mut adapter =
        Adapter::<Completions>::new(&json!({"providers": {"local": base}}).to_string()).unwrap();
    let request = generate(&json!({"provider": "local", "model": "m", "messages": [
        {"role": "assistant", "content": [{"type": "tool-call", "id": "old", "name": "n", "arguments": "{}"}]}]}));
    let attempt = adapter.open(&request, &mut Drawn).unwrap();
    adapter.head(attempt, 200, Vec::new());
    let mut chunks = Vec::new();
    for piece in body.as_bytes().chunks(cut) {
        chunks.extend(adapter.body(attempt, piece));
    }
    chunks.extend(adapter.end(attempt, &EndCause::Complete));
    chunks
        .iter()
        .map(|chunk| serde_json::from_str(chunk).unwrap())
        .collect()
}

fn code(finish: &Value) -> &str {
    finish["reason"]["failure"]["code"].as_str().unwrap_or("")
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "tool-call", "id": id, "name": name, "arguments": arguments})
}

#[test]
fn vllm_says_its_role_first_its_reasoning_as_reasoning_and_its_counts_alone() {
    let (blocks, usage, finish) = play(
        &json!({}),
        "data: {\"id\":\"chatcmpl-1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"prompt_token_ids\":null}\n\n\
         data: {\"id\":\"chatcmpl-1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\",\"reasoning_content\":null},\"finish_reason\":null}]}\n\n\
         data: {\"id\":\"chatcmpl-1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},\"finish_reason\":null,\"stop_reason\":null}]}\n\n\
         data: {\"id\":\"chatcmpl-1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\",\"stop_reason\":null}]}\n\n\
         data: {\"id\":\"chatcmpl-1\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"total_tokens\":9,\"completion_tokens\":2,\"prompt_tokens_details\":null}}\n\n\
         data: [DONE]\n\n",
    );
    assert_eq!(
        blocks,
        [json!({"type": "reasoning", "text": "hm"}), text("yes")]
    );
    assert_eq!(usage, json!({"inputTokens": 7, "outputTokens": 2}));
    assert_eq!(finish["reason"], json!({"kind": "stop"}));
    assert_eq!(
        finish["replayState"]["blocks"][0]["thinkingSignature"],
        "reasoning"
    );
}

#[test]
fn vllm_tells_of_an_error_in_the_stream_by_an_object_named_error() {
    let (_, _, finish) = play(
        &json!({}),
        "data: {\"object\":\"error\",\"message\":\"This model's maximum context length is 9 tokens.\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}\n\ndata: [DONE]\n\n",
    );
    assert_eq!(code(&finish), "CONTEXT_WINDOW_EXCEEDED");
    assert!(
        finish["reason"]["failure"]["message"]
            .as_str()
            .unwrap()
            .starts_with("This model's")
    );
}

#[test]
fn llama_cpp_ends_in_a_delta_without_content_and_keeps_the_connection_alive_by_comments() {
    let (blocks, usage, finish) = play(
        &json!({}),
        ": keep-alive\n\n\
         data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"created\":1,\"id\":\"c\",\"model\":\"gguf\",\"object\":\"chat.completion.chunk\"}\n\n\
         :\n\n\
         data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"reasoning_content\":\"a\"}}],\"id\":\"c\",\"model\":\"gguf\"}\n\n\
         data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\"b\"}}],\"id\":\"c\",\"model\":\"gguf\"}\n\n\
         data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}],\"id\":\"c\",\"model\":\"gguf\",\"usage\":{\"completion_tokens\":2,\"prompt_tokens\":12,\"total_tokens\":14,\"prompt_tokens_details\":{\"cached_tokens\":8}},\"timings\":{\"prompt_n\":4}}\n\n\
         data: [DONE]\n\n",
    );
    assert_eq!(
        blocks,
        [json!({"type": "reasoning", "text": "a"}), text("b")]
    );
    assert_eq!(
        usage,
        json!({"inputTokens": 4, "outputTokens": 2, "cacheReadTokens": 8})
    );
    assert_eq!(finish["replayState"]["response"]["responseModel"], "gguf");
}

#[test]
fn ollama_sends_calls_in_one_piece_all_numbered_0() {
    let (blocks, _, finish) = play(
        &json!({}),
        "data: {\"id\":\"chatcmpl-2\",\"model\":\"m\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_a\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}}]},\"finish_reason\":null}]}\n\n\
         data: {\"id\":\"chatcmpl-2\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_b\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":2}\"}}]},\"finish_reason\":null}]}\n\n\
         data: {\"id\":\"chatcmpl-2\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"tool_calls\"}]}\n\n\
         data: [DONE]\n\n",
    );
    assert_eq!(
        blocks,
        [
            call("call_a", "f", "{\"x\":1}"),
            call("call_b", "f", "{\"x\":2}")
        ]
    );
    assert_eq!(finish["reason"], json!({"kind": "tool-calls"}));
}

#[test]
fn lm_studio_repeats_the_id_and_the_name_with_each_piece() {
    let (blocks, ..) = play(
        &json!({}),
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"3651\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"3651\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"3651\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"[]}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
    );
    assert_eq!(blocks, [call("3651", "f", "{\"a\":[]}")]);
}

#[test]
fn calls_without_an_index_or_an_id_go_on_until_a_name_begins_another() {
    let (blocks, ..) = play(
        &json!({}),
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\"\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\":1}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":null,\"function\":{\"name\":\"g\",\"arguments\":{ \"b\" : [2] }}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":null}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
    );
    // The history has one call, so ids that are made up go on from there.
    assert_eq!(
        blocks,
        [
            call("call_2", "f", "{\"a\":1}"),
            call("call_3", "g", "{\"b\":[2]}")
        ]
    );
}

#[test]
fn an_id_made_up_for_each_piece_belongs_to_one_call_and_a_late_id_is_taken() {
    let (blocks, ..) = play(
        &json!({}),
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"r1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},{\"index\":1,\"function\":{\"name\":\"g\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"r2\",\"function\":{\"arguments\":\"}\"}},{\"index\":1,\"id\":\"late\",\"function\":{\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
    );
    assert_eq!(blocks, [call("r1", "f", "{}"), call("late", "g", "{}")]);
}

#[test]
fn the_call_before_there_were_calls_is_understood() {
    let (blocks, _, finish) = play(
        &json!({}),
        "data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\"\"}}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\":1}\"}},\"finish_reason\":\"function_call\"}]}\n\n",
    );
    assert_eq!(blocks, [call("call_2", "f", "{\"a\":1}")]);
    assert_eq!(finish["reason"], json!({"kind": "tool-calls"}));
}

#[test]
fn mistral_has_thoughts_and_texts_as_parts_of_the_content() {
    let (blocks, ..) = play(
        &json!({}),
        "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"so\"}]}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"odd\"}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n",
    );
    assert_eq!(
        blocks,
        [json!({"type": "reasoning", "text": "so"}), text("ab")]
    );
}

#[test]
fn moonshot_counts_inside_of_the_choice_and_names_the_cache_its_own_way() {
    let (_, usage, _) = play(
        &json!({}),
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\",\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1,\"cached_tokens\":4}}]}\n\n",
    );
    assert_eq!(
        usage,
        json!({"inputTokens": 6, "outputTokens": 1, "cacheReadTokens": 4})
    );
}

#[test]
fn gateways_in_front_of_other_protocols_pass_their_counts_on() {
    for (usage, expected) in [
        (
            json!({"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 5}),
            json!({"inputTokens": 3, "outputTokens": 3, "cacheReadTokens": 2, "cacheWriteTokens": 5}),
        ),
        (
            json!({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}),
            json!({"inputTokens": 5, "outputTokens": 1, "cacheReadTokens": 4}),
        ),
        (
            json!({"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 1}}),
            json!({"inputTokens": 0, "outputTokens": 1, "cacheReadTokens": 5, "cacheWriteTokens": 1}),
        ),
        (
            json!({"prompt_tokens": null, "completion_tokens": "x"}),
            json!({"inputTokens": 0, "outputTokens": 0}),
        ),
    ] {
        let body = format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "usage": usage})
        );
        assert_eq!(play(&json!({}), &body).1, expected, "{usage}");
    }
}

#[test]
fn a_route_declares_where_its_reasoning_and_its_counts_are() {
    let profile = json!({"compat": {
        "reasoningField": "thoughts",
        "usageFields": {"inputTokens": "in.all", "outputTokens": "out", "cacheReadTokens": "in.kept"},
    }});
    let (blocks, usage, finish) = play(
        &profile,
        "data: {\"choices\":[{\"delta\":{\"thoughts\":\"hm\",\"reasoning\":\"no\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"in\":{\"all\":9,\"kept\":4},\"out\":2,\"prompt_tokens\":99}}\n\n",
    );
    assert_eq!(
        blocks,
        [json!({"type": "reasoning", "text": "hm"}), text("a")]
    );
    assert_eq!(
        usage,
        json!({"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 4})
    );
    assert_eq!(
        finish["replayState"]["blocks"][0]["thinkingSignature"],
        "thoughts"
    );
}

#[test]
fn gateways_tell_of_trouble_in_the_stream() {
    for (payload, expected) in [
        (
            json!({"error": {"code": "server_error", "message": "Provider disconnected"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
            "SERVER",
        ),
        (
            json!({"error": {"code": 429, "message": "slow down"}}),
            "RATE_LIMIT",
        ),
        (
            json!({"error": {"type": "insufficient_quota", "message": "pay"}}),
            "QUOTA",
        ),
        (json!({"error": {"code": 401, "message": "who"}}), "AUTH"),
        (json!({"error": "the model is overloaded"}), "SERVER"),
        (json!({"error": {"odd": 1}}), "PI_AI_ERROR"),
        (
            json!({"choices": [{"delta": {}, "finish_reason": "network_error"}]}),
            "TRANSPORT",
        ),
        (
            json!({"choices": [{"delta": {}, "finish_reason": "content_filter"}]}),
            "PI_AI_ERROR",
        ),
    ] {
        let body = format!("data: {payload}\n\n");
        let (_, usage, finish) = play(&json!({}), &body);
        assert_eq!(code(&finish), expected, "{payload}");
        assert!(
            !finish["reason"]["failure"]["message"]
                .as_str()
                .unwrap()
                .is_empty()
        );
        assert_eq!(usage, json!({"inputTokens": 0, "outputTokens": 0}));
        assert!(finish.get("replayState").is_none());
    }
}

#[test]
fn what_ends_without_a_reason_broke_off_and_what_holds_nothing_is_empty() {
    for (body, expected) in [
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "TRANSPORT",
        ),
        ("data: [DONE]\n\n", "TRANSPORT"),
        ("", "TRANSPORT"),
        (": nothing\n\n", "TRANSPORT"),
        (
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            "EMPTY_RESPONSE",
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"\"}]}\n\n",
            "TRANSPORT",
        ),
        (
            "data: null\n\ndata: 1\n\ndata: []\n\ndata: {\"choices\":null}\n\n",
            "TRANSPORT",
        ),
        (
            "data: {\"choices\":[{\"delta\":null,\"finish_reason\":\"stop\"}]}\n\n",
            "EMPTY_RESPONSE",
        ),
        ("<html><body>Sign in</body></html>", "MALFORMED_RESPONSE"),
        (
            "{\"id\":\"c\",\"choices\":[{\"message\":{\"content\":\"not a stream\"}}]}",
            "MALFORMED_RESPONSE",
        ),
    ] {
        assert_eq!(code(&play(&json!({}), body).2), expected, "{body}");
    }
}

#[test]
fn nothing_after_the_end_counts() {
    let (blocks, ..) = play(
        &json!({}),
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: {\n\n",
    );
    assert_eq!(blocks, [text("a")]);
}

#[test]
fn only_the_first_choice_is_the_answer() {
    let (blocks, ..) = play(
        &json!({}),
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"},{\"index\":1,\"delta\":{\"content\":\"b\"}}]}\n\n",
    );
    assert_eq!(blocks, [text("a")]);
}

#[test]
fn what_a_stream_says_of_its_failure_is_cut() {
    let long = "x".repeat(300_000);
    for payload in [
        json!({"error": {"message": long}}),
        json!({"error": long}),
        json!({"error": {"code": 500, "type": long}}),
        json!({"choices": [{"delta": {}, "finish_reason": long}]}),
    ] {
        let (.., finish) = play(&json!({}), &format!("data: {payload}\n\ndata: [DONE]\n\n"));
        let message = finish["reason"]["failure"]["message"].as_str().unwrap();
        assert!(message.len() <= 16 * 1024, "{}", message.len());
    }
}
