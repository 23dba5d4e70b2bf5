//! What a model says, as each protocol's event stream has it: one speech, four spellings.

use serde_json::{Value, json};

use crate::Answer;

/// A provider's wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// DeepSeek's chat completions.
    DeepSeek,
    /// Chat completions, as most servers speak them.
    Completions,
    /// `OpenAI`'s responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::DeepSeek,
        Self::Completions,
        Self::Responses,
        Self::Messages,
    ];

    /// The official component that speaks it.
    #[must_use]
    pub fn component(self) -> &'static str {
        match self {
            Self::DeepSeek => "llm-deepseek",
            Self::Completions => "llm-openai-completions",
            Self::Responses => "llm-openai-responses",
            Self::Messages => "llm-anthropic",
        }
    }

    /// As a provider's profile has it (`api`).
    #[must_use]
    pub fn api(self) -> &'static str {
        match self {
            Self::DeepSeek => "deepseek",
            Self::Completions => "openai-completions",
            Self::Responses => "openai-responses",
            Self::Messages => "anthropic-messages",
        }
    }

    /// Where a request goes below the base URL that [`Protocol::base`] makes.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::DeepSeek => "/chat/completions",
            Self::Completions => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }

    /// The base URL of a provider at this server.
    #[must_use]
    pub fn base(self, server: &str) -> String {
        match self {
            Self::DeepSeek | Self::Messages => server.to_owned(),
            Self::Completions | Self::Responses => format!("{server}/v1"),
        }
    }

    /// Which protocol a request's path is of; chat completions below `/v1` are the common ones.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.path() == path)
    }
}

/// What the model says in one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Speech {
    reasoning: String,
    text: String,
    calls: Vec<(String, String)>,
}

