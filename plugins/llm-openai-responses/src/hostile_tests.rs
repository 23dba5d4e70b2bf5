//! A provider that means harm: whatever it sends, the adapter ends the attempt or
//! goes on, in time and memory that its bytes are worth. A quadratic step would
//! show as a test that takes minutes.

use adapter_support::bindings::exports::dsh::plugin::llm_adapter::{Action, EndCause};
use adapter_support::component::{Adapter, NoPictures};
use adapter_support::emit::Target;
use adapter_support::{CallConfig, Emitter, GenerateRequest};
use guest_support::json::Json;
use serde_json::{Value, json};

use crate::Responses;
use crate::stream::Stream;

/// Many, for a build without optimisation.
const MANY: usize = 100_000;
const MEGABYTE: usize = 1 << 20;

/// The bytes of the chunks that a body becomes, and the last chunk.
fn feed(body: &str) -> (usize, Value) {
    let profile = json!({"baseURL": "http://127.0.0.1:1/v1", "api": "openai-responses",
        "models": [{"id": "m", "contextWindow": 1_000_000, "maxTokens": 4096}]});
    let config = json!({"providers": {"acme": profile}}).to_string();
    let mut adapter = Adapter::<Responses>::new(&config).unwrap();
    let request = GenerateRequest {
        config: CallConfig {
            provider: "acme".to_owned(),
            model: "m".to_owned(),
            reasoning_effort: None,
            temperature: None,
            max_tokens: None,
            stop: None,
            more: None,
        },
        purpose: None,
        system: None,
        messages: Vec::new(),
        tools: Vec::new(),
        session_id: None,
        more: None,
    };
    let attempt = adapter.open(&request, &mut NoPictures).unwrap();
    assert!(matches!(adapter.next(attempt).unwrap(), Action::Send(_)));
    adapter.head(attempt, 200, Vec::new());
    let mut chunks = Vec::new();
    for piece in body.as_bytes().chunks(64 * 1024) {
        chunks.extend(adapter.body(attempt, piece));
    }
    chunks.extend(adapter.end(attempt, &EndCause::Complete));
    let bytes = chunks.iter().map(String::len).sum();
    let last = chunks.last().expect("an end");
    (bytes, serde_json::from_str(last).unwrap())
}

fn stream(events: impl IntoIterator<Item = String>) -> String {
    let events: String = events
        .into_iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    events + "data: {\"type\":\"response.completed\",\"response\":{}}\n\n"
}

fn code(last: &Value) -> &str {
    last.pointer("/reason/failure/code")
        .or_else(|| last.pointer("/reason/kind"))
        .and_then(Value::as_str)
        .unwrap()
}

fn added(kind: &str, place: &str, id: &str) -> String {
    format!(
        r#"{{"type":"response.output_item.added","output_index":{place},"item":{{"type":"{kind}","id":"{id}","call_id":"{id}","name":"f"}}}}"#
    )
}

#[test]
fn a_hundred_thousand_items_at_as_many_places() {
    for (kind, many) in [
        ("message", MANY),
        ("function_call", MANY / 10),
        ("reasoning", MANY / 10),
        ("web_search_call", MANY / 10),
    ] {
        let body = stream((0..many).map(|at| added(kind, &at.to_string(), &format!("i{at}"))));
        let (bytes, last) = feed(&body);
        assert!(bytes < 4 * body.len(), "{bytes} of {}", body.len());
        let expected = match kind {
            "function_call" => "tool-calls",
            // Items, but not a word in them.
            _ => "EMPTY_RESPONSE",
        };
        assert_eq!(code(&last), expected, "{kind}");
    }
}

#[test]
fn a_hundred_thousand_items_at_one_place_that_is_no_place() {
    for place in [
        "0",
        "-1",
        "1e999",
        "\"x\"",
        "[]",
        "18446744073709551616",
        "0.5",
    ] {
        let body = stream((0..MANY / 10).map(|at| added("message", place, &format!("i{at}"))));
        assert_eq!(code(&feed(&body).1), "EMPTY_RESPONSE", "{place}");
    }
}

