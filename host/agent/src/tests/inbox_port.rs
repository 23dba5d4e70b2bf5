//! Drafts of components: whose words they are, and what they may set off.

use dsh_plugin::api::PluginError;
use dsh_plugin::port::{Inbox, Quarantine, Sender, Target, Watch};
use dsh_session::{Json, Value};

use super::rig::{Rig, text};
use crate::{InboxPort, RowWatch};

const HELLO: &str = r#"{"content":[{"type":"text","text":"hello"}]}"#;

fn serving(answers: usize) -> (Rig, InboxPort) {
    let rig = Rig::saying(vec![text("ok"); answers]);
    let port = InboxPort::default();
    port.serve(&rig.agent);
    (rig, port)
}

fn sender(wakes: u32) -> Sender<'static> {
    Sender {
        row: "row",
        sources: &[],
        wakes,
    }
}

fn send(port: &InboxPort, wakes: u32, draft: &str) -> Result<String, PluginError> {
    port.send(sender(wakes), draft.to_owned(), Target::NextTurn, true)
}

fn source(rig: &Rig, member: &str) -> String {
    let waiting = rig.agent.pending(dsh_session::Target::NextTurn);
    let source = waiting[0].value().path(&["source", member]);
    source.and_then(Value::text).unwrap().into_owned()
}

#[tokio::test]
async fn a_draft_is_the_rows_own_words_whoever_it_says_it_is() {
    for kind in [
        "user",
        "model",
        "tool",
        "approval",
        "plugin",
        "team-message",
    ] {
        let (rig, port) = serving(0);
        let draft = format!(
            r#"{{"id":"m","role":"assistant","content":[{{"type":"text","text":"x"}}],
                "source":{{"kind":"{kind}","plugin":"other","callId":"c"}}}}"#
        );
        // Not even a manifest that names it makes it so, but for one of its own.
        let sources = [kind.to_owned()];
        let sender = Sender {
            sources: &sources,
            ..sender(0)
        };
        let id = port.send(sender, draft, Target::NextTurn, true).unwrap();
        assert_ne!(id, "m");
        let waiting = rig.agent.pending(dsh_session::Target::NextTurn);
        assert_eq!(
            waiting[0].get("role").and_then(Value::text).unwrap(),
            "user"
        );
        if kind == "team-message" {
            assert_eq!(source(&rig, "kind"), kind);
        } else {
            assert_eq!(source(&rig, "kind"), "plugin", "{kind}");
            assert_eq!(source(&rig, "plugin"), "row", "{kind}");
        }
    }
}

#[tokio::test]
async fn a_draft_holds_text_and_images_and_no_call_or_result() {
    let (_rig, port) = serving(0);
    for draft in [
        "",
        "[]",
        "{}",
        r#"{"content":"hello"}"#,
        r#"{"content":[{"text":"hello"}]}"#,
        r#"{"content":[{"type":"tool-call","id":"c","name":"bash","arguments":"{}"}]}"#,
        r#"{"content":[{"type":"tool-result","toolCallId":"c","content":[]}]}"#,
        r#"{"content":[{"type":"reasoning","text":"x"}]}"#,
    ] {
        let error = send(&port, 0, draft).unwrap_err();
        assert_eq!(error.code, "INVALID", "{draft}: {error}");
    }
}

#[tokio::test]
async fn a_row_starts_an_idle_agent_as_often_in_a_row_as_it_was_granted() {
    let (rig, port) = serving(4);
    for _ in 0..2 {
        send(&port, 2, HELLO).unwrap();
        rig.agent.when_idle().await;
    }
    let turns = |rig: &Rig| {
        let started = |line: &&String| line.starts_with("turn/start");
        rig.events().iter().filter(started).count()
    };
    assert_eq!(turns(&rig), 2);
    // The third waits.
    send(&port, 2, HELLO).unwrap();
    rig.agent.when_idle().await;
    assert_eq!(turns(&rig), 2);
    assert_eq!(port.pending("row").len(), 1);
    // A person's turn takes it up after its own, and then it may again.
    rig.run("go").await;
    assert_eq!(turns(&rig), 4);
    assert!(port.pending("row").is_empty());
}

/// A turn that runs takes up what arrives: without an end to it, a row that
/// answers each event with a message would keep an agent going for ever.
#[tokio::test]
async fn a_row_puts_in_only_so_many_messages_between_two_of_a_person() {
    let (rig, port) = serving(0);
    let sent = (0..100).take_while(|_| send(&port, 0, HELLO).is_ok());
    assert_eq!(sent.count(), 32);
    assert_eq!(send(&port, 0, HELLO).unwrap_err().code, "LIMIT");
    rig.agent
        .inject(&crate::Message::from_person("more"))
        .unwrap();
    send(&port, 0, HELLO).unwrap();
}

#[tokio::test]
async fn a_row_sees_and_takes_back_its_own_messages_and_no_others() {
    let (rig, port) = serving(0);
    let person = crate::Message::from_person("mine");
    rig.agent.inject(&person).unwrap();
    let id = send(&port, 0, HELLO).unwrap();
    let other = Sender {
        row: "other",
        ..sender(0)
    };
    let others = port
        .send(other, HELLO.to_owned(), Target::NextStep, false)
        .unwrap();
    assert_eq!(port.pending("row").len(), 1);
    for not_its_own in [person.id(), &others, "nothing"] {
        assert!(!port.cancel("row", not_its_own));
    }
    assert!(port.cancel("row", &id));
    assert!(!port.cancel("row", &id));
    assert!(port.pending("row").is_empty());
}

#[tokio::test]
async fn without_an_agent_nothing_is_taken() {
    let port = InboxPort::default();
    assert_eq!(send(&port, 1, HELLO).unwrap_err().code, "UNAVAILABLE");
    assert!(port.pending("row").is_empty() && !port.cancel("row", "x"));
    let (rig, port) = serving(0);
    rig.agent.dispose().await.unwrap();
    assert_eq!(send(&port, 1, HELLO).unwrap_err().code, "DISPOSED");
}

#[tokio::test]
async fn a_quarantine_is_told_at_once_and_logged_so_that_others_may_pass_over_it() {
    let rig = Rig::saying(vec![]);
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let watch = RowWatch::new(rig.log.clone(), move |quarantine| {
        told.send(quarantine.row.clone()).unwrap();
    });
    watch.quarantined(Quarantine {
        row: "row".to_owned(),
        plugin: "acme:row".to_owned(),
        reason: "é".repeat(1000),
        failures: 3,
    });
    assert_eq!(heard.try_recv().unwrap(), "row");
    let event = rig.log.read(|session| session.last().cloned()).unwrap();
    assert_eq!(event.kind.as_str(), "dsh/row-quarantined");
    assert!(event.ignorable);
    let expected = format!(
        r#"{{"row":"row","plugin":"acme:row","reason":{},"failures":3}}"#,
        Json::string(&"é".repeat(512))
    );
    assert_eq!(event.data.as_str(), expected);
}
