//! Which models can be called, and how people say it: providers of the settings and
//! of upstream's patches reach their rows, a change counts for the next request, and
//! `dsh models` tells what is there and why something is not.

use std::sync::{Arc, Mutex};

use mock_provider::{Answer, Mock};
use serde_json::{Value, json};

use crate::plugin_json::check;
use crate::support::{Dsh, Ended, Scratch, root, say};

/// A recorded answer of the responses protocol: `Tin.`
fn tin() -> Answer {
    let path = "tests/conformance/llm/openai-responses/text-basic/response.sse";
    Answer::sse(std::fs::read(root().join(path)).unwrap())
}

/// Without the calls for a title, which the mock tells apart by another protocol.
fn quiet(scratch: &Scratch) -> Dsh {
    let file = scratch.write_beside("quiet.yml", "- {id: session-title-llm, disabled: true}\n");
    scratch.dsh().headless().patch(file)
}

fn models(scratch: &Scratch, words: &[&str]) -> Ended {
    let dsh = scratch.dsh().env("OPENAI_API_KEY", "sk-listed");
    dsh.args(["models"].into_iter().chain(words.iter().copied()))
        .run()
}

fn listed(scratch: &Scratch, words: &[&str]) -> Value {
    let ended = models(scratch, &[&["--json"], words].concat());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    assert!(!ended.stdout.contains("sk-listed"));
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    let schema = std::fs::read(root().join("docs/schema/models.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    check(&schema, &schema, &value, "it").unwrap();
    value
}

fn provider<'a>(of: &'a Value, id: &str) -> &'a Value {
    let all = of["providers"].as_array().unwrap();
    let found = all.iter().find(|one| one["provider"] == id);
    found.unwrap_or_else(|| panic!("{id}: {of:#}"))
}

#[test]
fn a_provider_of_the_settings_is_asked_at_its_address_with_its_key() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![tin()]);
    scratch.write_home(
        "settings.yaml",
        &format!(
            "agent-default-model: {{provider: mine, model: org/big-1}}\n\
             llm-pi-ai:\n  providers:\n    mine:\n      api: openai-responses\n      \
             baseURL: {}/v1\n      apiKeyEnv: MY_KEY\n      models: [{{id: org/big-1}}]\n      \
             headers: {{x-team: 'key {{credential}}'}}\n",
            mock.base_url()
        ),
    );
    let dsh = quiet(&scratch).env("MY_KEY", "sk-mine");
    dsh.args(["Go"]).run().answered("Tin.");
    let sent = &mock.requests()[0];
    assert_eq!(sent.path, "/v1/responses");
    assert_eq!(sent.header("authorization"), Some("Bearer sk-mine"));
    assert_eq!(sent.header("x-team"), Some("key sk-mine"));
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["model"], "org/big-1");
}

#[test]
fn a_patch_of_upstreams_and_a_model_with_slashes_on_the_command_line_do_the_same() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![tin()]);
    let patch = scratch.write_beside(
        "pi.yml",
        &format!(
            "- id: llm-pi-ai\n  name: '@deepseek-ai/dsh-llm-pi-ai'\n  config:\n    providers:\n      \
             mine: {{api: openai-responses, baseURL: '{}/v1', models: [{{id: org/big-1}}]}}\n",
            mock.base_url()
        ),
    );
    let dsh = quiet(&scratch).patch(patch);
    let ended = dsh.args(["--model", "mine/org/big-1", "Go"]).run();
    ended.answered("Tin.");
    // Nobody named a key, so none is sent.
    assert_eq!(mock.requests()[0].header("authorization"), None);
}

#[test]
fn a_change_of_the_settings_counts_for_the_next_request_and_a_broken_one_for_none() {
    let scratch = Scratch::new();
    let settings = scratch.write_home("settings.yaml", "llm-deepseek: {maxTokens: 1000}\n");
    let step = |word: &str| {
        say("")
            .call(
                "bash",
                &json!({"command": format!("echo {word}"), "description": "say"}),
            )
            .answer()
    };
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |who: &'static str| {
        let asked = Arc::clone(&asked);
        move |body: &[u8]| {
            let body: Value = serde_json::from_slice(body).unwrap();
            asked
                .lock()
                .unwrap()
                .push(format!("{who} {}", body["max_tokens"]));
        }
    };
    let (first, second) = (note("a"), note("b"));
    let file = settings.clone();
    // Breaks the document while it is asked.
    let mut answers = vec![step("two"), say("Done.").answer()].into_iter();
    let b = Mock::with(move |request| {
        second(&request.body);
        std::fs::write(&file, "llm-deepseek: {maxTokens: \n").unwrap();
        answers.next().unwrap()
    });
    let there = b.base_url();
    let one = step("one");
    let a = Mock::with(move |request| {
        first(&request.body);
        let text = format!("llm-deepseek: {{baseURL: '{there}', maxTokens: 2000}}\n");
        std::fs::write(&settings, text).unwrap();
        one.clone()
    });
    let dsh = quiet(&scratch)
        .env("DEEPSEEK_BASE_URL", a.base_url())
        .env("DEEPSEEK_API_KEY", "sk-e2e");
    let ended = dsh.args(["Go"]).run();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "Done.\n"),
        "{ended:?}"
    );
    assert_eq!(*asked.lock().unwrap(), ["a 1000", "b 2000", "b 2000"]);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(
        ended.stderr.contains("settings.yaml:") && ended.stderr.contains("those before stay"),
        "{ended:?}"
    );
}

