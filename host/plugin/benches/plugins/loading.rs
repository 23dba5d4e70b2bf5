//! P5, P6: what it costs to have a component ready.

use std::time::Instant;

use wasmtime::component::Component;

use crate::measure::{self, Effort, Pair, nanoseconds};
use crate::{engine, mount, plain, runtime};

/// P5: a component that was compiled before, by its digest, verified, linked.
pub(crate) fn cached(wasm: &[u8], effort: Effort) {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let engine = engine(Some(dir.path().to_owned()));
    let digest = runtime.block_on(async {
        let component = engine.load_bytes(wasm.to_vec()).await.unwrap();
        let digest = component.digest().to_owned();
        mount(&engine, component, serde_json::Value::Null).await;
        digest
    });
    let floor = dsh_plugin::floor::engine(true).unwrap();
    let code = dir.path().join("plain.cwasm");
    std::fs::write(&code, floor.precompile_component(wasm).unwrap()).unwrap();
    let load = || async {
        let bytes = || panic!("the cache has it");
        engine.load_pinned(&digest, bytes).await.unwrap()
    };
    let rounds = effort.of(400);
    let loaded = Pair::measure(
        rounds,
        || {
            runtime.block_on(async {
                let start = Instant::now();
                let component = load().await;
                let time = nanoseconds(start.elapsed());
                drop(component);
                time
            })
        },
        || {
            let start = Instant::now();
            let component = dsh_plugin::floor::map(&floor, &code).unwrap();
            let time = nanoseconds(start.elapsed());
            drop(component);
            time
        },
    );
    measure::pair(
        "P5 load from the cache, verified; floor maps without verifying",
        "300 µs",
        &loaded,
    );
    let mounted = Pair::measure(
        rounds,
        || {
            runtime.block_on(async {
                let start = Instant::now();
                let mounted = mount(&engine, load().await, serde_json::Value::Null).await;
                let time = nanoseconds(start.elapsed());
                drop(mounted);
                time
            })
        },
        || {
            let start = Instant::now();
            let component = dsh_plugin::floor::map(&floor, &code).unwrap();
            let pre = plain::link(&floor, &component);
            let time = nanoseconds(start.elapsed());
            drop((pre, component));
            time
        },
    );
    measure::pair("P5 the same and mounted, with what it offers", "", &mounted);
}

/// P6: the first time.
pub(crate) fn compiling(wasm: &[u8], effort: Effort) {
    let runtime = runtime();
    let floor = dsh_plugin::floor::engine(true).unwrap();
    let pair = Pair::measure(
        effort.of(7).max(1),
        || {
            let dir = tempfile::tempdir().unwrap();
            let engine = engine(Some(dir.path().to_owned()));
            runtime.block_on(async {
                let start = Instant::now();
                engine.load_bytes(wasm.to_vec()).await.unwrap();
                nanoseconds(start.elapsed())
            })
        },
        || {
            let start = Instant::now();
            Component::new(&floor, wasm).unwrap();
            nanoseconds(start.elapsed())
        },
    );
    measure::pair("P6 first compile, kept", "1.2 s", &pair);
}
