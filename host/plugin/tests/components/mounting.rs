use dsh_plugin::Error;
use serde_json::json;

use crate::support::{all, engine, load_text, mount_text, try_mount};

#[tokio::test]
async fn an_import_without_its_grant_is_refused_with_the_grant_that_gives_it() {
    for grant in [
        "clock",
        "random",
        "session",
        "journal",
        "workspace",
        "spill",
        "attachments",
        "pictures",
        "process",
    ] {
        let mut grants = all();
        grants.as_object_mut().unwrap().remove(grant);
        let error = try_mount("{}", grants).await.err().unwrap().to_string();
        assert!(
            error.contains(&format!("dsh:plugin/{grant}@0.1.0")),
            "{error}"
        );
        assert!(
            error.ends_with(&format!(
                "needs the grant `{grant}`: add it to the row's `grants`"
            )),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_exported_may_need_a_grant_too() {
    let mut grants = all();
    grants.as_object_mut().unwrap().remove("route");
    let error = try_mount("{}", grants).await.err().unwrap();
    assert!(
        matches!(&error, Error::ExportNotGranted { grant, .. } if grant == "route"),
        "{error}"
    );
    let mut grants = all();
    grants["decide"] = json!(["session/event"]);
    let error = try_mount(r#"{"listen":true}"#, grants)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("agent/pre-step") && error.contains("observe=agent/pre-step"),
        "{error}"
    );
}

#[tokio::test]
async fn an_offer_that_nobody_could_use_is_refused() {
    let error = try_mount(r#"{"listing-fails":1}"#, all())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("tool.list-tools") && error.contains("NO_LIST"),
        "{error}"
    );
    let error = try_mount(r#"{"listing-twice":1}"#, all())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("the tool one is listed twice"), "{error}");
}

#[tokio::test]
async fn what_a_component_offers_may_depend_on_nothing_but_its_configuration() {
    let error = try_mount(r#"{"misplaced":1}"#, all())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("clock.now") && error.contains("says what it offers"),
        "{error}"
    );
}

#[tokio::test]
async fn an_import_that_this_host_has_not_is_refused_in_words() {
    for (import, what) in [
        (
            "wasi:nn/graph@0.2.0",
            "this host does not provide WASI beyond",
        ),
        (
            "dsh:plugin/http@0.1.0",
            "this host does not provide requests of its own yet",
        ),
        (
            "acme:other/thing@1.0.0",
            "this host does not provide it yet",
        ),
    ] {
        let text = format!(r#"(component (import "{import}" (instance (export "f" (func)))))"#);
        let error = mount_text(&text, json!({}))
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(import) && error.contains(what), "{error}");
    }
}

#[tokio::test]
async fn a_component_that_is_nothing_to_the_contract_is_refused() {
    let error = mount_text("(component)", json!({})).await.err().unwrap();
    assert!(matches!(error, Error::NothingToMount { .. }), "{error}");
}

#[tokio::test]
async fn a_component_of_another_contract_is_refused_with_both_versions() {
    let text = r#"(component (import "dsh:plugin/log@0.2.0" (instance)))"#;
    let error = load_text(engine(), text).await.unwrap_err().to_string();
    assert!(
        error.contains("0.2.0") && error.contains("0.1.0"),
        "{error}"
    );
}

#[tokio::test]
async fn a_later_patch_of_the_contract_is_taken() {
    let text = r#"(component (import "dsh:plugin/work@0.1.9" (instance (export "cancelled" (func (result bool))))))"#;
    let error = mount_text(text, json!({})).await.err().unwrap();
    assert!(
        matches!(error, Error::NothingToMount { .. }),
        "linked, and only then found to export nothing: {error}"
    );
}

#[tokio::test]
async fn imports_and_exports_of_other_types_are_refused() {
    let import = r#"(component
        (import "dsh:plugin/work@0.1.0" (instance (export "cancelled" (func (result string)))))
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $p (export "sections" (func $f)))
        (export "dsh:plugin/prompt@0.1.0" (instance $p)))"#;
    let error = mount_text(import, json!({})).await.err().unwrap();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    let missing = r#"(component (instance $p) (export "dsh:plugin/prompt@0.1.0" (instance $p)))"#;
    let error = mount_text(missing, json!({})).await.err().unwrap();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    let export = r#"(component
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $p (export "sections" (func $f)))
        (export "dsh:plugin/prompt@0.1.0" (instance $p)))"#;
    let error = mount_text(export, json!({})).await.err().unwrap();
    assert!(
        matches!(
            error,
            Error::Asking {
                function: "prompt",
                ..
            }
        ),
        "{error}"
    );
}
