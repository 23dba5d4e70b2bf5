//! From messages of any shape to a request (spec/llm.md §6.2, §7.3): it is refused, or its body is JSON.

use std::cell::RefCell;

use adapter_support::{HttpRequest, Part};
use guest_support::json::Json;
use llm_anthropic::Messages;
use llm_openai_completions::Completions;
use llm_openai_responses::Responses;
use serde_json::{Value, json};

use crate::adapters::{self, DeepSeek, Driven, MODEL, PROVIDER};

/// A program of what stands in the messages.
struct Program<'a>(&'a [u8]);

thread_local! {
    /// Every adapter with the id of its provider; made once, as it reads its catalogue then.
    static ALL: RefCell<[(&'static str, Box<dyn Driven>); 4]> = RefCell::new([
        ("deepseek-official", Box::new(DeepSeek::new())),
        (PROVIDER, Box::new(adapters::of::<Completions>())),
        (PROVIDER, Box::new(adapters::of::<Responses>())),
        (PROVIDER, Box::new(adapters::of::<Messages>())),
    ]);
}

pub(crate) fn check(bytes: &[u8]) {
    let mut program = Program(bytes);
    let count = program.below(12);
    let messages: Vec<String> = (0..count).map(|_| program.message().to_string()).collect();
    let mut request = adapters::request(PROVIDER, messages);
    if program.below(3) == 0 {
        let schema = program.value(4);
        request.tools =
            vec![json!({"name": "t", "description": "d", "parameters": schema}).to_string()];
    }
    request.purpose =
        [None, Some("session-title"), Some("compaction")][program.below(3)].map(str::to_owned);
    request.config.reasoning_effort =
        [None, Some("low"), Some("off")][program.below(3)].map(str::to_owned);
    let clone = |provider: &str| {
        let mut own = adapters::request(provider, request.messages.clone());
        own.tools.clone_from(&request.tools);
        own.purpose.clone_from(&request.purpose);
        own.config
            .reasoning_effort
            .clone_from(&request.config.reasoning_effort);
        own
    };
    ALL.with_borrow_mut(|all| {
        for (provider, adapter) in all {
            if let Ok(attempt) = adapter.open(clone(provider)) {
                is_json(&adapter.sent(attempt));
                adapter.close(attempt);
            }
        }
    });
}

fn is_json(request: &HttpRequest) {
    let mut body = Vec::new();
    for part in &request.body {
        match part {
            Part::Bytes(bytes) => body.extend_from_slice(bytes),
            // Its base64 stands inside a string.
            _ => body.extend_from_slice(b"AAAA"),
        }
    }
    let text = std::str::from_utf8(&body).expect("a body is UTF-8");
    let json = Json::parse(text).unwrap_or_else(|| panic!("a body is no JSON: {text}"));
    assert_eq!(
        json.get("model").and_then(Json::string).as_deref(),
        Some(MODEL)
    );
}

impl Program<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        byte
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    /// A text, perhaps an odd one.
    fn text(&mut self) -> String {
        let length = self.below(9);
        let parts = [
            "a",
            " ",
            "\n",
            "\"",
            "\\",
            "\u{0}",
            "\u{1f980}",
            "\u{feff}",
            "call|fc_1",
            "{\"a\":1",
            "\u{7f}",
            "é",
        ];
        (0..length).map(|_| self.one(&parts)).collect()
    }

    /// Where something is expected: mostly that, else anything.
    fn or_odd(&mut self, expected: Value) -> Value {
        if self.below(12) == 11 {
            self.value(3)
        } else {
            expected
        }
    }

    /// Any value.
    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.byte() > 127),
            2 => json!(i64::from(self.byte()) - 100),
            3 => json!(1.5e300),
            4 => json!(""),
            5 => json!(self.text()),
            6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let names = [
                    "type",
                    "properties",
                    "required",
                    "text",
                    "",
                    "\u{0}",
                    "content",
                    "id",
                ];
                let members = (0..self.below(4))
                    .map(|_| (self.one(&names).to_owned(), self.value(depth - 1)));
                members.collect::<serde_json::Map<_, _>>().into()
            }
        }
    }

    fn id(&mut self) -> Value {
        let id = self
            .one(&["c1", "c2", "call_1|fc_1", "", "ä\n", "toolu_x"])
            .to_owned();
        self.or_odd(json!(id))
    }

    fn block(&mut self, depth: usize) -> Value {
        let text = self.text();
        let text = self.or_odd(json!(text));
        let block = match self.below(6) {
            0 => json!({"type": "text", "text": text}),
            1 => json!({"type": "reasoning", "text": text}),
            2 => {
                let bytes = self.or_odd(json!(12));
                json!({"type": "image", "attachment": {"attachmentId": format!("sha256:{}", "0".repeat(64)),
                    "mediaType": "image/png", "bytes": bytes, "width": 3, "height": 4}})
            }
            3 => {
                let arguments = self.one(&[
                    "{}",
                    "{\"a\":[1,{\"b\":null}]}",
                    "{\"a\":",
                    "[1]",
                    "",
                    "\"\\ud800\"",
                    "{\"a\":\"\\q\"}",
                ]);
                let arguments = self.or_odd(json!(arguments));
                json!({"type": "tool-call", "id": self.id(), "name": text, "arguments": arguments})
            }
            4 if depth > 0 => {
                let content: Value = (0..self.below(4)).map(|_| self.block(depth - 1)).collect();
                let content = self.or_odd(content);
                json!({"type": "tool-result", "toolCallId": self.id(), "content": content, "isError": self.byte() > 127})
            }
            _ => json!({"type": "newer", "text": text}),
        };
        self.or_odd(block)
    }

    fn replay(&mut self, content: &Value) -> Value {
        let of = |block: &Value| match block["type"].as_str() {
            Some("reasoning") => json!({"type": "reasoning", "thinkingSignature": "SIG"}),
            Some("tool-call") => json!({"type": "tool-call", "thoughtSignature": "{\"id\":1}"}),
            _ => json!({"type": "text", "textSignature": "{\"v\":1,\"id\":\"msg_1\"}"}),
        };
        let blocks: Value = content.as_array().into_iter().flatten().map(of).collect();
        let blocks = self.or_odd(blocks);
        let api = self.one(&[
            "openai-completions",
            "openai-responses",
            "anthropic-messages",
        ]);
        let stop = self.one(&["stop", "toolUse", "length", "error", "aborted", "?"]);
        let version = self.or_odd(json!(2));
        let response = json!({"kind": "pi-ai", "version": version, "api": api, "provider": PROVIDER, "model": MODEL,
            "responseId": "resp_1", "stopReason": stop});
        let response = self.or_odd(response);
        json!({"response": response, "blocks": blocks})
    }

    fn message(&mut self) -> Value {
        let content: Value = (0..self.below(5)).map(|_| self.block(2)).collect();
        let (role, source) = match self.below(4) {
            0 => ("user", json!({"kind": "user"})),
            1 => ("system", json!({"kind": "plugin", "plugin": "p"})),
            2 => ("user", json!({"kind": "tool", "callId": self.id()})),
            _ => {
                let mut source = json!({"kind": "model", "provider": PROVIDER, "model": self.one(&[MODEL, "other"])});
                if self.below(2) == 0 {
                    source["replayState"] = self.replay(&content);
                }
                ("assistant", source)
            }
        };
        let content = self.or_odd(content);
        let source = self.or_odd(source);
        let role = self.or_odd(json!(role));
        let message = json!({"id": "m", "role": role, "content": content, "source": source});
        self.or_odd(message)
    }
}
