use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, Semaphore};

use super::rig::{Rig, Setup, asking_tool, calls, ok, spec, text, tool, waiting_tool};
use crate::tools::Tool;
use crate::{CancelCause, Message};
use dsh_plugin::api::Concurrency;

/// A parallel tool whose bodies wait until as many run as `together`.
fn meeting(name: &str, together: usize, most: Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let running = Arc::new(AtomicUsize::new(0));
    let met = Arc::new(Semaphore::new(0));
    waiting_tool(
        spec(name).with_concurrency(Concurrency::Always),
        move |_, _| {
            let (running, met, most) = (Arc::clone(&running), Arc::clone(&met), Arc::clone(&most));
            Box::pin(async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                if now >= together {
                    met.add_permits(64);
                }
                met.acquire().await.unwrap().forget();
                running.fetch_sub(1, Ordering::SeqCst);
                ok("ok")
            })
        },
    )
}

fn tool_events(rig: &Rig) -> Vec<String> {
    rig.events()
        .into_iter()
        .filter(|event| event.starts_with("tool/"))
        .collect()
}

const PPEP: [(&str, &str, &str); 4] = [
    ("A", "p", "{}"),
    ("B", "p", "{}"),
    ("C", "e", "{}"),
    ("D", "p", "{}"),
];

#[tokio::test]
async fn an_exclusive_call_is_a_barrier_between_pools() {
    for width in [2, 10] {
        let most = Arc::new(AtomicUsize::new(0));
        let rig = Rig::new(Setup {
            say: vec![calls(&PPEP), text("done")],
            tools: vec![
                meeting("p", 2, Arc::clone(&most)),
                tool(spec("e"), |_| ok("ok")),
            ],
            ..Setup::default()
        });
        rig.agent.set_max_parallel_tool_calls(width);
        rig.run("go").await;
        assert_eq!(
            tool_events(&rig),
            [
                "tool/call A",
                "tool/call B",
                "tool/result A",
                "tool/result B",
                "tool/call C",
                "tool/result C",
                "tool/call D",
                "tool/result D",
            ]
        );
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_pool_of_one_pairs_every_call_with_its_result() {
    let rig = Rig::new(Setup {
        say: vec![calls(&PPEP), text("done")],
        tools: vec![
            meeting("p", 1, Arc::default()),
            tool(spec("e"), |_| ok("ok")),
        ],
        configure: Some(|config| config.max_parallel_tool_calls = 1),
        ..Setup::default()
    });
    rig.run("go").await;
    let expected: Vec<String> = ["A", "B", "C", "D"]
        .iter()
        .flat_map(|id| [format!("tool/call {id}"), format!("tool/result {id}")])
        .collect();
    assert_eq!(tool_events(&rig), expected);
}

#[tokio::test]
async fn results_are_logged_in_the_models_order_whoever_finishes_first() {
    let last_done = Arc::new(Notify::new());
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let (signal, seen) = (Arc::clone(&last_done), Arc::clone(&order));
    let reversed = waiting_tool(
        spec("p").with_concurrency(Concurrency::Always),
        move |call, _| {
            let (signal, seen) = (Arc::clone(&signal), Arc::clone(&seen));
            Box::pin(async move {
                if call.id == "A" {
                    signal.notified().await;
                }
                seen.lock().unwrap().push(call.id.clone());
                if call.id == "C" {
                    signal.notify_one();
                }
                ok(&call.id)
            })
        },
    );
    let rig = Rig::new(Setup {
        say: vec![
            calls(&[("A", "p", "{}"), ("B", "p", "{}"), ("C", "p", "{}")]),
            text("done"),
        ],
        tools: vec![reversed],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(*order.lock().unwrap(), ["B", "C", "A"]);
    assert_eq!(
        tool_events(&rig),
        [
            "tool/call A",
            "tool/call B",
            "tool/call C",
            "tool/result A",
            "tool/result B",
            "tool/result C",
        ]
    );
}

#[tokio::test]
async fn an_abort_in_a_pool_gives_every_call_a_result() {
    let waits = waiting_tool(
        spec("p").with_concurrency(Concurrency::Always),
        |_, cancel| {
            Box::pin(async move {
                cancel.cancelled().await;
                ok("too late")
            })
        },
    );
    let rig = Rig::new(Setup {
        say: vec![calls(&[
            ("A", "p", "{}"),
            ("B", "p", "{}"),
            ("C", "p", "{}"),
            ("D", "p", "{}"),
        ])],
        tools: vec![waits],
        configure: Some(|config| config.max_parallel_tool_calls = 2),
        ..Setup::default()
    });
    rig.agent.followup(&Message::from_person("go")).unwrap();
    rig.until("tool/call B").await;
    rig.agent.cancel(CancelCause::User, false).unwrap();
    rig.agent.when_idle().await;
    assert_eq!(
        rig.events()[9..],
        [
            "tool/call A",
            "tool/call B",
            "tool/result A ABORTED",
            "tool/result B ABORTED",
            "tool/call C",
            "tool/result C ABORTED_BEFORE_DISPATCH",
            "tool/call D",
            "tool/result D ABORTED_BEFORE_DISPATCH",
            "step/end 1.1",
            "turn/end 1 aborted:user",
        ]
    );
    assert_eq!(rig.result("C"), "Error: tool call aborted before dispatch");
}

#[tokio::test]
async fn a_tool_that_does_not_answer_whether_it_may_overlap_runs_alone() {
    let most = Arc::new(AtomicUsize::new(0));
    let running = Arc::new(AtomicUsize::new(0));
    let (peak, now) = (Arc::clone(&most), running);
    // What a component answers that crashed over the question is `no`.
    let asked = asking_tool(
        "p",
        |call| call.id == "A",
        move |_, _| {
            let (peak, now) = (Arc::clone(&peak), Arc::clone(&now));
            Box::pin(async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                ok("ok")
            })
        },
    );
    let rig = Rig::new(Setup {
        say: vec![
            calls(&[("A", "p", "{}"), ("B", "p", "{}"), ("C", "p", "{}")]),
            text("done"),
        ],
        tools: vec![asked],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(
        tool_events(&rig)[..4],
        [
            "tool/call A",
            "tool/result A",
            "tool/call B",
            "tool/result B"
        ]
    );
}

#[tokio::test]
async fn calls_with_bad_arguments_and_of_unknown_tools_run_alone() {
    let strict = crate::tools::ToolSpec::new(
        "p",
        "",
        r#"{"type":"object","required":["x"],"properties":{"x":{}}}"#,
    );
    let rig = Rig::new(Setup {
        say: vec![
            calls(&[
                ("A", "p", "{}"),
                ("B", "nope", "{}"),
                ("C", "p", "{\"x\":1}"),
            ]),
            text("done"),
        ],
        tools: vec![tool(
            strict.unwrap().with_concurrency(Concurrency::Always),
            |_| ok("ok"),
        )],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        tool_events(&rig),
        [
            "tool/call A",
            "tool/result A INVALID_ARGS",
            "tool/call B",
            "tool/result B UNKNOWN_TOOL",
            "tool/call C",
            "tool/result C",
        ]
    );
}

#[tokio::test]
async fn a_tool_taken_away_in_a_pool_is_unknown_from_then_on() {
    let registry: Arc<Mutex<Option<Arc<crate::tools::ToolRegistry>>>> = Arc::default();
    let seen = Arc::clone(&registry);
    let vanishing = waiting_tool(
        spec("p").with_concurrency(Concurrency::Always),
        move |_, _| {
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                seen.lock().unwrap().as_ref().unwrap().unregister("p");
                ok("last")
            })
        },
    );
    let rig = Rig::new(Setup {
        say: vec![calls(&[("A", "p", "{}"), ("B", "p", "{}")]), text("done")],
        tools: vec![vanishing],
        configure: Some(|config| config.max_parallel_tool_calls = 1),
        ..Setup::default()
    });
    *registry.lock().unwrap() = Some(Arc::clone(&rig.registry));
    rig.run("go").await;
    assert_eq!(
        tool_events(&rig),
        [
            "tool/call A",
            "tool/result A",
            "tool/call B",
            "tool/result B UNKNOWN_TOOL"
        ]
    );
    assert_eq!(rig.result("B"), "Error: unknown tool \"p\"");
}

#[tokio::test]
async fn a_results_contexts_wait_for_the_next_step_right_after_it() {
    let rig = Rig::new(Setup {
        say: vec![calls(&[("A", "t", "{}"), ("B", "t", "{}")]), text("done")],
        tools: vec![tool(spec("t"), |call| {
            let more = r#"{"context":[{"content":[{"type":"text","text":"by the way"}]}]}"#;
            if call.id == "A" {
                super::rig::ok_with("ok", more)
            } else {
                ok("ok")
            }
        })],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        rig.events()[9..18],
        [
            "tool/call A",
            "tool/result A",
            "inbox next-step +1",
            "tool/call B",
            "tool/result B",
            "step/end 1.1",
            "inbox next-step -1",
            "step/start 1.2",
            "user/message (plugin host)",
        ]
    );
}
