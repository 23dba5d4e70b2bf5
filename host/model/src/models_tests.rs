use async_trait::async_trait;
use dsh_plugin::api::{GenerateRequest, Prepared};

use super::*;
use crate::adapter::Attempt;
use crate::credential::{Credentials, Secret};

const INFO: &str = r#"{"id":"m","name":"M","defaultMaxTokens":9,
    "reasoning":{"efforts":[{"id":"high","name":"High"}],"defaultEffort":"high"}}"#;

/// Serves these routes; answers `prepare` with a copy changed by `change`.
struct Fake {
    routes: Vec<&'static str>,
    info: &'static str,
    change: fn(&mut CallConfig),
}

fn fake(routes: &[&'static str]) -> Fake {
    Fake {
        routes: routes.to_vec(),
        info: INFO,
        change: |_| {},
    }
}

#[async_trait]
impl Adapter for Fake {
    fn list_routes(&self) -> Vec<String> {
        self.routes.iter().map(ToString::to_string).collect()
    }

    async fn prepare(
        &self,
        _: &CallContext,
        mut config: CallConfig,
    ) -> Result<Prepared, LlmFailure> {
        if config.model == "unknown" {
            return Err(LlmFailure::new("UNKNOWN_MODEL", "never heard of it"));
        }
        (self.change)(&mut config);
        Ok(Prepared {
            config,
            defaulted: Vec::new(),
            model: self.info.to_owned(),
        })
    }

    async fn open(
        &self,
        _: &CallContext,
        _: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        Err(LlmFailure::new("SERVER", "not here"))
    }
}

struct NoKeys;

impl Credentials for NoKeys {
    fn resolve(&self, _: &str) -> Result<Option<Secret>, LlmFailure> {
        Ok(None)
    }
}

fn models() -> Models {
    Models::new(Arc::new(Gateway {
        client: dsh_http::Client::new(),
        credentials: Box::new(NoKeys),
        pictures: Arc::new(crate::outgoing::NoPictures),
        user_agent: String::new(),
        anonymous_user_id: Box::new(String::new),
    }))
}

fn config(provider: &str) -> CallConfig {
    CallConfig {
        provider: provider.into(),
        model: String::from("m"),
        ..CallConfig::default()
    }
}

#[test]
fn a_route_has_one_adapter_and_registration_is_all_or_nothing() {
    let models = models();
    models
        .register(fake(&[r#"{"provider":"a","name":"A"}"#]), &[])
        .unwrap();
    for (routes, code) in [
        (&[][..], "INVALID_ADAPTER"),
        (
            &[r#"{"provider":"b"}"#, r#"{"provider":""}"#],
            "INVALID_ADAPTER",
        ),
        (
            &[r#"{"provider":"b"}"#, r#"{"provider":"a"}"#],
            "DUPLICATE_ADAPTER",
        ),
        (
            &[r#"{"provider":"b"}"#, r#"{"provider":"b"}"#],
            "DUPLICATE_ADAPTER",
        ),
    ] {
        let error = models.register(fake(routes), &[]).unwrap_err();
        assert_eq!(error.code(), code, "{routes:?}");
    }
    models
        .register(fake(&[r#"{"provider":"b"}"#]), &[])
        .unwrap();
    let providers = models.providers();
    let ids: Vec<(&str, &str)> = providers.iter().map(|p| (&*p.id, &*p.name)).collect();
    assert_eq!(ids, [("a", "A"), ("b", "b")]);
}

#[tokio::test]
async fn a_prepared_call_is_complete_and_says_what_was_filled_in() {
    let models = models();
    models
        .register(fake(&[r#"{"provider":"a"}"#]), &[])
        .unwrap();
    let ctx = CallContext::default();
    let call = models.prepare(&ctx, config("a")).await.unwrap();
    assert_eq!(
        (
            call.config().reasoning_effort.as_deref(),
            call.config().max_tokens
        ),
        (Some("high"), Some(9))
    );
    let both = AdapterDefaults {
        reasoning_effort: true,
        max_tokens: true,
    };
    assert_eq!(call.adapter_defaults(), both);
    assert_eq!(
        both.to_json().unwrap().as_str(),
        r#"{"reasoningEffort":true,"maxTokens":true}"#
    );

    let asked = CallConfig {
        max_tokens: Some(3),
        ..config("a")
    };
    let call = models.prepare(&ctx, asked).await.unwrap();
    assert_eq!(call.config().max_tokens, Some(3));
    assert_eq!(
        call.adapter_defaults().to_json().unwrap().as_str(),
        r#"{"reasoningEffort":true}"#
    );
    assert_eq!(AdapterDefaults::default().to_json(), None);
}

#[tokio::test]
async fn preparing_fails_with_the_code_of_its_cause() {
    let models = models();
    models
        .register(fake(&[r#"{"provider":"a"}"#]), &[])
        .unwrap();
    let unsound = Fake {
        info: "{}",
        ..fake(&[r#"{"provider":"unsound"}"#])
    };
    models.register(unsound, &[]).unwrap();
    let ctx = CallContext::default();
    let error = models.prepare(&ctx, config("nobody")).await.unwrap_err();
    assert_eq!(error.code(), "NO_ADAPTER");
    assert!(error.to_string().contains("a, unsound"), "{error}");
    assert_eq!(
        models
            .prepare(&ctx, config("unsound"))
            .await
            .unwrap_err()
            .code(),
        "INVALID_MODEL_INFO"
    );
    let unknown = CallConfig {
        model: String::from("unknown"),
        ..config("a")
    };
    assert_eq!(
        models.prepare(&ctx, unknown).await.unwrap_err().code(),
        "UNKNOWN_MODEL"
    );
    let effort = CallConfig {
        reasoning_effort: Some(String::from("max")),
        ..config("a")
    };
    assert_eq!(
        models.prepare(&ctx, effort).await.unwrap_err().code(),
        "UNSUPPORTED_REASONING_EFFORT"
    );
    ctx.cancel.cancel();
    assert!(
        models
            .prepare(&ctx, config("a"))
            .await
            .unwrap_err()
            .is_aborted()
    );
}

#[tokio::test]
async fn an_adapter_may_fill_in_and_not_change() {
    type Change = fn(&mut CallConfig);
    let changes: [(&str, Change); 5] = [
        ("model", |config| config.model.push('x')),
        ("provider", |config| config.provider.push('x')),
        ("temperature", |config| config.temperature = Some(1.0)),
        ("maxTokens", |config| config.max_tokens = Some(1)),
        ("stop", |config| config.stop = Some(Vec::new())),
    ];
    for (field, change) in changes {
        let models = models();
        let adapter = Fake {
            change,
            ..fake(&[r#"{"provider":"a"}"#])
        };
        models.register(adapter, &[]).unwrap();
        let asked = CallConfig {
            max_tokens: Some(3),
            ..config("a")
        };
        let error = models
            .prepare(&CallContext::default(), asked)
            .await
            .unwrap_err();
        assert_eq!(error.code(), "INVALID_PREPARED_CALL");
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[test]
fn the_models_of_a_provider_are_listed_as_they_are() {
    let models = models();
    let route = r#"{"provider":"a","models":[{"id":"m","name":"M"}]}"#;
    models.register(fake(&[route]), &[]).unwrap();
    assert_eq!(
        models.list_models("a").unwrap()[0].as_str(),
        r#"{"id":"m","name":"M"}"#
    );
    assert_eq!(models.list_models("b").unwrap_err().code(), "NO_ADAPTER");
}

#[tokio::test]
async fn a_route_with_a_problem_is_known_and_cannot_be_called() {
    let models = models();
    let route = r#"{"provider":"a","name":"A","problem":"it has no baseURL; set it"}"#;
    models.register(fake(&[route]), &[]).unwrap();
    assert_eq!(models.providers()[0].id, "a");
    let error = models.prepare(&CallContext::default(), config("a")).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), "INVALID_CONFIG");
    assert!(error.to_string().contains("it has no baseURL; set it"));
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_those_that_are_near() {
    let models = models();
    let routes = [
        r#"{"provider":"openai","models":[{"id":"gpt-5","name":"x"},{"id":"o3","name":"x"}]}"#,
        r#"{"provider":"router","models":[{"id":"unknown","name":"x"}]}"#,
    ];
    models.register(fake(&routes), &[]).unwrap();
    let ctx = CallContext::default();
    let told = |config| async {
        let error = models.prepare(&ctx, config).await.unwrap_err();
        format!("{} {error}", error.code())
    };
    let error = told(config("opnai")).await;
    assert!(error.starts_with("NO_ADAPTER"), "{error}");
    assert!(error.contains("did you mean openai?") && error.contains("`dsh models`"));
    // The model stands under another provider.
    let unknown = CallConfig {
        model: String::from("unknown"),
        ..config("openai")
    };
    let error = told(unknown).await;
    assert!(
        error.starts_with("UNKNOWN_MODEL never heard of it"),
        "{error}"
    );
    assert!(error.contains("there is router/unknown"), "{error}");
}

struct Counted(std::sync::atomic::AtomicUsize);

#[async_trait]
impl Refresh for Counted {
    async fn refresh(&self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn the_routes_are_brought_up_to_date_before_each_call() {
    let counted = Arc::new(Counted(0.into()));
    let refresh: Arc<dyn Refresh> = Arc::<Counted>::clone(&counted);
    let models = models().refreshed_by(refresh);
    models
        .register(fake(&[r#"{"provider":"a"}"#]), &[])
        .unwrap();
    for _ in 0..2 {
        models
            .prepare(&CallContext::default(), config("a"))
            .await
            .unwrap();
    }
    let _ = models
        .prepare(&CallContext::default(), config("nobody"))
        .await;
    assert_eq!(counted.0.load(std::sync::atomic::Ordering::Relaxed), 3);
}
