//! What a model call costs beside what nobody could leave out, in turn, in one run.
//!
//! - *A chunk*: adapter, check, append, fold and assembler, for each protocol; the floor is a plain parse of the same events
//!   by serde_json. Goal: 10,000 a second at under 15 µs each.
//! - *A chunk of a whole turn*: the same, and server, transport, agent and store, from the prompt to the idle agent.
//! - *A request over 2 MB of history*: to build it; the floor is writing the same messages as JSON by serde_json. And the
//!   least memory under which the component can.
//!
//! `cargo xtask bench models [--dev]` builds what it needs and runs it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use dsh_agent::{Message, RunOutcome, StartSource};
use dsh_model::BlockAssembler;
use dsh_plugin::api::{CallConfig, GenerateRequest};
use dsh_plugin::{Adapter, CallContext};
use dsh_session::{Draft, Header, Json, Kind, Session};
use dsh_soak::rig::{self, MODEL, Rig, Routes, provider};
use dsh_store::{Store, StoreConfig};
use mock_provider::{Answer, Mock, Protocol, Speech};
use serde_json::{Value, json};

const ROUNDS: usize = 15;
const CHUNKS: usize = 4000;
/// Bytes of the long history.
const HISTORY: usize = 2 << 20;
/// Bytes of each of its messages' texts.
const TEXT: usize = 2000;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    println!("| figure | goal | ours | floor | ratio |");
    println!("| --- | --- | --- | --- | --- |");
    for protocol in Protocol::ALL {
        for at_once in [1, 16] {
            runtime.block_on(chunks(protocol, at_once))?;
        }
    }
    for protocol in Protocol::ALL {
        runtime.block_on(turn(protocol))?;
    }
    for protocol in Protocol::ALL {
        runtime.block_on(history(protocol))?;
    }
    Ok(())
}

fn routes() -> Routes {
    Routes {
        idle_timeout_ms: 60_000,
        retry_policy: json!({}),
        longest_wait_ms: 1.0,
    }
}

async fn rig_of(protocol: Protocol, server: &str) -> Result<Rig> {
    Rig::new(&[protocol], server, &routes()).await
}

fn long() -> Speech {
    let text: String = (0..CHUNKS).map(|word| format!("word{word} ")).collect();
    Speech::new(text)
}

fn request(protocol: Protocol, messages: Vec<String>) -> GenerateRequest {
    GenerateRequest {
        config: CallConfig {
            provider: provider(protocol).to_owned(),
            model: MODEL.to_owned(),
            max_tokens: Some(1000),
            ..CallConfig::default()
        },
        messages,
        ..GenerateRequest::default()
    }
}

fn message(number: usize, text: &str) -> Value {
    let source = if number.is_multiple_of(2) {
        json!({"kind": "user"})
    } else {
        json!({"kind": "model", "provider": "another", "model": "m"})
    };
    let role = ["user", "assistant"][number % 2];
    json!({"id": format!("m{number}"), "role": role, "content": [{"type": "text", "text": text}], "source": source})
}

/// Microseconds of ours and of the floor in turn: medians, and the median of the ratios.
struct Pair {
    ours: f64,
    floor: f64,
    ratio: f64,
}

impl Pair {
    fn of(rounds: &[(f64, f64)]) -> Self {
        let middle = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            ours: middle(rounds.iter().map(|(ours, _)| *ours).collect()),
            floor: middle(rounds.iter().map(|(_, floor)| *floor).collect()),
            ratio: middle(rounds.iter().map(|(ours, floor)| ours / floor).collect()),
        }
    }

    fn row(&self, name: &str, goal: &str) {
        let unit = |us: f64| {
            if us < 1000.0 {
                format!("{us:.2} µs")
            } else {
                format!("{:.1} ms", us / 1000.0)
            }
        };
        let (ours, floor) = (unit(self.ours), unit(self.floor));
        println!("| {name} | {goal} | {ours} | {floor} | {:.2} |", self.ratio);
    }
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

/// The plain parse of a stream's events.
fn parse(events: &[String]) -> f64 {
    let start = Instant::now();
    for event in events {
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        if let Some(data) = data.filter(|data| *data != "[DONE]") {
            black_box(serde_json::from_str::<Value>(data).expect("JSON"));
        }
    }
    micros(start)
}

