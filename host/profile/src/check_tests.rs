use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use dsh_check::Level;

use super::*;

fn home() -> (tempfile::TempDir, Home, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("home");
    let home = Home::resolve(Some(path.as_os_str()), None, Path::new("/")).unwrap();
    (temp, home, path)
}

fn look(home: &Home) -> Vec<Finding> {
    check_home(home, &Environment::default(), Path::new("/none"))
}

fn mode(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

#[track_caller]
fn told(found: &[Finding], level: Level, words: &[&str]) {
    let all =
        |one: &&Finding| one.level == level && words.iter().all(|word| one.what.contains(word));
    assert!(
        found.iter().any(|one| all(&one)),
        "{words:?} as {level} is not in {found:#?}"
    );
}

#[test]
fn a_home_that_is_not_there_is_told_and_not_made() {
    let (_temp, home, path) = home();
    let found = look(&home);
    told(
        &found,
        Level::Warning,
        &["there is no", "the first run makes it"],
    );
    assert!(
        found.iter().all(|one| one.level != Level::Wrong),
        "{found:#?}"
    );
    assert!(!path.exists());
}

#[test]
fn a_home_that_others_could_change_or_that_is_none_is_wrong() {
    let (_temp, home, path) = home();
    std::fs::create_dir(&path).unwrap();
    mode(&path, 0o755);
    told(&look(&home), Level::Ok, &["is yours and can be written"]);
    mode(&path, 0o775);
    told(
        &look(&home),
        Level::Warning,
        &["its group can write", "chmod go-w"],
    );
    mode(&path, 0o777);
    told(&look(&home), Level::Wrong, &["chmod go-w"]);
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    told(&look(&home), Level::Wrong, &["is no directory", "DSH_HOME"]);
}

#[test]
fn files_that_a_run_would_refuse_are_told_with_what_to_do() {
    let (_temp, home, path) = home();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("settings.yaml"), "- a\n").unwrap();
    std::fs::write(path.join(".credentials.yaml"), "version: 1\nrefs: {A: b}\n").unwrap();
    mode(&path.join(".credentials.yaml"), 0o644);
    std::fs::write(path.join(".env"), "DSH_HOME=/x\n").unwrap();
    std::fs::write(path.join("settings.yaml.lock"), "").unwrap();
    let found = look(&home);
    told(&found, Level::Wrong, &["settings.yaml", "mend it"]);
    told(&found, Level::Wrong, &[".credentials.yaml", "chmod 600"]);
    told(&found, Level::Wrong, &[".env", "DSH_HOME"]);
    told(&found, Level::Warning, &["settings.yaml.lock", "remove it"]);
    std::fs::write(path.join(".env"), "A=1\n").unwrap();
    mode(&path.join(".env"), 0o644);
    told(&look(&home), Level::Warning, &[".env", "chmod 600"]);
    std::fs::remove_file(path.join(".credentials.yaml")).unwrap();
    let bits = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path.join(".credentials.yaml"), bits).unwrap();
    told(
        &look(&home),
        Level::Wrong,
        &[".credentials.yaml", "not a regular file"],
    );
}

#[test]
fn a_lock_that_was_edited_by_hand_and_a_package_that_is_gone_are_told() {
    let (_temp, home, path) = home();
    let dir = path.join("profiles/p");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("profile.yml"), "bundles: [base]\n").unwrap();
    let profile = Profile::find(&home, "p").unwrap().unwrap();
    told(
        &check_installed(&home, &profile),
        Level::Ok,
        &["no plugins"],
    );
    mode(&dir.join("profile.yml"), 0o666);
    std::fs::create_dir(dir.join(".lock")).unwrap();
    let found = check_installed(&home, &profile);
    told(&found, Level::Wrong, &["profile.yml", "chmod go-w"]);
    told(&found, Level::Wrong, &[".lock is no file", "remove it"]);
    std::fs::write(dir.join("dsh.lock"), "nonsense [").unwrap();
    told(
        &check_installed(&home, &profile),
        Level::Wrong,
        &["dsh.lock"],
    );
}
