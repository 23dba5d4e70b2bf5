//! What a boot makes of a profile's `dsh.lock`: rows, their origin, their bytes,
//! and what is said of them where they cannot be used. The locks are written as
//! `dsh plugin add` writes them, by the same crate.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use dsh_profile::{Home, Installed, LockedRow, Packages, Profile};
use serde_json::{Value, json};

use crate::support::{Ended, Scratch, root};

/// A component that was built, from the root of the checkout.
fn built(path: &str) -> Vec<u8> {
    let path = root().join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A tool `c_count`, which needs no grant but its name.
const COUNT: &str = "target/guests/c.wasm";

/// The tool `bash`, which needs some.
const BASH: &str = "target/components/tool-bash.wasm";

trait Installing {
    fn installed_home(&self) -> Home;
    fn install(&self, profile: &str, name: &str, component: &str) -> String;
    fn installed_lock(&self) -> PathBuf;
    fn package(&self, digest: &str) -> PathBuf;
}

impl Installing for Scratch {
    fn installed_home(&self) -> Home {
        Home::resolve(Some(OsStr::new(&self.home())), None, Path::new("/")).unwrap()
    }

    /// Installs a component under a name; its row has the name's last part as id.
    fn install(&self, profile: &str, name: &str, component: &str) -> String {
        fs::create_dir_all(self.home()).unwrap();
        let (profile, _) = Profile::open_or_make(&self.installed_home(), profile).unwrap();
        let mut change = profile.change().unwrap();
        let digest = change.packages().put(&built(component)).unwrap();
        let (_, id) = name.split_once(':').unwrap();
        let tool = if component == COUNT {
            "c_count"
        } else {
            "bash"
        };
        let grants = json!({"tool-names": [tool]});
        change.lock().put(Installed {
            name: name.into(),
            version: "0.3.1".into(),
            source: "/from/here.wasm".into(),
            digest: digest.clone(),
            contract: "0.1.0".into(),
            grants: grants.as_object().unwrap().clone(),
            granted_to: digest.clone(),
            rows: vec![LockedRow {
                id: id.into(),
                ..LockedRow::default()
            }],
            ..Installed::default()
        });
        change.commit().unwrap();
        digest
    }

    fn installed_lock(&self) -> PathBuf {
        self.home().join("profiles/headless/dsh.lock")
    }

    fn package(&self, digest: &str) -> PathBuf {
        Packages::at(&self.installed_home()).path(digest)
    }
}

/// A task whose model makes these calls and answers `Done.`.
fn task(scratch: &Scratch, calls: &Value, options: &[&str], patch: &str) -> Ended {
    let script = if calls.as_array().is_some_and(Vec::is_empty) {
        json!([{"text": "Done."}])
    } else {
        json!([{"calls": calls}, {"text": "Done."}])
    };
    let scripted = scratch.script(&script);
    let patch = scratch.write_beside("own.yml", patch);
    let dsh = scratch.dsh().headless().patch(scripted).patch(patch);
    dsh.args(options.iter().copied()).args(["Do it"]).run()
}

fn count() -> Value {
    json!([{"name": "c_count", "arguments": {"text": "one"}}])
}

/// The one line that a run said, which answered all the same.
fn line(ended: &Ended) -> &str {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{ended:?}"
    );
    let mut lines = ended.stderr.lines();
    let line = lines.next().unwrap_or_else(|| panic!("{ended:?}"));
    assert_eq!(lines.next(), None, "{ended:?}");
    line
}

#[test]
fn an_installed_plugin_gives_its_tool_to_a_task() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    task(&scratch, &count(), &[], "").answered("Done.");
    let results = scratch.record().results();
    assert_eq!(results.len(), 1);
    assert!(
        results[0].0.ends_with("1 line ends") || results[0].0.contains("bytes"),
        "{results:?}"
    );
    assert_eq!(results[0].1, None);
}

#[test]
fn the_dump_shows_a_plugins_rows_under_its_name_and_patches_address_them() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    let patch = scratch.write_beside("own.yml", "- {id: count, config: {unit: x}}\n");
    let dump = |options: &[&str]| {
        let ended = scratch.dsh().headless().args(options.iter().copied()).run();
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), ""),
            "{ended:?}"
        );
        ended.stdout
    };
    let row = "- id: count\n  component: acme:count\n  grants:\n    tool-names:\n      - c_count\n";
    let plain = dump(&["--dump-config"]);
    assert!(
        plain.contains(&format!("# == acme:count 0.3.1\n{row}")),
        "{plain}"
    );
    let file = patch.display().to_string();
    let patched = dump(&["--patch", &file, "--dump-config"]);
    let wanted = format!("# == acme:count 0.3.1, patched by {file}\n{row}  config:\n    unit: x\n");
    assert!(patched.contains(&wanted), "{patched}");
    for option in ["--dump-default-config", "--safe"] {
        let options = if option == "--safe" {
            vec![option, "--dump-config"]
        } else {
            vec![option]
        };
        assert!(!dump(&options).contains("acme:count"), "{option}");
    }
}

