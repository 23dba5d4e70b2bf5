#![allow(
    clippy::needless_pass_by_value,
    reason = "values that `json!` makes are passed on as they are made"
)]

use serde_json::{Value, json};

use super::*;
use crate::profile::Switch;
use crate::testing::{Drawn, generate};
use crate::{Entry, Kind, Stop};

/// A protocol of events that are texts.
#[derive(Default)]
struct Plain {
    text: Option<usize>,
}

impl Protocol for Plain {
    const API: &'static str = "openai-completions";
    const SWITCHES: &'static [Switch] = &[];

    fn request(
        profile: &Profile,
        model: &Model,
        call: &Call<'_>,
        history: &[Entry<'_>],
        _: &mut dyn Pictures,
    ) -> Result<HttpRequest, Error> {
        Ok(HttpRequest {
            method: "POST".to_owned(),
            url: crate::url(model.base_url(profile), "/x"),
            headers: vec![("accept".to_owned(), "a".to_owned())],
            body: crate::body::parts(format!(
                "{:?} {} {} {}",
                call.effort,
                call.cap,
                call.room,
                history.len()
            )),
            timeout_ms: None,
        })
    }

    fn event(&mut self, event: &sse::Event<'_>, out: &mut Emitter) -> bool {
        if event.data == "end" {
            return false;
        }
        let at = *self.text.get_or_insert_with(|| out.start(Kind::Text));
        out.append(at, event.data);
        true
    }

    fn end(&mut self, out: &mut Emitter) {
        out.finish(Stop::Stop);
    }

    fn error_text(status: u16, body: &str) -> String {
        format!("{status}: {body}")
    }
}

fn adapter() -> Adapter<Plain> {
    let config = json!({"providers": {
        "good": {"api": "openai-completions", "baseURL": "http://localhost:1", "timeoutMs": 9,
            "reasoning": "high", "headers": {"ACCEPT": "b"},
            "models": [{"id": "m", "maxTokens": 50, "contextWindow": 10_000, "reasoningEfforts": {"off": null, "high": "h"}},
                {"id": "n", "reasoningEfforts": {"high": "h"}}]},
        "bad": {"api": "openai-completions", "models": []},
    }});
    Adapter::new(&config.to_string()).unwrap()
}

fn config(provider: &str, model: &str) -> CallConfig {
    generate(&json!({"provider": provider, "model": model, "messages": []})).config
}

/// Opens a call, and feeds it an answer.
fn answer(status: u16, headers: &[(&str, &str)], body: &[u8], cause: &EndCause) -> Vec<Value> {
    let mut adapter = adapter();
    let call = generate(&json!({"provider": "good", "model": "m", "messages": []}));
    let attempt = adapter.open(&call, &mut Drawn).unwrap();
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    adapter.head(attempt, status, headers);
    let mut chunks = adapter.body(attempt, body);
    chunks.extend(adapter.end(attempt, cause));
    chunks
        .iter()
        .map(|chunk| serde_json::from_str(chunk).unwrap())
        .collect()
}

fn failure(chunks: &[Value]) -> &Value {
    &chunks.last().unwrap()["reason"]["failure"]
}

#[test]
fn a_profile_that_cannot_work_costs_its_provider_alone_and_says_why() {
    let adapter = adapter();
    let routes: Vec<Value> = adapter
        .list_routes()
        .iter()
        .map(|route| serde_json::from_str(route).unwrap())
        .collect();
    assert_eq!(routes[1]["models"].as_array().unwrap().len(), 2);
    assert_eq!(
        routes[0],
        json!({"provider": "bad", "name": "bad", "api": "openai-completions",
            "problem": "providers.bad.baseURL is missing: where the server is, such as http://127.0.0.1:8000/v1"})
    );
    let refused = adapter.prepare(config("bad", "m")).err().unwrap();
    assert_eq!(refused.code, "INVALID_CONFIG");
    assert!(refused.message.contains("providers.bad.baseURL is missing"));
    for (config, why) in [
        ("{", "not JSON"),
        (r#"{"providers":[{"provider":"x"}]}"#, "and no list"),
    ] {
        let refused = Adapter::<Plain>::new(config).err().unwrap();
        assert!(refused.message.contains(why), "{}", refused.message);
    }
    assert!(
        Adapter::<Plain>::new("{}")
            .unwrap()
            .list_routes()
            .is_empty()
    );
}

#[test]
fn a_call_is_completed_by_the_profile_s_defaults_and_says_which() {
    let adapter = adapter();
    let prepared = adapter.prepare(config("good", "m")).unwrap();
    assert_eq!(prepared.config.reasoning_effort.as_deref(), Some("high"));
    assert_eq!(prepared.config.max_tokens, Some(50));
    assert_eq!(prepared.defaulted, ["reasoningEffort", "maxTokens"]);
    let prepared = adapter.prepare(config("good", "n")).unwrap();
    assert_eq!(
        prepared.config.max_tokens, None,
        "the default cap is the wire's alone"
    );
    let mut given = config("good", "m");
    given.reasoning_effort = Some("off".to_owned());
    given.max_tokens = Some(7);
    let prepared = adapter.prepare(given).unwrap();
    assert!(prepared.defaulted.is_empty());
    for (change, code) in [
        ("provider", "NO_ADAPTER"),
        ("model", "UNKNOWN_MODEL"),
        ("stop", "UNSUPPORTED_OPTION"),
        ("effort", "UNSUPPORTED_REASONING_EFFORT"),
    ] {
        let mut config = config("good", "m");
        match change {
            "provider" => config.provider = "else".to_owned(),
            "model" => config.model = "else".to_owned(),
            "stop" => config.stop = Some(vec!["x".to_owned()]),
            _ => config.reasoning_effort = Some("max".to_owned()),
        }
        assert_eq!(
            adapter.prepare(config).err().unwrap().code,
            code,
            "{change}"
        );
    }
}

#[test]
fn a_request_has_the_profile_s_headers_and_time_and_the_call_s_cap() {
    let mut adapter = adapter();
    let mut send = |options: Value| {
        let attempt = adapter.open(&generate(&options), &mut Drawn).unwrap();
        match adapter.next(attempt).unwrap() {
            Action::Send(request) => request,
            _ => panic!("sends"),
        }
    };
    let message =
        json!({"role": "user", "content": [{"type": "text", "text": "x".repeat(4 * 5890)}]});
    let request = send(
        json!({"provider": "good", "model": "m", "messages": [message], "maxTokens": 90, "reasoningEffort": "off"}),
    );
    assert_eq!(request.url, "http://localhost:1/x");
    assert_eq!(request.timeout_ms, Some(9));
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(headers, [("accept", "b"), ("user-agent", "{user-agent}")]);
    let body = |request: &HttpRequest| match &request.body[..] {
        [crate::Part::Bytes(bytes)] => String::from_utf8(bytes.clone()).unwrap(),
        _ => panic!("one piece"),
    };
    assert_eq!(
        body(&request),
        "None 14 14 1",
        "off is not to think, and the window is nearly full"
    );
    let request = send(json!({"provider": "good", "model": "m", "messages": [], "maxTokens": 90}));
    assert_eq!(body(&request), r#"Some("high") 90 5904 0"#);
}

#[test]
fn an_answer_other_than_2xx_is_a_failure_with_what_its_headers_tell() {
    let headers = [("retry-after", "3"), ("x-request-id", "r")];
    let broken = EndCause::Failed(error("TRANSPORT", "reset"));
    for cause in [EndCause::Complete, broken] {
        let chunks = answer(429, &headers, b"{\"error\":\"slow\"}", &cause);
        assert_eq!(chunks[0]["type"], "usage");
        assert_eq!(
            *failure(&chunks),
            json!({"message": "429: {\"error\":\"slow\"}", "code": "RATE_LIMIT", "status": 429,
                "providerRetryAfterMs": 3000, "requestId": "r"})
        );
    }
    let page = format!("\n<html>{}</html>", "\nx".repeat(200_000));
    let chunks = answer(502, &[], page.as_bytes(), &EndCause::Complete);
    assert_eq!(failure(&chunks)["code"], "SERVER");
    let message = failure(&chunks)["message"].as_str().unwrap();
    assert!(
        message.starts_with("502: a page of HTML: <html> x x") && message.len() < 200,
        "{message}"
    );
    let long = answer(
        400,
        &[],
        "x".repeat(300_000).as_bytes(),
        &EndCause::Complete,
    );
    assert_eq!(
        failure(&long)["message"].as_str().unwrap().len(),
        MAX_MESSAGE
    );
    assert!(answer(500, &[], b"x", &EndCause::Aborted).is_empty());
}

#[test]
fn a_stream_goes_on_until_its_end_and_a_break_is_left_to_the_host() {
    let chunks = answer(
        200,
        &[],
        b"data: a\n\ndata: end\n\ndata: b\n\n",
        &EndCause::Complete,
    );
    assert_eq!(chunks.len(), 5);
    assert_eq!(chunks[4]["reason"]["kind"], "stop");
    let broken = EndCause::Failed(error("TRANSPORT", "reset"));
    let chunks = answer(200, &[], b"data: a\n\n", &broken);
    assert_eq!(chunks.last().unwrap()["type"], "text-delta");
    assert!(
        answer(0, &[], b"", &broken).is_empty(),
        "nothing was received"
    );
}

#[test]
fn what_is_no_stream_and_what_never_ends_an_event_are_failures() {
    let broken = EndCause::Failed(error("TIMEOUT", "nothing came"));
    for cause in [EndCause::Complete, broken] {
        let chunks = answer(200, &[], b"<title>Sign in</title>", &cause);
        assert_eq!(failure(&chunks)["code"], "MALFORMED_RESPONSE");
        let message = failure(&chunks)["message"].as_str().unwrap();
        assert!(
            message.starts_with("good answered with a page of HTML"),
            "{message}"
        );
    }
    let mut endless = b"data: ".to_vec();
    endless.resize(sse::MAX_EVENT + 1, b'x');
    let chunks = answer(200, &[], &endless, &EndCause::Complete);
    assert_eq!(failure(&chunks)["code"], "MALFORMED_RESPONSE");
}

#[test]
fn an_unknown_handle_is_no_trap() {
    let mut adapter = adapter();
    assert_eq!(adapter.next(7).err().unwrap().code, "INVALID");
    adapter.head(7, 200, Vec::new());
    assert!(adapter.body(7, b"x").is_empty());
    assert!(adapter.end(7, &EndCause::Complete).is_empty());
    adapter.close(7);
}
