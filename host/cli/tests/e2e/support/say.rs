//! What the mock provider says: answers of the DeepSeek chat API, written out.

use mock_provider::{Answer, Step};
use serde_json::{Value, json};

/// An answer in parts.
pub(crate) struct Say {
    reasoning: String,
    text: String,
    calls: Vec<(String, String)>,
}

/// An answer with this text; empty for none.
pub(crate) fn say(text: &str) -> Say {
    Say {
        reasoning: String::new(),
        text: text.to_owned(),
        calls: Vec::new(),
    }
}

impl Say {
    pub(crate) fn thinking(mut self, text: &str) -> Self {
        text.clone_into(&mut self.reasoning);
        self
    }

    pub(crate) fn call(mut self, name: &str, arguments: &Value) -> Self {
        self.calls.push((name.to_owned(), arguments.to_string()));
        self
    }

    /// A call of `bash`.
    pub(crate) fn bash(self, command: &str) -> Self {
        self.call(
            "bash",
            &json!({"command": command, "description": "a step of the test"}),
        )
    }

    /// The whole answer at once.
    pub(crate) fn answer(&self) -> Answer {
        self.events().iter().fold(Answer::sse(""), |answer, event| {
            answer.piece(event.as_bytes())
        })
    }

    /// All but the end, which waits until the gate is opened.
    pub(crate) fn held(&self) -> Answer {
        let events = self.events();
        let (said, end) = events.split_at(events.len() - self.ending().len());
        let answer = said.iter().fold(Answer::sse(""), |answer, event| {
            answer.piece(event.as_bytes())
        });
        end.iter().fold(answer.then(Step::Gate), |answer, event| {
            answer.piece(event.as_bytes())
        })
    }

    /// How many bytes come before the gate.
    pub(crate) fn held_bytes(&self) -> u64 {
        let events = self.events();
        let said = &events[..events.len() - self.ending().len()];
        said.iter().map(|event| event.len() as u64).sum()
    }

    fn events(&self) -> Vec<String> {
        let mut events = vec![delta(&json!({"role": "assistant", "content": ""}))];
        for word in self.reasoning.split_inclusive(' ') {
            events.push(delta(&json!({"reasoning_content": word})));
        }
        for word in self.text.split_inclusive(' ') {
            events.push(delta(&json!({"content": word})));
        }
        for (index, (name, arguments)) in self.calls.iter().enumerate() {
            let id = format!("call_{index}");
            let function = json!({"name": name, "arguments": ""});
            let head = json!({"index": index, "id": id, "type": "function", "function": function});
            events.push(delta(&json!({"tool_calls": [head]})));
            let function = json!({"arguments": arguments});
            events.push(delta(
                &json!({"tool_calls": [{"index": index, "function": function}]}),
            ));
        }
        events.extend(self.ending());
        events
    }

    fn ending(&self) -> Vec<String> {
        let finish = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let usage = json!({
            "prompt_tokens": 900, "completion_tokens": 40,
            "prompt_cache_hit_tokens": 768, "total_tokens": 940
        });
        vec![
            chunk(
                &json!([{"index": 0, "delta": {"content": ""}, "finish_reason": finish}]),
                None,
            ),
            chunk(&json!([]), Some(&usage)),
            "data: [DONE]\n\n".to_owned(),
        ]
    }
}

fn delta(delta: &Value) -> String {
    chunk(
        &json!([{"index": 0, "delta": delta, "finish_reason": null}]),
        None,
    )
}

fn chunk(choices: &Value, usage: Option<&Value>) -> String {
    let mut chunk = json!({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock",
        "choices": choices
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage.clone();
    }
    format!("data: {chunk}\n\n")
}
