//! P10: a provider's stream, from the bytes of the wire to the folded log.

use std::time::Instant;

use dsh_model::BlockAssembler;
use dsh_plugin::api::{CallConfig, GenerateRequest};
use dsh_plugin::{CallContext, Grants, Limits, Row};
use dsh_session::{Draft, Header, Json, Kind, Session};
use serde_json::{Value, json};
use wasmtime::component::Component;

use crate::measure::{self, Effort, Pair, nanoseconds};
use crate::plain::{self, Plain};
use crate::{engine, runtime};

const CHUNKS: usize = 2000;

fn event(number: usize) -> String {
    let delta = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "deepseek-chat",
        "choices": [{"index": 0, "delta": {"content": format!(" word {number}")}, "finish_reason": null}]});
    format!("data: {delta}\n\n")
}

fn request() -> GenerateRequest {
    GenerateRequest {
        config: CallConfig {
            provider: "deepseek-official".to_owned(),
            model: "deepseek-chat".to_owned(),
            ..CallConfig::default()
        },
        messages: vec![
            json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "id": "u"})
                .to_string(),
        ],
        ..GenerateRequest::default()
    }
}

fn plain_request() -> plain::GenerateRequest {
    let request = request();
    plain::GenerateRequest {
        config: plain::CallConfig {
            provider: request.config.provider,
            model: request.config.model,
            reasoning_effort: None,
            temperature: None,
            max_tokens: None,
            stop: None,
            more: None,
        },
        purpose: None,
        system: None,
        messages: request.messages,
        tools: vec![],
        session_id: None,
        more: None,
    }
}

/// A chunk as a step takes it: checked, wrapped, appended and folded, and pushed
/// into the message that it is a part of.
fn take(session: &mut Session, assembler: &mut BlockAssembler, chunk: &str) {
    let chunk = Json::normalise(chunk).unwrap();
    let data = Json::object(|data| {
        data.u64("turn", 1).u64("step", 1).json("chunk", &chunk);
    });
    session
        .append(Draft::new(Kind::AssistantChunk, data), 0)
        .unwrap();
    assembler.push(&chunk);
}

/// All-in beside the adapter's own work in plain wasmtime.
pub(crate) fn chunks(adapter: &[u8], effort: Effort) {
    let runtime = runtime();
    let context = CallContext::default();
    let ours = runtime.block_on(async {
        let engine = engine(None);
        let component = engine.load_bytes(adapter.to_vec()).await.unwrap();
        let grants = json!({"route": [{"provider": "deepseek-official", "origins": ["https://api.deepseek.com"], "credential": "K"}]});
        let row = Row {
            id: "adapter".to_owned(),
            limits: Limits::of(&component, &Value::Null).unwrap(),
            component,
            config: "{}".to_owned(),
            grants: Grants::parse(&grants).unwrap(),
        };
        engine.mount(row).await.unwrap().adapter().unwrap()
    });
    let engine = dsh_plugin::floor::engine(true).unwrap();
    let plain = Plain::of(&engine, &Component::new(&engine, adapter).unwrap());
    for at_once in [1, 16] {
        let pieces: Vec<Vec<u8>> = (0..CHUNKS / at_once)
            .map(|piece| {
                (0..at_once)
                    .map(|number| event(piece * at_once + number))
                    .collect::<String>()
                    .into_bytes()
            })
            .collect();
        let pair = Pair::measure(
            effort.of(60),
            || {
                runtime.block_on(async {
                    let attempt = ours.open(&context, request()).await.unwrap();
                    ours.next(&context, attempt).await.unwrap();
                    ours.head(&context, attempt, 200, vec![]).await.unwrap();
                    let mut session = Session::new(Header::new("s", 0)).unwrap();
                    let mut assembler = BlockAssembler::new();
                    let mut taken = 0;
                    let start = Instant::now();
                    for piece in &pieces {
                        for chunk in ours.body(&context, attempt, piece).await.unwrap() {
                            take(&mut session, &mut assembler, &chunk);
                            taken += 1;
                        }
                    }
                    let time = nanoseconds(start.elapsed()) / f64::from(taken);
                    ours.close(&context, attempt).await.unwrap();
                    time
                })
            },
            || {
                runtime.block_on(async {
                    let mut store = plain.store();
                    let guest = plain.adapter(&mut store).await;
                    let attempt = guest
                        .call_open(&mut store, &plain_request())
                        .await
                        .unwrap()
                        .unwrap();
                    guest.call_next(&mut store, attempt).await.unwrap().unwrap();
                    guest
                        .call_head(&mut store, attempt, 200, &[])
                        .await
                        .unwrap();
                    let mut taken = 0;
                    let start = Instant::now();
                    for piece in &pieces {
                        let piece = piece.clone();
                        let chunks = guest.call_body(&mut store, attempt, &piece).await;
                        taken += std::hint::black_box(chunks.unwrap()).len();
                    }
                    nanoseconds(start.elapsed()) / taken as f64
                })
            },
        );
        measure::pair(
            &format!(
                "P10 a chunk, {at_once} in a piece: adapter, check, append, fold, assemble; floor adapter alone"
            ),
            "15 µs",
            &pair,
        );
    }
}
