//! After a request that was too long.

use super::*;

fn refused() -> Say {
    Say::Chunks(vec![error_finish("CONTEXT_WINDOW_EXCEEDED")])
}

/// §17 "overflow retry once": once until the model has answered, by what a row
/// is told; then again.
#[tokio::test]
async fn overflow_is_recovered_from_inside_the_step_and_once_until_the_next_answer() {
    let recover = |situation: &Situation, log: &Log| {
        let wanted = situation.trigger == Trigger::Overflow && situation.recoveries < 1;
        if wanted {
            all_but(1)(situation, log)
        } else {
            Ok(Plan::Nothing)
        }
    };
    let big = || tool(spec("big"), |_| ok(&long("result")));
    let say = vec![
        calls(&[("c1", "big", "{}")]),
        refused(),
        calls(&[("c2", "big", "{}")]),
        refused(),
        text("done"),
    ];
    let setup = Setup {
        say,
        tools: vec![big()],
        ..Setup::default()
    };
    let recover = move |situation: &Situation, log: &Log| {
        // A cut that leaves calls with their results.
        match recover(situation, log)? {
            Plan::Summarise((first, _)) => {
                let nodes = nodes(log);
                Ok(Plan::Summarise((first, nodes[nodes.len() - 3])))
            }
            other => Ok(other),
        }
    };
    let (rig, _, said) = rig(setup, vec![fake(recover, |_| written("S"))]);
    rig.run(&long("first")).await;
    let events = rig.events();
    let at = events
        .iter()
        .position(|event| event == "compaction/start")
        .unwrap();
    assert_eq!(
        events[at - 2..at + 6],
        [
            "step/start 1.2",
            "chunks",
            "compaction/start",
            "compaction/summary",
            "user/message (plugin compact)",
            "compaction/end",
            "chunks",
            "assistant/message tool-call",
        ]
    );
    assert_eq!(
        events
            .iter()
            .filter(|event| *event == "compaction/start")
            .count(),
        2,
        "again after an answer"
    );
    assert_eq!(events.last().unwrap(), "turn/end 1 completed");
    assert!(said.lock().unwrap().is_empty());

    let setup = saying(vec![text("one"), refused(), refused()]);
    let once = |situation: &Situation, log: &Log| {
        let wanted = situation.trigger == Trigger::Overflow && situation.recoveries < 1;
        if wanted {
            all_but(1)(situation, log)
        } else {
            Ok(Plan::Nothing)
        }
    };
    let (rig, _, _) = super::rig(setup, vec![fake(once, |_| written("S"))]);
    rig.run(&long("first")).await;
    rig.run("second").await;
    let events = last_turn(&rig);
    assert_eq!(
        events
            .iter()
            .filter(|event| *event == "compaction/start")
            .count(),
        1
    );
    assert_eq!(
        events.last().unwrap(),
        "turn/end 2 error:CONTEXT_WINDOW_EXCEEDED"
    );
}

/// A retry needs a surface that changed: a failed summary alone is none, one
/// behind a trim is.
#[tokio::test]
async fn after_an_overflow_the_request_is_sent_again_only_if_the_surface_is_another() {
    for trimmed in [false, true] {
        let setup = Setup {
            say: vec![calls(&[("c1", "big", "{}")]), refused(), text("done")],
            tools: vec![tool(spec("big"), |_| ok(&long("result")))],
            ..Setup::default()
        };
        let on_overflow = |situation: &Situation, log: &Log| {
            if situation.trigger != Trigger::Overflow {
                return Ok(Plan::Nothing);
            }
            Ok(Plan::Summarise((nodes(log)[0], nodes(log)[0])))
        };
        let mut rows = vec![fake(on_overflow, |_| {
            Err(PluginError::new("NO", "not now"))
        })];
        if trimmed {
            rows.push(Fake {
                row: "trimmer",
                ..fake(trims("short"), |_| written(""))
            });
        }
        let (rig, _, said) = rig(setup, rows);
        rig.run("first").await;
        let last = rig.events().last().unwrap().clone();
        if trimmed {
            assert_eq!(last, "turn/end 1 completed");
        } else {
            assert_eq!(last, "turn/end 1 error:CONTEXT_WINDOW_EXCEEDED");
        }
        assert_eq!(said.lock().unwrap().len(), 1);
    }
}
