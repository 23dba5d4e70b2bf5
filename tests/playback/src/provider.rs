//! What the provider says again: each recorded attempt as the bytes of DeepSeek's
//! chat API, so that the adapter makes the same chunks of it.
//!
//! The inverse of the adapter: a delta of the log is an event of the stream, cut
//! where it was cut; blocks open with their first delta and end together at
//! `[DONE]`, so starts and ends of blocks are on no wire. A failure is answered
//! with what causes it: a status, or an end without a word.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use mock_provider::{Answer, End, Mock, Recorded, Step};
use serde_json::{Value, json};

use crate::recording::{Recording, Told};

/// The answers of a recording, in the order in which they are asked for.
#[derive(Clone, Debug)]
pub struct Provider {
    turns: VecDeque<Answer>,
    titles: VecDeque<Answer>,
}

impl Provider {
    /// Reads what was said.
    ///
    /// # Errors
    /// What of it no stream can say.
    pub fn of(recording: &Recording) -> Result<Self, String> {
        let live = &recording.events[recording.begin()..];
        let mut turns = VecDeque::new();
        let mut attempt: Vec<&Value> = Vec::new();
        for (at, event) in live.iter().enumerate() {
            match event.kind.as_str() {
                "assistant/chunk" => {
                    attempt.push(&event.data["chunk"]);
                    let goes_on = live.get(at + 1).is_some_and(|next| next.kind == event.kind);
                    if event.data["chunk"]["type"] == "finish" || !goes_on {
                        turns.push_back(answer(&std::mem::take(&mut attempt))?);
                    }
                }
                "compaction/summary" => turns.push_back(summary(&event.data)),
                _ => {}
            }
        }
        let titles = live.iter().filter_map(title).collect();
        Ok(Self { turns, titles })
    }

    /// Says it on a loopback port, titles as well.
    #[must_use]
    pub fn serve(self) -> Mock {
        let turns = Arc::new(Mutex::new(self));
        let titles = Arc::clone(&turns);
        let answer = |provider: &Mutex<Self>, request: &Recorded| {
            let provider = provider.lock();
            provider
                .unwrap_or_else(PoisonError::into_inner)
                .answer(request)
        };
        Mock::with(move |request| answer(&turns, request))
            .answering_titles(move |request| answer(&titles, request))
    }

