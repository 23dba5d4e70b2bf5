//! Compactors: what they choose and write crosses as it is.

use dsh_plugin::api::{Plan, Situation, Trigger, Trim};
use dsh_plugin::{CallContext, Compaction};

use crate::support::mount;

fn situation(told: &str) -> Situation {
    Situation {
        trigger: Trigger::Overflow,
        tokens: 9000,
        context_window: Some(10_000),
        round: 3,
        recoveries: 1,
        more: Some(told.to_owned()),
    }
}

async fn compactor() -> Compaction {
    mount().await.compaction().unwrap()
}

#[tokio::test]
async fn a_plan_crosses_as_it_was_made() {
    let compactor = compactor().await;
    let ctx = CallContext::default();
    let plan = compactor.choose(&ctx, &situation("")).await.unwrap();
    assert_eq!(plan, Plan::Nothing);
    let plan = compactor.choose(&ctx, &situation("trim")).await.unwrap();
    let trim = Trim {
        node: 9000,
        content: vec!["short".to_owned()],
    };
    assert_eq!(plan, Plan::Trim(vec![trim]));
    let plan = compactor.choose(&ctx, &situation("summarise")).await;
    assert_eq!(plan.unwrap(), Plan::Summarise((3, 9000)));
}

/// What a long history leaves in its memory goes with it.
#[tokio::test]
async fn each_summary_has_an_instance_of_its_own() {
    let compactor = compactor().await;
    let ctx = CallContext::default();
    for _ in 0..2 {
        let summary = compactor.summarise(&ctx, &situation(""), (4, 7)).await;
        assert_eq!(summary.unwrap().content, ["(4, 7) Trigger::Overflow 1"]);
    }
}

#[tokio::test]
async fn a_compactor_that_fails_is_as_any_other_row() {
    let compactor = compactor().await;
    let ctx = CallContext::default();
    let error = compactor
        .choose(&ctx, &situation("fail"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "AS_TOLD");
    for _ in 0..3 {
        let error = compactor.choose(&ctx, &situation("panic")).await;
        assert_eq!(error.unwrap_err().code(), "PLUGIN_TRAP");
    }
    let error = compactor.choose(&ctx, &situation("")).await.unwrap_err();
    assert_eq!(error.code(), "PLUGIN_QUARANTINED");
}
