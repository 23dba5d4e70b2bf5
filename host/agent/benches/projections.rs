//! What a fold costs per event: the official projections as components, in batches as a session hands them over,
//! beside the host's own folds of the same events in the same run.
//!
//! The goal is under 2 µs an event for each. A log is nine tenths chunks; what a projection does not read costs it
//! nothing and counts all the same, as a session has those events.

use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Instant;

use dsh_agent::projection::{BATCH, ComponentUnit, Stretch, Unit};
use dsh_plugin::{Engine, EngineConfig, Grants, Limits, Row};
use dsh_session::projection::{
    ContextPressure, Registry, SessionStats, TokenUsage, Unit as Native,
};
use dsh_session::{Event, Json, Seq};
use tokio_util::sync::CancellationToken;

const EVENTS: usize = 50_000;
const ROUNDS: usize = 15;

/// Steps of 36 chunks, a message, a call and its result.
fn log() -> Vec<Arc<Event>> {
    let mut lines: Vec<String> = Vec::new();
    let mut step = 0;
    while lines.len() < EVENTS {
        step += 1;
        let mut put = |kind: &str, data: &str, rest: &str| {
            let seq = lines.len();
            let time = 1_700_000_000_000_u64 + 20 * seq as u64;
            lines.push(format!(
                r#"{{"type":"{kind}","seq":{seq},"time":{time},"data":{{"turn":{step},"step":1{data}}}{rest}}}"#
            ));
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
        let output = "total 48\\ndrwxr-xr-x 2 user user 4096 Jan  1 00:00 src\\n".repeat(40);
        let result = format!(
            r#","message":{{"source":{{"kind":"tool","callId":"c"}},"content":[{{"type":"tool-result","toolCallId":"c","content":[{{"type":"text","text":"{output}"}}]}}],"role":"user","id":"r"}}"#
        );
        put("tool/result", &result, r#","surfaceOp":"append""#);
        put("step/end", "", "");
    }
    let events = lines
        .iter()
        .map(|line| Event::parse(line).expect("an event"));
    events.map(Arc::new).collect()
}

async fn unit(engine: &Engine, name: &str) -> ComponentUnit {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components");
    let read = |end: &str| -> &'static [u8] {
        let path = root.join(format!("{name}.{end}"));
        let bytes = std::fs::read(&path);
        bytes
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .leak()
    };
    let component = engine
        .load_embedded(read("wasm"), read("cwasm"))
        .await
        .expect("it loads");
    let row = Row {
        id: name.to_owned(),
        component,
        config: "{}".to_owned(),
        grants: Grants::default(),
        limits: Limits::default(),
    };
    let mounted = engine.mount(row).await.expect("it mounts");
    let mut units = ComponentUnit::all(&mounted, "{}", "s", None);
    units.pop().expect("it projects")
}

/// Folds a log as a session does: what the unit reads of each batch.
async fn component(unit: &ComponentUnit, events: &[Arc<Event>], batch: usize) -> Json {
    let cancel = CancellationToken::new();
    let mut state: Option<Json> = None;
    for piece in events.chunks(batch) {
        let read: Vec<_> = piece
            .iter()
            .filter(|event| unit.reads(&event.kind))
            .cloned()
            .collect();
        let stretch = Stretch {
            state: state.as_ref(),
            as_of: piece[0].seq.0.checked_sub(1).map(Seq),
            events: &read,
            end: piece.last().map(|event| event.seq),
            cancel: &cancel,
        };
        state = Some(unit.fold(stretch).await.expect("a state"));
    }
    state.expect("there are events")
}

fn native(unit: &Arc<dyn Native>, events: &[Arc<Event>]) -> Json {
    let mut registry = Registry::new();
    registry.register(Arc::clone(unit)).expect("a unit");
    let mut projections = registry.start();
    events.iter().for_each(|event| projections.fold(event));
    let rows = projections.checkpoint();
    rows.get(unit.key()).expect("a state").state.clone()
}

/// Nanoseconds that this thread was on a processor, where the system tells, as others
/// may use the machine; else those of the wall clock.
fn worked() -> f64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let told = told.and_then(|text| text.split(' ').next()?.parse().ok());
    told.unwrap_or_else(|| BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let engine = Engine::new(EngineConfig {
        cache_dir: None,
        host_version: "1".to_owned(),
        home: None,
    })
    .expect("an engine");
    let events = log();
    let all: [(&str, Arc<dyn Native>); 3] = [
        ("session-stats", Arc::new(SessionStats)),
        ("token-usage", Arc::new(TokenUsage)),
        ("context-pressure", Arc::new(ContextPressure)),
    ];
    println!(
        "{} events, medians of {ROUNDS} rounds, ns an event; a batch is {BATCH} events",
        events.len()
    );
    println!("| projection | component | one by one | native | component / native |");
    println!("| --- | --- | --- | --- | --- |");
    let per_event = |begun: f64, count: usize| (worked() - begun) / count as f64;
    for (name, own) in &all {
        let unit = runtime.block_on(unit(&engine, name));
        let (mut batched, mut single, mut host, mut ratios) = (vec![], vec![], vec![], vec![]);
        for round in 0..=ROUNDS {
            let begun = worked();
            let state = runtime.block_on(component(&unit, &events, BATCH as usize));
            let ours = per_event(begun, events.len());
            let begun = worked();
            let want = native(own, &events);
            let theirs = per_event(begun, events.len());
            assert!(state.value().same(want.value()), "{name}: {state:?}");
            let few = &events[..2_000];
            let begun = worked();
            runtime.block_on(component(&unit, few, 1));
            let alone = per_event(begun, few.len());
            if round > 0 {
                batched.push(ours);
                host.push(theirs);
                single.push(alone);
                ratios.push(ours / theirs);
            }
        }
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.1} |",
            median(batched),
            median(single),
            median(host),
            median(ratios)
        );
    }
}
