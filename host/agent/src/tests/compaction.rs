//! Compaction: spec/loop.md §10, and what of §17 is the host's.

use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use dsh_plugin::api::{Place, Plan, PluginError, PromptSection, Situation, Summary, Trigger, Trim};
use dsh_session::{Draft, Json, Kind, Seq, Session, meter};
use tokio::sync::Semaphore;

use super::rig::{ANY, Rig, Say, Setup, calls, error_finish, json, ok, reopened, spec, text, tool};
use crate::compaction::{CompactionError, Compactor, Compactors, ModelCall, Written};
use crate::prompt::PromptSource;
use crate::tools::{CallScope, ToolSpec};
use crate::{CancelCause, Log, Message};

type Choose = Box<dyn Fn(&Situation, &Log) -> Result<Plan, PluginError> + Send + Sync>;
type Write = Box<dyn Fn(&Log) -> Result<Written, PluginError> + Send + Sync>;

/// A row made of functions; it looks at the log as a component looks at `session`.
struct Fake {
    row: &'static str,
    log: OnceLock<Arc<Log>>,
    choose: Choose,
    write: Write,
    /// It waits here before it writes.
    gate: Option<Arc<Semaphore>>,
    seen: Mutex<Vec<Situation>>,
}

#[async_trait]
impl Compactor for Fake {
    fn row(&self) -> &str {
        self.row
    }

    async fn choose(&self, situation: &Situation, _: &CallScope) -> Result<Plan, PluginError> {
        self.seen.lock().unwrap().push(situation.clone());
        match self.log.get() {
            Some(log) => (self.choose)(situation, log),
            None => Ok(Plan::Nothing),
        }
    }

    async fn summarise(
        &self,
        _: &Situation,
        _: (u32, u32),
        scope: &CallScope,
    ) -> Result<Written, PluginError> {
        if let Some(gate) = &self.gate {
            tokio::select! {
                permit = gate.acquire() => permit.unwrap().forget(),
                () = scope.cancel.cancelled() => return Err(PluginError::cancelled()),
            }
        }
        (self.write)(self.log.get().unwrap())
    }
}

fn fake(
    choose: impl Fn(&Situation, &Log) -> Result<Plan, PluginError> + Send + Sync + 'static,
    write: impl Fn(&Log) -> Result<Written, PluginError> + Send + Sync + 'static,
) -> Fake {
    Fake {
        row: "compactor",
        log: OnceLock::new(),
        choose: Box::new(choose),
        write: Box::new(write),
        gate: None,
        seen: Mutex::default(),
    }
}

fn written(summary: &str) -> Result<Written, PluginError> {
    Ok(Written {
        summary: Summary {
            content: vec![crate::text_block(summary).as_str().to_owned()],
            origin: r#"{"provider":"p","model":"m"}"#.to_owned(),
        },
        call: None,
    })
}

/// All but the last `keep` nodes, once.
fn all_but(keep: usize) -> impl Fn(&Situation, &Log) -> Result<Plan, PluginError> {
    move |situation, log| {
        let nodes = nodes(log);
        if situation.round > 0 || nodes.len() <= keep {
            return Ok(Plan::Nothing);
        }
        Ok(Plan::Summarise((nodes[0], nodes[nodes.len() - keep - 1])))
    }
}

fn nodes(log: &Log) -> Vec<u32> {
    let seq = |seq: &Seq| u32::try_from(seq.0).unwrap();
    log.read(|session| session.surface().nodes().iter().map(seq).collect())
}

/// A rig with these rows, and what they had to say.
fn rig(setup: Setup, fakes: Vec<Fake>) -> (Rig, Vec<Arc<Fake>>, Arc<Mutex<Vec<String>>>) {
    let fakes: Vec<_> = fakes.into_iter().map(Arc::new).collect();
    let rows = fakes
        .iter()
        .map(|fake| Arc::clone(fake) as Arc<dyn Compactor>)
        .collect();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&said);
    let rig = Rig::new(Setup {
        compactors: Compactors::new(rows, move |line| {
            heard.lock().unwrap().push(line.to_owned());
        }),
        ..setup
    });
    for fake in &fakes {
        let _ = fake.log.set(Arc::clone(&rig.log));
    }
    (rig, fakes, said)
}

fn saying(say: Vec<Say>) -> Setup {
    Setup {
        say,
        ..Setup::default()
    }
}

/// A prompt that weighs more than any summary here.
fn long(word: &str) -> String {
    format!("{word} {}", "lorem ipsum ".repeat(200))
}