#[test]
fn one_item_announced_a_hundred_thousand_times_is_one_block() {
    let body = stream((0..MANY).map(|_| added("message", "0", "msg_1")));
    assert!(feed(&body).0 < 1_000);
}

#[test]
fn ids_of_a_megabyte_are_not_repeated_in_each_delta() {
    let id = "x".repeat(MEGABYTE);
    let deltas = (0..1_000).map(|_| {
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"1"}"#
            .to_owned()
    });
    for (item, end) in [
        (
            format!(r#"{{"type":"function_call","id":"{id}","call_id":"c","name":"f"}}"#),
            "tool-calls",
        ),
        (
            format!(r#"{{"type":"function_call","id":"fc","call_id":"{id}","name":"f"}}"#),
            "MALFORMED_RESPONSE",
        ),
        (
            format!(r#"{{"type":"function_call","id":"fc","call_id":"c","name":"{id}"}}"#),
            "MALFORMED_RESPONSE",
        ),
    ] {
        let begin =
            format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{item}}}"#);
        let body = stream([begin].into_iter().chain(deltas.clone()));
        let (bytes, last) = feed(&body);
        assert!(bytes < 2 * body.len(), "{bytes}");
        assert_eq!(code(&last), end);
    }
    // A message's id is only handed back.
    let delta = r#"{"type":"response.output_text.delta","output_index":0,"delta":"x"}"#;
    let body = stream([
        added("message", "0", &id),
        delta.to_owned(),
        added("reasoning", "1", &id),
    ]);
    assert_eq!(code(&feed(&body).1), "stop");
}

#[test]
fn a_name_that_comes_with_the_end_is_bounded_too() {
    let name = "x".repeat(MEGABYTE);
    let begin = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c"}}"#;
    let end = format!(
        r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"function_call","call_id":"c","name":"{name}"}}}}"#
    );
    let (bytes, last) = feed(&stream([begin.to_owned(), end]));
    assert_eq!(code(&last), "MALFORMED_RESPONSE");
    assert!(bytes < 10_000);
}

#[test]
fn whole_arguments_told_a_hundred_thousand_times_are_compared_once() {
    let begin = added("function_call", "0", "c");
    let long = "1".repeat(MEGABYTE);
    let delta = format!(
        r#"{{"type":"response.function_call_arguments.delta","output_index":0,"delta":"[{long}\u0031"}}"#
    );
    let whole =
        r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"\u0031"}"#;
    let events = [begin, delta]
        .into_iter()
        .chain((0..MANY).map(|_| whole.to_owned()));
    assert_eq!(code(&feed(&stream(events)).1), "tool-calls");
}

#[test]
fn small_events_about_a_large_block_cost_what_they_are() {
    let begin = added("reasoning", "0", "rs_1");
    let delta = format!(
        r#"{{"type":"response.reasoning_text.delta","output_index":0,"delta":"{}"}}"#,
        "x".repeat(MEGABYTE)
    );
    for small in [
        r#"{"type":"response.reasoning_summary_part.done","output_index":0}"#,
        r#"{"type":"response.reasoning_text.done","output_index":0,"text":"y"}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1"}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1"}}"#,
        r#"{"type":"response.reasoning_text.delta","output_index":0,"delta":""}"#,
        r#"{"type":"response.in_progress","response":{"id":"r"}}"#,
    ] {
        let events = [begin.clone(), delta.clone()]
            .into_iter()
            .chain((0..MANY / 5).map(|_| small.to_owned()));
        let body = stream(events);
        let (bytes, last) = feed(&body);
        assert!(bytes < 3 * body.len(), "{small}: {bytes}");
        assert_eq!(code(&last), "stop", "{small}");
    }
}

