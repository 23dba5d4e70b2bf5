//! What the components of the prompt tell the model in a whole run: instruction
//! files, skills and the time (spec/cli.md §8.2, §8.3; spec/loop.md §14).

use std::os::unix::fs::{PermissionsExt, symlink};

use dsh_session::Kind;
use mock_provider::Mock;
use serde_json::{Value, json};

use crate::compaction::{has_tools, is_compaction, small, working};
use crate::support::{Ended, Record, Scratch, data};

/// The messages of one source in the log: its source, and its text.
fn told(log: &Record, kind: &str) -> Vec<(Value, String)> {
    let messages = log.of(&Kind::UserMessage).into_iter().map(data);
    let own = messages.filter(|message| message["source"]["kind"] == kind);
    own.map(|message| {
        let blocks = message["content"].as_array().unwrap().clone();
        let texts = blocks.iter().map(|block| block["text"].as_str().unwrap());
        (
            message["source"].clone(),
            texts.collect::<Vec<_>>().join("\n"),
        )
    })
    .collect()
}

/// What each message said of which file.
fn changes(log: &Record) -> Vec<Vec<String>> {
    let told = told(log, "agent-instructions");
    let text = |change: &Value, member: &str| change[member].as_str().unwrap().to_owned();
    told.iter()
        .map(|(source, _)| {
            let changes = source["changes"].as_array().unwrap().iter();
            changes
                .map(|change| format!("{} {}", text(change, "action"), text(change, "path")))
                .collect()
        })
        .collect()
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn read(path: &str) -> Value {
    call("read", &json!({"file_path": path}))
}

/// Runs a task of a scripted model, in a project.
fn run(scratch: &Scratch, script: &Value, task: &str) {
    run_with(scratch, script, task, &[]);
}

fn run_with(scratch: &Scratch, script: &Value, task: &str, more: &[&str]) {
    let run = start(scratch, script, task, more);
    run.answered("Done.");
}

/// The lines on stderr of a run that is done.
fn warned(scratch: &Scratch, script: &Value, task: &str, more: &[&str]) -> Vec<String> {
    let run = start(scratch, script, task, more);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{run:?}"
    );
    run.stderr.lines().map(str::to_owned).collect()
}

fn start(scratch: &Scratch, script: &Value, task: &str, more: &[&str]) -> Ended {
    scratch.write(".git/HEAD", "ref: refs/heads/main\n");
    let patch = scratch.script(script);
    let dsh = scratch.dsh().headless().patch(patch);
    dsh.args(more.iter().copied()).args([task]).run()
}

fn skill(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n{more}---\nBody of {name}.\n")
}

fn done() -> Value {
    json!({"text": "Done."})
}

#[test]
fn instructions_are_told_when_they_apply_and_as_they_change() {
    let scratch = Scratch::new();
    scratch.write_home("AGENTS.md", "Mine.\n");
    scratch.write("AGENTS.md", "The project's.\n");
    scratch.write("a/b/CLAUDE.md", "Deep.\n");
    scratch.write("a/b/file", "text\n");
    let edit = json!({"file_path": "AGENTS.md", "old_string": "project", "new_string": "house"});
    let script = json!([
        read("a/b/file"),
        // Being told a file is not reading it.
        call("edit", &edit),
        read("AGENTS.md"),
        call("edit", &edit),
        call(
            "bash",
            &json!({"command": "rm a/b/CLAUDE.md", "description": "remove it"})
        ),
        done(),
        done(),
    ]);
    run(&scratch, &script, "go");
    let log = scratch.record();
    let home = scratch.home().canonicalize().unwrap();
    let mine = format!("set {}/AGENTS.md", home.display());
    assert_eq!(
        changes(&log),
        [
            vec![mine.as_str(), "set AGENTS.md"],
            vec!["set a/b/CLAUDE.md"],
            vec!["replace AGENTS.md"],
        ]
    );
    assert_eq!(log.results()[1].1.as_deref(), Some("FS_NOT_OBSERVED"));
    let texts = told(&log, "agent-instructions");
    assert!(texts[0].1.contains("Mine.") && texts[0].1.contains("The project's."));
    assert!(texts[2].1.contains("The house's."));

    // Another process repeats nothing, and tells what changed in between.
    let again = json!([done()]);
    run_with(&scratch, &again, "again", &["--resume", "last"]);
    run_with(&scratch, &again, "and again", &["--resume", "last"]);
    let all = changes(&scratch.record());
    assert_eq!(all[3..], [["remove a/b/CLAUDE.md"]]);
}

