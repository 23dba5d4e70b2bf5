//! Before a step.

use super::*;

#[tokio::test]
async fn under_pressure_a_summary_is_committed_between_claim_and_step() {
    let fakes = vec![fake(all_but(0), |_| written("What was said."))];
    let (rig, fakes, said) = rig(saying(vec![text("one"), text("two")]), fakes);
    rig.run(&long("first")).await;
    assert!(
        fakes[0].seen.lock().unwrap().is_empty(),
        "nothing was sent yet"
    );
    rig.run("second").await;
    assert_eq!(
        last_turn(&rig),
        [
            "turn/start 2",
            "inbox next-turn -1",
            "compaction/start",
            "compaction/summary",
            "user/message (plugin compact)",
            "compaction/end",
            "step/start 2.1",
            "user/message second",
            "chunks",
            "assistant/message text",
            "step/end 2.1",
            "turn/end 2 completed",
        ]
    );
    assert!(said.lock().unwrap().is_empty());
    let first = fakes[0].seen.lock().unwrap()[0].clone();
    assert_eq!(first.context_window, Some(10_000));
    assert!(first.tokens > 600, "{first:?}");
    let then = fakes[0].seen.lock().unwrap()[1].clone();
    assert_eq!((then.round, first.round), (1, 0));
    assert!(then.tokens < first.tokens, "measured anew");
}