#[test]
fn nesting_without_a_bound_is_read_or_refused() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(MANY), close.repeat(MANY));
    for value in [
        deep("[", "]"),
        deep("{\"a\":", "}").replace("{\"a\":}", "{\"a\":1}"),
    ] {
        for event in [
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{value}}}"#),
            format!(
                r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"reasoning","id":"rs","x":{value},"summary":[{{"text":"a"}}]}}}}"#
            ),
            format!(
                r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"function_call","call_id":"c","name":"f","arguments":{value}}}}}"#
            ),
            format!(r#"{{"type":"error","error":{{"message":{value}}}}}"#),
            format!(
                r#"{{"type":"response.completed","response":{{"usage":{value},"output":{value}}}}}"#
            ),
            value.clone(),
        ] {
            feed(&stream([event]));
        }
    }
}

#[test]
fn arguments_nested_without_a_bound_are_repaired_in_their_own_length() {
    let begin = added("function_call", "0", "c");
    let delta = format!(
        r#"{{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}}"#,
        r#"{\"a\":["#.repeat(MANY)
    );
    let body = stream([begin, delta]);
    let (bytes, last) = feed(&body);
    assert!(bytes < 6 * body.len(), "{bytes}");
    assert_eq!(code(&last), "tool-calls");
}

#[test]
fn an_answer_s_list_of_a_hundred_thousand_items_is_gone_through_once() {
    let done: String = (0..MANY / 10)
        .map(|at| {
            format!(
                "data: {{\"type\":\"response.output_item.done\",\"output_index\":{at},\"item\":{{\"type\":\"reasoning\",\"id\":\"rs_{at}\",\"summary\":[{{\"text\":\"a\"}}]}}}}\n\n"
            )
        })
        .collect();
    let output: Vec<_> = (0..MANY / 10)
        .map(|at| format!(r#"{{"type":"reasoning","id":"rs_{at}","encrypted_content":"E"}}"#))
        .collect();
    let body = format!(
        "{done}data: {{\"type\":\"response.completed\",\"response\":{{\"output\":[{}]}}}}\n\n",
        output.join(",")
    );
    let (_, last) = feed(&body);
    let blocks = last["replayState"]["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), MANY / 10);
    assert!(blocks.iter().all(|block| {
        let signature = block["thinkingSignature"].as_str().unwrap();
        signature.ends_with(r#""encrypted_content":"E"}"#)
    }));
}

#[test]
fn members_named_twice_and_values_of_the_wrong_type_are_no_reason_to_panic() {
    let values = [
        "null",
        "true",
        "0",
        "-1",
        "1e400",
        "\"\"",
        "\"\\ud800\"",
        "[]",
        "{}",
        "[{}]",
        "{\"a\":[]}",
    ];
    let kinds = [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.reasoning_summary_part.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.failed",
        "error",
    ];
    let members = [
        "type",
        "output_index",
        "item_id",
        "item",
        "response",
        "delta",
        "text",
        "arguments",
        "error",
    ];
    let inner = [
        "type",
        "id",
        "call_id",
        "name",
        "arguments",
        "content",
        "summary",
        "usage",
        "output",
        "error",
        "status",
        "incomplete_details",
    ];
    let take = |event: &str| {
        let mut out = Emitter::new(Target {
            api: "openai-responses",
            provider: "p".to_owned(),
            model: "m".to_owned(),
            context_window: 1,
        });
        let mut stream = Stream::default();
        for event in [&added("function_call", "0", "c"), event] {
            if !stream.take(None, event, &mut out) {
                break;
            }
        }
        for chunk in out.take() {
            assert!(Json::parse(&chunk).is_some(), "{chunk}");
        }
    };
    for kind in kinds {
        for value in values {
            for member in members {
                take(&format!(
                    r#"{{"type":"{kind}","{member}":{value},"{member}":{value}}}"#
                ));
            }
            for item in ["message", "reasoning", "function_call"] {
                for member in inner {
                    take(&format!(
                        r#"{{"type":"{kind}","item":{{"type":"{item}","{member}":{value}}},"response":{{"{member}":{value}}}}}"#
                    ));
                }
            }
        }
    }
}
