//! Whether `$DSH_HOME` and a profile in it are sound. Every file is read as a
//! run reads it, so that what is told here is what a run would say.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dsh_check::Finding;
use rustix::fs::Access;

use crate::{CredentialStore, Environment, Error, Home, Packages, Profile, Settings};

/// Files of locks that are held by being there (spec/cli.md §3).
const LOCK_FILES: [&str; 2] = ["settings.yaml.lock", ".credentials.yaml.lock"];

/// The directory itself, and the files in it that are not of a profile. `env`
/// is the inherited environment.
pub fn check_home(home: &Home, env: &Environment, cwd: &Path) -> Vec<Finding> {
    let path = home.path();
    let at = path.display();
    let mut found = vec![directory(path)];
    match Settings::load(home) {
        Ok(_) => found.push(Finding::ok(file(path, "settings.yaml"))),
        Err(error) => found.push(Finding::wrong(told(&error, "mend it, or move it away"))),
    }
    match CredentialStore::open(home, env.clone()) {
        Ok(_) => found.push(Finding::ok(file(path, ".credentials.yaml"))),
        Err(error) => found.push(Finding::wrong(told(&error, "mend it, or move it away"))),
    }
    match env.clone().with_files(cwd, path) {
        Ok(env) => {
            let mut unread = env.warnings().iter().peekable();
            if unread.peek().is_none() {
                found.push(Finding::ok(file(path, ".env")));
            }
            found.extend(
                unread.map(|line| Finding::wrong(format_args!("{line}; make it readable"))),
            );
        }
        Err(error) => found.push(Finding::wrong(error)),
    }
    if let Ok(meta) = path.join(".env").metadata()
        && meta.mode() & 0o077 != 0
    {
        found.push(Finding::warning(format_args!(
            "{at}/.env can be read by others; where it holds keys: chmod 600 {at}/.env"
        )));
    }
    found.extend(
        ["settings.yaml", "cordis.patch.yml", "profiles", "plugins"]
            .iter()
            .filter_map(|name| loose(&path.join(name))),
    );
    for name in LOCK_FILES {
        if path.join(name).symlink_metadata().is_ok() {
            found.push(Finding::warning(format_args!(
                "{at}/{name} is there, and stops whoever else writes that file until it is removed; \
                 if no DeepSeek Harness runs, its writer has died: remove it"
            )));
        }
    }
    found
}

/// Says so where others can write to what decides what `dsh` does. A group is
/// often a person's own, so that is a warning.
fn loose(path: &Path) -> Option<Finding> {
    let mode = path.metadata().ok()?.mode();
    let at = path.display();
    let told = |who: &str| {
        format!("{who} can write to {at}, and so change what dsh does; chmod go-w {at}")
    };
    match (mode & 0o002, mode & 0o020) {
        (0, 0) => None,
        (0, _) => Some(Finding::warning(told("its group"))),
        _ => Some(Finding::wrong(told("others"))),
    }
}

/// A file that was read without a fault, or is not there.
fn file(home: &Path, name: &str) -> String {
    let path = home.join(name);
    let state = if path.exists() {
        "is sound"
    } else {
        "is not there, and need not be"
    };
    format!("{} {state}", path.display())
}

/// An error with what to do, where it does not say itself.
fn told(error: &Error, fix: &str) -> String {
    let text = error.to_string();
    if text.contains("chmod") || text.contains(';') {
        text
    } else {
        format!("{text}; {fix}")
    }
}

fn directory(path: &Path) -> Finding {
    let at = path.display();
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::warning(format_args!(
                "there is no {at} yet; the first run makes it, and a profile `headless` in it"
            ));
        }
        Err(error) => {
            return Finding::wrong(format_args!(
                "cannot look at {at}: {error}; set DSH_HOME to a directory that dsh may use"
            ));
        }
    };
    if !meta.is_dir() {
        return Finding::wrong(format_args!(
            "{at} is no directory; set DSH_HOME to one that dsh may use, or move it away"
        ));
    }
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() != me {
        return Finding::wrong(format_args!(
            "{at} belongs to user {}, not to you ({me}), who could change what dsh does; set DSH_HOME \
             to a directory of yours",
            meta.uid()
        ));
    }
    if let Some(found) = loose(path) {
        return found;
    }
    if rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Finding::wrong(format_args!(
            "{at} cannot be written; chmod u+rwx {at}, or set DSH_HOME to a directory that dsh may use"
        ));
    }
    Finding::ok(format_args!("{at} is yours and can be written"))
}

/// What a profile has installed: its lock, and the bytes of each package.
pub fn check_installed(home: &Home, profile: &Profile) -> Vec<Finding> {
    let mut found = Vec::new();
    let path = profile.lock_path();
    let at = path.display();
    let files = ["", "profile.yml", "cordis.patch.yml", "dsh.lock"];
    let files = files.iter().map(|name| profile.dir().join(name));
    found.extend(files.filter_map(|file| loose(&file.components().collect::<PathBuf>())));
    let held = profile.dir().join(".lock");
    if held.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        found.push(Finding::wrong(format_args!(
            "{} is no file, so no `dsh plugin` command can change the profile; remove it",
            held.display()
        )));
    }
    if let Err(error) = profile.policy() {
        found.push(Finding::wrong(error));
    }
    let lock = match profile.lock() {
        Ok(lock) => lock,
        Err(error) => {
            found.push(Finding::wrong(told(
                &error,
                "its plugins are left out; put back a copy, or remove it and add them again",
            )));
            return found;
        }
    };
    found.extend(lock.faults().map(Finding::wrong));
    let packages = Packages::at(home);
    for plugin in &lock.plugins {
        let signed = plugin.fetched.as_ref().unwrap_or(&plugin.digest);
        if plugin.signature.is_some() && !matches!(packages.signature(signed), Ok(Some(_))) {
            found.push(Finding::wrong(format_args!(
                "{at}: {}: it is said to be signed, and its signature is not there; run `dsh plugin \
                 verify`, and add it again from {}",
                plugin.label(),
                plugin.source
            )));
        }
        match packages.read(&plugin.digest) {
            Ok(_) if plugin.granted_to != plugin.digest && !plugin.grants.is_empty() => {
                found.push(Finding::wrong(format_args!(
                    "{at}: {}: its grants were given to other bytes, so it has none; run `dsh plugin \
                     update {}`, or grant them again",
                    plugin.label(),
                    plugin.name
                )));
            }
            Ok(_) => found.push(Finding::ok(format_args!(
                "{} is as it was pinned",
                plugin.label()
            ))),
            Err(error) => found.push(Finding::wrong(format_args!(
                "{}: {error}; run `dsh plugin add {}`",
                plugin.label(),
                plugin.source
            ))),
        }
    }
    if lock.plugins.is_empty() && found.is_empty() {
        found.push(Finding::ok(format_args!("no plugins are installed ({at})")));
    }
    found
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
