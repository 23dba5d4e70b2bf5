//! What read models cost: all of the standard ones, and the token meter, over 100,000 events of which nine in ten are
//! chunks. Beside them the floor: looking at each event's kind and the length of its data.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dsh_session::projection::Registry;
use dsh_session::{Event, Seq, meter};

const EVENTS: usize = 100_000;

/// Steps of 36 chunks, a message, a call and its result.
fn log() -> Vec<Arc<Event>> {
    let mut lines = Vec::new();
    let mut step = 0;
    while lines.len() < EVENTS {
        step += 1;
        let place = format!(r#""turn":{step},"step":1"#);
        let mut put = |kind: &str, data: &str, rest: &str| {
            let seq = lines.len();
            let head = format!(
                r#"{{"type":"{kind}","seq":{seq},"time":{},"#,
                1_700_000_000_000_u64 + seq as u64
            );
            lines.push(format!(r#"{head}"data":{{{place}{data}}}{rest}}}"#));
        };
        put("step/start", "", "");
        for _ in 0..35 {
            let chunk = r#","chunk":{"type":"text-delta","index":0,"text":"so the first thing to look at is"}"#;
            put("assistant/chunk", chunk, "");
        }
        let usage = r#""usage":{"inputTokens":1200,"outputTokens":300,"cacheReadTokens":900}"#;
        put(
            "assistant/chunk",
            &format!(r#","chunk":{{"type":"usage",{usage}}}"#),
            "",
        );
        let text = "so the first thing to look at is ".repeat(35);
        let message = format!(
            r#","message":{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"model","provider":"p","model":"m"}},"id":"a"}},{usage}"#
        );
        put("assistant/message", &message, r#","surfaceOp":"append""#);
        put(
            "tool/call",
            r#","callId":"c","name":"bash","arguments":"{}""#,
            "",
        );
        let result = r#","message":{"source":{"kind":"tool","callId":"c"},"content":[{"type":"tool-result","toolCallId":"c","content":[{"type":"text","text":"ok"}]}],"role":"user","id":"r"}"#;
        put("tool/result", result, r#","surfaceOp":"append""#);
        put("step/end", "", "");
    }
    let events = lines
        .iter()
        .map(|line| Event::parse(line).expect("an event"));
    events.map(Arc::new).collect()
}

fn projections(c: &mut Criterion) {
    let events = log();
    let mut group = c.benchmark_group("fold_100k");
    group.throughput(Throughput::Elements(events.len() as u64));
    group.sample_size(20);
    group.bench_function("floor_kind_and_length", |b| {
        b.iter(|| {
            let lengths = events.iter().map(|event| {
                usize::from(event.kind.is_surface()) + black_box(event.data.as_str()).len()
            });
            lengths.sum::<usize>()
        });
    });
    group.bench_function("projections", |b| {
        b.iter(|| {
            let mut projections = Registry::standard().start();
            for event in &events {
                projections.fold(event);
            }
            projections.snapshot()
        });
    });
    group.bench_function("token_meter", |b| {
        b.iter(|| meter::measure(events.iter().cloned().map(Ok)).expect("measured"));
    });
    let registry = Registry::standard();
    let mut projections = registry.start();
    events.iter().for_each(|event| projections.fold(event));
    let rows = projections.checkpoint();
    let next = Seq(events.len() as u64);
    group.bench_function("restored_at_the_end", |b| {
        b.iter(|| {
            let base = registry.restore_floor(&rows).expect("units");
            let rest = events[base.0 as usize..].iter().cloned().map(Ok);
            registry.restore(&rows, base, next, rest).expect("restored")
        });
    });
    group.finish();
}

criterion_group!(benches, projections);
criterion_main!(benches);