#[test]
fn models_lists_what_can_be_called_and_why_the_rest_cannot() {
    let scratch = Scratch::new();
    scratch.write_home(
        "settings.yaml",
        "agent-default-model: {provider: openai, model: gpt-5}\n\
         llm-pi-ai:\n  providers:\n    openai: {reasoning: low, headers: {x-secret: hush-hush}}\n    \
         groq: {}\n    opnai: {}\n    opencode: {}\n    half: {api: openai-responses, baseURL: 'https://x.example/v1'}\n    \
         near: {api: openai-responses, baseURL: 'http://127.0.0.1:1/v1', models: [{id: m}]}\n",
    );
    let all = listed(&scratch, &[]);
    assert_eq!(
        all["default"],
        json!({"provider": "openai", "model": "gpt-5", "problem": null})
    );
    let openai = provider(&all, "openai");
    assert_eq!(openai["callable"], true);
    assert_eq!(
        openai["credential"],
        json!({"name": "OPENAI_API_KEY", "from": "the environment"})
    );
    let gpt = &openai["models"]
        .as_array()
        .unwrap()
        .iter()
        .find(|model| model["id"] == "gpt-5")
        .unwrap();
    assert_eq!(
        (&gpt["default"], &gpt["defaultEffort"]),
        (&json!(true), &json!("low"))
    );
    for (id, what) in [
        ("groq", "GROQ_API_KEY"),
        ("opnai", "did you mean openai?"),
        ("opencode", "choose those of one by `api`"),
        ("half", "models is missing"),
        ("deepseek-official", "dsh credentials set DEEPSEEK_API_KEY"),
    ] {
        let problem = provider(&all, id)["problem"].as_str().unwrap_or_default();
        assert!(problem.contains(what), "{id}: {problem:?}");
    }
    assert_eq!(provider(&all, "near")["callable"], true);
    let text = models(&scratch, &[]).stdout;
    assert!(
        text.contains("\n* gpt-5 ") && text.contains("default: openai/gpt-5\n"),
        "{text}"
    );
    assert!(
        !text.contains("sk-listed") && !text.contains("hush-hush"),
        "{text}"
    );
    let one = listed(&scratch, &["near"]);
    assert_eq!(one["providers"].as_array().unwrap().len(), 1);
    let none = models(&scratch, &["nearr"]);
    assert!(
        none.code == Some(1) && none.stderr.contains("did you mean near?"),
        "{none:?}"
    );
}

#[test]
fn a_provider_that_cannot_be_called_costs_a_line_and_its_own_calls() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![say("Yes.").answer()]);
    scratch.write_home(
        "settings.yaml",
        "llm-pi-ai:\n  providers:\n    opnai: {}\n    half: {api: openai-responses, baseURL: 'https://x.example/v1'}\n",
    );
    let ended = quiet(&scratch).provider(&mock).args(["Go"]).run();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "Yes.\n"),
        "{ended:?}"
    );
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    assert!(
        lines.iter().all(|line| line.starts_with("dsh: provider ")),
        "{ended:?}"
    );
    for (model, what) in [
        ("half/m", "models is missing"),
        ("opnai/m", "did you mean openai?"),
    ] {
        let ended = quiet(&scratch).args(["--model", model, "Go"]).run();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended.stderr.contains("INVALID_CONFIG") && ended.stderr.contains(what),
            "{ended:?}"
        );
    }
    let strict = scratch
        .dsh()
        .args(["--profile", "headless", "--strict", "Go"])
        .run();
    assert!(
        strict.code == Some(1) && strict.stderr.contains("opnai"),
        "{strict:?}"
    );
}