#[test]
fn what_a_compaction_put_away_is_told_again_before_the_next_request() {
    let scratch = Scratch::new();
    let patch = small(&scratch);
    scratch.write("AGENTS.md", "Be brief.\n");
    scratch.write(".dsh/skills/greet.md", &skill("greet", ""));
    let mock = Mock::with(working(3));
    let run = scratch.dsh().provider(&mock).headless().patch(&patch);
    run.args(["Work until it is done"])
        .run()
        .answered("It is done.");
    let log = scratch.record();
    assert_eq!(log.of(&Kind::CompactionEnd).len(), 3);
    let requests = mock.requests();
    let asked = |request: &&mock_provider::Recorded| has_tools(request) && !is_compaction(request);
    for request in requests.iter().filter(asked) {
        let told = |text| request.text().matches(text).count();
        assert_eq!((told("Be brief."), told("- `greet`")), (1, 1));
    }
    assert_eq!(told(&log, "agent-instructions").len(), 4);
}

#[test]
fn nothing_that_stands_where_instructions_would_hurts_a_run() {
    let scratch = Scratch::new();
    let work = scratch.work();
    std::fs::create_dir(work.join("AGENTS.md")).unwrap();
    let fifo = rustix::fs::mknodat(
        rustix::fs::CWD,
        work.join("CLAUDE.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    );
    fifo.unwrap();
    symlink("AGENTS.local.md", work.join("AGENTS.local.md")).unwrap();
    let closed = scratch.write("CLAUDE.local.md", "closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0)).unwrap();
    std::fs::create_dir_all(work.join(".dsh/skills")).unwrap();
    let skills = work.join(".dsh/skills");
    let huge = std::fs::File::create(skills.join("huge.md")).unwrap();
    huge.set_len(100 << 20).unwrap();
    symlink("loop", skills.join("loop")).unwrap();
    symlink(".", skills.join("self")).unwrap();
    std::fs::write(
        skills.join("bell.md"),
        "---\nname: be\u{7}ll\ndescription: d\n---\n",
    )
    .unwrap();
    let bomb = "k: &k [*k,*k,*k]\n".repeat(3_000);
    std::fs::write(
        skills.join("bomb.md"),
        format!("---\nname: bomb\ndescription: *k\n{bomb}---\n"),
    )
    .unwrap();
    std::fs::create_dir_all(skills.join("fine/SKILL.md")).unwrap();
    scratch.write(".dsh/skills/good/SKILL.md", &skill("good", ""));
    let lines = warned(&scratch, &json!([done()]), "go", &[]);
    for name in ["huge.md", "bell.md", "bomb.md"] {
        let about = |line: &&String| line.contains(&format!("/{name} is left out: "));
        assert_eq!(lines.iter().filter(about).count(), 1, "{name}: {lines:?}");
    }
    let own = [
        "dsh: row agent-instructions: ",
        "dsh: row skill-filesystem: ",
    ];
    assert!(
        lines
            .iter()
            .all(|line| own.iter().any(|own| line.starts_with(own))),
        "{lines:?}"
    );
    let log = scratch.record();
    // Root reads what it may not.
    let readable = std::fs::read(&closed).is_ok();
    let expected: Vec<Vec<&str>> = if readable {
        vec![vec!["set CLAUDE.local.md"]]
    } else {
        vec![]
    };
    assert_eq!(changes(&log), expected);
    let catalogs = told(&log, "skill-catalog");
    assert_eq!(names(&catalogs[0].0), ["good"]);
}

#[test]
fn no_row_is_led_to_the_secrets_of_the_home() {
    let scratch = Scratch::new();
    scratch.write_home(".env", "SESAME=1\n");
    symlink(
        scratch.home().join(".env"),
        scratch.work().join("AGENTS.md"),
    )
    .unwrap();
    let patch = "- id: agent-instructions\n  config: {userFile: !!js dshHomePath('.env')}\n";
    let patch = scratch.write_beside("patch.yml", patch);
    let lines = warned(
        &scratch,
        &json!([done()]),
        "go",
        &["--patch", patch.to_str().unwrap()],
    );
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line.contains(" is left out: ")),
        "{lines:?}"
    );
    let log = scratch.record();
    assert!(changes(&log).is_empty());
    assert!(
        log.events()
            .iter()
            .all(|event| !event.data.as_str().contains("SESAME"))
    );
}

#[test]
fn what_a_link_chose_and_what_is_no_skill_is_left_out_with_a_line() {
    let scratch = Scratch::new();
    scratch.write(".env", "SESAME=1\n");
    let private = scratch.write_beside("private/SKILL.md", &skill("private", "SESAME"));
    symlink(".env", scratch.work().join("AGENTS.md")).unwrap();
    scratch.write(".dsh/skills/broken.md", "---\nname: broken\n");
    scratch.write(".dsh/skills/good/SKILL.md", &skill("good", ""));
    symlink(
        private.parent().unwrap(),
        scratch.work().join(".dsh/skills/private"),
    )
    .unwrap();
    let lines = warned(&scratch, &json!([done()]), "/good, /god in /tmp", &[]);
    let about = |what: &[&str]| {
        let said = |line: &&String| what.iter().all(|part| line.contains(part));
        lines.iter().filter(said).count()
    };
    assert_eq!(
        about(&[
            "row agent-instructions: ",
            "AGENTS.md is left out",
            "credentials"
        ]),
        1,
        "{lines:?}"
    );
    assert_eq!(
        about(&[
            "row skill-filesystem: ",
            "private/SKILL.md is left out",
            "out of the project"
        ]),
        1,
        "{lines:?}"
    );
    assert_eq!(
        about(&["row skill-filesystem: ", "broken.md is left out"]),
        1,
        "{lines:?}"
    );
    assert_eq!(about(&["/god calls no skill"]), 1, "{lines:?}");
    assert_eq!(about(&["/good, calls no skill"]), 1, "{lines:?}");
    assert_eq!(lines.len(), 5, "{lines:?}");
    let log = scratch.record();
    let all = log.events().iter();
    assert!(
        all.into_iter()
            .all(|event| !event.data.as_str().contains("SESAME"))
    );
    assert_eq!(names(&told(&log, "skill-catalog")[0].0), ["good"]);
}

fn names(source: &Value) -> Vec<String> {
    let entries = source["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn skills_are_listed_loaded_called_and_refused() {
    let scratch = Scratch::new();
    scratch.write(".dsh/skills/greet/SKILL.md", &skill("greet", ""));
    scratch.write(
        ".dsh/skills/mine.md",
        &skill("mine", "disable-model-invocation: true\n"),
    );
    scratch.write_home("skills/homely/SKILL.md", &skill("homely", ""));
    scratch.write_home("skills/.system/SKILL.md", &skill("system", ""));
    let new = json!({"file_path": ".dsh/skills/new.md", "content": skill("new", "")});
    let named = |name: &str| call("skill", &json!({"name": name}));
    let script = json!([
        named("greet"),
        named("mine"),
        named("nobody"),
        call("write", &new),
        done()
    ]);
    run(&scratch, &script, "please /mine it");
    let log = scratch.record();
    let catalogs = told(&log, "skill-catalog");
    assert_eq!(names(&catalogs[0].0), ["greet", "homely"]);
    // What a tool writes into a folder of skills is listed at the next step.
    assert_eq!(names(&catalogs[1].0), ["greet", "homely", "new"]);
    assert_eq!(catalogs.len(), 2);
    let called = told(&log, "skill-invocation");
    assert_eq!(called[0].0["name"], "mine");
    assert!(called[0].1.contains("Body of mine."));
    let results = log.results();
    assert!(results[0].0.starts_with("<skill_content name=\"greet\">") && results[0].1.is_none());
    assert!(results[1].0.contains("for the person to call, by /mine"));
    assert_eq!(
        results[2].0,
        "Error: there is no skill \"nobody\"; there are greet, homely"
    );
}

#[test]
fn the_folders_of_skills_follow_the_environment_and_the_row() {
    let scratch = Scratch::new();
    for (place, name) in [
        ("agents/skills", "shared"),
        ("bundled", "bundled"),
        ("custom", "custom"),
    ] {
        scratch.write_beside(&format!("{place}/{name}/SKILL.md"), &skill(name, ""));
    }
    let place = |name: &str| scratch.work().join("..").join(name);
    let config = format!(
        "- id: skill-filesystem\n  config: {{customSkillDirs: [{}]}}\n",
        place("custom").display()
    );
    let patch = scratch.write_beside("patch.yml", &config);
    let script = scratch.script(&json!([done()]));
    let dsh = scratch.dsh().headless().patch(script).patch(patch);
    let dsh = dsh
        .env("DSH_AGENTS_HOME", place("agents"))
        .env("DSH_BUNDLED_SKILL_DIR", place("bundled"));
    dsh.args(["go"]).run().answered("Done.");
    let catalogs = told(&scratch.record(), "skill-catalog");
    assert_eq!(names(&catalogs[0].0), ["bundled", "custom", "shared"]);
}

#[test]
fn a_narrower_grant_hides_what_it_does_not_name() {
    let scratch = Scratch::new();
    scratch.write_home("AGENTS.md", "Mine.\n");
    scratch.write_home("skills/homely/SKILL.md", &skill("homely", ""));
    scratch.write("AGENTS.md", "The project's.\n");
    scratch.write(".dsh/skills/near.md", &skill("near", ""));
    let grants =
        "{workspace: {read: [.]}, session: true, observe: [fs/observed], decide: [agent/pre-step]}";
    let rows = ["agent-instructions", "skill-filesystem"];
    let patch = rows
        .map(|id| format!("- id: {id}\n  grants: {grants}\n"))
        .concat();
    let patch = scratch.write_beside("patch.yml", &patch);
    run_with(
        &scratch,
        &json!([done()]),
        "go",
        &["--patch", patch.to_str().unwrap()],
    );
    let log = scratch.record();
    assert_eq!(changes(&log), [["set AGENTS.md"]]);
    assert_eq!(names(&told(&log, "skill-catalog")[0].0), ["near"]);
}

#[test]
fn the_time_is_told_where_a_patch_switches_it_on() {
    let scratch = Scratch::new();
    let on = "- id: time-context\n  disabled: false\n  config: {refreshIntervalMs: 0}\n";
    let patch = scratch.write_beside("patch.yml", on);
    scratch.write("file", "text");
    let script = json!([read("file"), done()]);
    run_with(
        &scratch,
        &script,
        "go",
        &["--patch", patch.to_str().unwrap()],
    );
    let log = scratch.record();
    let told = told(&log, "plugin");
    let times: Vec<_> = told
        .iter()
        .filter(|(source, _)| source["plugin"] == "time-context")
        .collect();
    let steps: Vec<_> = times
        .iter()
        .map(|(source, _)| source["step"].clone())
        .collect();
    assert_eq!(steps, [1, 2]);
    let header = log.inspection.header.created_at;
    let elapsed = |source: &Value| {
        source["timestamp"].as_u64().unwrap() - source["elapsedMs"].as_u64().unwrap()
    };
    assert_eq!(elapsed(&times[0].0), header);
}