#[tokio::test]
async fn the_events_of_a_compaction_have_upstreams_members() {
    let call = ModelCall {
        content: vec![
            r#"{"type":"reasoning","text":"hm"}"#.into(),
            crate::text_block("Said.").as_str().into(),
        ],
        usage: Some(r#"{"inputTokens":20,"outputTokens":4}"#.into()),
        config: r#"{"provider":"q","model":"n","maxTokens":32}"#.into(),
    };
    let write = move |_: &Log| {
        Ok(Written {
            call: Some(call.clone()),
            ..written("Said.")?
        })
    };
    let (rig, _, _) = rig(
        saying(vec![text("one"), text("two")]),
        vec![fake(all_but(1), write)],
    );
    rig.run(&long("first")).await;
    let (user, answer) = (nodes(&rig.log)[0], nodes(&rig.log)[1]);
    rig.run("second").await;
    let start = newest(&rig, &Kind::CompactionStart);
    let id = member(&start, &["compactionId"]);
    assert_eq!(
        start.as_str(),
        format!(r#"{{"compactionId":"{id}","turn":2}}"#)
    );
    assert_eq!(newest(&rig, &Kind::CompactionEnd), start);
    let summary = newest(&rig, &Kind::CompactionSummary);
    let tokens = member(&summary, &["shadowedTokenCount"]);
    // What the row says of the route counts for less than what the host saw.
    assert_eq!(
        summary.as_str(),
        format!(
            r#"{{"compactionId":"{id}","summary":[{{"type":"text","text":"Said."}}],"rawOutput":[{{"type":"reasoning","text":"hm"}},{{"type":"text","text":"Said."}}],"llmStreamCall":true,"shadowedRange":{{"start":{user},"end":{user}}},"shadowedSeqs":[{user}],"shadowedTokenCount":{tokens},"provider":"q","model":"n","maxTokens":32,"usage":{{"inputTokens":20,"outputTokens":4}}}}"#
        )
    );
    let event = rig.log.read(|session| {
        let node = session.surface().nodes()[0];
        session.event(node).unwrap().unwrap()
    });
    assert_eq!(member(&event.data, &["source", "compactionId"]), id);
    let seq = |kind: &Kind| rig.log.read(|session| session.last_of(kind).unwrap().seq);
    let sources = event.source_event_seqs.as_deref().unwrap();
    let expected = [
        seq(&Kind::CompactionStart),
        seq(&Kind::CompactionSummary),
        Seq(user.into()),
    ];
    assert_eq!(sources, expected);
    assert_eq!(nodes(&rig.log)[1], answer);
}

/// Byte for byte, whoever holds the session.
#[tokio::test]
async fn a_reloaded_session_has_the_same_model_history_after_a_compaction() {
    let setup = Setup {
        say: vec![calls(&[("c1", "big", "{}")]), text("one"), text("two")],
        tools: vec![tool(spec("big"), |_| ok(&long("result")))],
        ..Setup::default()
    };
    let trimmer = Fake {
        row: "trimmer",
        ..fake(trims("short"), |_| written(""))
    };
    let rows = vec![fake(all_but(1), |_| written("What was said.")), trimmer];
    let (rig, _, _) = rig(setup, rows);
    rig.run(&long("first")).await;
    rig.run("second").await;
    let mut cold = reopened(&rig);
    let live = rig.log.messages().unwrap().to_json();
    assert_eq!(live.as_str(), messages(&mut cold));
    assert!(live.as_str().contains("What was said."));
    let digest = rig.log.digest().unwrap();
    assert_eq!(cold.digest().unwrap(), digest);
}

/// A trim comes first wherever its row stands, and what it was enough for is not
/// summarised; by itself it does nothing.
#[tokio::test]
async fn tool_results_are_pruned_before_anything_is_summarised_and_only_under_pressure() {
    for trimmer_first in [true, false] {
        for limit in [500, 2000] {
            let setup = Setup {
                say: vec![calls(&[("c1", "big", "{}")]), text("one"), text("two")],
                tools: vec![tool(spec("big"), |_| ok(&long("result")))],
                ..Setup::default()
            };
            let trimmer = Fake {
                row: "trimmer",
                ..fake(trims("short"), |_| written(""))
            };
            let summariser = fake(
                move |situation, log| {
                    if situation.tokens < limit {
                        return Ok(Plan::Nothing);
                    }
                    all_but(1)(situation, log)
                },
                |_| panic!("the trim was enough"),
            );
            let mut rows = vec![summariser, trimmer];
            if trimmer_first {
                rows.reverse();
            }
            let (rig, _, said) = rig(setup, rows);
            rig.run("first").await;
            rig.run("second").await;
            assert!(said.lock().unwrap().is_empty(), "{said:?}");
            let events = rig.events();
            let prunes = events
                .iter()
                .filter(|event| *event == "compaction/prune")
                .count();
            assert_eq!(prunes, usize::from(limit == 500), "{events:?}");
            if prunes == 0 {
                continue;
            }
            let at = events
                .iter()
                .position(|event| event == "compaction/prune")
                .unwrap();
            assert_eq!(
                events[at - 1..at + 3],
                [
                    "step/end 1.1",
                    "compaction/prune",
                    "tool/result c1",
                    "step/start 1.2"
                ]
            );
            assert_eq!(rig.result("c1").split(' ').next().unwrap(), "result");
            let (prune, result) = rig.log.read(|session| {
                let prune = session.last_of(&Kind::CompactionPrune).unwrap().clone();
                (prune, session.last_of(&Kind::ToolResult).unwrap().clone())
            });
            let old = member(&prune.data, &["shadowedRange", "start"]);
            assert_eq!(member(&prune.data, &["shadowedSeqs"]), format!("[{old}]"));
            assert_eq!(result.seq.0, prune.seq.0 + 1);
            let sources = result.source_event_seqs.as_deref().unwrap();
            assert_eq!(sources, [Seq(old.parse().unwrap())]);
            assert!(result.line().contains(r#""text":"short""#));
        }
    }
}

#[tokio::test]
async fn giving_up_a_turn_ends_its_compaction_in_the_log() {
    let waiting = Fake {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..fake(all_but(1), |_| written("S"))
    };
    let (rig, _, said) = rig(saying(vec![text("one")]), vec![waiting]);
    rig.run(&long("first")).await;
    rig.agent.followup(&Message::from_person("second")).unwrap();
    rig.until("compaction/start").await;
    rig.agent.cancel(CancelCause::User, true).unwrap();
    rig.agent.when_idle().await;
    assert_eq!(
        last_turn(&rig),
        [
            "turn/start 2",
            "inbox next-turn -1",
            "compaction/start",
            "compaction/end",
            "inbox next-turn +1",
            "turn/end 2 aborted:user",
        ]
    );
    assert!(said.lock().unwrap().is_empty(), "who gave up knows");
}

#[tokio::test]
async fn a_compaction_that_keeps_failing_pauses_until_the_next_turn() {
    let fail = || {
        fake(
            |_: &Situation, log: &Log| Ok(Plan::Summarise((nodes(log)[0], nodes(log)[0]))),
            |_| Err(PluginError::new("NO", "not now")),
        )
    };
    let mut say: Vec<_> = (0..6)
        .map(|n| calls(&[(["c0", "c1", "c2", "c3", "c4", "c5"][n], "t", "{}")]))
        .collect();
    say.extend([text("done"), text("again")]);
    let setup = Setup {
        say,
        tools: vec![tool(ToolSpec::new("t", "a tool", ANY).unwrap(), |_| {
            ok("r")
        })],
        ..Setup::default()
    };
    let (rig, _, said) = rig(setup, vec![fail()]);
    rig.run("first").await;
    let starts = |rig: &Rig| {
        rig.events()
            .iter()
            .filter(|event| *event == "compaction/start")
            .count()
    };
    assert_eq!(starts(&rig), 3, "of six steps");
    rig.run("second").await;
    assert_eq!(starts(&rig), 4, "one try in the next turn");
    let said = said.lock().unwrap().clone();
    assert_eq!(said.len(), 2, "once for each cause: {said:?}");
    assert!(said[0].contains("not now") && said[1].contains("pauses"));
}

struct Facts;

#[async_trait]
impl PromptSource for Facts {
    fn name(&self) -> &str {
        "facts"
    }

    async fn sections(&self, _: &Json, _: &CallScope) -> Result<Vec<PromptSection>, PluginError> {
        Ok(vec![PromptSection {
            place: Place::Context,
            name: "facts".into(),
            order: 1.0,
            text: "It is so.".into(),
            complete: false,
        }])
    }
}

/// §17 "resent after compaction".
#[tokio::test]
async fn the_runtime_context_is_told_again_when_a_compaction_shadowed_it() {
    let setup = Setup {
        prompts: vec![Arc::new(Facts)],
        ..saying(vec![text("one"), text("two"), text("three")])
    };
    let compact_once = |situation: &Situation, log: &Log| {
        let done = log.read(|session| session.last_of(&Kind::CompactionEnd).is_some());
        if done {
            Ok(Plan::Nothing)
        } else {
            all_but(0)(situation, log)
        }
    };
    let (rig, _, _) = rig(setup, vec![fake(compact_once, |_| written("S"))]);
    rig.run(&long("first")).await;
    let told = |rig: &Rig| {
        let is_snapshot = |event: &String| event.contains("dsh-system-prompt");
        last_turn(rig)
            .iter()
            .filter(|event| is_snapshot(event))
            .count()
    };
    assert_eq!(told(&rig), 1);
    rig.run("second").await;
    assert_eq!(told(&rig), 1, "in the same step that compacted it");
    rig.run("third").await;
    assert_eq!(told(&rig), 0);
}

/// §17 "Measure": what folds as it goes measures as who reads the whole log.
#[tokio::test]
async fn the_measure_of_a_run_is_that_of_its_log_at_every_step() {
    let compared = |_: &Situation, log: &Log| {
        let whole = log.read(|session| meter::measure(session.events_from(Seq(0))).unwrap());
        #[allow(clippy::cast_precision_loss)]
        let live = log.measure().unwrap() as f64;
        assert!((live - whole.total).abs() < 1.0, "{live} {whole:?}");
        Ok(Plan::Nothing)
    };
    let setup = Setup {
        say: vec![calls(&[("c1", "big", "{}")]), text("one"), text("two")],
        tools: vec![tool(spec("big"), |_| ok(&long("result")))],
        ..Setup::default()
    };
    let (rig, fakes, said) = rig(setup, vec![fake(compared, |_| written("S"))]);
    rig.run("first").await;
    rig.run("second").await;
    assert_eq!(fakes[0].seen.lock().unwrap().len(), 2);
    assert!(said.lock().unwrap().is_empty());
}

/// A log may be sound to read and have steps that upstream's measure refuses.
#[tokio::test]
async fn steps_that_do_not_fit_cost_the_anchor_and_not_the_measure() {
    let rig = Rig::saying(vec![text("one")]);
    rig.run(&long("first")).await;
    let anchored = rig.log.measure().unwrap();
    let step = || json(r#"{"turn":9,"step":9}"#);
    rig.log.record(Kind::StepEnd, step()).unwrap();
    let whole = rig
        .log
        .read(|session| meter::measure(session.events_from(Seq(0))));
    assert_eq!(whole.unwrap_err().code(), "TOKEN_METER_REFUSED");
    let measured = rig.log.measure().unwrap();
    assert!(
        measured > 600 && measured.abs_diff(anchored) < 20,
        "{measured} {anchored}"
    );
    assert_eq!(rig.log.measure().unwrap(), measured);
}
