//! `dsh plugin verify`: what is installed, held against what was decided.
//!
//! Each finding is a line that says what is wrong, with what, and what mends it. Nothing is run and nothing is changed.

use dsh_plugin::{Description, Grants};
use dsh_profile::signature::{self, Key};
use dsh_profile::{Installed, Lock, Packages, Policy};
use serde_json::{Value, json};

use super::text::{short, shown};
use super::{Desk, Done, Report, Stop, consent, given, names};
use crate::words::Words;

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    let profile = desk.profile()?;
    let lock = profile.lock().map_err(Stop::of)?;
    let packages = Packages::at(&desk.place.home);
    let policy = profile.policy().map_err(Stop::of)?;
    let mut text = String::new();
    let mut all: Vec<Value> = Vec::new();
    let mut sound = true;
    for plugin in names::plugins(&lock, &words.arguments, &desk.name)? {
        let findings = findings(&plugin, &packages, &policy);
        sound &= findings.is_empty();
        let state = if findings.is_empty() { "ok" } else { "WRONG" };
        text += &format!(
            "{state:<6} {} {} ({})\n",
            plugin.name,
            shown(&plugin.version, 60),
            short(&plugin.digest)
        );
        for finding in &findings {
            text += &format!("       {finding}\n");
        }
        all.push(json!({"name": plugin.name, "version": plugin.version, "digest": plugin.digest, "ok": findings.is_empty(), "findings": findings}));
    }
    let faults = if words.arguments.is_empty() {
        faults(&lock)
    } else {
        Vec::new()
    };
    sound &= faults.is_empty();
    for fault in &faults {
        text += &format!("WRONG  {fault}\n");
    }
    // It costs time alone, so it is told and is nothing wrong.
    let cache = desk
        .engine()?
        .cache_problem()
        .map(|problem| shown(problem, 600));
    if let Some(problem) = &cache {
        text += &format!("note   {problem}\n");
    }
    if lock.plugins.is_empty() && faults.is_empty() {
        text += &format!("the profile {} has no plugins\n", desk.name);
    }
    let mut report = Report::new(
        text,
        json!({"sound": sound, "plugins": all, "faults": faults, "cache": cache}),
    );
    report.code = u8::from(!sound);
    Ok(report)
}

fn faults(lock: &Lock) -> Vec<String> {
    lock.faults().map(|fault| shown(fault, 1000)).collect()
}

/// All that is wrong with one plugin.
fn findings(plugin: &Installed, packages: &Packages, policy: &Policy) -> Vec<String> {
    let mut found = Vec::new();
    let source = given::quoted(&plugin.source);
    let again = format!("dsh plugin add {source} puts it back");
    let bytes = match packages.read(&plugin.digest) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            found.push(format!("{}; {again}", shown(&error.to_string(), 600)));
            None
        }
    };
    if !plugin.grants.is_empty() && plugin.granted_to != plugin.digest {
        found.push(format!(
            "its grants were given to {} and not to these bytes, so it has none; dsh plugin grant {} … decides anew",
            if plugin.granted_to.is_empty() { "nothing" } else { short(&plugin.granted_to) },
            plugin.name
        ));
    }
    if let Err(error) = Grants::parse(&Value::Object(plugin.grants.clone())) {
        found.push(format!(
            "{error}; dsh plugin grant {} … or revoke mends it",
            plugin.name
        ));
    }
    if let Some(objection) = policy.objection(plugin) {
        found.push(objection);
    }
    let Some(bytes) = bytes else {
        return found;
    };
    if let Some(finding) = signed(plugin, packages, &bytes) {
        found.push(finding);
    }
    match Description::read(&bytes) {
        Err(error) => found.push(format!("{}; {again}", shown(&error.to_string(), 600))),
        Ok(description) => {
            let named = description.manifest.as_ref().map(|manifest| {
                (
                    manifest.plugin.name.as_str(),
                    manifest.plugin.version.as_str(),
                )
            });
            if named != Some((plugin.name.as_str(), plugin.version.as_str())) {
                let (name, version) = named.unwrap_or(("nothing", ""));
                found.push(format!(
                    "the lock calls it {} {}, and its bytes say {} {}; dsh plugin remove {}, then {again}",
                    plugin.name, shown(&plugin.version, 60), shown(name, 140), shown(version, 60), plugin.name
                ));
            }
            for grant in plugin.granted().keys().filter(|grant| {
                consent::useful(
                    &description,
                    &std::iter::once(((*grant).clone(), Value::Bool(true))).collect(),
                    &plugin.name,
                )
                .is_err()
            }) {
                found.push(format!(
                    "it can make nothing of its grant {}; dsh plugin revoke {} {}",
                    shown(grant, 60),
                    plugin.name,
                    shown(grant, 60)
                ));
            }
        }
    }
    found
}

/// The signature again, over the bytes that were signed.
fn signed(plugin: &Installed, packages: &Packages, bytes: &[u8]) -> Option<String> {
    let signed = plugin.signature.as_ref()?;
    let again = format!("dsh plugin update {} fetches both again", plugin.name);
    let told = |error: &dyn std::fmt::Display| {
        Some(format!("{}; {again}", shown(&error.to_string(), 300)))
    };
    let came = match &plugin.fetched {
        None => bytes.to_vec(),
        Some(digest) => match packages.read(digest) {
            Ok(bytes) => bytes,
            Err(error) => return told(&error),
        },
    };
    let digest = plugin.fetched.as_ref().unwrap_or(&plugin.digest);
    let text = match packages.signature(digest) {
        Ok(Some(text)) => text,
        Ok(None) => return told(&"the lock says that it is signed, and its signature is gone"),
        Err(error) => return told(&error),
    };
    let verified = Key::parse(&signed.key).and_then(|key| signature::verify(&came, &text, &key));
    verified.err().and_then(|error| told(&error))
}
