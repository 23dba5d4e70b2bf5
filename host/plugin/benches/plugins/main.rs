//! Each budget of calling, loading and keeping components, beside plain wasmtime
//! on the same component, with the same configuration and the same way of calling,
//! in the same run.
//!
//! `cargo xtask bench plugins [--quick] [P1 P2 …]` builds what it needs and runs it.

mod calls;
mod instances;
mod loading;
mod measure;
mod plain;
mod stream;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{PluginError, ToolCall};
use dsh_plugin::port::{Journal, Level, Log, NewEvent, PortSet};
use dsh_plugin::{CallContext, Engine, EngineConfig, Grants, Limits, Mounted, Row};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use measure::Effort;

/// What the benches call: `benches/guests/measured`.
fn wasm() -> Vec<u8> {
    read("DSH_BENCH_COMPONENT")
}

fn read(variable: &str) -> Vec<u8> {
    let path = std::env::var_os(variable).map_or_else(
        || panic!("run `cargo xtask bench plugins`, which builds components and names one in {variable}"),
        PathBuf::from,
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn engine(cache: Option<PathBuf>) -> Engine {
    Engine::new(EngineConfig {
        cache_dir: cache,
        host_version: "0".to_owned(),
        ..EngineConfig::default()
    })
    .unwrap()
}

fn grants() -> Grants {
    Grants::parse(
        &json!({"clock": true, "journal": ["todo/write"], "decide": ["bench/echo", "bench/typical", "bench/untouched"], "route": {"provider": "measured"}}),
    )
    .unwrap()
}

async fn mount(engine: &Engine, component: Arc<dsh_plugin::Component>, limits: Value) -> Mounted {
    let row = Row {
        id: "measured".to_owned(),
        limits: Limits::of(&component, &limits).unwrap(),
        component,
        config: "{}".to_owned(),
        grants: grants(),
    };
    engine.mount(row).await.unwrap()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Ports that take everything and do nothing with it, as the floor does.
struct Nothing(std::sync::atomic::AtomicU32);

impl Log for Nothing {
    fn write(&self, _: &str, _: Level, message: &str) {
        std::hint::black_box(message);
    }
}

#[async_trait]
impl Journal for Nothing {
    async fn append(
        &self,
        _: &str,
        events: Vec<NewEvent>,
        _: Option<u32>,
    ) -> Result<u32, PluginError> {
        let count = u32::try_from(std::hint::black_box(events).len()).unwrap();
        Ok(self
            .0
            .fetch_add(count, std::sync::atomic::Ordering::Relaxed))
    }
}

fn context() -> CallContext {
    let nothing = Arc::new(Nothing(0.into()));
    CallContext {
        ports: Arc::new(PortSet {
            log: Some(nothing.clone()),
            journal: Some(nothing),
            ..PortSet::default()
        }),
        ..CallContext::default()
    }
}

fn tool(name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        turn: 0,
        step: 0,
        more: None,
    }
}

async fn run(mounted: &Mounted, context: &CallContext, name: &str, arguments: &str) -> String {
    let outcome = mounted.call_tool(context, tool(name, arguments)).await;
    outcome.unwrap().content.concat()
}

/// The component by both: mounted as rows are, and by plain wasmtime.
struct Both {
    engine: Engine,
    mounted: Mounted,
    context: CallContext,
    plain: plain::Plain,
    runtime: Runtime,
}

impl Both {
    fn new(wasm: &[u8]) -> Self {
        let runtime = runtime();
        let engine = engine(None);
        let mounted = runtime.block_on(async {
            let component = engine.load_bytes(wasm.to_vec()).await.unwrap();
            mount(&engine, component, Value::Null).await
        });
        Self {
            engine,
            mounted,
            context: context(),
            plain: plain::Plain::new(&dsh_plugin::floor::engine(true).unwrap(), wasm),
            runtime,
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // A process of its own each, whose memory is all there is.
    if let [of, what] = &arguments[..]
        && of == "memory-of"
    {
        return instances::memory_of(what);
    }
    let effort = Effort {
        quick: arguments.iter().any(|one| one == "--quick"),
    };
    let only: Vec<&String> = arguments
        .iter()
        .filter(|one| one.starts_with('P'))
        .collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| *one == name);
    let wasm = wasm();
    println!("The component is {} KB.\n", wasm.len() / 1000);
    println!("| figure | goal | ours | plain wasmtime | ratio |");
    println!("| --- | --- | --- | --- | --- |");
    let both = Both::new(&wasm);
    for (name, bench) in [
        ("P1", calls::warm as fn(&Both, Effort)),
        ("P2", calls::imports),
        ("P3", instances::fresh),
        ("P4", instances::per_second),
        ("P8", calls::interruption),
        ("P9", calls::metering),
        ("P7", instances::memory),
    ] {
        if wanted(name) {
            bench(&both, effort);
        }
    }
    if wanted("P5") {
        loading::cached(&wasm, effort);
    }
    if wanted("P6") {
        loading::compiling(&wasm, effort);
    }
    if wanted("P10") {
        stream::chunks(&read("DSH_BENCH_ADAPTER"), effort);
    }
}
