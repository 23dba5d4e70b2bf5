//! What goes wrong between `dsh` and a provider, on each protocol: its code, its message for a person, and its place in
//! the log. A message says what was asked of whom and what came of it; no message holds a key.

use dsh_session::Kind;
use mock_provider::{Answer, End, Mock, Step};
use serde_json::{Value, json};

use crate::support::{Dsh, Ended, Record, Scratch, data};

const KEY: &str = "sk-e2e-secret-1";

/// A protocol as a profile names it; DeepSeek's own is a row of its own.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Api {
    DeepSeek,
    Completions,
    Responses,
    Messages,
}

use Api::{Completions, DeepSeek, Messages, Responses};

const ALL: [Api; 4] = [DeepSeek, Completions, Responses, Messages];

impl Api {
    fn provider(self) -> &'static str {
        if self == DeepSeek {
            "deepseek-official"
        } else {
            "acme"
        }
    }

    fn model(self) -> String {
        format!("{}/m1", self.provider())
    }

    /// The settings of a home that asks `base_url` by this protocol, waits little and retries at once.
    fn settings(self, base_url: &str, more: &Value) -> Value {
        let mut profile = json!({
            "apiKeyEnv": "E2E_KEY",
            "baseURL": base_url,
            "models": [{"id": "m1"}, {"id": "m1-large"}],
            "retryPolicy": {"mode": "normal", "maxRetries": 2, "backoff": {"initialDelayMs": 1, "maxDelayMs": 1500, "jitterRatio": 0}},
        });
        let name = match self {
            DeepSeek => None,
            Completions => Some("openai-completions"),
            Responses => Some("openai-responses"),
            Messages => Some("anthropic-messages"),
        };
        if let Some(name) = name {
            profile["api"] = json!(name);
        }
        for (key, value) in more.as_object().unwrap() {
            profile[key] = value.clone();
        }
        match name {
            None => json!({"llm-deepseek": profile}),
            Some(_) => json!({"llm-pi-ai": {"providers": {"acme": profile}}}),
        }
    }
}

/// A run of one task.
struct Ran {
    ended: Ended,
    record: Record,
    scratch: Scratch,
}

impl Ran {
    fn with(api: Api, base_url: &str, more: &Value, dsh: impl Fn(Dsh) -> Dsh) -> Self {
        let scratch = Scratch::new();
        // JSON is YAML.
        scratch.write_home("settings.yaml", &api.settings(base_url, more).to_string());
        let own = scratch.dsh().env("E2E_KEY", KEY).headless();
        let ended = dsh(own).args(["--model", &api.model(), "Go"]).run();
        let record = scratch.record();
        Self {
            ended,
            record,
            scratch,
        }
    }

    fn of(api: Api, mock: &Mock) -> Self {
        Self::with(api, &base(api, mock), &json!({}), |dsh| dsh)
    }

    /// It failed with this code, said so in one line with these words, and the log has it where it happened.
    #[track_caller]
    fn failed(&self, code: &str, says: &[&str]) {
        let Self {
            ended,
            record,
            scratch,
        } = self;
        assert_eq!((ended.code, &*ended.stdout), (Some(1), "\n"), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(
            ended.stderr.starts_with(&format!("dsh: {code}: ")),
            "{ended:?}"
        );
        for word in says {
            assert!(
                ended.stderr.contains(word),
                "{word:?} is not in {:?}",
                ended.stderr
            );
        }
        let reason = record.turn_end();
        assert_eq!(
            (&reason["kind"], &reason["error"]["code"]),
            (&json!("error"), &json!(code))
        );
        let last = record
            .events()
            .iter()
            .rev()
            .find(|event| event.kind == Kind::AssistantChunk);
        if let Some(last) = last {
            let chunk = data(last);
            assert_eq!(
                chunk["chunk"]["reason"]["failure"]["code"], code,
                "the last chunk: {chunk}"
            );
        }
        assert!(
            !record.has(&Kind::AssistantMessage),
            "nothing half said passes for an answer"
        );
        assert!(!ended.stderr.contains(KEY));
        assert_eq!(scratch.files_with(KEY), [""; 0]);
    }

    fn retries(&self) -> Vec<Value> {
        let events = self.record.events().iter();
        events
            .filter(|event| event.kind.as_str() == "llm/retry")
            .map(|event| data(event))
            .collect()
    }
}

fn base(api: Api, mock: &Mock) -> String {
    match api {
        DeepSeek | Messages => mock.base_url(),
        Completions | Responses => format!("{}/v1", mock.base_url()),
    }
}

fn sse(body: &str) -> Answer {
    Answer::new(200, body.to_owned()).header("content-type", "text/event-stream")
}

/// The first bytes of an answer that says `Hal` and goes on.
fn begun(api: Api) -> String {
    match api {
        DeepSeek | Completions => {
            "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hal\"}}]}\n\n".to_owned()
        }
        Responses => [
            ("response.created", json!({"response": {"id": "r"}})),
            ("response.output_item.added", json!({"output_index": 0, "item": {"type": "message", "id": "i", "role": "assistant", "content": []}})),
            ("response.output_text.delta", json!({"output_index": 0, "item_id": "i", "content_index": 0, "delta": "Hal"})),
        ]
        .into_iter()
        .map(event)
        .collect(),
        Messages => [
            ("message_start", json!({"message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}})),
            ("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}})),
            ("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": "Hal"}})),
        ]
        .into_iter()
        .map(event)
        .collect(),
    }
}

fn event((name, mut data): (&str, Value)) -> String {
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n")
}

/// The same answer to all that is asked.
fn always(answer: &Answer) -> Mock {
    let answer = answer.clone();
    Mock::with(move |_| answer.clone())
}

fn error_body(message: &str, kind: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}}).to_string()
}