async fn chunks(protocol: Protocol, at_once: usize) -> Result<()> {
    let rig = rig_of(protocol, "http://127.0.0.1:9").await?;
    let adapter = rig.adapter(protocol)?;
    let events = long().events(protocol);
    let pieces: Vec<Vec<u8>> = events
        .chunks(at_once)
        .map(|some| some.concat().into_bytes())
        .collect();
    let context = CallContext::default();
    let mut rounds = Vec::new();
    for round in 0..=ROUNDS {
        let messages = vec![message(0, "Hi.").to_string()];
        let attempt = adapter.open(&context, request(protocol, messages)).await?;
        adapter.next(&context, attempt).await?;
        adapter.head(&context, attempt, 200, Vec::new()).await?;
        let mut session = Session::new(Header::new("s", 0))?;
        let mut assembler = BlockAssembler::new();
        let mut taken = 0;
        let start = Instant::now();
        for piece in &pieces {
            for chunk in adapter.body(&context, attempt, piece).await? {
                // As a step takes it: checked, wrapped, appended and folded, assembled.
                let chunk = Json::normalise(&chunk)?;
                let data = Json::object(|data| {
                    data.u64("turn", 1).u64("step", 1).json("chunk", &chunk);
                });
                session.append(Draft::new(Kind::AssistantChunk, data), 0)?;
                assembler.push(&chunk);
                taken += 1;
            }
        }
        let ours = micros(start);
        adapter.close(&context, attempt).await?;
        anyhow::ensure!(taken >= CHUNKS && assembler.blocks().len() == 1);
        let floor = parse(&events);
        if round > 0 {
            let taken = taken as f64;
            rounds.push((ours / taken, floor / taken));
        }
    }
    let name = format!("a chunk of {}, {at_once} in a piece", protocol.component());
    Pair::of(&rounds).row(&name, "15 µs");
    Ok(())
}

async fn turn(protocol: Protocol) -> Result<()> {
    let events = long().events(protocol);
    // What a fast model's network brings at once.
    let pieces: Vec<String> = events.chunks(8).map(<[String]>::concat).collect();
    let mock = Mock::with(move |_| {
        pieces.iter().fold(Answer::sse(""), |answer, piece| {
            answer.piece(piece.as_bytes())
        })
    });
    let rig = rig_of(protocol, &mock.base_url()).await?;
    let models = rig.models(&Arc::default())?;
    let folder = tempfile::tempdir()?;
    let store = Store::open(StoreConfig::new(folder.path()))?;
    let mut rounds = Vec::new();
    for round in 0..=ROUNDS {
        let session = Session::new(Header::new(format!("s{round}"), 0))?;
        let writer = store.create(&session)?;
        let talk = rig.conversation(&models, protocol, (session, writer), StartSource::Startup)?;
        let start = Instant::now();
        talk.agent.followup(&Message::from_person("Talk."))?;
        talk.agent.when_idle().await;
        let ours = micros(start);
        let completed = talk
            .log
            .read(|session| RunOutcome::of(session, dsh_session::Seq(0)).completed());
        anyhow::ensure!(completed, "the turn did not complete");
        talk.close().await?;
        let floor = parse(&events);
        if round > 0 {
            rounds.push((ours / CHUNKS as f64, floor / CHUNKS as f64));
        }
    }
    let name = format!("a chunk of a whole turn by {}", protocol.component());
    Pair::of(&rounds).row(&name, "100 µs");
    Ok(())
}

async fn history(protocol: Protocol) -> Result<()> {
    let text = "It is what it is, \"said\" she, and so it was.\n".repeat(TEXT / 46);
    let messages: Vec<Value> = (0..HISTORY / text.len())
        .map(|at| message(at, &text))
        .collect();
    let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
    let rig = rig_of(protocol, "http://127.0.0.1:9").await?;
    let adapter = rig.adapter(protocol)?;
    let mut rounds = Vec::new();
    for round in 0..=ROUNDS {
        let start = Instant::now();
        build(&adapter, request(protocol, texts.clone())).await?;
        let ours = micros(start);
        let start = Instant::now();
        black_box(serde_json::to_vec(&messages)?);
        let floor = micros(start);
        if round > 0 {
            rounds.push((ours, floor));
        }
    }
    let size = texts.iter().map(String::len).sum::<usize>() as f64 / f64::from(1 << 20);
    let name = format!("a request of {} over {size:.1} MiB", protocol.component());
    Pair::of(&rounds).row(&name, "");
    let (mut enough, mut little) = (256, 0);
    while enough - little > 1 {
        let middle = u32::midpoint(enough, little);
        let limits = json!({"memory": format!("{middle}MiB")});
        let small = rig::adapter_within(protocol, &routes(), &limits).await;
        let works = match small {
            Ok(small) => build(&small, request(protocol, texts.clone()))
                .await
                .is_ok(),
            Err(_) => false,
        };
        if works {
            enough = middle;
        } else {
            little = middle;
        }
    }
    println!("| least memory for it | 256 MiB | {enough} MiB | | |");
    Ok(())
}

async fn build(adapter: &Adapter, request: GenerateRequest) -> Result<()> {
    let context = CallContext::default();
    let attempt = adapter.open(&context, request).await?;
    let action = adapter.next(&context, attempt).await;
    black_box(action.context("a request")?);
    adapter.close(&context, attempt).await?;
    Ok(())
}
