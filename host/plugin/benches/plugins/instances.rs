//! P3, P4, P7: what instances cost.

use std::process::Command;
use std::time::Instant;

use crate::measure::{self, Effort, Pair, Spread, nanoseconds};
use crate::plain::State;
use crate::{Both, run, runtime, wasm};

/// P3: an instance for one call: store, limits, call, drop.
pub(crate) fn fresh(both: &Both, effort: Effort) {
    let calls = effort.of(20_000);
    let (mut ours, mut floor) = (vec![], vec![]);
    both.runtime.block_on(async {
        for _ in 0..calls {
            let start = Instant::now();
            run(&both.mounted, &both.context, "echo", "{}").await;
            ours.push(nanoseconds(start.elapsed()));
            let start = Instant::now();
            both.plain.run("echo", "{}").await;
            floor.push(nanoseconds(start.elapsed()));
        }
    });
    let ratio = Spread::of(
        ours.iter()
            .zip(&floor)
            .map(|(one, other)| one / other)
            .collect(),
    );
    let (ours, floor) = (Spread::of(ours), Spread::of(floor));
    for (what, goal, percent) in [
        ("P3 fresh instance, call and drop, median", "20 µs", 50),
        ("P3 the same, 99th percentile", "60 µs", 99),
    ] {
        measure::row(
            what,
            goal,
            &measure::time(ours.percent(percent)),
            &measure::time(floor.percent(percent)),
            (percent == 50).then(|| ratio.median()),
        );
    }
}

/// P4: how many of those in a second, on one thread and on two.
pub(crate) fn per_second(both: &Both, effort: Effort) {
    let calls = effort.of(4000);
    let rate = |threads: usize, ours: bool| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    runtime().block_on(async {
                        for _ in 0..calls {
                            if ours {
                                run(&both.mounted, &both.context, "echo", "{}").await;
                            } else {
                                both.plain.run("echo", "{}").await;
                            }
                        }
                    });
                });
            }
        });
        (threads * calls) as f64 / start.elapsed().as_secs_f64()
    };
    let mut means = vec![];
    for (threads, goal) in [(1, "45k/s"), (2, "1.7 times one thread")] {
        let pair = Pair::measure(
            effort.of(20).max(3),
            || rate(threads, true),
            || rate(threads, false),
        );
        measure::row(
            &format!("P4 instances a second, {threads} thread(s)"),
            goal,
            &format!("{:.1}k/s", pair.ours.median() / 1e3),
            &format!("{:.1}k/s", pair.floor.median() / 1e3),
            Some(pair.ratio.median()),
        );
        means.push((pair.ours.median(), pair.floor.median()));
    }
    measure::row(
        "P4 two threads to one",
        "1.7 times",
        &format!("{:.2} times", means[1].0 / means[0].0),
        &format!("{:.2} times", means[1].1 / means[0].1),
        None,
    );
}

const LIVE: usize = 1000;

/// P7: what a live instance keeps of memory.
pub(crate) fn memory(_: &Both, _: Effort) {
    for (what, goal, name) in [
        (
            "untouched",
            "8 KiB",
            "P7 a live instance after an empty call",
        ),
        (
            "typical",
            "150 KiB, 1.2 MiB at most",
            "P7 a live instance after a typical call",
        ),
    ] {
        let [ours, floor] = ["ours", "plain"].map(|whose| {
            let this = std::env::current_exe().unwrap();
            let output = Command::new(this)
                .args(["memory-of", &format!("{whose} {what}")])
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout)
                .unwrap()
                .trim()
                .parse::<f64>()
                .unwrap()
        });
        measure::row(
            &format!("{name}, of {LIVE}"),
            goal,
            &format!("{ours:.1} KiB"),
            &format!("{floor:.1} KiB"),
            Some(ours / floor),
        );
    }
}

/// Prints how many KiB an instance keeps.
pub(crate) fn memory_of(what: &str) {
    let both = Both::new(&wasm());
    let event = &format!("bench/{}", what.split(' ').next_back().unwrap());
    let mut ours = vec![];
    let mut plain: Vec<(wasmtime::Store<State>, _)> = vec![];
    let grow = |ours: &mut Vec<_>, plain: &mut Vec<_>| {
        both.runtime.block_on(async {
            if what.starts_with("ours") {
                let dispatch = both.mounted.dispatch().unwrap();
                dispatch
                    .decide(&both.context, event, String::new())
                    .await
                    .unwrap();
                ours.push(dispatch);
            } else {
                let mut store = both.plain.store();
                let dispatch = both.plain.dispatch(&mut store).await;
                let said = dispatch
                    .call_decide(&mut store, event, &String::new())
                    .await;
                said.unwrap().unwrap();
                plain.push((store, dispatch));
            }
        });
    };
    // What is paid once is paid before.
    for _ in 0..10 {
        grow(&mut ours, &mut plain);
    }
    let before = resident();
    for _ in 0..LIVE {
        grow(&mut ours, &mut plain);
    }
    println!("{}", (resident() - before) / LIVE as f64);
}

/// `VmRSS`, in KiB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}