#[test]
fn unknown_names_are_answered_with_those_that_are_near() {
    let scratch = Scratch::new();
    scratch.write_home(
        "settings.yaml",
        "llm-pi-ai: {providers: {openai: {apiKeyEnv: K}}}\n",
    );
    let run = |words: &[&str]| {
        let dsh = quiet(&scratch)
            .env("K", "sk-1")
            .env("DEEPSEEK_API_KEY", "sk-2");
        dsh.args(words.iter().copied().chain(["Go"])).run()
    };
    for (words, parts) in [
        (
            &["--model", "opanai/gpt-5"][..],
            &["NO_ADAPTER", "did you mean openai?", "dsh models"][..],
        ),
        (
            &["--model", "openai/gpt5"],
            &["UNKNOWN_MODEL", "did you mean gpt-5"],
        ),
        (
            &["--model", "openai/deepseek-v4-pro"],
            &[
                "UNKNOWN_MODEL",
                "there is deepseek-official/deepseek-v4-pro",
            ],
        ),
        (
            &["--model", "openai/gpt-5", "--effort", "hihg"],
            &["UNSUPPORTED_REASONING_EFFORT", "high"],
        ),
    ] {
        let ended = run(words);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        }
    }
}

#[test]
fn settings_of_a_wrong_shape_stop_the_start_with_their_line() {
    let scratch = Scratch::new();
    for (text, line, what) in [
        (
            "llm-pi-ai:\n  providers: [{provider: openai}]\n",
            2,
            "older versions",
        ),
        (
            "llm-pi-ai:\n  providers:\n    p: {baseURL: 'https://me:hush@x'}\n",
            3,
            "apiKeyEnv",
        ),
        (
            "llm-pi-ai:\n  providers:\n    p:\n      api: gemini\n",
            4,
            "must be one of",
        ),
    ] {
        scratch.write_home("settings.yaml", text);
        let ended = quiet(&scratch).args(["Go"]).run();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let place = format!("settings.yaml:{line}: ");
        assert!(
            ended.stderr.contains(&place) && ended.stderr.contains(what),
            "{ended:?}"
        );
        assert!(!ended.stderr.contains("hush"), "{ended:?}");
    }
}

#[test]
fn a_profile_by_the_name_of_another_row_costs_nothing_else_and_is_told_everywhere() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![tin(), say("Yes.").answer()]);
    let url = mock.base_url();
    scratch.write_home(
        "settings.yaml",
        &format!(
            "llm-pi-ai:\n  providers:\n    \
             good: {{api: openai-responses, baseURL: '{url}/v1?key=sk-in-a-query', models: [{{id: m}}]}}\n    \
             deepseek-official: {{api: openai-responses, baseURL: '{url}/v1', models: [{{id: m}}]}}\n    \
             \"e\\e[31mred\": {{api: openai-responses, baseURL: '{url}/v1', models: [{{id: m}}]}}\n    \
             framed: {{api: openai-responses, baseURL: '{url}/v1', models: [{{id: m}}], headers: {{Host: x}}}}\n    \
             keyed: {{api: openai-responses, baseURL: '{url}/v1', models: [{{id: m}}], headers: {{authorization: 'Bearer sk-in-a-header'}}}}\n"
        ),
    );
    let taken = "row llm-deepseek serves a provider of this name";
    let told = |ended: &Ended| {
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert!(shown.contains(taken), "{ended:?}");
        assert!(shown.contains("its name has characters"), "{ended:?}");
        assert!(
            shown.contains("headers.Host is made by the HTTP client"),
            "{ended:?}"
        );
        assert!(
            !shown.contains("sk-in-a") && !shown.contains('\u{1b}'),
            "{ended:?}"
        );
    };
    let ended = quiet(&scratch).args(["--model", "good/m", "Go"]).run();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "Tin.\n"),
        "{ended:?}"
    );
    told(&ended);
    let sent = mock.requests().remove(0).path;
    assert!(sent.contains("?key=sk-in-a-query"), "{sent}");
    // Who asks for the name gets the row that has it.
    let ended = quiet(&scratch).provider(&mock).args(["Go"]).run();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "Yes.\n"),
        "{ended:?}"
    );
    told(&ended);
    told(&models(&scratch, &[]));
    let all = listed(&scratch, &[]);
    assert_eq!(provider(&all, "good")["baseURL"], format!("{url}/v1"));
    let called = |one: &&Value| one["provider"] == "deepseek-official" && one["row"].is_string();
    let all = all["providers"].as_array().unwrap();
    assert_eq!(all.iter().filter(called).count(), 1, "{all:#?}");
    let doctor = scratch.dsh().args(["doctor"]).run();
    told(&doctor);
    assert!(
        doctor.code == Some(1)
            && doctor
                .stdout
                .contains("provider keyed: the header authorization holds"),
        "{doctor:?}"
    );
}

