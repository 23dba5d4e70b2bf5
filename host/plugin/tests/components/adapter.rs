use dsh_plugin::api::{Action, CallConfig, Emission, EndCause, GenerateRequest, Part, PluginError};
use dsh_plugin::{CallContext, CallError};

use crate::support::mount;

fn request() -> GenerateRequest {
    GenerateRequest {
        messages: vec!["{}".to_owned()],
        ..GenerateRequest::default()
    }
}

#[tokio::test]
async fn attempts_share_one_warm_instance() {
    let adapter = mount().await.adapter().unwrap();
    let ctx = CallContext::default();
    let prepared = adapter.prepare(&ctx, CallConfig::default()).await.unwrap();
    assert_eq!(prepared.config.max_tokens, Some(7));
    assert_eq!(prepared.defaulted, ["maxTokens"]);
    let first = adapter.open(&ctx, request()).await.unwrap();
    let second = adapter.open(&ctx, request()).await.unwrap();
    assert_ne!(first, second);
    let Action::Send(sent) = adapter.next(&ctx, first).await.unwrap() else {
        panic!()
    };
    assert_eq!(
        sent.headers,
        [("authorization".to_owned(), "Bearer {credential}".to_owned())]
    );
    assert_eq!(sent.body, [Part::Bytes(b"{}".to_vec())]);
    let emission = Emission {
        after_ms: 3,
        chunks: vec!["{}".to_owned()],
    };
    assert_eq!(
        adapter.next(&ctx, second).await.unwrap(),
        Action::Emit(emission)
    );
    adapter
        .head(&ctx, first, 200, vec![("a".to_owned(), "b".to_owned())])
        .await
        .unwrap();
    assert_eq!(adapter.body(&ctx, first, b"abc").await.unwrap(), ["1:3"]);
    assert_eq!(adapter.body(&ctx, second, b"ab").await.unwrap(), ["2:2"]);
    assert_eq!(
        adapter.end(&ctx, first, EndCause::Complete).await.unwrap(),
        ["complete"]
    );
    let cause = EndCause::Failed(PluginError::new("TRANSPORT", "reset"));
    assert_eq!(
        adapter.end(&ctx, second, cause).await.unwrap(),
        ["TRANSPORT"]
    );
    adapter.close(&ctx, first).await.unwrap();
    adapter.close(&ctx, second).await.unwrap();
}

#[tokio::test]
async fn a_refusal_of_the_adapters_own_leaves_its_attempts_alone() {
    let adapter = mount().await.adapter().unwrap();
    let ctx = CallContext::default();
    let attempt = adapter.open(&ctx, request()).await.unwrap();
    let error = adapter
        .open(&ctx, GenerateRequest::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EMPTY");
    assert_eq!(adapter.body(&ctx, attempt, b"a").await.unwrap(), ["1:1"]);
}

#[tokio::test]
async fn a_trap_takes_all_attempts_of_its_instance_and_the_next_gets_a_new_one() {
    let adapter = mount().await.adapter().unwrap();
    let ctx = CallContext::default();
    let first = adapter.open(&ctx, request()).await.unwrap();
    let second = adapter.open(&ctx, request()).await.unwrap();
    let error = adapter.head(&ctx, first, 500, vec![]).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Trap { reason, .. } if reason.contains("told to panic at 500")),
        "{error}"
    );
    for attempt in [first, second] {
        assert!(matches!(
            adapter.body(&ctx, attempt, b"a").await,
            Err(CallError::Gone { .. })
        ));
        adapter.close(&ctx, attempt).await.unwrap();
    }
    let third = adapter.open(&ctx, request()).await.unwrap();
    assert!(
        matches!(adapter.next(&ctx, first).await, Err(CallError::Gone { .. })),
        "the same handle, another instance"
    );
    assert_eq!(adapter.body(&ctx, third, b"a").await.unwrap(), ["1:1"]);
}

#[tokio::test]
async fn an_adapter_reads_no_session_though_it_was_granted() {
    let adapter = mount().await.adapter().unwrap();
    let ctx = CallContext::default();
    let attempt = adapter.open(&ctx, request()).await.unwrap();
    let error = adapter.head(&ctx, attempt, 600, vec![]).await.unwrap_err();
    assert!(error.to_string().contains("session.length"), "{error}");
    assert!(
        error.to_string().contains("translates for a model"),
        "{error}"
    );
}

#[tokio::test]
async fn an_attempt_can_still_be_ended_after_a_cancel() {
    let adapter = mount().await.adapter().unwrap();
    let ctx = CallContext::default();
    let attempt = adapter.open(&ctx, request()).await.unwrap();
    ctx.cancel.cancel();
    assert_eq!(
        adapter.end(&ctx, attempt, EndCause::Aborted).await.unwrap(),
        ["aborted"]
    );
    adapter.close(&ctx, attempt).await.unwrap();
}
