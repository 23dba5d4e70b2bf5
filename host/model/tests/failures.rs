//! How a call fails below its adapter: the code that retrying goes by, and a message that says
//! what to look at.

mod lines;

use dsh_session::{Json, Value};
use mock_provider::{Answer, Authority, End, Mock, Step};

use lines::{Script, TEXT, drain, open, plain, send_to_url};

fn failure(chunks: &[Json]) -> (String, String) {
    let last = chunks.last().unwrap();
    let text = |key: &str| {
        let member = last.value().path(&["reason", "failure", key]);
        member
            .and_then(Value::text)
            .unwrap_or_default()
            .into_owned()
    };
    (text("code"), text("message"))
}

async fn fails(script: Script, origin: &str) -> (String, String) {
    let (mut stream, _) = open(script, origin, "KEY", plain()).await;
    failure(&drain(&mut stream).await)
}

#[tokio::test]
async fn who_cannot_be_reached_is_transport_and_says_what_to_look_at() {
    let gone = {
        let mock = Mock::start(vec![]);
        mock.base_url()
    };
    let stranger = Mock::secure(&Authority::new(), "127.0.0.1", |_| Answer::new(200, ""));
    for (origin, says) in [
        (gone.clone(), format!("could not connect to {gone}: nothing listens there; is the server running")),
        (
            "https://no-such-name.invalid".to_owned(),
            "could not connect to https://no-such-name.invalid: the name no-such-name.invalid leads nowhere".to_owned(),
        ),
        (stranger.base_url(), "point SSL_CERT_FILE at".to_owned()),
    ] {
        let (code, message) = fails(send_to_url(&origin), &origin).await;
        assert_eq!(code, "TRANSPORT", "{message}");
        assert!(message.contains(&says), "{message}");
        assert!(message.lines().count() == 1 && message.len() < 400, "{message}");
    }
}

#[tokio::test]
async fn who_breaks_off_is_transport_and_who_is_silent_is_a_timeout() {
    let silent = Answer::silence();
    for (answer, code, says) in [
        (
            silent.clone().ending(End::Cut),
            "TRANSPORT",
            "the other side closed it before it answered",
        ),
        (
            silent.clone().ending(End::Reset),
            "TRANSPORT",
            "the other side reset it",
        ),
        (
            Answer::sse(TEXT).ending(End::Cut),
            "TRANSPORT",
            "the connection to http://127.0.0.1",
        ),
        (
            Answer::raw("what?\r\n\r\n"),
            "TRANSPORT",
            "the connection to http://127.0.0.1",
        ),
        (silent, "TIMEOUT", "the provider p sent nothing for 300 ms"),
        (
            Answer::sse(TEXT).ending(End::Stall),
            "TIMEOUT",
            "the provider p sent nothing for 300 ms",
        ),
    ] {
        let mock = Mock::start(vec![answer]);
        let origin = mock.base_url();
        let script = Script {
            idle_timeout_ms: if code == "TIMEOUT" { 300 } else { 60_000 },
            ..send_to_url(&origin)
        };
        let (got, message) = fails(script, &origin).await;
        assert_eq!(got, code, "{message}");
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn an_answer_without_end_meets_the_limit() {
    let text = "x".repeat(1 << 20);
    let line = format!(r#"{{"type":"text-delta","index":0,"text":"{text}"}}"#) + "\n";
    let mut answer = Answer::sse("");
    for _ in 0..70 {
        answer = answer.piece(line.clone());
    }
    let mock = Mock::start(vec![answer.then(Step::Gate)]);
    let origin = mock.base_url();
    let (code, message) = fails(send_to_url(&origin), &origin).await;
    assert_eq!(code, "LIMIT", "{message}");
    assert!(message.contains("larger than 67108864 bytes"), "{message}");
}
