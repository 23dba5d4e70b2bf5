//! P1, P2, P8, P9: what calls cost.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dsh_plugin::CallError;
use serde_json::json;

use crate::measure::{self, Effort, Pair, Spread, nanoseconds};
use crate::plain::{self, Plain};
use crate::{Both, run, wasm};

/// P1: a warm call, empty, and with a kibibyte in and out.
pub(crate) fn warm(both: &Both, effort: Effort) {
    let calls = 2000;
    let adapter = both.mounted.adapter().unwrap();
    let dispatch = both.mounted.dispatch().unwrap();
    let context = &both.context;
    let attempt = both
        .runtime
        .block_on(adapter.open(context, dsh_plugin::api::GenerateRequest::default()))
        .unwrap();
    let mut store = both.plain.store();
    let plain_adapter = both.runtime.block_on(both.plain.adapter(&mut store));
    let empty = Pair::measure(
        effort.of(100),
        || {
            both.runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..calls {
                    adapter.close(context, attempt).await.unwrap();
                }
                nanoseconds(start.elapsed()) / f64::from(calls)
            })
        },
        || {
            both.runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..calls {
                    plain_adapter.call_close(&mut store, 1).await.unwrap();
                }
                nanoseconds(start.elapsed()) / f64::from(calls)
            })
        },
    );
    measure::pair("P1 warm call, empty", "1.3 times", &empty);

    let payload = "x".repeat(1024);
    let mut store = both.plain.store();
    let plain_dispatch = both.runtime.block_on(both.plain.dispatch(&mut store));
    let kibibyte = Pair::measure(
        effort.of(100),
        || {
            both.runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..calls {
                    let back = dispatch
                        .decide(context, "bench/echo", payload.clone())
                        .await;
                    assert!(back.unwrap().is_some());
                }
                nanoseconds(start.elapsed()) / f64::from(calls)
            })
        },
        || {
            both.runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..calls {
                    let payload = payload.clone();
                    let back = plain_dispatch
                        .call_decide(&mut store, "bench/echo", &payload)
                        .await;
                    assert!(back.unwrap().unwrap().is_some());
                }
                nanoseconds(start.elapsed()) / f64::from(calls)
            })
        },
    );
    measure::pair("P1 warm call, 1 KiB in and out", "1.3 times", &kibibyte);
}

/// P2: what an import costs, of many in one call.
pub(crate) fn imports(both: &Both, effort: Effort) {
    // Fewer than the messages that a call's log keeps.
    let imports = 900;
    for (name, what) in [
        ("now", "P2 import `clock.now`"),
        ("log", "P2 import `log.write`, 44 bytes"),
        ("append", "P2 import `journal.append`, one event"),
    ] {
        let many = imports.to_string();
        let pair = Pair::measure(
            effort.of(200),
            || {
                both.runtime.block_on(async {
                    let start = Instant::now();
                    run(&both.mounted, &both.context, name, &many).await;
                    let all = start.elapsed();
                    let start = Instant::now();
                    run(&both.mounted, &both.context, name, "0").await;
                    nanoseconds(all.saturating_sub(start.elapsed())) / f64::from(imports)
                })
            },
            || {
                both.runtime.block_on(async {
                    let start = Instant::now();
                    both.plain.run(name, &many).await;
                    let all = start.elapsed();
                    let start = Instant::now();
                    both.plain.run(name, "0").await;
                    nanoseconds(all.saturating_sub(start.elapsed())) / f64::from(imports)
                })
            },
        );
        measure::pair(what, "1.3 times", &pair);
    }
}

/// P8: how late a loop is stopped, and how long others wait meanwhile.
pub(crate) fn interruption(both: &Both, effort: Effort) {
    let bound = Duration::from_millis(200);
    let late = |start: Instant| nanoseconds(start.elapsed().saturating_sub(bound));
    let others = RefCell::new(vec![]);
    let engine = dsh_plugin::floor::engine(true).unwrap();
    let plain = Plain::new(&engine, &wasm());
    let component = both.mounted.component();
    let pair = Pair::measure(
        effort.of(20).max(3),
        || {
            both.runtime.block_on(async {
                // A row of its own each time, since failures put one out of use.
                let limits = json!({"cpu": 200});
                let row = crate::mount(&both.engine, Arc::clone(component), limits).await;
                let spin = crate::tool("spin", "");
                let start = Instant::now();
                let spinning = async {
                    let ended = row.call_tool(&both.context, spin).await;
                    assert!(matches!(ended, Err(CallError::Cpu { .. })));
                    late(start)
                };
                let serving = async {
                    loop {
                        let start = Instant::now();
                        run(&both.mounted, &both.context, "echo", "others").await;
                        others.borrow_mut().push(nanoseconds(start.elapsed()));
                        tokio::time::sleep(Duration::from_millis(3)).await;
                    }
                };
                tokio::select! {
                    late = spinning => late,
                    () = serving => unreachable!(),
                }
            })
        },
        || {
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(10));
                        engine.increment_epoch();
                    }
                });
                let late = both.runtime.block_on(async {
                    let mut store = plain.store();
                    let guest = plain.tool(&mut store).await;
                    store.set_epoch_deadline(20);
                    store.epoch_deadline_trap();
                    let call = plain::tool::Call {
                        id: String::new(),
                        name: "spin".to_owned(),
                        arguments: String::new(),
                        turn: 0,
                        step: 0,
                        more: None,
                    };
                    let start = Instant::now();
                    assert!(guest.call_run(&mut store, &call).await.is_err());
                    late(start)
                });
                done.store(true, Ordering::Relaxed);
                late
            })
        },
    );
    measure::row(
        "P8 a loop is stopped after its bound of 200 ms, latest",
        "12 ms",
        &measure::time(pair.ours.percent(100)),
        &measure::time(pair.floor.percent(100)),
        None,
    );
    let others = Spread::of(others.into_inner());
    let [median, slowest] = [50, 100].map(|percent| measure::time(others.percent(percent)));
    measure::row(
        "P8 another call meanwhile, median and slowest",
        "",
        &format!("{median}, {slowest}"),
        "",
        None,
    );
}

/// P9: what interrupting costs a component that computes.
pub(crate) fn metering(both: &Both, effort: Effort) {
    let unmetered = Plain::new(&dsh_plugin::floor::engine(false).unwrap(), &wasm());
    let pair = Pair::measure(
        effort.of(40),
        || {
            both.runtime.block_on(async {
                let start = Instant::now();
                run(&both.mounted, &both.context, "json", "1000000").await;
                nanoseconds(start.elapsed())
            })
        },
        || {
            both.runtime.block_on(async {
                let start = Instant::now();
                unmetered.run("json", "1000000").await;
                nanoseconds(start.elapsed())
            })
        },
    );
    measure::pair(
        "P9 1 MB of JSON written, read, written in the guest; floor without epochs",
        "1.12 times",
        &pair,
    );
}
