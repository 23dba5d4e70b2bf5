//! `dsh plugin replay`, as it is typed: what it prints, what it says of files that are not as they should be, and what
//! becomes of a component that does not behave. Every recorded call is in `src/plugin/replay_tests.rs`.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::hostile::guest;
use crate::plugin_json::check;
use crate::support::{Ended, Scratch, root};

fn case(name: &str) -> PathBuf {
    root().join("tests/conformance/llm/deepseek").join(name)
}

fn file(folder: &std::path::Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Plays `component` with a case of the test's own.
fn play(component: &str, request: &Value, more: &[&str]) -> Ended {
    let scratch = Scratch::new();
    scratch.write("request.json", &request.to_string());
    scratch.write("response.sse", "data: [DONE]\n\n");
    let words = ["replay", component, "--request", "request.json"];
    scratch.plugin(words.into_iter().chain(more.iter().copied()))
}

fn prober(model: &str, system: &str) -> Value {
    json!({
        "apiKey": "sk-case-1",
        "generate": {"provider": "prober", "model": model, "system": system, "messages": [{"role": "user", "content": []}]},
        "response": {"status": 200},
    })
}

#[test]
fn a_recorded_call_is_printed_in_the_shapes_of_the_recordings() {
    let scratch = Scratch::new();
    let folder = case("tool-call-single");
    let (request, response) = (file(&folder, "request.json"), file(&folder, "response.sse"));
    for name in ["llm-deepseek", "dsh:llm-deepseek"] {
        let words = [
            "replay",
            name,
            "--request",
            &request,
            "--response",
            &response,
            "--json",
        ];
        let ended = scratch.plugin(words);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
        let whole: Value = serde_json::from_str(&ended.stdout).unwrap();
        let members: Vec<&String> = whole.as_object().unwrap().keys().collect();
        assert_eq!(members, ["http", "chunks", "assembled"]);
        let (recorded, expected) = (
            read(&folder.join("request.json")),
            read(&folder.join("expected.json")),
        );
        assert_eq!(whole["chunks"], expected["chunks"]);
        assert_eq!(whole["assembled"], expected["assembled"]);
        for member in ["method", "path", "body"] {
            assert_eq!(whole["http"][member], recorded["http"][member]);
        }
        assert_eq!(whole["http"]["url"], "{baseURL}/chat/completions");
        for (name, value) in recorded["http"]["headers"].as_object().unwrap() {
            if name != "user-agent" {
                assert_eq!(whole["http"]["headers"][name], *value);
            }
        }
    }
}

#[test]
fn what_is_printed_is_what_its_schema_says() {
    let schema = read(&root().join("docs/schema/plugin-replay.schema.json"));
    let scratch = Scratch::new();
    let folder = case("request-effort-unsupported");
    let request = file(&folder, "request.json");
    let expect = file(&folder, "expected.json");
    let other = file(&case("text-basic"), "expected.json");
    for (words, code) in [
        (vec![], 0),
        (vec!["--expect", &expect], 0),
        (vec!["--expect", &other], 1),
        (vec!["--response", "nowhere.sse"], 1),
    ] {
        let words = ["replay", "llm-deepseek", "--json", "--request", &request]
            .into_iter()
            .chain(words);
        let ended = scratch.plugin(words);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let value: Value = serde_json::from_str(&ended.stdout).unwrap();
        check(&schema, &schema, &value, "it").unwrap_or_else(|error| panic!("{error}: {value}"));
        // Refused before anything was sent.
        assert!(value.get("http").is_none());
    }
}

#[test]
fn people_are_told_the_first_difference_and_whether_there_is_one() {
    let scratch = Scratch::new();
    let folder = case("text-basic");
    let request = file(&folder, "request.json");
    let same = scratch.plugin(["replay", "llm-deepseek", "--request", &request]);
    assert_eq!((same.code, &*same.stderr), (Some(0), ""), "{same:?}");
    for part in [
        "POST {baseURL}/chat/completions",
        "authorization: Bearer [apiKey]",
        "\"model\": \"deepseek-v4-flash\"",
        "6 chunks",
        "\"text\":\"The Loire.\"",
        "expected.json expects\n",
    ] {
        assert!(same.stdout.contains(part), "{part}: {}", same.stdout);
    }
    assert!(
        !same.stdout.contains("sk-test-0001"),
        "a key of a case may be a real one"
    );

    let mut expected = read(&folder.join("expected.json"));
    expected["chunks"][1]["text"] = json!("Das ");
    scratch.write("other.json", &expected.to_string());
    let other = scratch.plugin([
        "replay",
        "llm-deepseek",
        "--request",
        &request,
        "--expect",
        "other.json",
    ]);
    assert_eq!(other.code, Some(1));
    let says = r#"other.json expects: chunks[1].text is "The "; expected "Das ""#;
    assert!(other.stdout.contains(says), "{}", other.stdout);
}

#[test]
fn a_file_that_is_missing_or_wrong_is_named() {
    let scratch = Scratch::new();
    let request = file(&case("text-basic"), "request.json");
    scratch.write("list.json", "[]");
    let text = std::fs::read_to_string(&request).unwrap();
    scratch.write("call.json", &text);
    scratch.write(
        "bad.json",
        r#"{"generate":{"provider":"p","model":"m","messages":[]},"response":{"end":"x"}}"#,
    );
    std::fs::write(scratch.work().join("latin.json"), [b'"', 0xe9, b'"']).unwrap();
    std::fs::write(scratch.work().join("text.wasm"), "<html>").unwrap();
    std::fs::create_dir(scratch.work().join("folder")).unwrap();
    for (words, says) in [
        (vec![], "it needs a component"),
        (vec!["llm-deepseek"], "--request is missing"),
        // What is no adapter is said before a recording is looked for.
        (
            vec!["nope", "--request", "call.json"],
            "there is no such file, component of this build or installed plugin",
        ),
        (
            vec!["llm-retry", "--request", "call.json"],
            "it exports no `llm-adapter`",
        ),
        (vec!["text.wasm", "--request", "call.json"], "text.wasm"),
        (
            vec!["llm-deepseek", "--request", "call.json"],
            "response.sse: No such file",
        ),
        (
            vec!["llm-deepseek", "--request", "none.json"],
            "none.json: No such file",
        ),
        (
            vec!["llm-deepseek", "--request", "folder"],
            "folder: it is not a file",
        ),
        (
            vec!["llm-deepseek", "--request", "list.json"],
            "list.json: it is JSON and no object",
        ),
        (
            vec!["llm-deepseek", "--request", "bad.json"],
            "bad.json: `response.end` is \"x\"",
        ),
        (
            vec!["llm-deepseek", "--request", "latin.json"],
            "latin.json: it is not UTF-8",
        ),
        (
            vec![
                "llm-deepseek",
                "--request",
                &request,
                "--response",
                "none.sse",
            ],
            "none.sse: No such file",
        ),
        (
            vec![
                "llm-deepseek",
                "--request",
                &request,
                "--expect",
                "none.json",
            ],
            "none.json: No such file",
        ),
        (
            vec![
                "llm-deepseek",
                "--request",
                &request,
                "--expect",
                "list.json",
            ],
            "list.json: it is no object",
        ),
        (
            vec!["llm-deepsek", "--request", &request],
            "its adapters are dsh:llm-",
        ),
        (vec!["none.wasm", "--request", &request], "none.wasm"),
        (vec!["text.wasm", "--request", &request], "text.wasm"),
        (
            vec!["https://a.example/a.wasm", "--request", &request],
            "plays files",
        ),
        (
            vec!["tool-bash", "--request", &request],
            "it exports no `llm-adapter`",
        ),
    ] {
        let ended = scratch.plugin(["replay"].into_iter().chain(words.iter().copied()));
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(1), ""),
            "{words:?}: {ended:?}"
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_misspelt_member_is_said_and_passed_over() {
    let mut request = read(&case("text-basic").join("request.json"));
    request["respons"] = json!({});
    let ended = play("llm-deepseek", &request, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("`respons` is no member of a case"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_component_that_breaks_is_told_and_ends_with_1() {
    let component = guest().to_string_lossy();
    for (model, system, code, says) in [
        ("panic", "", "PLUGIN_TRAP", "the component broke"),
        ("spin", "", "PLUGIN_CPU", "the component broke"),
        (
            "m",
            "send|https://case.invalid/x|x-a|1|{}",
            "INVALID_CHUNK",
            "the component broke",
        ),
    ] {
        let ended = play(&component, &prober(model, system), &[]);
        assert_eq!(
            (ended.code, &*ended.stderr),
            (Some(1), ""),
            "{model}: {ended:?}"
        );
        assert!(
            ended.stdout.contains(code) && ended.stdout.contains(says),
            "{model}: {}",
            ended.stdout
        );
    }
}

#[test]
fn nothing_is_sent_where_the_case_does_not_lead_and_nobody_elses_key_is_had() {
    let component = guest().to_string_lossy();
    let sent = |system: &str| {
        let ended = play(&component, &prober("m", system), &["--json"]);
        serde_json::from_str::<Value>(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    let elsewhere = sent("send|https://other.example/|x-a|1|{}");
    assert!(elsewhere.get("http").is_none());
    assert_eq!(
        elsewhere["assembled"]["finish"]["failure"]["code"],
        "DENIED"
    );
    // Its route names no credential, so none is put in.
    let keyless = sent("send|https://case.invalid/|x-a|{credential}|{}");
    assert!(keyless.get("http").is_none());
    assert_eq!(
        keyless["assembled"]["finish"]["failure"]["code"],
        "MISSING_CREDENTIAL"
    );
    let here = sent("send|https://case.invalid/a?b|X-A|1|no JSON");
    assert_eq!(here["http"]["path"], "/a?b");
    assert_eq!(here["http"]["headers"]["x-a"], "1");
    assert_eq!(here["http"]["body"], "no JSON");
}
