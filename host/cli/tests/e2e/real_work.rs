//! The tools do the real thing: a task in a scratch repository that runs its
//! tests, looks for the cause, edits the file and runs them again, by the
//! scripted model, under each runner.

use serde_json::{Value, json};

use crate::signals::runners;
use crate::support::Scratch;

fn repository() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".git/HEAD", "ref: refs/heads/main\n");
    scratch.write(
        "lib/total.sh",
        "# Adds up two prices.\ntotal() { echo $(($1 - $2)); }\n",
    );
    scratch.write("lib/names.sh", "greet() { echo \"Hello, $1\"; }\n");
    scratch.write(
        "test.sh",
        ". lib/total.sh\n\
         if [ \"$(total 2 3)\" = 5 ]; then echo all tests passed; exit 0; fi\n\
         echo \"FAILED: total 2 3 gives $(total 2 3)\"; exit 1\n",
    );
    scratch
}

fn bash(command: &str) -> Value {
    json!([{"name": "bash", "arguments": {"command": command, "description": "run the tests"}}])
}

fn script() -> Value {
    let call = |name: &str, arguments: Value| json!([{"name": name, "arguments": arguments}]);
    json!([
        {"match": "^Fix what fails", "calls": bash("sh test.sh")},
        {"match": "FAILED: total 2 3 gives -1", "calls": call("glob", json!({"pattern": "lib/*.sh"}))},
        {"match": "names\\.sh", "calls": call("grep", json!({"pattern": "^total\\("}))},
        {"match": "total\\.sh", "calls": call("read", json!({"file_path": "lib/total.sh"}))},
        {
            "match": "\\$1 - \\$2",
            "calls": call("edit", json!({
                "file_path": "lib/total.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"
            }))
        },
        {"calls": call("write", json!({"file_path": "CHANGES.md", "content": "- total adds\n"}))},
        {"calls": bash("sh test.sh && ls >listing")},
        {"match": "all tests passed", "text": "total subtracted; it adds now."},
    ])
}

#[test]
fn a_task_reads_greps_edits_and_runs_the_tests() {
    for runner in runners() {
        let scratch = repository();
        let patch = scratch.script(&script());
        scratch
            .dsh()
            .env("DSH_SANDBOX", runner)
            .headless()
            .patch(patch)
            .args(["Fix what fails"])
            .run()
            .answered("total subtracted; it adds now.");

        assert_eq!(
            scratch.read("lib/total.sh"),
            "# Adds up two prices.\ntotal() { echo $(($1 + $2)); }\n"
        );
        assert_eq!(scratch.read("CHANGES.md"), "- total adds\n");
        assert!(scratch.read("listing").contains("CHANGES.md"));
        assert!(scratch.read("lib/names.sh").contains("Hello"));

        let log = scratch.record();
        assert_eq!(log.turn_end(), json!({"kind": "completed"}));
        let results = log.results();
        assert_eq!(results.len(), 7);
        assert!(
            results.iter().all(|(_, code)| code.is_none()),
            "{runner}: {results:#?}"
        );
    }
}

/// What a command may write to is what its runner says, not what it asks for.
#[test]
fn a_command_cannot_write_outside_the_workspace() {
    for runner in runners() {
        let scratch = Scratch::new();
        let outside = scratch.user().join("planted");
        let home = scratch.home().join("planted");
        let command = format!(
            "echo x > inside; echo x > {}; echo x > {}",
            outside.display(),
            home.display()
        );
        let patch = scratch.script(&json!([{"calls": bash(&command)}, {"text": "Tried."}]));
        let ended = scratch
            .dsh()
            .env("DSH_SANDBOX", runner)
            .headless()
            .patch(patch)
            .args(["Try"])
            .run();
        ended.answered("Tried.");
        assert!(!outside.exists() && !home.exists(), "{runner}");
        assert_eq!(scratch.read("inside"), "x\n");
        let result = &scratch.record().results()[0];
        assert!(result.0.contains("[sandbox: "), "{runner}: {result:?}");
    }
}
