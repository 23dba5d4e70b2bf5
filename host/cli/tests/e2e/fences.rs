//! `$DSH_HOME` against what a model can have done: file tools and commands of a
//! whole run, in each mode, under each runner, wherever the workspace is.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use mock_provider::{Answer, Mock};
use serde_json::json;

use crate::support::{Scratch, can_confine, counter, say};

const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];

fn runners() -> Vec<&'static str> {
    let all = ["bwrap", "landlock"];
    all.into_iter()
        .filter(|runner| can_confine(runner))
        .collect()
}

/// What of a home only people and `dsh` itself write, by name; sessions, the
/// cache and the anonymous id are written by the run.
fn kept(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![home.to_owned()];
    while let Some(path) = open.pop() {
        let own = ["sessions", "cache", "storages", ".anonymous-user-id"];
        if own.iter().any(|name| path == home.join(name)) {
            continue;
        }
        if path.is_dir() {
            open.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
    }
    found
}

/// A home with something of each kind, at this place.
fn furnish(home: &Path) {
    for (file, text) in [
        ("settings.yaml", "{}\n"),
        ("cordis.patch.yml", "[]\n"),
        (".env", "SESAME=sesame\n"),
        (
            "profiles/headless/profile.yml",
            "bundles: [base, headless]\n",
        ),
        ("profiles/headless/cordis.patch.yml", "[]\n"),
        ("plugins/data/acme/kv", "sesame"),
    ] {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// What the model asks for: by each tool, by several names of the home.
fn attempts(home: &Path, work: &Path) -> Vec<Answer> {
    let (home, work) = (home.display(), work.display());
    let write = |path: String| ("write", json!({"file_path": path, "content": "forged"}));
    let mut calls = vec![
        (
            "read",
            json!({"file_path": format!("{home}/settings.yaml")}),
        ),
        (
            "read",
            json!({"file_path": format!("{home}/profiles/headless/cordis.patch.yml")}),
        ),
        write(format!("{home}/settings.yaml")),
        write(format!("{home}/profiles/headless/cordis.patch.yml")),
        write(format!("{home}/profiles/new/profile.yml")),
        write(format!("{home}/plugins/sha256/00")),
        write(format!("{work}/to-home/cordis.patch.yml")),
        write(format!("{work}/to-home/../.env")),
        write(format!("/proc/self/root{home}/new")),
        (
            "edit",
            json!({"file_path": format!("{home}/settings.yaml"), "old_string": "{}", "new_string": "a: 1"}),
        ),
        ("read", json!({"file_path": format!("{home}/.env")})),
        (
            "read",
            json!({"file_path": format!("{work}/to-home/plugins/data/acme/kv")}),
        ),
        (
            "grep",
            json!({"pattern": "sesame", "path": home.to_string()}),
        ),
    ];
    let dsh = env!("CARGO_BIN_EXE_dsh");
    let script = format!(
        "cd '{work}'; H='{home}'; for f in settings.yaml cordis.patch.yml new profiles/headless/dsh.lock; do \
         echo forged > $H/$f; rm -f $H/$f; mv $H/$f stolen; echo forged > to-home/$f; done; \
         mv $H away; rm -rf $H; mkdir other && mv -T other $H; rm to-home; \
         DSH_HOME=$H {dsh} plugin add --yes ./counter.wasm; DSH_HOME=$H {dsh} plugin grant acme:x journal; echo $?"
    );
    calls.push(("bash", json!({"command": script, "description": "try"})));
    let asked = calls
        .iter()
        .fold(say(""), |say, (name, arguments)| say.call(name, arguments));
    vec![asked.answer(), say("Tried.").answer()]
}

/// One run in which everything is tried; then nothing has changed.
fn tried(scratch: &Scratch, home: &Path, cwd: &Path, mode: &str, runner: &str) {
    let work = scratch.work();
    let link = work.join("to-home");
    if !link.is_symlink() {
        symlink(home, &link).unwrap();
    }
    scratch.put("counter.wasm", &counter("0.3.1"));
    let before = kept(home);
    let mock = Mock::start(attempts(home, &work));
    let ended = scratch
        .dsh()
        .provider(&mock)
        .env("DSH_HOME", home)
        .env("DSH_SANDBOX", runner)
        .headless()
        .args(["--permission", mode, "--cwd"])
        .arg(cwd)
        .args(["Go"])
        .run();
    let says = format!("{mode} under {runner} in {}: {ended:?}", cwd.display());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Tried.\n"),
        "{says}"
    );
    assert_eq!(kept(home), before, "{says}");
    // The model saw no secret, and its calls were refused rather than ignored.
    let requests = mock.requests();
    let told = requests.last().unwrap().text();
    assert!(!told.contains("SESAME=sesame"), "{says}");
    assert!(
        told.matches("FS_SANDBOX_DENIED").count() + told.matches("denied").count() > 5,
        "{told}"
    );
}

#[test]
fn h54_nothing_that_a_model_asks_for_changes_home_or_installs_a_plugin_in_any_mode() {
    for runner in runners() {
        for mode in MODES {
            let scratch = Scratch::new();
            let home = scratch.home();
            furnish(&home);
            tried(&scratch, &home, &scratch.work(), mode, runner);
        }
    }
}

/// So that the test above means something.
#[test]
fn without_the_guard_a_command_under_full_access_can_install_a_plugin() {
    let scratch = Scratch::new();
    furnish(&scratch.home());
    scratch.put("counter.wasm", &counter("0.3.1"));
    let patch = scratch.write_beside(
        "open.yml",
        "- id: sandbox-policy\n  config: {mode: danger-full-access, guardHome: false}\n",
    );
    let dsh = env!("CARGO_BIN_EXE_dsh");
    let script = format!("{dsh} plugin add --yes ./counter.wasm");
    let mock = Mock::start(vec![say("").bash(&script).answer(), say("Added.").answer()]);
    let run = scratch.dsh().provider(&mock).headless().patch(patch);
    run.args(["Go"]).run().answered("Added.");
    assert!(scratch.lock_text().contains("acme:counter"));
}

#[test]
fn home_holds_where_the_workspace_is_it_is_in_it_or_holds_it() {
    for runner in runners() {
        for mode in MODES {
            let scratch = Scratch::new();
            let home = scratch.user().join(".dsh");
            furnish(&home);
            for cwd in [scratch.user(), home.clone(), home.join("plugins")] {
                tried(&scratch, &home, &cwd, mode, runner);
            }
        }
    }
}

#[test]
fn home_is_known_where_it_is_mounted_again() {
    if !can_confine("bwrap") {
        return;
    }
    let scratch = Scratch::new();
    let home = scratch.home();
    furnish(&home);
    let alias = scratch.work().join("again");
    std::fs::create_dir(&alias).unwrap();
    let before = kept(&home);
    let file = alias.join("settings.yaml");
    let script = format!(
        "echo forged > {0}/new; echo forged > {0}/settings.yaml; cat {0}/.env",
        alias.display()
    );
    let mock = Mock::start(vec![
        say("")
            .call("read", &json!({"file_path": file}))
            .call("write", &json!({"file_path": file, "content": "forged"}))
            .call("read", &json!({"file_path": alias.join(".env")}))
            .bash(&script)
            .answer(),
        say("Tried.").answer(),
    ]);
    let status = std::process::Command::new("bwrap")
        .args(["--dev-bind", "/", "/", "--bind"])
        .args([&home, &alias])
        .arg(env!("CARGO_BIN_EXE_dsh"))
        .args([
            "--profile",
            "headless",
            "--permission",
            "workspace-write",
            "Go",
        ])
        .current_dir(scratch.work())
        .env("DSH_HOME", &home)
        .env("HOME", scratch.user())
        .env("DEEPSEEK_BASE_URL", mock.base_url())
        .env("DEEPSEEK_API_KEY", "sk-e2e")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&status.stdout),
        "Tried.\n",
        "{status:?}"
    );
    assert_eq!(kept(&home), before);
    let requests = mock.requests();
    let told = requests.last().unwrap().text();
    assert!(
        !told.contains("SESAME=sesame") && told.contains("dsh's own directory"),
        "{told}"
    );
}
