//! What no row can do.

use super::*;

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
    type Range = fn(&[u32]) -> (u32, u32);
    let cases: Vec<(Range, &str)> = vec![
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
    let (again, _, said) = super::rig(setup, vec![fake(all_but(1), |_| written("S"))]);
    again.run("third").await;
    assert!(said.lock().unwrap().is_empty());
    assert!(again.events().contains(&"compaction/summary".to_owned()));
}
