//! Each row of the bundles that mounts a component is a person's to change: a
//! patch disables it, puts another component in its place, or configures it, and
//! the run goes on with just that changed.

use std::collections::BTreeSet;
use std::path::Path;

use dsh_profile::{
    Composition, Environment, Home, Implementation, Inputs, Profile, Scope, Settings,
};
use dsh_session::Kind;
use mock_provider::Mock;
use serde_json::{Value, json};

use crate::prober;
use crate::support::{Ended, Record, Scratch, data, root, say};

/// A row, and how its work shows.
struct Row {
    id: &'static str,
    /// Puts into the workspace what has to lie there.
    place: fn(&Scratch),
    /// What the scripted model says.
    script: Value,
    /// Members of a patch that every run has.
    beside: Value,
    /// Whether the row's work shows in a run.
    works: fn(&Seen) -> bool,
    /// Members of the patch that configures it.
    patch: Value,
    /// Whether that shows.
    configured: fn(&Seen) -> bool,
    /// Whether a run that lacks its work comes to no answer.
    fails_without: bool,
}

impl Row {
    fn new(id: &'static str) -> Self {
        Self {
            id,
            place: |_| (),
            script: json!([{"text": "Done."}]),
            beside: json!([]),
            works: |_| false,
            patch: json!({}),
            configured: |_| false,
            fails_without: false,
        }
    }

    /// The four runs: as it is, without it, with another component, configured.
    fn holds(&self) {
        let id = self.id;
        let seen = self.run(&json!({}));
        assert!((self.works)(&seen), "{id} works: {seen:?}");
        let seen = self.run(&json!({"disabled": true}));
        assert!(!(self.works)(&seen), "{id} is disabled: {seen:?}");
        let seen = self.run(&other());
        assert!(!(self.works)(&seen), "{id} is replaced: {seen:?}");
        assert!(
            seen.tools().contains(OTHER),
            "by what took its place: {seen:?}"
        );
        let seen = self.run(&self.patch);
        assert!((self.configured)(&seen), "{id} is configured: {seen:?}");
    }

    /// A run with these members in the patch of the row; it ends well whatever they are, but for one that the
    /// row saves.
    fn run(&self, members: &Value) -> Seen {
        let scratch = Scratch::new();
        (self.place)(&scratch);
        let script = scratch.script(&self.script);
        let mut patch = self.beside.clone();
        let mut row = members.clone();
        row["id"] = self.id.into();
        patch.as_array_mut().unwrap().push(row);
        let patch = scratch.write_beside("row.yml", &patch.to_string());
        let ended = scratch
            .dsh()
            .headless()
            .patch(script)
            .patch(patch)
            .args(["--strict", "Go"])
            .run();
        let seen = Seen::of(ended, scratch);
        let code = i32::from(self.fails_without && !(self.works)(&seen));
        assert_eq!(
            seen.ended.code,
            Some(code),
            "{}: {members}: {seen:?}",
            self.id
        );
        seen
    }
}

/// The tool of what is put in a row's place.
const OTHER: &str = "from_elsewhere";

/// A patch that puts another component in.
fn other() -> Value {
    let player = prober::named(&root().join("host/plugin"), "player");
    json!({
        "component": player.to_string_lossy(),
        "config": {"tools": [OTHER]},
        "defaults": {},
        "grants": {
            "clock": true, "session": true, "workspace": {"write": true},
            "decide": ["tools/pre-execute"], "approval": true, "tool-names": [OTHER],
        },
    })
}

/// What a run left.
struct Seen {
    ended: Ended,
    record: Record,
    scratch: Scratch,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?}", self.ended)?;
        for event in self.record.events() {
            if event.kind != Kind::AssistantChunk {
                let data: String = event.data.as_str().chars().take(200).collect();
                writeln!(f, "{} {data}", event.kind.as_str())?;
            }
        }
        Ok(())
    }
}