#[test]
fn print_all() {
    for api in ALL {
        let runs: Vec<(&str, Answer)> = vec![
            (
                "html",
                Answer::new(200, "<html><body>Please log in</body></html>")
                    .header("content-type", "text/html"),
            ),
            (
                "html502",
                Answer::new(502, "<html><body>Bad gateway</body></html>")
                    .header("content-type", "text/html"),
            ),
            ("empty", sse("")),
            ("done", sse("data: [DONE]\n\n")),
            (
                "utf8",
                sse(&begun(api)).piece(vec![
                    b'd', b'a', b't', b'a', b':', b' ', 0xff, 0xfe, b'\n', b'\n',
                ]),
            ),
            ("nofinish", sse(&begun(api))),
            ("reset", sse(&begun(api)).ending(End::Cut)),
            (
                "401",
                Answer::new(401, error_body("bad key", "authentication_error")),
            ),
            (
                "402",
                Answer::new(402, error_body("Insufficient Balance", "x")),
            ),
            (
                "429q",
                Answer::new(
                    429,
                    error_body("You exceeded your current quota", "insufficient_quota"),
                ),
            ),
            (
                "429",
                Answer::new(429, error_body("slow down", "rate_limit")),
            ),
            (
                "503",
                Answer::new(503, error_body("overloaded", "overloaded_error")),
            ),
            (
                "529",
                Answer::new(529, error_body("overloaded", "overloaded_error")),
            ),
            (
                "302",
                Answer::new(302, "").header("location", "https://login.example/?token=x"),
            ),
            ("204", Answer::new(204, "")),
        ];
        for (name, answer) in runs {
            let mock = always(&answer);
            let ran = Ran::of(api, &mock);
            println!(
                "{api:?} {name}: {} r={} {}",
                ran.ended.stderr.trim(),
                ran.retries().len(),
                ran.ended.stdout.trim()
            );
        }
        let mock = always(&sse(&begun(api)).ending(End::Stall));
        let ran = Ran::with(
            api,
            &base(api, &mock),
            &json!({"streamIdleTimeoutMs": 300}),
            |dsh| dsh,
        );
        println!(
            "{api:?} stall: {} r={}",
            ran.ended.stderr.trim(),
            ran.retries().len()
        );
        let mock = always(&sse(&format!("data: {}", "x".repeat(20 << 20))));
        let ran = Ran::of(api, &mock);
        println!(
            "{api:?} long: {} r={}",
            ran.ended.stderr.trim(),
            ran.retries().len()
        );
        for url in [
            "not a url",
            "ftp://127.0.0.1/x",
            "http://",
            "https://u:pw@127.0.0.1/",
            "http://127.0.0.1:1",
            "http://nowhere.invalid",
        ] {
            let scratch = Scratch::new();
            scratch.write_home("settings.yaml", &api.settings(url, &json!({})).to_string());
            let ended = scratch
                .dsh()
                .env("E2E_KEY", KEY)
                .headless()
                .args(["--model", &api.model(), "Go"])
                .run();
            println!("{api:?} {url}: {}", ended.stderr.trim());
        }
        let scratch = Scratch::new();
        scratch.write_home(
            "settings.yaml",
            &api.settings("http://127.0.0.1:1", &json!({})).to_string(),
        );
        for model in [
            format!("{}/m1-lrge", api.provider()),
            "deepseek-oficial/x".to_owned(),
            "acmee/m1".to_owned(),
        ] {
            let ended = scratch
                .dsh()
                .env("E2E_KEY", KEY)
                .headless()
                .args(["--model", &model, "Go"])
                .run();
            println!("{api:?} {model}: {}", ended.stderr.trim());
        }
        let ended = scratch
            .dsh()
            .headless()
            .args(["--model", &api.model(), "Go"])
            .run();
        println!("{api:?} nokey: {}", ended.stderr.trim());
        let ended = scratch
            .dsh()
            .env("E2E_KEY", "sk bad")
            .headless()
            .args(["--model", &api.model(), "Go"])
            .run();
        println!("{api:?} badkey: {}", ended.stderr.trim());
    }
    let _ = Step::Bytes(vec![]);
}