#[test]
fn a_profile_of_upstreams_has_plugins_beside_its_manifest() {
    let scratch = Scratch::new();
    scratch.write_home(
        "profiles/theirs/package.json",
        r#"{"dsh":{"profile":{"bundles":["@deepseek-ai/dsh-base"]}}}"#,
    );
    scratch.install("theirs", "acme:count", COUNT);
    let ended = scratch
        .dsh()
        .args(["--profile", "theirs", "--dump-config"])
        .run();
    assert!(
        ended.stdout.contains("# == acme:count 0.3.1\n"),
        "{ended:?}"
    );
    assert!(!scratch.home().join("profiles/theirs/profile.yml").exists());
}

#[test]
fn a_package_that_is_gone_or_changed_costs_its_row_and_names_the_fix() {
    for damage in [None, Some(&b"\0asm"[..])] {
        let scratch = Scratch::new();
        let digest = scratch.install("headless", "acme:count", COUNT);
        let package = scratch.package(&digest);
        let says = match damage {
            None => {
                fs::remove_file(&package).unwrap();
                "is missing"
            }
            Some(bytes) => {
                fs::write(&package, bytes).unwrap();
                "is damaged: its digest is "
            }
        };
        let ended = task(&scratch, &json!([]), &[], "");
        let line = line(&ended);
        assert!(
            line.starts_with("dsh: row count is left out: acme:count 0.3.1: "),
            "{line}"
        );
        for part in [
            says,
            &package.display().to_string(),
            "`dsh plugin add /from/here.wasm`",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

#[test]
fn an_import_that_the_lock_does_not_grant_names_the_lock_and_the_command() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:shell", BASH);
    let ended = task(&scratch, &json!([]), &[], "");
    let line = line(&ended);
    let lock = scratch.installed_lock().display().to_string();
    for part in [
        "row shell is left out: acme:shell 0.3.1: it imports ",
        "`dsh plugin grant acme:shell session`",
        &lock,
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn a_tool_name_that_is_taken_stays_with_who_had_it() {
    // Of a bundle's row, although the plugin is granted all that it needs.
    let scratch = Scratch::new();
    scratch.install("headless", "acme:shell", BASH);
    let bash =
        json!([{"name": "bash", "arguments": {"command": "echo it", "description": "say it"}}]);
    let ended = task(
        &scratch,
        &bash,
        &[],
        "- {id: shell, grants: {session: true, process: shell, workspace: true, spill: true}}\n",
    );
    let told = line(&ended);
    assert!(
        told.contains("row shell") && told.contains("bash"),
        "{told}"
    );
    // Of an earlier plugin.
    let scratch = Scratch::new();
    scratch.install("headless", "acme:first", COUNT);
    scratch.install("headless", "acme:second", COUNT);
    let ended = task(&scratch, &count(), &[], "");
    let told = line(&ended);
    assert!(
        told.contains("row second") && told.contains("c_count"),
        "{told}"
    );
    assert_eq!(scratch.record().results()[0].1, None);
}

#[test]
fn the_tools_of_a_plugin_are_there_by_the_names_that_were_granted() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    let sound = fs::read_to_string(scratch.installed_lock()).unwrap();
    let none = sound.replace("tool-names", "clock = true\n# tool-names");
    assert_ne!(none, sound);
    fs::write(scratch.installed_lock(), none).unwrap();
    let ended = task(&scratch, &json!([]), &[], "");
    let told = line(&ended);
    for part in [
        "row count is left out: ",
        "the tool c_count",
        "`dsh plugin grant acme:count tool-names=c_count`",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_persons_own_row_mounts_an_installed_plugin() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    let patch =
        "- {id: count, disabled: true}\n- insert:\n    - {id: mine, component: 'acme:count'}\n";
    task(&scratch, &count(), &[], patch).answered("Done.");
    assert_eq!(scratch.record().results()[0].1, None);

    let scratch = Scratch::new();
    let patch = "- insert:\n    - {id: mine, component: 'acme:absent'}\n";
    let ended = task(&scratch, &json!([]), &[], patch);
    let line = line(&ended);
    assert!(
        line.contains("row mine: ") && line.contains("acme:absent"),
        "{line}"
    );
    assert!(line.contains("dsh plugin add"), "{line}");
}

#[test]
fn a_lock_that_was_edited_by_hand_costs_what_is_wrong_in_it() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    scratch.install("headless", "acme:shell", BASH);
    let sound = fs::read_to_string(scratch.installed_lock()).unwrap();
    let lock = scratch.installed_lock().display().to_string();

    // One plugin's entry: the other one is used.
    let (head, tail) = sound.split_once("name = \"acme:shell\"").unwrap();
    let edited = format!(
        "{head}name = \"acme:shell\"{}",
        tail.replacen("digest = \"", "digest = \"XX", 1)
    );
    fs::write(scratch.installed_lock(), edited).unwrap();
    let ended = task(&scratch, &count(), &[], "");
    let told = line(&ended);
    for part in [
        lock.as_str(),
        "plugin acme:shell: `digest`",
        "left out",
        "dsh plugin remove acme:shell",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(scratch.record().results()[0].1, None);

    // The whole file: nothing of it is used, everything else is.
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    fs::write(scratch.installed_lock(), "version = 1\n[[plugin\n").unwrap();
    let lock = scratch.installed_lock().display().to_string();
    let ended = task(&scratch, &json!([]), &[], "");
    let told = line(&ended);
    assert!(
        told.starts_with(&format!("dsh: {lock}:2: not TOML")),
        "{told}"
    );
    assert!(
        told.ends_with("all installed plugins are left out"),
        "{told}"
    );
    let scripted = scratch.script(&json!([{"text": "Done."}]));
    let ended = scratch
        .dsh()
        .headless()
        .patch(scripted)
        .args(["--strict", "Do it"])
        .run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("not TOML"), "{ended:?}");
    let ended = scratch.dsh().headless().args(["--dump-config"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("not TOML"), "{ended:?}");
    let ended = scratch
        .dsh()
        .headless()
        .args(["--safe", "--dump-config"])
        .run();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
}

#[test]
fn a_profile_that_requires_signatures_goes_without_what_has_none() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    for (policy, says) in [
        ("signatures: required", "the profile requires signatures"),
        ("signatures: sigstore", "cannot be checked in full"),
    ] {
        scratch.write_home(
            "profiles/headless/profile.yml",
            &format!("bundles: [base, headless]\n{policy}\n"),
        );
        let ended = task(&scratch, &json!([]), &[], "");
        assert!(line(&ended).contains(says), "{ended:?}");
    }
}

#[test]
fn grants_and_limits_of_a_lock_that_mean_nothing_name_it_and_the_command() {
    let scratch = Scratch::new();
    scratch.install("headless", "acme:count", COUNT);
    let sound = fs::read_to_string(scratch.installed_lock()).unwrap();
    let lock = scratch.installed_lock().display().to_string();
    for (member, says) in [
        (
            "[plugin.grants]\nhttp = 3\n",
            "`dsh plugin grant acme:count http=…`",
        ),
        (
            "[plugin.grants]\nnonsense = true\n",
            "`dsh plugin revoke acme:count nonsense`",
        ),
        (
            "[plugin.limits]\nmemory = \"much\"\n",
            "put `limits` for row count into cordis.patch.yml",
        ),
    ] {
        let (head, rows) = sound.split_once("[[plugin.rows]]").unwrap();
        // In the place of the grants that it has.
        let (head, _) = head.split_once("[plugin.grants]").unwrap();
        let edited = format!("{head}{member}\n[[plugin.rows]]{rows}");
        fs::write(scratch.installed_lock(), edited).unwrap();
        let ended = task(&scratch, &json!([]), &[], "");
        let told = line(&ended);
        for part in ["row count is left out: acme:count 0.3.1: ", says, &lock] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}

/// The official prompt, installed under another name: all its sections are taken.
#[test]
fn a_prompt_plugin_whose_sections_are_taken_costs_itself() {
    let scratch = Scratch::new();
    scratch.install(
        "headless",
        "acme:prompt",
        "target/components/prompt-base.wasm",
    );
    let ended = task(
        &scratch,
        &json!([]),
        &[],
        "- {id: prompt, grants: [session]}\n",
    );
    let told = line(&ended);
    for part in [
        "row prompt is left out of the prompt: row system-prompt has a section ",
        "dsh plugin disable prompt",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
