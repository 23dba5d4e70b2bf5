//! The recorded calls of `tests/conformance/llm`, of all four protocols: through the built
//! component, the real client, and a server that plays the recordings.
//!
//! `CASE=text` runs the cases alone whose names contain it.

mod case;
mod compare;
#[path = "../../../../tests/conformance/llm_differences.rs"]
mod llm_differences;
mod secrets;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_http::{Allowed, Client, Origin, Reach};
use dsh_model::{
    CallContext, ComponentAdapter, Credentials, FinishReason, Gateway, LlmFailure, Models,
    RouteGrant, Secret,
};
use dsh_plugin::{Component, Engine, EngineConfig, Grants, Limits, Row};
use dsh_session::Json;
use mock_provider::{Answer, Mock, Recorded};
use serde_json::{Value, json};

use case::{Case, cases};
use llm_differences::Differences;

pub(crate) const USER_AGENT: &str = "dsh/test (+https://dsh.example)";

/// Cuts beside the recorded one: bytes, odd pieces that part lines and characters, large ones.
const CUTS: [Option<&[usize]>; 5] = [None, Some(&[1]), Some(&[7]), Some(&[64]), Some(&[5, 3, 11])];

struct Key(String, String);

impl Credentials for Key {
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure> {
        Ok((reference == self.0).then(|| Secret::new(&*self.1)))
    }
}

/// Where the built component is.
fn component(protocol: &str) -> PathBuf {
    let name = match protocol {
        "deepseek" => "llm-deepseek",
        "openai-completions" => "llm-openai-completions",
        "openai-responses" => "llm-openai-responses",
        "anthropic-messages" => "llm-anthropic",
        other => panic!("no component is known for the protocol {other}"),
    };
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components");
    std::env::var_os("DSH_COMPONENTS")
        .map_or(built, PathBuf::from)
        .join(format!("{name}.wasm"))
}

/// Runs one case with this answer, and returns the chunks and the requests that the server saw.
async fn run(
    (engine, component): &(Engine, Arc<Component>),
    case: &Case,
    answer: Answer,
) -> (Vec<Json>, Vec<Recorded>) {
    let mock = Mock::start(vec![answer]);
    let grants = json!({"pictures": true, "route": [{
        "provider": case.provider(),
        "origins": [mock.base_url()],
        "credential": case.credential(),
    }]});
    let row = Row {
        id: String::from("llm"),
        component: Arc::clone(component),
        config: case.config(&mock.base_url()),
        grants: Grants::parse(&grants).unwrap(),
        limits: Limits::of(component, &Value::Null).unwrap(),
    };
    let mounted = engine.mount(row).await.unwrap();
    let anonymous = case.text("anonymousUserId").unwrap_or_default().to_owned();
    let key = case.text("apiKey").unwrap_or_default().to_owned();
    let models = Models::new(Arc::new(Gateway {
        client: Client::new(),
        credentials: Box::new(Key(case.credential().to_owned(), key)),
        pictures: Arc::new(dsh_model::NoPictures),
        user_agent: USER_AGENT.to_owned(),
        anonymous_user_id: Box::new(move || anonymous.clone()),
    }));
    let grant = RouteGrant {
        provider: case.provider().to_owned(),
        origins: vec![Allowed {
            origin: Origin::parse(&mock.base_url()).unwrap(),
            reach: Reach::Named,
        }],
        credential: Some(case.credential().to_owned()),
    };
    models
        .register(
            ComponentAdapter::new(&mounted).expect("it is an adapter"),
            &[grant],
        )
        .unwrap();

    let ctx = CallContext::default();
    let mut chunks = Vec::new();
    match models.prepare(&ctx, case.call_config()).await {
        // Where nothing is left to stream, the refusal stands for the stream.
        Err(error) => chunks.push(FinishReason::Error(error.into_failure()).to_chunk()),
        Ok(call) => {
            let mut stream = call.stream(ctx.clone(), &case.generate());
            while let Some(chunk) = stream.next().await {
                chunks.push(chunk);
                if case.abort_after() == Some(chunks.len() as u64) {
                    ctx.cancel.cancel();
                }
            }
        }
    }
    (chunks, mock.requests())
}

/// A protocol's component.
async fn loaded(protocol: &str) -> (Engine, Arc<Component>) {
    let path = component(protocol);
    assert!(
        path.exists(),
        "{} is missing: run cargo xtask plugins first",
        path.display()
    );
    let config = EngineConfig {
        cache_dir: None,
        host_version: String::from("test"),
        home: None,
    };
    let engine = Engine::new(config).unwrap();
    let component = engine.load_file(&path).await.unwrap();
    (engine, component)
}

async fn every_case(protocol: &str, at_least: usize) {
    let loaded = loaded(protocol).await;
    let cases = cases(protocol, &Differences::beside(&case::root()));
    assert!(cases.len() >= at_least, "only {} cases", cases.len());
    let asked = std::env::var("CASE").unwrap_or_default();
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.name.contains(&asked)) {
        for sizes in CUTS {
            let (chunks, requests) = run(&loaded, case, case.answer(sizes)).await;
            if let Err(what) = compare::check(case, &chunks, &requests) {
                wrong.push(format!("{} (cut {sizes:?}): {what}", case.name));
                break;
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn every_recorded_call_of_deepseek_goes_and_comes_back_as_recorded() {
    every_case("deepseek", 27).await;
}

#[tokio::test]
async fn every_recorded_call_of_openai_completions_goes_and_comes_back_as_recorded() {
    every_case("openai-completions", 24).await;
}

#[tokio::test]
async fn every_recorded_call_of_openai_responses_goes_and_comes_back_as_recorded() {
    every_case("openai-responses", 11).await;
}

#[tokio::test]
async fn every_recorded_call_of_anthropic_goes_and_comes_back_as_recorded() {
    every_case("anthropic-messages", 15).await;
}

#[test]
fn every_difference_names_a_case_of_the_data() {
    for name in Differences::beside(&case::root()).cases() {
        assert!(
            case::root().join(name).is_dir(),
            "llm-differences.toml: no case {name}"
        );
    }
}
