//! An adapter that is a component and tries to send what it may not, where it
//! may not, or with what it was not given. The numbers are those of
//! `docs/hostile.md`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_http::{Allowed, Client, Origin, Reach};
use dsh_model::{
    CallConfig, CallContext, ComponentAdapter, Credentials, Gateway, LlmFailure, Models, Request,
    RouteGrant, Secret,
};
use dsh_plugin::{Component, Engine, EngineConfig, Grants, Limits, Row};
use dsh_session::{Json, Value};
use mock_provider::{Answer, End, Mock, Recorded};
use serde_json::json;
use tokio::sync::OnceCell;

#[path = "../../plugin/tests/components/prober.rs"]
mod prober;

const KEY: &str = "sk-test-1";

/// Has every credential there is, and writes down which it was asked for.
#[derive(Clone, Default)]
struct Keys(Arc<Mutex<Vec<String>>>);

impl Credentials for Keys {
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure> {
        self.0.lock().unwrap().push(reference.to_owned());
        let key = if reference == "KEY" { KEY } else { "sk-other" };
        Ok(Some(Secret::new(key)))
    }
}

async fn guest() -> (Engine, Arc<Component>) {
    static GUEST: OnceCell<(Engine, Arc<Component>)> = OnceCell::const_new();
    let load = || async {
        let engine = Engine::new(EngineConfig::default()).unwrap();
        let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin");
        let component = engine.load_file(&prober::file(&plugin)).await.unwrap();
        (engine, component)
    };
    GUEST.get_or_init(load).await.clone()
}

/// What the adapter's request came to.
struct Came {
    ending: String,
    chunks: String,
    asked: Vec<String>,
}

/// The adapter behind a route that is granted to `granted`.
async fn models(granted: &Mock) -> (Keys, Models) {
    let (engine, component) = guest().await;
    let grants = json!({
        "clock": true, "random": true, "session": true, "journal": true, "workspace": true,
        "spill": true, "attachments": true, "pictures": true, "process": [], "inbox": true, "kv": true, "llm": true, "route": {"provider": "prober"},
    });
    let row = Row {
        id: "prober".to_owned(),
        config: "{}".to_owned(),
        grants: Grants::parse(&grants).unwrap(),
        limits: Limits::of(&component, &json!(null)).unwrap(),
        component,
    };
    let mounted = engine.mount(row).await.unwrap();
    let keys = Keys::default();
    let models = Models::new(Arc::new(Gateway {
        client: Client::new(),
        credentials: Box::new(keys.clone()),
        pictures: Arc::new(dsh_model::NoPictures),
        user_agent: "dsh/test".to_owned(),
        anonymous_user_id: Box::new(|| "anon".to_owned()),
    }));
    let grant = RouteGrant {
        provider: "prober".to_owned(),
        origins: vec![Allowed {
            origin: Origin::parse(&granted.base_url()).unwrap(),
            reach: Reach::Named,
        }],
        credential: Some("KEY".to_owned()),
    };
    let adapter = ComponentAdapter::new(&mounted).unwrap();
    models.register(adapter, &[grant]).unwrap();
    (keys, models)
}

/// Lets the adapter ask for this, with a route granted to `granted`.
async fn send(granted: &Mock, wanted: [&str; 4]) -> Came {
    let (keys, models) = models(granted).await;
    let ctx = CallContext::default();
    let config = CallConfig {
        provider: "prober".to_owned(),
        model: "m".to_owned(),
        ..CallConfig::default()
    };
    let call = models.prepare(&ctx, config).await.unwrap();
    let [url, name, value, body] = wanted;
    let wanted = format!("send|{url}|{name}|{value}|{body}");
    let request = Request::auxiliary("test", Vec::new()).system(Some(wanted));
    let mut stream = call.stream(ctx, &request);
    let mut chunks: Vec<Json> = Vec::new();
    while let Some(chunk) = stream.next().await {
        chunks.push(chunk);
    }
    let last = chunks.last().unwrap().value();
    let text = |path: &[&str]| last.path(path).and_then(Value::text).unwrap_or_default();
    let asked = keys.0.lock().unwrap().clone();
    Came {
        ending: text(&["reason", "failure", "code"]).into_owned(),
        chunks: chunks.iter().map(Json::as_str).collect(),
        asked,
    }
}

/// A server that answers each request with nothing in particular.
fn server() -> Mock {
    Mock::start(vec![Answer::new(200, "")])
}