/// Since the last turn began.
fn last_turn(rig: &Rig) -> Vec<String> {
    let events = rig.events();
    let start = events
        .iter()
        .rposition(|event| event.starts_with("turn/start"));
    events[start.unwrap()..].to_vec()
}

fn newest(rig: &Rig, kind: &Kind) -> Json {
    rig.log
        .read(|session| session.last_of(kind).unwrap().data.clone())
}

fn member(data: &Json, path: &[&str]) -> String {
    let value = data
        .value()
        .path(path)
        .unwrap_or_else(|| panic!("{path:?} of {data}"));
    value
        .text()
        .map_or_else(|| value.as_str().to_owned(), std::borrow::Cow::into_owned)
}

fn messages(session: &mut Session) -> String {
    session.messages().unwrap().to_json().as_str().to_owned()
}

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

/// Shortens the first tool result, as often as it is longer than that.
fn trims(to: &'static str) -> impl Fn(&Situation, &Log) -> Result<Plan, PluginError> {
    move |situation, log| {
        let told = situation.more.as_deref().unwrap_or_default();
        if situation.trigger == Trigger::Pressure && !told.contains("summarise") {
            return Ok(Plan::Nothing);
        }
        let node = log.read(|session| {
            let nodes = session.surface().nodes().iter().copied();
            let mut events = nodes.map(|node| session.event(node).unwrap().unwrap());
            events
                .find(|event| event.kind == Kind::ToolResult && event.line().len() > 1000)
                .map(|event| u32::try_from(event.seq.0).unwrap())
        });
        Ok(node.map_or(Plan::Nothing, |node| {
            Plan::Trim(vec![Trim {
                node,
                content: vec![crate::text_block(to).as_str().to_owned()],
            }])
        }))
    }
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
async fn h65_a_trim_that_is_none_is_refused_and_holds_up_no_summary() {
    let block = |text: &str| crate::text_block(text).as_str().to_owned();
    let cases: Vec<(u32, Vec<String>, &str)> = vec![
        (4, vec![block("x")], "no tool result"),
        (999, vec![block("x")], "no tool result"),
        (0, vec![block(&long(&long("x")))], "not shorter"),
        (0, vec!["{".into()], "no JSON"),
        (
            0,
            vec![r#"{"type":"image","attachment":{}}"#.into()],
            "neither text nor",
        ),
    ];
    for (node, content, why) in cases {
        let setup = Setup {
            say: vec![calls(&[("c1", "big", "{}")]), text("one"), text("two")],
            tools: vec![tool(spec("big"), |_| ok(&long("result")))],
            ..Setup::default()
        };
        let plan = move |situation: &Situation, log: &Log| {
            if situation.more.is_none() {
                return Ok(Plan::Nothing);
            }
            let result = log.read(|session| session.last_of(&Kind::ToolResult).unwrap().seq);
            let node = if node == 0 {
                u32::try_from(result.0).unwrap()
            } else {
                node
            };
            Ok(Plan::Trim(vec![Trim {
                node,
                content: content.clone(),
            }]))
        };
        let again = Fake {
            row: "trimmer",
            ..fake(plan, |_| written(""))
        };
        // user, call, result, answer
        let whole = |situation: &Situation, log: &Log| match nodes(log).len() {
            4 => all_but(1)(situation, log),
            _ => Ok(Plan::Nothing),
        };
        let (rig, _, said) = rig(setup, vec![fake(whole, |_| written("S")), again]);
        rig.run("first").await;
        rig.run("second").await;
        let said = said.lock().unwrap().clone();
        assert!(
            said.len() == 1 && said[0].contains("trimmer") && said[0].contains(why),
            "{why}: {said:?}"
        );
        let events = rig.events();
        assert!(!events.contains(&"compaction/prune".to_owned()));
        assert!(events.contains(&"compaction/summary".to_owned()));
    }
}

/// §17 "tool pairing cut".
#[tokio::test]
async fn h65_a_range_that_parts_a_call_from_its_result_is_refused() {
    let cases: Vec<(fn(&[u32]) -> (u32, u32), &str)> = vec![
        (|nodes| (nodes[0], nodes[1]), "behind node"),
        (|nodes| (nodes[2], nodes[3]), "before node"),
        (|nodes| (nodes[1], nodes[1]), "behind node"),
        (|nodes| (nodes[3], nodes[0]), "wrong way round"),
        (|nodes| (nodes[0], nodes[3] + 1), "not on the surface"),
    ];
    for (choose, why) in cases {
        let setup = Setup {
            say: vec![calls(&[("c1", "big", "{}")]), text("one"), text("two")],
            tools: vec![tool(spec("big"), |_| ok(&long("result")))],
            ..Setup::default()
        };
        let plan = move |_: &Situation, log: &Log| {
            let nodes = nodes(log);
            // user, call, result, answer
            Ok(if nodes.len() == 4 {
                Plan::Summarise(choose(&nodes))
            } else {
                Plan::Nothing
            })
        };
        let (rig, _, said) = rig(setup, vec![fake(plan, |_| written("S"))]);
        rig.run(&long("first")).await;
        rig.run("second").await;
        let said = said.lock().unwrap().clone();
        assert!(said.len() == 1 && said[0].contains(why), "{why}: {said:?}");
        let events = last_turn(&rig);
        assert!(
            !events.iter().any(|event| event.starts_with("compaction")),
            "{events:?}"
        );
        assert_eq!(events.last().unwrap(), "turn/end 2 completed");
    }
}

/// §17 "not-smaller failure", and every other text that is no summary.
#[tokio::test]
async fn a_summary_that_is_not_smaller_fails_and_the_end_says_so() {
    type Text = fn(&Log) -> Result<Written, PluginError>;
    let cases: Vec<(Text, &str)> = vec![
        (|_| written(&long(&long("x"))), "not smaller"),
        (|_| written("  \n"), "is empty"),
        (
            |_| {
                let mut text = written("S")?;
                text.summary
                    .content
                    .push(r#"{"type":"image","attachment":{}}"#.into());
                Ok(text)
            },
            "has an image",
        ),
        (
            |_| {
                let mut text = written("S")?;
                text.summary.origin = "{}".into();
                Ok(text)
            },
            "by which provider",
        ),
        (
            |_| Err(PluginError::new("MAX_TOKENS", "it ran into its cap")),
            "(MAX_TOKENS)",
        ),
        // Somebody else put something on the surface meanwhile.
        (
            |log| {
                let message = Message::from_person("meanwhile");
                log.append(Draft::new(Kind::UserMessage, message.json().clone()).append())
                    .unwrap();
                written("S")
            },
            "changed while",
        ),
    ];
    for (write, why) in cases {
        let (rig, _, said) = rig(
            saying(vec![text("one"), text("two")]),
            vec![fake(all_but(1), write)],
        );
        rig.run(&long("first")).await;
        rig.run("second").await;
        let said = said.lock().unwrap().clone();
        assert!(said.len() == 1 && said[0].contains(why), "{why}: {said:?}");
        let events: Vec<_> = last_turn(&rig)
            .into_iter()
            .filter(|event| event.starts_with("compaction"))
            .collect();
        assert_eq!(events, ["compaction/start", "compaction/end"]);
        let end = newest(&rig, &Kind::CompactionEnd);
        assert!(member(&end, &["error"]).contains(why), "{end}");
        assert_eq!(last_turn(&rig).last().unwrap(), "turn/end 2 completed");
    }
}

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
    let (rig, _, _) = self::rig(setup, vec![fake(once, |_| written("S"))]);
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

#[tokio::test]
async fn by_hand_all_but_the_newest_is_compacted_between_turns_and_flushed() {
    let seen = |situation: &Situation, log: &Log| {
        if situation.trigger != Trigger::Manual {
            return Ok(Plan::Nothing);
        }
        assert_eq!(
            situation.more.as_deref(),
            Some(r#"{"instructions":"Keep names."}"#)
        );
        all_but(1)(situation, log)
    };
    let (rig, _, _) = rig(
        saying(vec![text("one")]),
        vec![fake(seen, |_| written("S"))],
    );
    let words = || Some("Keep names.".to_owned());
    assert_eq!(rig.agent.compact(words()).await.unwrap(), None);
    assert!(
        rig.events().is_empty(),
        "nothing is worth it, so nothing is logged"
    );
    rig.run(&long("first")).await;
    let flushes = rig.disk.flushes.load(std::sync::atomic::Ordering::Relaxed);
    let done = rig
        .agent
        .compact_for(Some("k1"), words())
        .await
        .unwrap()
        .unwrap();
    assert!(done.nodes == 1 && done.after < done.before, "{done:?}");
    assert_eq!(
        rig.disk.flushes.load(std::sync::atomic::Ordering::Relaxed),
        flushes + 1
    );
    let events = rig.events();
    let tail = [
        "turn/end 1 completed",
        "compaction/start",
        "compaction/summary",
        "user/message (plugin compact)",
        "compaction/end",
    ];
    assert_eq!(events[events.len() - 5..], tail);
    let end = newest(&rig, &Kind::CompactionEnd);
    assert_eq!(
        end.as_str(),
        format!(
            r#"{{"compactionId":"{}","sourceCommandId":"k1","turn":null}}"#,
            done.id
        )
    );
}

/// §17 "manual busy", and the other kinds of failure.
#[tokio::test]
async fn by_hand_each_failure_has_its_kind() {
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Fake {
        gate: Some(Arc::clone(&gate)),
        ..fake(
            |situation: &Situation, log: &Log| {
                if situation.trigger == Trigger::Manual {
                    all_but(1)(situation, log)
                } else {
                    Ok(Plan::Nothing)
                }
            },
            |_| written("S"),
        )
    };
    let held = Arc::new(Semaphore::new(0));
    let say = vec![
        text("one"),
        Say::Held(vec![], Arc::clone(&held), vec![super::rig::finish("stop")]),
    ];
    let (rig, _, _) = rig(saying(say), vec![waiting]);
    rig.run(&long("first")).await;

    rig.agent.followup(&Message::from_person("second")).unwrap();
    let error = rig.agent.compact(None).await.unwrap_err();
    assert_eq!(error.kind(), "busy");
    held.add_permits(1);
    rig.agent.when_idle().await;

    let agent = rig.agent.clone();
    let cancelled = tokio::spawn(async move { agent.compact(None).await });
    rig.until("compaction/start").await;
    assert_eq!(rig.agent.compact(None).await.unwrap_err().kind(), "busy");
    rig.agent.cancel(CancelCause::User, false).unwrap();
    assert_eq!(cancelled.await.unwrap().unwrap_err().kind(), "cancelled");
    assert_eq!(rig.events().last().unwrap(), "compaction/end");

    gate.add_permits(9);
    rig.disk
        .broken_from
        .store(1, std::sync::atomic::Ordering::Relaxed);
    let error = rig.agent.compact(None).await.unwrap_err();
    assert_eq!(error.kind(), "persistence");
    assert!(error.to_string().contains("the disk is full"), "{error}");

    let kind = |error: CompactionError| error.kind();
    let row = || "r".to_owned();
    assert_eq!(
        kind(CompactionError::NotSmaller {
            row: row(),
            before: 1,
            after: 2
        }),
        "summary"
    );
    assert_eq!(kind(CompactionError::Changed), "changed");
    assert_eq!(
        kind(CompactionError::Commit(crate::AgentError::Disposed)),
        "commit"
    );
}

/// What is appended beside the chosen nodes does not matter between turns.
#[tokio::test]
async fn by_hand_only_the_chosen_nodes_must_stay() {
    let by_hand = |situation: &Situation, log: &Log| {
        if situation.trigger == Trigger::Manual {
            all_but(1)(situation, log)
        } else {
            Ok(Plan::Nothing)
        }
    };
    let write = |log: &Log| {
        let message = Message::from_person("meanwhile");
        log.append(Draft::new(Kind::UserMessage, message.json().clone()).append())
            .unwrap();
        written("S")
    };
    let (rig, _, _) = rig(saying(vec![text("one")]), vec![fake(by_hand, write)]);
    rig.run(&long("first")).await;
    assert!(rig.agent.compact(None).await.unwrap().is_some());
    assert_eq!(nodes(&rig.log).len(), 3);
}

/// §17 "lock after crash".
#[tokio::test]
async fn a_start_without_an_end_locks_until_the_session_is_opened_again() {
    let (rig, _, said) = rig(
        saying(vec![text("one"), text("two")]),
        vec![fake(all_but(1), |_| written("S"))],
    );
    rig.run(&long("first")).await;
    let start = json(r#"{"compactionId":"x","turn":null}"#);
    rig.log.record(Kind::CompactionStart, start).unwrap();
    assert_eq!(rig.agent.compact(None).await.unwrap_err().kind(), "busy");
    rig.run("second").await;
    assert!(said.lock().unwrap()[0].contains("did not end"), "{said:?}");
    assert!(!rig.events().contains(&"compaction/summary".to_owned()));

    let session = Some(reopened(&rig));
    let setup = Setup {
        session,
        ..saying(vec![text("three")])
    };
    let (again, _, said) = self::rig(setup, vec![fake(all_but(1), |_| written("S"))]);
    again.run("third").await;
    assert!(said.lock().unwrap().is_empty());
    assert!(again.events().contains(&"compaction/summary".to_owned()));
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
