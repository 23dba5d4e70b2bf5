//! What is retried on every route, and what on none (spec/llm.md §4, §5): each failure of a provider with each adapter,
//! through transport, agent and the component `llm-retry`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use dsh_agent::{Message, RunOutcome, StartSource};
use dsh_session::{Header, Kind, Session};
use dsh_soak::rig::{Rig, Routes};
use dsh_store::{Store, StoreConfig};
use mock_provider::{Answer, End, Mock, Protocol, Speech};
use serde_json::json;

type Make = Box<dyn Fn(Protocol) -> Answer>;

struct Failure {
    name: &'static str,
    make: Make,
    /// The code that the turn ends with, where it is not retried.
    code: Option<&'static str>,
}

fn retried(name: &'static str, make: impl Fn(Protocol) -> Answer + 'static) -> Failure {
    Failure {
        name,
        make: Box::new(make),
        code: None,
    }
}

fn final_as(
    code: &'static str,
    name: &'static str,
    make: impl Fn(Protocol) -> Answer + 'static,
) -> Failure {
    Failure {
        name,
        make: Box::new(make),
        code: Some(code),
    }
}

fn refused(status: u16, kind: &str, message: &str) -> Answer {
    let error = json!({"type": kind, "code": kind, "message": message});
    Answer::new(status, json!({"type": "error", "error": error}).to_string())
        .header("content-type", "application/json")
}

/// What every stream begins with, before anything is said.
fn begun(protocol: Protocol) -> Answer {
    Answer::sse(Speech::new("x").events(protocol)[0].clone())
}

/// The protocol's way to say in a stream that it failed.
fn told(protocol: Protocol, kind: &str, message: &str) -> Answer {
    let error = json!({"type": kind, "code": kind, "message": message});
    let event = match protocol {
        Protocol::DeepSeek | Protocol::Completions => {
            format!("data: {}\n\n", json!({"error": error}))
        }
        Protocol::Responses => {
            let response = json!({"id": "resp_1", "status": "failed", "error": error});
            let failed = json!({"type": "response.failed", "response": response});
            format!("event: response.failed\ndata: {failed}\n\n")
        }
        Protocol::Messages => {
            let event = json!({"type": "error", "error": error});
            format!("event: error\ndata: {event}\n\n")
        }
    };
    begun(protocol).piece(event)
}

fn failures() -> Vec<Failure> {
    vec![
        retried("429", |_| refused(429, "rate_limit_exceeded", "Slow down")),
        retried("429 with a wait", |_| {
            refused(429, "rate_limit_exceeded", "Slow down").header("retry-after", "1")
        }),
        retried("500", |_| {
            refused(500, "server_error", "The server had an error")
        }),
        retried("502 with a page", |_| {
            Answer::new(502, "<html>Bad gateway</html>")
        }),
        retried("503", |_| refused(503, "server_error", "No room")),
        retried("529", |_| refused(529, "overloaded_error", "Overloaded")),
        retried("an overload told in the stream", |protocol| {
            told(protocol, "overloaded_error", "Overloaded")
        }),
        retried("a rate limit told in the stream", |protocol| {
            told(protocol, "rate_limit_error", "Rate limit reached")
        }),
        retried("a reset before the first byte", |_| {
            Answer::sse("").ending(End::Reset)
        }),
        retried("a reset before the first word", |protocol| {
            begun(protocol).ending(End::Reset)
        }),
        retried("a cut before the first word", |protocol| {
            begun(protocol).ending(End::Cut)
        }),
        retried("an end before the first word", begun),
        retried("silence", |_| Answer::silence()),
        retried("a stall before the first word", |protocol| {
            begun(protocol).ending(End::Stall)
        }),
        retried("nothing", |_| Answer::sse("")),
        retried("an answer without a word", |protocol| {
            Speech::new("").answer(protocol)
        }),
        final_as("QUOTA", "a used up quota", |_| {
            refused(429, "insufficient_quota", "You exceeded your current quota")
        }),
        final_as("QUOTA", "a used up balance", |_| {
            refused(402, "invalid_request_error", "Insufficient Balance")
        }),
        final_as("QUOTA", "a used up quota told in the stream", |protocol| {
            told(
                protocol,
                "insufficient_quota",
                "You exceeded your current quota",
            )
        }),
        final_as("AUTH", "a wrong key", |_| {
            refused(401, "invalid_api_key", "Incorrect API key")
        }),
        final_as("AUTH", "no right", |_| {
            refused(403, "permission_error", "Not yours")
        }),
        final_as("INVALID_REQUEST", "a bad request", |_| {
            refused(400, "invalid_request_error", "messages: is missing")
        }),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_retried_is_the_same_on_every_route() {
    let next: Arc<Mutex<VecDeque<Answer>>> = Arc::default();
    let answers = Arc::clone(&next);
    let mock = Mock::with(move |request| {
        let next = answers.lock().unwrap().pop_front();
        let protocol = Protocol::of(&request.path).expect("a path of a protocol");
        next.unwrap_or_else(|| Speech::new("Here I am.").answer(protocol))
    });
    let routes = Routes {
        idle_timeout_ms: 200,
        retry_policy: json!({
            "maxRetries": 1, "backoff": {"initialDelayMs": 1, "maxDelayMs": 5000},
        }),
        longest_wait_ms: 1.0,
    };
    let rig = Rig::new(&Protocol::ALL, &mock.base_url(), &routes)
        .await
        .unwrap();
    let models = rig.models(&Arc::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(StoreConfig::new(folder.path())).unwrap();
    let mut wrong = Vec::new();
    for (number, failure) in failures().iter().enumerate() {
        for protocol in Protocol::ALL {
            let id = format!("{number}-{}", protocol.api());
            let session = Session::new(Header::new(&*id, 0)).unwrap();
            let writer = store.create(&session).unwrap();
            let talk = rig
                .conversation(&models, protocol, (session, writer), StartSource::Startup)
                .unwrap();
            next.lock().unwrap().push_back((failure.make)(protocol));
            mock.forget();
            talk.agent
                .followup(&Message::from_person("Are you there?"))
                .unwrap();
            talk.agent.when_idle().await;
            let (outcome, retries) = talk.log.read(|session| {
                let count = |kind: Kind| {
                    let events = session.live_events().iter();
                    events.filter(|event| event.kind == kind).count()
                };
                let outcome = RunOutcome::of(session, dsh_session::Seq(0));
                (
                    outcome,
                    (count(Kind::LlmRetry), count(Kind::LlmRetryStarted)),
                )
            });
            let code = outcome.error().map(|error| error.code);
            let requests = mock.requests().len();
            talk.close().await.unwrap();
            let expected = match failure.code {
                None => (2, (1, 1), None, "Here I am."),
                Some(code) => (1, (0, 0), Some(code), ""),
            };
            let got = (requests, retries, code.as_deref(), outcome.answer.as_str());
            if got != expected {
                wrong.push(format!(
                    "{} on {}: {got:?}, not {expected:?}",
                    failure.name,
                    protocol.api()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
