//! How a session comes by its name (spec/session.md §10.4).

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_plugin::CallContext;
use dsh_plugin::api::PluginError;
use dsh_plugin::port::Question;
use dsh_session::{Header, Json, Kind, Session, Value, title};
use tokio::sync::{Notify, Semaphore};

use super::rig::{Rig, Say, Setup, finish, json, reopened, text};
use crate::Proposer;

/// Proposes what a model says, or what it is told.
enum Fake {
    Asks,
    Says(&'static str),
    Nothing,
    Fails,
    /// Says that it was asked, and never answers.
    Never(Arc<Notify>),
    Keeps(Arc<Mutex<Vec<String>>>),
}

#[async_trait]
impl Proposer for Fake {
    async fn propose(
        &self,
        context: &CallContext,
        prompts: Vec<String>,
        current: Option<String>,
    ) -> Result<Option<String>, PluginError> {
        match self {
            Self::Says(title) => Ok(Some((*title).to_owned())),
            Self::Nothing => Ok(None),
            Self::Fails => Err(PluginError::new("AS_TOLD", "no")),
            Self::Keeps(kept) => {
                kept.lock().unwrap().extend(prompts);
                kept.lock().unwrap().extend(current);
                Ok(None)
            }
            Self::Never(asked) => {
                asked.notify_one();
                std::future::pending().await
            }
            Self::Asks => {
                let question = Question {
                    purpose: "anything".to_owned(),
                    config: "{}".to_owned(),
                    system: Some("name it".to_owned()),
                    messages: vec![
                        r#"{"content":[{"type":"text","text":"what is it?"}]}"#.to_owned(),
                    ],
                    ..Question::default()
                };
                let llm = context.ports.llm.clone().unwrap();
                let answer = llm.ask("row", question).await?;
                let said = json(&answer.content[0]);
                Ok(said.get("text").and_then(Value::text).map(Into::into))
            }
        }
    }
}

fn named(titlers: Vec<Fake>, say: Vec<Say>, beside: Vec<Say>) -> Rig {
    let proposer = |fake| Arc::new(fake) as Arc<dyn Proposer>;
    Rig::new(Setup {
        say,
        beside,
        titlers: Some(titlers.into_iter().map(proposer).collect()),
        ..Setup::default()
    })
}

/// `title by source [seqs]`, of every title.
fn titles(rig: &Rig) -> Vec<String> {
    let text = |value: Option<Value<'_>>| value.unwrap().text().unwrap().into_owned();
    rig.log.read(|session| {
        let events = session.log().to_vec().unwrap();
        let titles = events
            .iter()
            .filter(|event| event.kind == Kind::SessionTitle);
        let line = |data: &Json| {
            let source = text(data.value().path(&["source", "kind"]));
            format!(
                "{} by {source} {}",
                text(data.get("title")),
                data.get("messageSeqs").unwrap().as_str()
            )
        };
        titles.map(|event| line(&event.data)).collect()
    })
}

#[tokio::test]
async fn the_fallback_stands_between_the_messages_and_the_request() {
    let rig = named(vec![], vec![text("a"), text("b")], vec![]);
    rig.run("  Please write\nthe whole thing anew, thank you")
        .await;
    rig.assert(&[
        "inbox next-turn +1",
        "turn/start 1",
        "inbox next-turn -1",
        "step/start 1.1",
        "user/message   Please write\nthe whole thing anew, thank you",
        "session/title",
        "request/header initial",
        "request/context p/m",
        "chunks",
        "assistant/message text",
        "step/end 1.1",
        "turn/end 1 completed",
    ]);
    rig.run("another").await;
    assert_eq!(
        titles(&rig),
        ["Please write the whole thing by fallback [4]"]
    );
}

#[tokio::test]
async fn what_a_component_asks_is_logged_before_the_answer_and_its_title_wins() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Say::Held(
        vec![],
        Arc::clone(&gate),
        vec![
            r#"{"type":"text-delta","index":0,"text":"\u001b[1mA  good\u200b name"}"#.to_owned(),
            finish("stop"),
        ],
    );
    let rig = named(vec![Fake::Asks], vec![text("a")], vec![held]);
    rig.run("prompt").await;
    gate.add_permits(1);
    let mut events = rig.log.follow();
    while titles(&rig).len() < 2 {
        events.recv().await.unwrap();
    }
    rig.assert(&[
        "inbox next-turn +1",
        "turn/start 1",
        "inbox next-turn -1",
        "step/start 1.1",
        "user/message prompt",
        "session/title",
        "request/header initial",
        "request/context p/m",
        "session/title-llm-request",
        "chunks",
        "assistant/message text",
        "step/end 1.1",
        "turn/end 1 completed",
        "session/title",
    ]);
    let asked = rig.log.read(|session| {
        let asked = session.last_of(&Kind::SessionTitleLlmRequest);
        asked.unwrap().data.clone()
    });
    let part = |path: &[&str]| asked.value().path(path).unwrap().to_json().to_string();
    assert_eq!(part(&["titleProvider"]), r#""titler-0""#);
    assert_eq!(part(&["messageSeqs"]), "[4]");
    assert_eq!(part(&["route"]), r#"{"provider":"p","model":"m"}"#);
    assert_eq!(part(&["system"]), r#""name it""#);
    assert_eq!(part(&["maxTokens"]), "64");
    assert!(part(&["messages"]).contains(r#"{"kind":"plugin","plugin":"dsh-titles-0"}"#));
    let request = rig.beside.requests.lock().unwrap()[0].clone();
    assert_eq!(request.purpose.as_deref(), Some("session-title"));
    assert_eq!((request.tools.len(), request.messages.len()), (0, 1));
    assert_eq!(titles(&rig)[1], "A good name by provider [4]");
    let source = rig.log.read(|session| {
        let named = session.last_of(&Kind::SessionTitle).unwrap();
        named.data.get("source").unwrap().to_json()
    });
    assert_eq!(
        source.as_str(),
        r#"{"kind":"provider","provider":"titler-0","model":{"provider":"p","model":"m"}}"#
    );
}

#[tokio::test]
async fn a_component_is_told_the_prompt_with_its_seq_and_the_title_so_far() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let rig = named(
        vec![Fake::Keeps(Arc::clone(&kept))],
        vec![text("a")],
        vec![],
    );
    rig.run("prompt").await;
    rig.agent.dispose().await.unwrap();
    let kept = kept.lock().unwrap();
    assert!(kept[0].starts_with(r#"{"seq":4,"content":[{"type":"text","text":"prompt"}]"#));
    assert_eq!(kept[1], "prompt");
}

#[tokio::test]
async fn who_has_none_is_passed_over_and_what_cannot_be_a_title_too() {
    let rig = named(
        vec![
            Fake::Fails,
            Fake::Nothing,
            Fake::Says("\u{1b}[2J \u{200b}"),
            Fake::Asks,
            Fake::Says("The last one"),
        ],
        vec![text("a")],
        // Nothing to ask: the script is at its end.
        vec![],
    );
    rig.run("prompt").await;
    let mut events = rig.log.follow();
    while titles(&rig).len() < 2 {
        events.recv().await.unwrap();
    }
    assert_eq!(titles(&rig)[1], "The last one by provider [4]");
}

#[tokio::test]
async fn a_proposed_title_has_80_bytes_at_most() {
    let long = "überlang ".repeat(20).leak();
    let rig = named(vec![Fake::Says(long)], vec![text("a")], vec![]);
    rig.run("prompt").await;
    let mut events = rig.log.follow();
    while titles(&rig).len() < 2 {
        events.recv().await.unwrap();
    }
    let title = rig.log.read(|session| {
        let named = session.last_of(&Kind::SessionTitle).unwrap();
        named
            .data
            .get("title")
            .unwrap()
            .text()
            .unwrap()
            .into_owned()
    });
    assert_eq!(title, title::normalise(long, 80));
    assert!(title.len() > 70, "{title}");
}

#[tokio::test]
async fn only_the_first_prompt_is_asked_about() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let fake = Fake::Keeps(Arc::clone(&kept));
    let rig = named(vec![fake], vec![text("a"), text("b")], vec![]);
    rig.run("first").await;
    rig.run("second").await;
    rig.agent.dispose().await.unwrap();
    assert_eq!(kept.lock().unwrap().len(), 2, "one prompt, one title");
}

#[tokio::test]
async fn a_persons_title_ends_the_asking_and_stays() {
    let asked = Arc::new(Notify::new());
    let never = Fake::Never(Arc::clone(&asked));
    let rig = named(vec![never], vec![text("a"), text("b")], vec![]);
    rig.run("prompt").await;
    asked.notified().await;
    rig.agent.rename(" Mine\u{7}  own ").unwrap();
    rig.run("next").await;
    assert_eq!(
        titles(&rig),
        ["prompt by fallback [4]", "Mine own by user []"]
    );
    assert!(rig.agent.rename("\u{200b}").is_err());
    let asking = rig.agent.dispose();
    asking.await.unwrap();
}

#[tokio::test]
async fn a_person_who_names_it_first_is_not_overruled() {
    let rig = named(vec![Fake::Says("theirs")], vec![text("a")], vec![]);
    rig.agent.rename("Mine").unwrap();
    rig.run("prompt").await;
    rig.agent.dispose().await.unwrap();
    assert_eq!(titles(&rig), ["Mine by user []"]);
}

#[tokio::test]
async fn a_fork_is_named_by_the_host_alone() {
    let mut header = Header::new("s1", 0);
    header.parent_session = Some("parent".into());
    let kept = Arc::new(Mutex::new(Vec::new()));
    let rig = Rig::new(Setup {
        say: vec![text("a")],
        session: Some(Session::new(header).unwrap()),
        titlers: Some(vec![Arc::new(Fake::Keeps(Arc::clone(&kept)))]),
        ..Setup::default()
    });
    rig.run("prompt").await;
    rig.agent.dispose().await.unwrap();
    assert_eq!(titles(&rig), ["prompt by fallback [4]"]);
    assert!(kept.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_session_that_is_taken_up_again_keeps_its_name_or_gets_one() {
    let first = named(vec![], vec![text("a")], vec![]);
    first.run("first").await;
    let nameless = Rig::saying(vec![text("a")]);
    nameless.run("first").await;
    assert!(titles(&nameless).is_empty(), "the row is switched off");
    for (session, expected) in [
        (reopened(&first), "first by fallback [4]"),
        (reopened(&nameless), "first by fallback [4]"),
    ] {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let rig = Rig::new(Setup {
            say: vec![text("b")],
            session: Some(session),
            titlers: Some(vec![Arc::new(Fake::Keeps(Arc::clone(&kept)))]),
            ..Setup::default()
        });
        rig.run("second").await;
        rig.agent.dispose().await.unwrap();
        assert_eq!(titles(&rig), [expected]);
        assert!(kept.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_agent_that_is_disposed_of_does_not_wait_for_a_title() {
    let silence = Say::Held(vec![], Arc::new(Semaphore::new(0)), vec![]);
    let rig = named(vec![Fake::Asks], vec![text("a")], vec![silence]);
    rig.run("prompt").await;
    rig.agent.dispose().await.unwrap();
    assert_eq!(titles(&rig), ["prompt by fallback [4]"]);
}

#[tokio::test]
async fn a_component_that_never_asks_holds_the_answer_up_for_a_moment_only() {
    let asked = Arc::new(Notify::new());
    let rig = named(vec![Fake::Never(asked)], vec![text("a")], vec![]);
    rig.run("prompt").await;
    assert!(rig.events().contains(&"turn/end 1 completed".to_owned()));
    rig.agent.dispose().await.unwrap();
}
