//! When somebody asks.

use super::*;

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
        Say::Held(
            vec![],
            Arc::clone(&held),
            vec![crate::tests::rig::finish("stop")],
        ),
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
