//! A small adapter of our own: a line is a chunk.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_http::{Allowed, Client, Origin, Reach};
use dsh_model::{
    Action, Adapter, Attempt, CallConfig, CallContext, Credentials, EndCause, Gateway,
    GenerateRequest, HttpRequest, LlmFailure, LlmStream, Models, Prepared, Request, RouteGrant,
    Secret,
};
use dsh_session::{Json, Value};
use mock_provider::Mock;

/// What the adapter does, and what became of it.
#[derive(Clone, Default)]
pub(crate) struct Script {
    pub(crate) idle_timeout_ms: u64,
    pub(crate) actions: VecDeque<Action>,
    /// Chunks of each `end`.
    pub(crate) at_end: VecDeque<Vec<&'static str>>,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    /// `body` fails like a component that traps.
    pub(crate) broken: bool,
}

impl Script {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.log.lock().unwrap().push(text.into());
    }
}

struct Lines(Script);

#[async_trait]
impl Adapter for Lines {
    fn list_routes(&self) -> Vec<String> {
        let idle = self.0.idle_timeout_ms.max(1);
        vec![format!(r#"{{"provider":"p","idleTimeoutMs":{idle}}}"#)]
    }

    async fn prepare(&self, _: &CallContext, config: CallConfig) -> Result<Prepared, LlmFailure> {
        let model = String::from(r#"{"id":"m","name":"M"}"#);
        Ok(Prepared {
            config,
            defaulted: Vec::new(),
            model,
        })
    }

    async fn open(
        &self,
        _: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        if request.system.as_deref() == Some("refuse") {
            return Err(LlmFailure::new("UNSUPPORTED_CONTENT", "not that"));
        }
        self.0.note("open");
        Ok(Box::new(LinesAttempt {
            script: self.0.clone(),
            rest: Vec::new(),
        }))
    }
}

struct LinesAttempt {
    script: Script,
    rest: Vec<u8>,
}

#[async_trait]
impl Attempt for LinesAttempt {
    async fn next(&mut self, _: &CallContext) -> Result<Action, LlmFailure> {
        Ok(self.script.actions.pop_front().unwrap_or(Action::Done))
    }

    async fn head(
        &mut self,
        _: &CallContext,
        status: u16,
        _: Vec<(String, String)>,
    ) -> Result<(), LlmFailure> {
        self.script.note(format!("head {status}"));
        Ok(())
    }

    async fn body(&mut self, _: &CallContext, data: &[u8]) -> Result<Vec<String>, LlmFailure> {
        if self.script.broken {
            return Err(LlmFailure::new("PLUGIN_TRAP", "the component crashed"));
        }
        self.rest.extend_from_slice(data);
        let mut chunks = Vec::new();
        while let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=at).collect();
            chunks.push(String::from_utf8(line).unwrap().trim().to_owned());
        }
        Ok(chunks)
    }

    async fn end(&mut self, _: &CallContext, cause: EndCause) -> Result<Vec<String>, LlmFailure> {
        self.script.note(match cause {
            EndCause::Complete => String::from("end complete"),
            EndCause::Failed(error) => format!("end {}", error.code),
            EndCause::Aborted => String::from("end aborted"),
        });
        let chunks = self.script.at_end.pop_front().unwrap_or_default();
        Ok(chunks.into_iter().map(String::from).collect())
    }

    async fn close(&mut self, ctx: &CallContext) {
        assert!(!ctx.cancel.is_cancelled(), "closing must not be cut short");
        self.script.note("close");
    }
}

struct Keys;

impl Credentials for Keys {
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure> {
        Ok((reference == "KEY").then(|| Secret::new("sk-test-1")))
    }
}

pub(crate) const TEXT: &str = r#"{"type":"text-delta","index":0,"text":"é"}"#;
pub(crate) const STOP: &str = r#"{"type":"finish","reason":{"kind":"stop"}}"#;

pub(crate) fn post(url: String) -> Action {
    Action::Send(HttpRequest {
        method: String::from("POST"),
        url,
        headers: vec![(
            String::from("authorization"),
            String::from("Bearer {credential}"),
        )],
        body: Vec::new(),
        timeout_ms: None,
    })
}

pub(crate) fn send_to(mock: &Mock) -> Script {
    send_to_url(&mock.base_url())
}

pub(crate) fn send_to_url(origin: &str) -> Script {
    Script {
        idle_timeout_ms: 60_000,
        actions: VecDeque::from([post(format!("{origin}/x"))]),
        ..Script::default()
    }
}

pub(crate) async fn open(
    script: Script,
    origin: &str,
    credential: &str,
    request: Request,
) -> (LlmStream, CallContext) {
    call(&models(script, origin, credential), request).await
}

/// Every call to it does what the script says from its beginning.
pub(crate) fn models(script: Script, origin: &str, credential: &str) -> Models {
    let models = Models::new(Arc::new(Gateway {
        client: Client::new(),
        credentials: Box::new(Keys),
        pictures: Arc::new(dsh_model::NoPictures),
        user_agent: String::from("dsh/test"),
        anonymous_user_id: Box::new(|| String::from("anon")),
    }));
    let grant = RouteGrant {
        provider: String::from("p"),
        origins: vec![Allowed {
            origin: Origin::parse(origin).unwrap(),
            reach: Reach::Named,
        }],
        credential: Some(credential.to_owned()),
    };
    models.register(Lines(script), &[grant]).unwrap();
    models
}

pub(crate) async fn call(models: &Models, request: Request) -> (LlmStream, CallContext) {
    let ctx = CallContext::default();
    let config = CallConfig {
        provider: "p".into(),
        model: "m".into(),
        ..CallConfig::default()
    };
    let call = models.prepare(&ctx, config).await.unwrap();
    (call.stream(ctx.clone(), &request), ctx)
}

pub(crate) fn plain() -> Request {
    Request::auxiliary("test", Vec::new())
}

pub(crate) async fn stream(script: Script, mock: &Mock) -> (LlmStream, CallContext) {
    open(script, &mock.base_url(), "KEY", plain()).await
}

pub(crate) async fn drain(stream: &mut LlmStream) -> Vec<Json> {
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await {
        chunks.push(chunk);
    }
    assert!(
        stream.next().await.is_none(),
        "nothing comes after the finish"
    );
    let finishes = chunks
        .iter()
        .filter(|chunk| kind(chunk) == "finish")
        .count();
    assert_eq!(
        (finishes, chunks.last().map(kind)),
        (1, Some(String::from("finish")))
    );
    chunks
}

pub(crate) fn kind(chunk: &Json) -> String {
    chunk
        .get("type")
        .and_then(Value::text)
        .unwrap_or_default()
        .into_owned()
}

/// `kind` or `kind CODE` of the last chunk.
pub(crate) fn ending(chunks: &[Json]) -> String {
    let reason = chunks.last().unwrap().get("reason").unwrap();
    let text = |path: &[&str]| {
        reason
            .path(path)
            .and_then(Value::text)
            .unwrap_or_default()
            .into_owned()
    };
    format!("{} {}", text(&["kind"]), text(&["failure", "code"]))
        .trim()
        .to_owned()
}

pub(crate) fn log(script: &Script) -> Vec<String> {
    script.log.lock().unwrap().clone()
}