    /// The answer to a request. One for a title is known by having no tools to
    /// offer and little room for its answer.
    pub fn answer(&mut self, request: &Recorded) -> Answer {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let small = body["max_tokens"].as_u64().is_some_and(|most| most <= 64);
        let queue = if small && body.get("tools").is_none() {
            &mut self.titles
        } else {
            &mut self.turns
        };
        let nothing = || Answer::new(400, r#"{"error":{"message":"nothing was recorded"}}"#);
        queue.pop_front().unwrap_or_else(nothing)
    }
}

/// One attempt.
fn answer(chunks: &[&Value]) -> Result<Answer, String> {
    let kind = |chunk: &Value| chunk["type"].as_str().unwrap_or_default().to_owned();
    let finish = chunks.last().filter(|chunk| kind(chunk) == "finish");
    let reason = finish.map(|chunk| &chunk["reason"]);
    let failure = reason.map_or(&Value::Null, |reason| &reason["failure"]);
    if let Some(code) = failure["code"].as_str() {
        let spoke = chunks.iter().any(|chunk| kind(chunk).ends_with("-delta"));
        if spoke {
            return Err(format!("an attempt that spoke before it failed ({code})"));
        }
        if code != "EMPTY_RESPONSE" {
            return failed(code);
        }
    }
    let mut events = Vec::new();
    let (mut opened, mut usage) = (Vec::new(), None);
    for chunk in chunks {
        let text = &chunk["text"];
        match kind(chunk).as_str() {
            "text-delta" => events.push(delta(&json!({"content": text}))),
            "reasoning-delta" => events.push(delta(&json!({"reasoning_content": text}))),
            "tool-call-delta" => {
                let index = &chunk["index"];
                let first = !opened.contains(index);
                if first {
                    opened.push(index.clone());
                }
                events.push(call(chunk, first));
            }
            "usage" => usage = Some(counts(&chunk["usage"])),
            "block-start" | "block-end" | "finish" => {}
            other => return Err(format!("a chunk of type {other}")),
        }
    }
    let mut answer = Answer::sse("");
    for event in &events {
        answer = answer.piece(event.as_bytes());
    }
    let Some(reason) = reason else {
        // Whoever asked gave up, and the rest never came.
        return Ok(answer.ending(End::Stall));
    };
    let word = match reason["kind"].as_str() {
        Some("stop" | "error") => "stop",
        Some("tool-calls") => "tool_calls",
        Some("max-tokens") => "length",
        other => return Err(format!("the finish {other:?}")),
    };
    answer = answer.piece(chunk(
        &json!([{"index": 0, "delta": {}, "finish_reason": word}]),
        &Value::Null,
    ));
    if let Some(usage) = usage {
        answer = answer.piece(chunk(&json!([]), &usage));
    }
    Ok(answer.then(Step::Bytes(b"data: [DONE]\n\n".to_vec())))
}

fn failed(code: &str) -> Result<Answer, String> {
    let (status, message) = match code {
        "AUTH" => (401, "the key is not known"),
        "CONTEXT_WINDOW_EXCEEDED" => (400, "This model's maximum context length is 9 tokens"),
        "RATE_LIMIT" => (429, "slow down"),
        "SERVER" => (500, "it broke"),
        other => return Err(format!("the failure {other}")),
    };
    let body = json!({"error": {"message": message}}).to_string();
    Ok(Answer::new(status, body))
}

fn call(chunk: &Value, first: bool) -> String {
    let arguments = &chunk["argumentsDelta"];
    let entry = if first {
        json!({
            "index": chunk["index"], "id": chunk["id"], "type": "function",
            "function": {"name": chunk["name"], "arguments": arguments},
        })
    } else {
        json!({"index": chunk["index"], "function": {"arguments": arguments}})
    };
    delta(&json!({"tool_calls": [entry]}))
}

/// The provider's own counts: those of a cache are part of the prompt's.
fn counts(usage: &Value) -> Value {
    let count = |name: &str| usage[name].as_u64();
    let cached = count("cacheReadTokens");
    let mut counts = json!({
        "prompt_tokens": count("inputTokens").unwrap_or(0) + cached.unwrap_or(0),
        "completion_tokens": count("outputTokens").unwrap_or(0),
    });
    if let Some(cached) = cached {
        counts["prompt_cache_hit_tokens"] = cached.into();
    }
    if let Some(reasoning) = count("reasoningTokens") {
        counts["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
    }
    counts
}

/// The answer that a compaction's summary was made of.
fn summary(data: &Value) -> Answer {
    let blocks = data["rawOutput"].as_array().or(data["summary"].as_array());
    let texts = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block["text"].as_str());
    whole(&texts.collect::<String>(), &data["usage"])
}

/// The answer that a model's title came of.
fn title(event: &Told) -> Option<Answer> {
    let by_model = event.kind == "session/title" && event.data["source"]["kind"] == "provider";
    by_model.then(|| {
        whole(
            event.data["title"].as_str().unwrap_or_default(),
            &Value::Null,
        )
    })
}

fn whole(text: &str, usage: &Value) -> Answer {
    let mut answer = Answer::sse("")
        .piece(delta(&json!({"content": text})))
        .piece(chunk(
            &json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
            &Value::Null,
        ));
    if !usage.is_null() {
        answer = answer.piece(chunk(&json!([]), &counts(usage)));
    }
    answer.piece("data: [DONE]\n\n")
}

fn delta(delta: &Value) -> String {
    chunk(
        &json!([{"index": 0, "delta": delta, "finish_reason": null}]),
        &Value::Null,
    )
}

fn chunk(choices: &Value, usage: &Value) -> String {
    let mut chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": choices});
    if !usage.is_null() {
        chunk["usage"] = usage.clone();
    }
    format!("data: {chunk}\n\n")
}
