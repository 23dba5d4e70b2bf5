//! Every recorded call of `tests/conformance/llm`, by the code of the command. What the command says is tested in
//! `tests/e2e/plugin_replay.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_plugin::{Component, Engine, EngineConfig};
use serde_json::Value;

use super::*;

#[path = "../../../../tests/conformance/llm_differences.rs"]
mod llm_differences;

/// The folders of the data, and who speaks that protocol.
const ADAPTERS: [(&str, &str); 4] = [
    ("anthropic-messages", "dsh:llm-anthropic"),
    ("deepseek", "dsh:llm-deepseek"),
    ("openai-completions", "dsh:llm-openai-completions"),
    ("openai-responses", "dsh:llm-openai-responses"),
];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/llm")
}

fn engine() -> Engine {
    Engine::new(EngineConfig {
        cache_dir: None,
        host_version: "test".to_owned(),
        home: None,
    })
    .unwrap()
}

/// A home with nothing in it.
struct Empty {
    _dir: tempfile::TempDir,
    home: dsh_profile::Home,
}

impl Empty {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dsh_profile::Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/"));
        Self {
            home: home.unwrap(),
            _dir: dir,
        }
    }

    fn pictures(&self) -> Attachments {
        Attachments::of(&self.home)
    }
}

async fn bundled(engine: &Engine, name: &str) -> Option<Arc<Component>> {
    let found = embedded::find(name)?;
    Some(engine.load_embedded(found.wasm, found.code).await.unwrap())
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recorded_call_is_replayed_as_it_was_recorded() {
    let (engine, home) = (engine(), Empty::new());
    let differences = llm_differences::Differences::beside(&data());
    let (mut count, mut wrong) = (0, Vec::new());
    for (protocol, name) in ADAPTERS {
        let component = bundled(&engine, name).await;
        let component = component.unwrap_or_else(|| panic!("{name} is not in this build"));
        for folder in folders(&data().join(protocol)) {
            let name = format!(
                "{protocol}/{}",
                folder.file_name().unwrap().to_string_lossy()
            );
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
            let request = read("request.json");
            let mut case = Case::read(&request).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(case.unknown, [""; 0], "{name}");
            let mut expected: Value = serde_json::from_str(&read("expected.json")).unwrap();
            let recorded: Value = serde_json::from_str(&request).unwrap();
            if let Some(http) = recorded.get("http") {
                expected["http"] = http.clone();
            }
            differences.apply(&name, &mut expected).unwrap();
            case.http = expected
                .get("http")
                .map(|http| Json::restore(&http.to_string()).unwrap());
            let body = fs::read(folder.join("response.sse")).ok();
            let played = play::play(
                &engine,
                Arc::clone(&component),
                &case,
                body,
                &home.pictures(),
            )
            .await;
            let played = played.unwrap_or_else(|why| panic!("{name}: {why}"));
            let wanted = Json::restore(&expected.to_string()).unwrap();
            if let Some(found) = differs(&case, &wanted, &tell::whole(&case, &played)) {
                wrong.push(format!("{name}: {found}"));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 77, "only {count} cases were found");
}

#[tokio::test]
async fn a_pieces_size_changes_nothing_that_comes_of_a_recording() {
    let (engine, home) = (engine(), Empty::new());
    let component = bundled(&engine, "dsh:llm-deepseek").await.unwrap();
    let folder = data().join("deepseek/utf8-split-across-reads");
    let text = fs::read_to_string(folder.join("request.json")).unwrap();
    let body = fs::read(folder.join("response.sse")).unwrap();
    let (mut came, pictures) = (Vec::new(), home.pictures());
    for sizes in ["[1]", "[7]", "[64, 1]", "[100000]"] {
        let mut case: Value = serde_json::from_str(&text).unwrap();
        case["response"]["pieceBytes"] = serde_json::from_str(sizes).unwrap();
        let case = Case::read(&case.to_string()).unwrap();
        let played = play::play(
            &engine,
            Arc::clone(&component),
            &case,
            Some(body.clone()),
            &pictures,
        );
        came.push(played.await.unwrap().chunks);
    }
    assert!(came.windows(2).all(|pair| pair[0] == pair[1]), "{came:?}");
}

#[tokio::test]
async fn a_case_without_a_key_is_refused_before_anything_is_sent() {
    let (engine, home) = (engine(), Empty::new());
    let component = bundled(&engine, "dsh:llm-deepseek").await.unwrap();
    let case = r#"{"generate":{"provider":"deepseek-official","model":"m","messages":[]}}"#;
    let case = Case::read(case).unwrap();
    let played = play::play(&engine, component, &case, None, &home.pictures())
        .await
        .unwrap();
    assert!(played.requests.is_empty());
    let last = played.chunks.last().unwrap();
    let failure = last.value().path(&["reason", "failure"]).unwrap();
    assert!(
        failure.get("code").unwrap().is("MISSING_CREDENTIAL"),
        "{last}"
    );
    assert!(broke(&played).is_none(), "a refusal is an answer");
}

#[tokio::test]
async fn what_the_row_could_not_be_mounted_with_is_told_with_its_member() {
    let (engine, home) = (engine(), Empty::new());
    let component = bundled(&engine, "dsh:llm-deepseek").await.unwrap();
    let case = r#"{"config":{"maxTokens":"many"},"generate":{"provider":"deepseek-official","model":"m","messages":[]}}"#;
    let case = Case::read(case).unwrap();
    let why = play::play(&engine, component, &case, None, &home.pictures())
        .await
        .err()
        .unwrap();
    assert!(why.contains("config") && why.contains("maxTokens"), "{why}");
}