fn only(mock: &Mock) -> Recorded {
    let mut requests = mock.requests();
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

#[tokio::test]
async fn h30_an_adapter_that_asks_for_another_origin_sends_nothing_and_gets_no_key() {
    let (granted, other) = (server(), server());
    let elsewhere = other.base_url();
    let with_user = format!("{}@{}", granted.base_url(), &elsewhere["http://".len()..]);
    for (url, code) in [
        (elsewhere.as_str(), "DENIED"),
        ("http://127.0.0.1:1/", "DENIED"),
        ("https://169.254.169.254/latest/meta-data", "DENIED"),
        (with_user.as_str(), "INVALID_REQUEST"),
        ("file:///etc/passwd", "INVALID_REQUEST"),
    ] {
        let came = send(&granted, [url, "authorization", "Bearer {credential}", ""]).await;
        assert_eq!(came.ending, code, "{url}: {}", came.chunks);
        assert!(!came.chunks.contains(KEY));
    }
    assert!(granted.requests().is_empty() && other.requests().is_empty());
}

#[tokio::test]
async fn h32_an_adapters_redirect_is_an_answer_and_is_not_followed() {
    let other = server();
    let away = Answer::new(307, "").header("location", other.base_url());
    let granted = Mock::start(vec![away]);
    let url = granted.base_url();
    send(
        &granted,
        [&url, "authorization", "Bearer {credential}", "words"],
    )
    .await;
    assert_eq!(
        only(&granted).header("authorization"),
        Some("Bearer sk-test-1")
    );
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn h41_a_line_break_in_a_header_is_refused() {
    let granted = server();
    let url = granted.base_url();
    for (name, value) in [
        ("x", "a\r\nauthorization: b"),
        ("x", "a\nb"),
        ("x: y\r\nz", "a"),
        ("x", "{credential}\r\nx: y"),
    ] {
        let came = send(&granted, [&url, name, value, ""]).await;
        assert_eq!(came.ending, "INVALID_REQUEST", "{name:?}: {value:?}");
        assert!(!came.chunks.contains(KEY));
    }
    assert!(granted.requests().is_empty());
}

#[tokio::test]
async fn h42_headers_that_route_or_frame_a_request_are_the_hosts() {
    let granted = server();
    let url = granted.base_url();
    for name in [
        "Host",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
    ] {
        let came = send(&granted, [&url, name, "evil.example", ""]).await;
        assert_eq!(came.ending, "INVALID_REQUEST", "{name}");
    }
    assert!(granted.requests().is_empty());
}

/// It can name another, and none is looked up, let alone sent.
#[tokio::test]
async fn h45_an_adapter_gets_the_credential_of_its_route_and_no_other() {
    let granted = server();
    let url = granted.base_url();
    let asks = "{secret:OTHER} {credential:OTHER} {OTHER} {credential}";
    let came = send(&granted, [&url, "x-key", asks, ""]).await;
    assert_eq!(
        only(&granted).header("x-key"),
        Some("{secret:OTHER} {credential:OTHER} {OTHER} sk-test-1")
    );
    assert!(
        came.asked.iter().all(|reference| reference == "KEY"),
        "{:?}",
        came.asked
    );
}

/// A key in an address would be in every log on its way; one in a body could be
/// put there by a conversation.
#[tokio::test]
async fn h45_a_credential_is_put_into_no_url_no_body_and_no_headers_name() {
    let granted = server();
    let url = format!("{}/a?key={{credential}}", granted.base_url());
    send(
        &granted,
        [&url, "x", "y", "key={credential}&other={secret:KEY}"],
    )
    .await;
    let sent = only(&granted);
    assert!(!sent.path.contains(KEY), "{}", sent.path);
    assert_eq!(sent.body, b"key={credential}&other={secret:KEY}");
    let came = send(&granted, [&granted.base_url(), "x-{credential}", "y", ""]).await;
    assert_eq!(came.ending, "INVALID_REQUEST");
}

/// It may compute for seconds before its bound; nobody waits for that who has given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_that_never_returns_is_left_when_the_caller_gives_up() {
    let granted = Mock::start(vec![Answer::new(200, "spin").ending(End::Stall)]);
    let (_, models) = models(&granted).await;
    let ctx = CallContext::default();
    let config = CallConfig {
        provider: "prober".to_owned(),
        model: "m".to_owned(),
        ..CallConfig::default()
    };
    let call = models.prepare(&ctx, config).await.unwrap();
    let wanted = format!("send|{}|x|y|", granted.base_url());
    let request = Request::auxiliary("test", Vec::new()).system(Some(wanted));
    let mut stream = call.stream(ctx.clone(), &request);
    let cancel = async {
        // It has the word that makes it spin by then, or meets the cancel on the way to it.
        while granted.written() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        ctx.cancel.cancel();
    };
    let (chunk, ()) = tokio::join!(stream.next(), cancel);
    let chunk = chunk.unwrap();
    assert!(chunk.as_str().contains(r#""kind":"aborted""#), "{chunk:?}");
    assert!(stream.next().await.is_none());
    drop(stream);
    while granted.closed() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
