//! What a person configures reaches the run: model, key, endpoint, mode, store.

use std::os::unix::fs::PermissionsExt;

use dsh_session::Kind;
use dsh_store::{Compression, Store, StoreConfig};
use mock_provider::Mock;
use serde_json::{Value, json};

use crate::support::{Dsh, Scratch, data, say};

fn body(mock: &Mock) -> Value {
    serde_json::from_slice(&mock.requests()[0].body).unwrap()
}

#[track_caller]
fn sends_key(dsh: Dsh, mock: &Mock, key: &str) {
    dsh.headless().args(["Go"]).run().answered("Yes.");
    let sent = mock.requests()[0]
        .header("authorization")
        .map(str::to_owned);
    assert_eq!(sent, Some(format!("Bearer {key}")));
}

fn yes() -> Mock {
    Mock::start(vec![say("Yes.").answer()])
}

#[test]
fn a_key_comes_from_the_environment_else_the_credentials_else_a_dotenv() {
    let scratch = Scratch::new();
    let to = |mock: &Mock| scratch.dsh().env("DEEPSEEK_BASE_URL", mock.base_url());
    scratch.write_home(".env", "DEEPSEEK_API_KEY=sk-home\n");
    let mock = yes();
    sends_key(to(&mock), &mock, "sk-home");
    scratch.write(".env", "DEEPSEEK_API_KEY=sk-project\n");
    let mock = yes();
    sends_key(to(&mock), &mock, "sk-project");
    let text = "version: 1\nrefs:\n  DEEPSEEK_API_KEY: sk-stored\n";
    let file = scratch.write_home(".credentials.yaml", text);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mock = yes();
    sends_key(to(&mock), &mock, "sk-stored");
    let mock = yes();
    sends_key(
        to(&mock).env("DEEPSEEK_API_KEY", "sk-shell"),
        &mock,
        "sk-shell",
    );
}

#[test]
fn the_settings_choose_the_model_and_its_effort() {
    let scratch = Scratch::new();
    scratch.write_home(
        "settings.yaml",
        "agent-default-model:\n  provider: deepseek-official\n  model: deepseek-v4-pro\n  reasoningEffort: max\n",
    );
    let mock = yes();
    scratch
        .dsh()
        .provider(&mock)
        .headless()
        .args(["Go"])
        .run()
        .answered("Yes.");
    assert_eq!(body(&mock)["model"], "deepseek-v4-pro");
    assert_eq!(body(&mock)["reasoning_effort"], "max");
    let log = scratch.record();
    let header = data(log.of(&Kind::RequestHeader)[0]);
    assert_eq!(header["header"]["config"]["model"], "deepseek-v4-pro");
    assert_eq!(
        data(log.of(&Kind::RequestContext)[0])["model"],
        "deepseek-v4-pro"
    );
}

/// A person's own server counts as granted, on loopback too.
#[test]
fn a_patch_sends_elsewhere_with_another_key() {
    let scratch = Scratch::new();
    let mock = yes();
    let config = json!({"baseURL": mock.base_url(), "apiKeyEnv": "MY_KEY"});
    let patch = scratch.write_beside(
        "own.yml",
        &format!("- id: llm-deepseek\n  config: {config}\n"),
    );
    let dsh = scratch
        .dsh()
        .env("MY_KEY", "sk-mine")
        .env("DEEPSEEK_API_KEY", "sk-other");
    dsh.headless()
        .patch(patch)
        .args(["Go"])
        .run()
        .answered("Yes.");
    assert_eq!(
        mock.requests()[0].header("authorization"),
        Some("Bearer sk-mine")
    );
}

#[test]
fn the_mode_of_the_environment_is_pinned_in_the_log() {
    for (mode, policy) in [
        ("read-only", "ask"),
        ("workspace-write", "ask"),
        ("danger-full-access", "never"),
    ] {
        let scratch = Scratch::new();
        let mock = yes();
        let dsh = scratch
            .dsh()
            .provider(&mock)
            .env("DSH_PERMISSION_MODE", mode);
        dsh.headless().args(["Go"]).run().answered("Yes.");
        let log = scratch.record();
        assert_eq!(data(&log.events()[0]), json!({"preset": mode}));
        assert_eq!(data(&log.events()[1]), json!({"mode": mode}));
        assert_eq!(data(&log.events()[2]), json!({"policy": policy}));
    }
}

#[test]
fn a_command_knows_its_session_and_no_secret() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![
        say("")
            .bash("echo $DSH_SHELL $DSH_SESSION_ID $DSH_SESSION_JSONL $DSH_HOME; env")
            .answer(),
        say("Yes.").answer(),
    ]);
    let dsh = scratch
        .dsh()
        .provider(&mock)
        .env("SOME_TOKEN", "t0ken")
        .env("PLAIN", "seen");
    dsh.headless().args(["Go"]).run().answered("Yes.");
    let log = scratch.record();
    let (text, _) = &log.results()[0];
    let id = &log.inspection.header.id;
    let path = log.inspection.path.display();
    assert!(
        text.contains(&format!("1 {id} {path} {}", scratch.home().display())),
        "{text}"
    );
    assert!(text.contains("PLAIN=seen"), "{text}");
    assert!(
        !text.contains("t0ken") && !text.contains("sk-e2e"),
        "{text}"
    );
}

#[test]
fn the_store_is_what_its_row_says() {
    let scratch = Scratch::new();
    let root = scratch.home().join("elsewhere");
    let patch = scratch.write_beside(
        "store.yml",
        &format!(
            "- id: session-persistence-jsonl\n  config: {}\n",
            json!({
                "root": root, "compression": "none", "packChunks": false, "writeBatchMaxDelayMs": 5
            })
        ),
    );
    let mock = yes();
    let dsh = scratch.dsh().provider(&mock).headless();
    dsh.patch(patch).args(["Go"]).run().answered("Yes.");
    let config = StoreConfig {
        compression: Compression::None,
        ..StoreConfig::new(&root)
    };
    let listed = Store::open(config).unwrap().list().unwrap();
    assert_eq!(listed.len(), 1);
    let text = std::fs::read_to_string(&listed[0].path).unwrap();
    assert!(
        text.lines()
            .any(|line| line.starts_with("{\"type\":\"assistant/chunk\""))
    );
    assert!(!text.contains("text-chunks"));
}

#[test]
fn an_order_of_tools_that_is_none_costs_a_line_and_the_order() {
    let scratch = Scratch::new();
    let patch = scratch.write_beside(
        "order.yml",
        "- id: system-prompt\n  config: {toolOrder: [bash, read]}\n",
    );
    let mock = yes();
    let dsh = scratch.dsh().provider(&mock).headless().patch(patch);
    let ended = dsh.args(["Go"]).run();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Yes.\n"),
        "{ended:?}"
    );
    let told = ended.stderr.lines().collect::<Vec<_>>();
    assert!(
        told.len() == 1
            && told[0].contains("row system-prompt: toolOrder must name <unlisted-tools>"),
        "{told:?}"
    );
}
