//! A home that asks a provider by one protocol, and answers of each.

use dsh_session::Kind;
use mock_provider::{Answer, Mock};
use serde_json::{Value, json};

use crate::support::{Dsh, Ended, Record, Scratch, data};

pub(super) const KEY: &str = "sk-e2e-secret-1";

/// A protocol as a profile names it; DeepSeek's own is a row of its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Api {
    DeepSeek,
    Completions,
    Responses,
    Messages,
}

pub(super) use Api::{Completions, DeepSeek, Messages, Responses};

pub(super) const ALL: [Api; 4] = [DeepSeek, Completions, Responses, Messages];

impl Api {
    pub(super) fn provider(self) -> &'static str {
        if self == DeepSeek {
            "deepseek-official"
        } else {
            "acme"
        }
    }

    pub(super) fn model(self) -> String {
        format!("{}/m1", self.provider())
    }

    /// The settings of a home that asks `base_url` by this protocol, waits little and retries at once.
    pub(super) fn settings(self, base_url: &str, more: &Value) -> Value {
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
pub(super) struct Ran {
    pub(super) ended: Ended,
    record: Record,
    scratch: Scratch,
}

impl Ran {
    pub(super) fn with(api: Api, base_url: &str, more: &Value, dsh: impl Fn(Dsh) -> Dsh) -> Self {
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

    pub(super) fn of(api: Api, mock: &Mock) -> Self {
        Self::with(api, &base(api, mock), &json!({}), |dsh| dsh)
    }

    /// It failed with this code, said so in one line with these words, and the log has it where it happened.
    #[track_caller]
    pub(super) fn failed(&self, code: &str, says: &[&str]) {
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

    pub(super) fn retries(&self) -> Vec<Value> {
        let events = self.record.events().iter();
        events
            .filter(|event| event.kind.as_str() == "llm/retry")
            .map(|event| data(event))
            .collect()
    }
}

pub(super) fn base(api: Api, mock: &Mock) -> String {
    match api {
        DeepSeek | Messages => mock.base_url(),
        Completions | Responses => format!("{}/v1", mock.base_url()),
    }
}

pub(super) fn sse(body: &str) -> Answer {
    Answer::new(200, body.to_owned()).header("content-type", "text/event-stream")
}

/// The first bytes of an answer that says `Hal` and goes on.
pub(super) fn begun(api: Api) -> String {
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
pub(super) fn always(answer: &Answer) -> Mock {
    let answer = answer.clone();
    Mock::with(move |_| answer.clone())
}

pub(super) fn error_body(message: &str, kind: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}}).to_string()
}

/// An answer that ends as it should and says nothing.
pub(super) fn nothing_said(api: Api) -> String {
    match api {
        DeepSeek | Completions => {
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".to_owned()
        }
        Responses => event(("response.completed", json!({"response": {"id": "r", "status": "completed", "output": []}}))),
        Messages => [
            ("message_start", json!({"message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}})),
            ("message_delta", json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}})),
            ("message_stop", json!({})),
        ]
        .into_iter()
        .map(event)
        .collect(),
    }
}