impl Seen {
    fn of(ended: Ended, scratch: Scratch) -> Self {
        let record = scratch.record();
        Self {
            ended,
            record,
            scratch,
        }
    }

    fn header(&self) -> Value {
        let headers = self.record.of(&Kind::RequestHeader);
        headers
            .first()
            .map_or(Value::Null, |event| data(event)["header"].clone())
    }

    fn system(&self) -> String {
        self.header()["system"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn tools(&self) -> BTreeSet<String> {
        let tools = self.header()["tools"].as_array().cloned();
        let tools = tools.unwrap_or_default();
        tools
            .iter()
            .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
            .collect()
    }

    /// The codes of what failed.
    fn codes(&self) -> BTreeSet<String> {
        let results = self.record.results();
        results.into_iter().filter_map(|(_, code)| code).collect()
    }

    /// The sources of messages of this plugin, or of this kind.
    fn said_by(&self, who: &str) -> String {
        let sources = self.data_of("user/message").into_iter();
        let sources = sources.map(|message| message["source"].clone());
        sources
            .filter(|source| source["plugin"] == who || source["kind"] == who)
            .map(|source| source.to_string())
            .collect()
    }

    /// What the tools gave.
    fn results(&self) -> String {
        let results = self.record.results();
        results.into_iter().map(|(text, _)| text + "\n").collect()
    }

    /// The texts of messages from this source.
    fn told(&self, source: &str) -> String {
        let messages = self.data_of("user/message");
        let own = messages
            .iter()
            .filter(|message| message["source"]["kind"] == source);
        own.map(|message| message["content"][0]["text"].as_str().unwrap_or_default())
            .collect()
    }

    /// What a list of sessions shows of the session under this key.
    fn view(&self, key: &str) -> Value {
        let ended = self.scratch.sessions_command(["list", "--json"]);
        let rows: Value = serde_json::from_str(&ended.stdout).unwrap();
        rows[0]["projections"]["values"][key].clone()
    }

    fn data_of(&self, kind: &str) -> Vec<Value> {
        let events = self.record.events().iter();
        events
            .filter(|event| event.kind.as_str() == kind)
            .map(|event| data(event))
            .collect()
    }
}

/// A script that calls one tool and ends.
fn calls(name: &str, arguments: &Value) -> Value {
    json!([{"calls": [{"name": name, "arguments": arguments}]}, {"text": "Done."}])
}

/// Two files that a model's window does not hold together.
fn long_files(scratch: &Scratch) {
    for name in ["a.txt", "b.txt"] {
        scratch.write(name, &"0123456789 0123456789 0123456789\n".repeat(1300));
    }
}

/// The scripted model, which reads both and holds less.
fn small_window() -> Value {
    let read = |name: &str| json!({"calls": [{"name": "read", "arguments": {"file_path": name}}]});
    let script = json!([read("a.txt"), read("b.txt"), {"text": "Done."}]);
    json!({"id": "llm-scripted", "config": {"script": script, "contextWindow": 30_000}})
}

fn bundles(home: &Path) -> Composition {
    let home = Home::resolve(Some(home.as_os_str()), None, Path::new("/")).unwrap();
    let tree = Profile::open(&home, "headless").unwrap();
    let tree = tree.compose(Scope::Bundles).unwrap();
    let inputs = Inputs {
        env: &Environment::default(),
        home: &home,
        settings: &Settings::default(),
        cwd: Path::new("/"),
    };
    tree.rows(&inputs).unwrap()
}

macro_rules! rows {
    ($($test:ident $id:literal { $($member:ident: $value:expr),* $(,)? })*) => {
        const TESTED: &[&str] = &[$($id),*];
        $(
            #[test]
            fn $test() {
                Row { $($member: $value,)* ..Row::new($id) }.holds();
            }
        )*
    };
}

rows! {
    the_row_that_spills "spill-policy" {
        script: calls("bash", &json!({"command": "seq 1 12000", "description": "Count"})),
        works: |seen| seen.results().contains("stored at"),
        patch: json!({"config": {"maxInlineBytes": 400}}),
        configured: |seen| seen.results().contains("stored at") && seen.results().len() <= 401,
    }
    the_row_that_limits_tools_in_time "timeout-policy" {
        script: calls("bash", &json!({"command": "sleep 1", "description": "Wait"})),
        beside: json!([{
            "id": "timeout-policy",
            "config": {"limits": [{"tool": "bash", "timeoutMs": 20}]},
        }]),
        works: |seen| seen.codes().contains("TOOL_TIMEOUT"),
        patch: json!({"config": {"limits": [{"tool": "glob", "timeoutMs": 20}]}}),
        configured: |seen| seen.codes().is_empty(),
    }
    the_row_that_guards_files_that_were_not_read "fs-observation-policy" {
        place: |scratch| drop(scratch.write("a.txt", "alpha")),
        script: calls("write", &json!({"file_path": "a.txt", "content": "beta"})),
        works: |seen| seen.codes().contains("FS_NOT_OBSERVED"),
        patch: json!({"config": {"unguarded": ["*.txt"]}}),
        configured: |seen| seen.scratch.read("a.txt") == "beta",
    }
    the_row_that_reminds_of_repeated_calls "repeat-tool-reminder" {
        place: |scratch| drop(scratch.write("a.txt", "alpha")),
        script: json!([
            {"times": 3, "calls": [{"name": "read", "arguments": {"file_path": "a.txt"}}]},
            {"text": "Done."},
        ]),
        works: |seen| seen.said_by("repeat-tool-reminder").contains("read × 3"),
        patch: json!({"config": {"thresholds": [2]}}),
        configured: |seen| seen.said_by("repeat-tool-reminder").contains("read × 2"),
    }
    the_row_that_summarises "compaction-basic" {
        place: long_files,
        beside: json!([{"id": "tool-result-pruner", "disabled": true}, small_window()]),
        works: |seen| seen.data_of("compaction/summary").len() == 1,
        patch: json!({"config": {"maxTokens": 99}}),
        configured: |seen| seen.data_of("compaction/summary")[0]["maxTokens"] == 99,
    }
    the_row_that_prunes "tool-result-pruner" {
        place: long_files,
        beside: json!([small_window()]),
        works: |seen| !seen.data_of("compaction/prune").is_empty(),
        patch: json!({"config": {"thresholdChars": 100_000}}),
        configured: |seen| {
            seen.data_of("compaction/prune").is_empty()
                && !seen.data_of("compaction/summary").is_empty()
        },
    }
    the_row_that_titles "session-title-llm" {
        works: |seen| seen.data_of("session/title-llm-request").len() == 1,
        patch: json!({"config": {"maxOutputTokens": 33}}),
        configured: |seen| seen.data_of("session/title-llm-request")[0]["maxTokens"] == 33,
    }
    the_row_that_retries "llm-retry" {
        script: json!([{"error": {"code": "SERVER", "message": "down", "status": 503}}, {"text": "Done."}]),
        works: |seen| seen.data_of("llm/retry").len() == 1,
        patch: json!({"config": {"maxDelayMs": 1}}),
        configured: |seen| seen.data_of("llm/retry")[0]["delayMs"].as_f64() <= Some(1.0),
        fails_without: true,
    }
    the_row_of_the_prompt "system-prompt" {
        works: |seen| !seen.system().is_empty(),
        patch: json!({"config": {"persona": "You mend clocks."}}),
        configured: |seen| seen.system().contains("You mend clocks."),
    }
    the_row_of_the_instruction_files "agent-instructions" {
        place: |scratch| {
            scratch.write("AGENTS.md", "Be brief.");
            scratch.write("HOWTO.md", "Be thorough.");
        },
        works: |seen| seen.told("agent-instructions").contains("Be brief."),
        patch: json!({"config": {"instructionFileCandidates": ["HOWTO.md"]}}),
        configured: |seen| {
            let told = seen.told("agent-instructions");
            told.contains("Be thorough.") && !told.contains("Be brief.")
        },
    }
    the_row_of_the_skills "skill-filesystem" {
        place: |scratch| {
            let skill = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nDo it.\n");
            scratch.write(".dsh/skills/near/SKILL.md", &skill("near"));
            scratch.write("elsewhere/far.md", &skill("far"));
        },
        works: |seen| seen.told("skill-catalog").contains("`near`") && seen.tools().contains("skill"),
        patch: json!({"config": {"customSkillDirs": ["elsewhere"]}}),
        configured: |seen| seen.told("skill-catalog").contains("`far`"),
    }
    the_row_of_the_time "time-context" {
        place: |scratch| drop(scratch.write("a.txt", "alpha")),
        script: calls("read", &json!({"file_path": "a.txt"})),
        // It comes disabled.
        beside: json!([{"id": "time-context", "disabled": false}]),
        works: |seen| seen.said_by("time-context").matches("time-context").count() == 1,
        patch: json!({"config": {"refreshIntervalMs": 0}}),
        configured: |seen| seen.said_by("time-context").matches("time-context").count() == 2,
    }
    the_row_of_bash "tool-bash" {
        works: |seen| seen.tools().contains("bash"),
        script: json!([{"text": "Done."}]),
        patch: json!({"config": {"escalation": false}}),
        configured: |seen| {
            let tools = seen.header()["tools"].to_string();
            tools.contains("\"bash\"") && !tools.contains("sandbox_permissions")
        },
    }
    the_row_of_the_file_tools "tool-fs" {
        script: calls("write", &json!({"file_path": "a.txt", "content": "alpha"})),
        works: |seen| seen.scratch.work().join("a.txt").exists(),
        // It has no configuration but what it may do.
        patch: json!({"grants": {"workspace": {}, "attachments": true}}),
        configured: |seen| {
            seen.tools().contains("write") && !seen.scratch.work().join("a.txt").exists()
        },
    }
    the_row_of_the_search_tools "tool-fs-search" {
        place: |scratch| {
            for at in 0..90 {
                scratch.write(&format!("{at}{}.txt", "-".repeat(120)), "");
            }
        },
        script: calls("glob", &json!({"pattern": "*.txt"})),
        works: |seen| seen.results().contains("89--"),
        // Nor has this.
        patch: json!({"limits": {"output": "8KiB"}}),
        configured: |seen| seen.tools().contains("glob") && !seen.results().contains("89--"),
    }
    the_row_of_the_stats "session-stats" {
        works: |seen| seen.view("sessionStats")["turns"] == 1,
        patch: json!({"config": {"key": "stats"}}),
        configured: |seen| seen.view("stats")["turns"] == 1 && seen.view("sessionStats").is_null(),
    }
    the_row_of_the_usage "token-meter" {
        works: |seen| seen.view("tokenUsage")["outputTokens"].as_u64() > Some(0),
        patch: json!({"config": {"key": "usage"}}),
        configured: |seen| seen.view("usage").is_object() && seen.view("tokenUsage").is_null(),
    }
    the_row_of_the_pressure "context-pressure" {
        works: |seen| seen.view("contextPressure")["contextWindow"].as_u64() > Some(0),
        patch: json!({"config": {"key": "pressure"}}),
        configured: |seen| seen.view("pressure").is_object() && seen.view("contextPressure").is_null(),
    }
    the_row_of_the_todo_list "tool-todo" {
        script: calls("todo_write", &json!({"todos": [
            {"content": "one", "status": "in_progress"},
            {"content": "two", "status": "in_progress"},
        ]})),
        works: |seen| !seen.data_of("todo/write").is_empty(),
        patch: json!({"config": {"allowParallelInProgress": false}}),
        configured: |seen| {
            seen.tools().contains("todo_write") && !seen.record.has(&Kind::TodoWrite)
        },
    }
}

/// A row that serves a model is the run's, or the run has another.
#[test]
fn the_row_of_deepseek() {
    let run = |members: Value| {
        let scratch = Scratch::new();
        let mock = Mock::start(vec![say("Done.").answer(), say("Done.").answer()]);
        let mut row = members;
        row["id"] = "llm-deepseek".into();
        let patch = scratch.write_beside("row.yml", &json!([row]).to_string());
        let dsh = scratch.dsh().provider(&mock).headless().patch(patch);
        (dsh.args(["--strict", "Go"]).run(), scratch)
    };
    let (ended, scratch) = run(json!({}));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        Seen::of(ended, scratch).header()["config"]["reasoningEffort"],
        "high"
    );
    let (ended, scratch) = run(json!({"config": {"reasoningEffort": "low"}}));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        Seen::of(ended, scratch).header()["config"]["reasoningEffort"],
        "low"
    );
    let (ended, _) = run(json!({"disabled": true}));
    assert!(
        ended.code == Some(1) && ended.stderr.contains("deepseek-official"),
        "{ended:?}"
    );
    let scripted = json!({
        "component": "dsh:llm-scripted",
        "config": {"script": [{"text": "Done."}]},
        "defaults": {},
        "grants": {"route": {"provider": "scripted"}},
    });
    let (ended, _) = run(scripted.clone());
    // Two rows cannot serve one provider, so the other has to go.
    assert!(
        ended.code == Some(1) && ended.stderr.contains("scripted"),
        "{ended:?}"
    );
    let scratch = Scratch::new();
    let mut row = scripted;
    row["id"] = "llm-deepseek".into();
    let patch = json!([row, {"id": "llm-scripted", "disabled": true}]);
    let patch = scratch.write_beside("row.yml", &patch.to_string());
    let dsh = scratch.dsh().headless().patch(patch);
    let ended = dsh
        .args(["--strict", "--model", "scripted/script", "Go"])
        .run();
    ended.answered("Done.");
}