#[test]
fn only_a_row_that_would_serve_the_provider_is_the_reason_why_nothing_does() {
    let scratch = Scratch::new();
    let patch = scratch.write_beside(
        "broken.yml",
        "- {id: llm-deepseek, config: {baseURL: 'https://me:pass@x:99999'}}\n\
         - {id: llm-scripted, config: {script: 7}}\n\
         - {id: tool-todo, limits: {memory: lots}}\n",
    );
    let run = |model: &str| {
        let dsh = quiet(&scratch).patch(patch.clone());
        dsh.args(["--model", model, "Go"]).run()
    };
    let ended = run("deepseek-official/m");
    let reason = ended
        .stderr
        .lines()
        .find(|line| line.contains("nothing serves"));
    let reason = reason.unwrap_or_else(|| panic!("{ended:?}"));
    assert!(
        ended.code == Some(1)
            && reason.contains("row llm-deepseek is left out")
            && !reason.contains("tool-todo"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("row tool-todo"), "{ended:?}");
    let ended = run("deepseek-oficial/m");
    assert!(
        ended.code == Some(1)
            && !ended.stderr.contains("nothing serves")
            && ended.stderr.contains("NO_ADAPTER"),
        "{ended:?}"
    );
}

#[test]
fn a_mistyped_model_is_not_what_a_session_goes_on_with() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![tin(), tin(), tin()]);
    let profile = format!(
        "{{api: openai-responses, baseURL: '{}/v1', models: [{{id: one}}, {{id: two, contextWindow: 9000}}]}}",
        mock.base_url()
    );
    scratch.write_home(
        "settings.yaml",
        &format!("llm-pi-ai: {{providers: {{mine: {profile}}}}}\n"),
    );
    let run = |words: &[&str]| {
        quiet(&scratch)
            .args(words.iter().copied().chain(["Go"]))
            .run()
    };
    run(&["--model", "mine/one"]).answered("Tin.");
    for _ in 0..2 {
        let ended = run(&["--model", "typo/m", "--resume", "last"]);
        assert!(
            ended.code == Some(1) && ended.stderr.contains("NO_ADAPTER"),
            "{ended:?}"
        );
        assert!(!ended.stderr.contains("made shorter"), "{ended:?}");
    }
    run(&["--resume", "last"]).answered("Tin.");
    run(&["--resume", "last", "--model", "mine/two"]).answered("Tin.");
    let models = mock.requests().into_iter().map(|sent| {
        let body: Value = serde_json::from_slice(&sent.body).unwrap();
        body["model"].as_str().unwrap().to_owned()
    });
    assert_eq!(models.collect::<Vec<_>>(), ["one", "one", "two"]);
}

#[test]
fn doctor_and_models_say_what_a_run_would_of_the_default_model_and_of_each_profile() {
    let scratch = Scratch::new();
    let look = |default: &str, what: &str| {
        scratch.write_home(
            "settings.yaml",
            &format!(
                "agent-default-model: {default}\nllm-pi-ai:\n  providers:\n    \
                 good: {{api: openai-responses, baseURL: 'http://127.0.0.1:1', models: [{{id: m}}]}}\n    \
                 bad: {{api: openai-responses, models: [{{id: m}}]}}\n    \
                 wild: {{api: openai-responses, baseURL: 'http://127.0.0.1:1', models: [{{id: m}}], retryPolicy: {{backoff: {{jitterRatio: 5}}}}}}\n"
            ),
        );
        for words in ["models", "doctor"] {
            let ended = scratch.dsh().args([words]).run();
            assert!(ended.stdout.contains(what), "{words} {what}: {ended:?}");
            assert!(
                ended.stdout.contains("retryPolicy")
                    && !ended
                        .stdout
                        .contains("row llm-openai-responses is left out"),
                "{ended:?}"
            );
            assert!(words != "doctor" || ended.code == Some(1), "{ended:?}");
        }
    };
    look("{provider: good, model: nope}", "good has no model nope");
    look("{provider: bad, model: m}", "baseURL is missing");
    look("{provider: wild, model: m}", "jitterRatio");
    look(
        "{provider: good, model: m, reasoningEffort: banana}",
        "banana",
    );
    let doctor = scratch
        .dsh()
        .env("DEEPSEEK_BASE_URL", "ftp://x")
        .args(["doctor"])
        .run();
    assert!(
        doctor.code == Some(1) && doctor.stdout.contains("row llm-deepseek: baseURL"),
        "{doctor:?}"
    );
}