impl Speech {
    /// A text, a delta a word; empty for none.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// With thoughts before it.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.reasoning = text.into();
        self
    }

    /// With a call of a tool after it; `arguments` is a JSON text.
    #[must_use]
    pub fn call(mut self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.calls.push((tool.into(), arguments.into()));
        self
    }

    /// Its text alone.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// As a whole answer, an event a piece.
    #[must_use]
    pub fn answer(&self, protocol: Protocol) -> Answer {
        let events = self.events(protocol).into_iter();
        events.fold(Answer::sse(""), Answer::piece)
    }

    /// As one text.
    #[must_use]
    pub fn stream(&self, protocol: Protocol) -> String {
        self.events(protocol).concat()
    }

    /// Its events, each with the blank line that ends it.
    #[must_use]
    pub fn events(&self, protocol: Protocol) -> Vec<String> {
        match protocol {
            Protocol::DeepSeek | Protocol::Completions => self.chat(),
            Protocol::Responses => self.responses(),
            Protocol::Messages => self.messages(),
        }
    }

    fn chat(&self) -> Vec<String> {
        let chunk = |choices: Value, usage: Option<Value>| {
            let mut chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock",
                "choices": choices
            });
            if let Some(usage) = usage {
                chunk["usage"] = usage;
            }
            format!("data: {chunk}\n\n")
        };
        let delta = |delta: Value| {
            chunk(
                json!([{"index": 0, "delta": delta, "finish_reason": null}]),
                None,
            )
        };
        let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
        for word in words(&self.reasoning) {
            events.push(delta(json!({"reasoning_content": word})));
        }
        for word in words(&self.text) {
            events.push(delta(json!({"content": word})));
        }
        for (index, (name, arguments)) in self.calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": ""});
            let head = json!({"index": index, "id": call_id(index), "type": "function", "function": function});
            events.push(delta(json!({"tool_calls": [head]})));
            for part in pieces(arguments) {
                let function = json!({"arguments": part});
                events.push(delta(
                    json!({"tool_calls": [{"index": index, "function": function}]}),
                ));
            }
        }
        let finish = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let last = json!([{"index": 0, "delta": {}, "finish_reason": finish}]);
        events.push(chunk(last, None));
        let usage = json!({"prompt_tokens": 90, "completion_tokens": 40, "total_tokens": 130});
        events.push(chunk(json!([]), Some(usage)));
        events.push("data: [DONE]\n\n".to_owned());
        events
    }

    fn responses(&self) -> Vec<String> {
        let mut events = vec![named(
            &json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}),
        )];
        let mut output = 0;
        let mut item = |open: Value, deltas: Vec<Value>, done: Value| {
            events.push(named(
                &json!({"type": "response.output_item.added", "output_index": output, "item": open}),
            ));
            for mut delta in deltas {
                delta["output_index"] = json!(output);
                events.push(named(&delta));
            }
            events.push(named(
                &json!({"type": "response.output_item.done", "output_index": output, "item": done}),
            ));
            output += 1;
        };
        if !self.reasoning.is_empty() {
            let delta = |word| {
                json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1",
                    "summary_index": 0, "delta": word})
            };
            let part = json!({"type": "summary_text", "text": self.reasoning});
            item(
                json!({"type": "reasoning", "id": "rs_1", "summary": []}),
                words(&self.reasoning).map(delta).collect(),
                json!({"type": "reasoning", "id": "rs_1", "summary": [part], "encrypted_content": "ZZZ"}),
            );
        }
        if !self.text.is_empty() {
            let delta = |word| {
                json!({"type": "response.output_text.delta", "item_id": "msg_1",
                    "content_index": 0, "delta": word})
            };
            let part = json!({"type": "output_text", "text": self.text, "annotations": []});
            item(
                json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}),
                words(&self.text).map(delta).collect(),
                json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}),
            );
        }
        for (index, (name, arguments)) in self.calls.iter().enumerate() {
            let id = format!("fc_{index}");
            let call = |arguments: &str| {
                json!({"type": "function_call", "id": id, "call_id": call_id(index), "name": name,
                    "arguments": arguments})
            };
            let delta = |part| json!({"type": "response.function_call_arguments.delta", "item_id": id, "delta": part});
            let mut deltas: Vec<Value> = pieces(arguments).map(delta).collect();
            deltas.push(
                json!({"type": "response.function_call_arguments.done", "item_id": id, "arguments": arguments}),
            );
            item(call(""), deltas, call(arguments));
        }
        events.push(named(&json!({"type": "response.completed", "response": {
            "id": "resp_1", "status": "completed", "output": [],
            "usage": {"input_tokens": 90, "output_tokens": 40, "total_tokens": 130,
                "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        }})));
        events
    }

    fn messages(&self) -> Vec<String> {
        let mut events = vec![named(&json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "mock", "content": [],
            "stop_reason": null, "usage": {"input_tokens": 90, "output_tokens": 1}
        }}))];
        let mut at = 0;
        let mut block = |open: Value, deltas: Vec<Value>| {
            events.push(named(
                &json!({"type": "content_block_start", "index": at, "content_block": open}),
            ));
            for delta in deltas {
                events.push(named(
                    &json!({"type": "content_block_delta", "index": at, "delta": delta}),
                ));
            }
            events.push(named(&json!({"type": "content_block_stop", "index": at})));
            at += 1;
        };
        if !self.reasoning.is_empty() {
            let delta = |word| json!({"type": "thinking_delta", "thinking": word});
            let mut deltas: Vec<Value> = words(&self.reasoning).map(delta).collect();
            deltas.push(json!({"type": "signature_delta", "signature": "SIG"}));
            block(
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                deltas,
            );
        }
        if !self.text.is_empty() {
            let delta = |word| json!({"type": "text_delta", "text": word});
            block(
                json!({"type": "text", "text": ""}),
                words(&self.text).map(delta).collect(),
            );
        }
        for (index, (name, arguments)) in self.calls.iter().enumerate() {
            let delta = |part| json!({"type": "input_json_delta", "partial_json": part});
            block(
                json!({"type": "tool_use", "id": call_id(index), "name": name, "input": {}}),
                pieces(arguments).map(delta).collect(),
            );
        }
        let stop = if self.calls.is_empty() {
            "end_turn"
        } else {
            "tool_use"
        };
        let delta = json!({"stop_reason": stop, "stop_sequence": null});
        events.push(named(
            &json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}),
        ));
        events.push(named(&json!({"type": "message_stop"})));
        events
    }
}

fn call_id(index: usize) -> String {
    format!("call_{index}")
}

/// A text as models send it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Arguments in two pieces, cut anywhere.
fn pieces(arguments: &str) -> impl Iterator<Item = &str> {
    let middle = (arguments.len() / 2..arguments.len()).find(|at| arguments.is_char_boundary(*at));
    let (head, rest) = arguments.split_at(middle.unwrap_or(0));
    [head, rest].into_iter().filter(|piece| !piece.is_empty())
}

fn named(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}