#[test]
fn the_row_of_the_scripted_model() {
    let run = |members: Value| {
        let scratch = Scratch::new();
        let mut row = members;
        row["id"] = "llm-scripted".into();
        let patch = scratch.write_beside("row.yml", &json!([row]).to_string());
        let dsh = scratch.dsh().headless().patch(patch);
        dsh.args(["--strict", "--model", "scripted/script", "Go"])
            .run()
    };
    let exhausted = run(json!({}));
    assert!(
        exhausted.stderr.contains("SCRIPT_EXHAUSTED"),
        "{exhausted:?}"
    );
    run(json!({"config": {"script": [{"text": "Done."}]}})).answered("Done.");
    let ended = run(json!({"disabled": true}));
    assert!(
        ended.code == Some(1) && ended.stderr.contains("scripted"),
        "{ended:?}"
    );
    let ended = run(other());
    assert!(
        ended.code == Some(1) && ended.stderr.contains("scripted"),
        "{ended:?}"
    );
}

/// Rows that a test of their own is for.
const APART: [&str; 5] = [
    "llm-anthropic",
    "llm-deepseek",
    "llm-openai-completions",
    "llm-openai-responses",
    "llm-scripted",
];

#[test]
fn every_row_that_mounts_a_component_is_tested() {
    let scratch = Scratch::new();
    let bundles = bundles(&scratch.home());
    let mounted: BTreeSet<&str> = bundles
        .rows
        .iter()
        .filter(|row| matches!(row.implementation, Implementation::Component(_)))
        .map(|row| row.id.as_str())
        .collect();
    let tested: BTreeSet<&str> = TESTED.iter().chain(&APART).copied().collect();
    assert_eq!(tested, mounted);
}
