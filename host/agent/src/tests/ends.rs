use std::sync::Arc;

use dsh_session::{Kind, Target};

use super::rig::{
    FakeListener, Rig, Say, Setup, calls, error_finish, json, max_tokens, ok, spec, text, tool,
};
use crate::Message;
use crate::dispatch::{Entry, ListenerError};

type Enter = Box<dyn Fn() -> Result<Entry, ListenerError> + Send + Sync>;

fn at(event: &'static str, enter: Enter) -> Arc<FakeListener> {
    Arc::new(FakeListener {
        name: "l",
        event,
        enter: Some(Box::new(move |_| enter())),
        ..FakeListener::default()
    })
}

/// Ways for a turn to go, and the word that its end has.
fn ways() -> Vec<(&'static str, Setup)> {
    let said = |say: Vec<Say>| Setup {
        say,
        ..Setup::default()
    };
    let listened = |event, enter: Enter| Setup {
        say: vec![calls(&[("A", "t", "{}")]), text("done")],
        tools: vec![tool(spec("t"), |_| ok("ok"))],
        listeners: vec![at(event, enter)],
        ..Setup::default()
    };
    let fails = || Err(ListenerError::new("TRAP", "it crashed"));
    let rejects = || Ok(Entry::settle(json(r#"{"kind":"reject"}"#)));
    vec![
        ("completed", said(vec![text("hello")])),
        (
            "completed",
            listened("agent/request", Box::new(|| Ok(Entry::proceed()))),
        ),
        ("completed", listened("tools/pre-execute", Box::new(fails))),
        ("max-tokens", said(vec![max_tokens("cut")])),
        (
            "error:SERVER",
            said(vec![Say::Chunks(vec![error_finish("SERVER")])]),
        ),
        // The script has nothing to say.
        ("error", said(Vec::new())),
        ("blocked", listened("agent/pre-step", Box::new(rejects))),
        ("error", listened("agent/pre-step", Box::new(fails))),
        ("error", listened("agent/request", Box::new(fails))),
    ]
}

/// What a turn that is given up leaves is in `stream`, `scheduler` and `wake`.
#[tokio::test]
async fn a_turn_has_one_end_and_it_comes_last_however_it_goes() {
    for (at, (end, setup)) in ways().into_iter().enumerate() {
        let rig = Rig::new(setup);
        rig.run("go").await;
        let count = |kind: Kind| {
            rig.log.read(|session| {
                session
                    .events_from(rig.first)
                    .filter(|event| event.as_ref().unwrap().kind == kind)
                    .count()
            })
        };
        let counts = [Kind::TurnStart, Kind::TurnEnd].map(count);
        let events = rig.events();
        assert_eq!(counts, [1, 1], "{at}: {events:#?}");
        assert_eq!(
            count(Kind::StepStart),
            count(Kind::StepEnd),
            "{at}: {events:#?}"
        );
        let last = events.last().unwrap();
        assert!(
            last.starts_with(&format!("turn/end 1 {end}")),
            "{at}: {events:#?}"
        );
    }
}

/// A wake without input is a turn of its own, and so is one that claims what was parked.
#[tokio::test]
async fn each_of_many_turns_has_its_own_end() {
    let rig = Rig::saying(vec![text("a"), text("b"), text("c")]);
    for prompt in ["one", "two"] {
        rig.agent
            .send(&Message::from_person(prompt), Target::NextTurn, false)
            .unwrap();
    }
    rig.run("three").await;
    let ends: Vec<String> = rig
        .events()
        .into_iter()
        .filter(|event| event.starts_with("turn/"))
        .collect();
    let one = |turn: u32| {
        [
            format!("turn/start {turn}"),
            format!("turn/end {turn} completed"),
        ]
    };
    assert_eq!(ends, [one(1), one(2), one(3)].concat());
}
