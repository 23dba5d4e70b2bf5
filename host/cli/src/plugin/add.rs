//! `dsh plugin add`.

use dsh_profile::{Installed, Lock, Packages, Profile, Terms, is_row_id};
use serde_json::json;

use super::consent::{self, Said, Unasked, Way};
use super::look::{self, Candidate};
use super::source::Source;
use super::taken::Taken;
use super::text::{self, shown};
use super::trust::{self, Signature};
use super::words::DEFAULT_PROFILE;
use super::{Desk, Done, Report, Stop, entry, fetch, given, names, patience};
use crate::arguments::usage;
use crate::report;
use crate::words::Words;

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    // All that can be wrong with the words comes before anything is fetched.
    let source = Source::read(words.one(), &desk.place.cwd).map_err(usage)?;
    let said = Said::read(words)?;
    let key = trust::key(words)?;
    let sha256 = trust::sha256(words)?;
    let ids = renamed(words)?;
    let limit = patience(words)?;
    let profile = open(desk)?;
    let lock = desk.lock(&profile)?;

    let from = source.text();
    let fetched = fetch::component(desk, &source, limit).map_err(Stop::of)?;
    let policy = profile.policy().map_err(Stop::of)?;
    let pinned = sha256.is_some();
    let terms = Terms {
        policy: policy.clone(),
        sha256,
        allow_downgrade: words.has("--allow-downgrade"),
        updating: None,
    };
    digest(&from, &fetched.bytes, &terms)?;
    let bytes = fetched.bytes.clone();
    let mut candidate = look::at(desk, &from, fetched.bytes)?;
    rename(&mut candidate, &ids)?;
    let before = lock.find(candidate.name());
    let signature = trust::check(
        &bytes,
        fetched.signature.as_deref(),
        key.as_ref(),
        before,
        &policy,
        &from,
    )?;
    let admitted = trust::admitted(&candidate, &from, &signature, before, &terms)?;
    if let Some(before) = before {
        if !admitted.same {
            return Err(Stop::of(format_args!(
                "{} {} is in the profile already; to take these bytes for it: dsh plugin update --from {} {}",
                before.name,
                shown(&before.version, 60),
                given::quoted(&from),
                before.name
            )));
        }
        return again(
            &profile,
            before,
            &candidate,
            (&bytes, fetched.signature.as_deref()),
        );
    }
    let taken = Taken::by_others(desk)?;
    let mut plugin = candidate.installed(&from);
    plugin.signature = signature.signed().cloned();
    let clash = taken.clash(&lock, &plugin, &candidate.ids);
    let clash = clash.or_else(|| taken.serves(candidate.name(), &candidate.providers()));
    if let Some(clash) = clash {
        return Err(Stop::of(clash));
    }

    let wanted = consent::all(&candidate.wants);
    let block = consent::about(&candidate, &from, &signature)
        + &remarks(&source, pinned, &admitted.remarks);
    let grants = match consent::way(&said, wanted, consent::somebody()) {
        Way::Grant(grants) => grants,
        Way::Ask(grants) => {
            consent::show(
                desk,
                &(block + &consent::wanted(&candidate.wants, &candidate.also)),
            );
            if !consent::ask(desk, "Add it?") {
                return Err(Stop::of("nothing was added"));
            }
            grants
        }
        Way::Refuse => {
            consent::show(
                desk,
                &(block + &consent::wanted(&candidate.wants, &candidate.also)),
            );
            return Err(consent::refuse(&Unasked {
                verb: "add",
                profile: &desk.name,
                object: &from,
                name: candidate.name(),
                wants: &candidate.wants,
                also: &candidate.also,
                grants: &consent::all(&candidate.wants),
            }));
        }
    };
    consent::useful(&candidate.description, &grants, candidate.name())?;
    plugin.grants = grants;
    plugin.granted_to.clone_from(&plugin.digest);
    let came = (&bytes[..], fetched.signature.as_deref());
    commit(&profile, &taken, &candidate, &plugin, came)?;
    Ok(added(
        desk, &candidate, &plugin, &signature, &source, pinned,
    ))
}

/// The profile; one that is new is made, and says so. `headless` makes itself everywhere.
fn open(desk: &Desk) -> Result<Profile, Stop> {
    let (profile, made) = Profile::open_or_make(&desk.place.home, &desk.name).map_err(Stop::of)?;
    if made && desk.name != DEFAULT_PROFILE {
        report::line(format_args!(
            "initialized profile {} at {}",
            profile.name(),
            profile.dir().display()
        ));
    }
    Ok(profile)
}

/// Told before anything of the bytes is looked at.
fn digest(from: &str, bytes: &[u8], terms: &Terms) -> Result<(), Stop> {
    let found = dsh_profile::digest(bytes);
    match &terms.sha256 {
        Some(expected) if *expected != found => Err(Stop::of(format_args!(
            "{} gave bytes with the digest {found}, and --sha256 says {expected}; do not use them unless you know why they differ",
            shown(from, 300)
        ))),
        _ => Ok(()),
    }
}

/// `--as ROW=ID`, in order.
fn renamed(words: &Words) -> Result<Vec<(String, String)>, Stop> {
    let one = |text: &str| {
        let (row, id) = text.split_once('=').ok_or_else(|| {
            usage(format_args!(
                "--as: write ROW=ID, for example --as weather=my-weather (found {text:?})"
            ))
        })?;
        if !is_row_id(id) {
            return Err(usage(format_args!(
                "--as: {id:?} is no id of a row: 1 to 64 letters, digits, `.`, `_` and `-`"
            )));
        }
        Ok((row.to_owned(), id.to_owned()))
    };
    words
        .values("--as")
        .map(|text| one(text).map_err(Stop::from))
        .collect()
}

fn rename(candidate: &mut Candidate, ids: &[(String, String)]) -> Result<(), Stop> {
    for (row, id) in ids {
        let names: Vec<String> = candidate
            .rows
            .iter()
            .map(|row| shown(&row.id, 64))
            .collect();
        let Some(found) = candidate.rows.iter_mut().find(|known| known.id == *row) else {
            return Err(Stop::of(format_args!(
                "--as: {} brings no row {row:?}; it brings {}",
                shown(candidate.name(), 140),
                text::list(&names)
            )));
        };
        found.id.clone_from(id);
    }
    for (index, row) in candidate.rows.iter().enumerate() {
        if candidate.rows[..index]
            .iter()
            .any(|other| other.id == row.id)
        {
            return Err(Stop::of(format_args!(
                "--as: two rows would have the id {}",
                row.id
            )));
        }
    }
    Ok(())
}

/// How what came is pinned, and what `admit` remarks.
pub(super) fn remarks(source: &Source, pinned: bool, remarks: &[String]) -> String {
    let mut text = String::new();
    if let Some(pin) = pin(source, pinned) {
        text += &format!("  note      {pin}\n");
    }
    for remark in remarks {
        text += &format!("  note      {}\n", shown(remark, 400));
    }
    text
}

/// That a digest was taken on trust.
fn pin(source: &Source, pinned: bool) -> Option<&'static str> {
    (matches!(source, Source::Https(_)) && !pinned).then_some(
        "no --sha256 was given, so these bytes are taken on trust now and pinned: others will be refused",
    )
}

/// What was checked without a lock is checked again with it, since another process may have been faster.
fn commit(
    profile: &Profile,
    taken: &Taken,
    candidate: &Candidate,
    plugin: &Installed,
    (came, signature): (&[u8], Option<&str>),
) -> Result<(), Stop> {
    let mut change = profile.change().map_err(Stop::of)?;
    if change.before().find(&plugin.name).is_some() {
        return Err(Stop::of(format_args!(
            "{} was added by another process meanwhile; dsh plugin list shows it",
            plugin.name
        )));
    }
    if let Some(clash) = taken.clash(change.before(), plugin, &candidate.ids) {
        return Err(Stop::of(clash));
    }
    store(change.packages(), candidate, plugin, came, signature)?;
    change.lock().put(plugin.clone());
    change.commit().map_err(Stop::of)
}

/// Puts the bytes, and a signature that was verified, where the lock will find them. Of a component that was made of a
/// core module, what came is kept too: it is what was signed.
pub(super) fn store(
    packages: &Packages,
    candidate: &Candidate,
    plugin: &Installed,
    came: &[u8],
    signature: Option<&str>,
) -> Result<(), Stop> {
    packages.put(&candidate.component).map_err(Stop::of)?;
    if plugin.fetched.is_some() {
        packages.put(came).map_err(Stop::of)?;
    }
    if let (Some(text), Some(_)) = (signature, &plugin.signature) {
        packages
            .put_signature(&candidate.given, text)
            .map_err(Stop::of)?;
    }
    Ok(())
}

/// The same bytes once more: nothing is decided anew, and a package that was lost or damaged is put back.
fn again(
    profile: &Profile,
    before: &Installed,
    candidate: &Candidate,
    came: (&[u8], Option<&str>),
) -> Done {
    let restored = heal(profile, before, candidate, came)?;
    let what = if restored {
        "was there already; its package was missing or damaged and is whole again"
    } else {
        "is there already, with these bytes"
    };
    let text = format!("{} {} {what}\n", before.name, shown(&before.version, 60));
    Ok(Report::new(
        text,
        json!({"added": false, "restored": restored, "plugin": entry::json(before)}),
    ))
}

/// Puts back what is missing of an installed plugin whose bytes came again; whether anything was.
pub(super) fn heal(
    profile: &Profile,
    before: &Installed,
    candidate: &Candidate,
    (came, signature): (&[u8], Option<&str>),
) -> Result<bool, Stop> {
    let change = profile.change().map_err(Stop::of)?;
    let packages = change.packages();
    let signed = before.signature.is_some();
    let whole = packages.read(&before.digest).is_ok()
        && before
            .fetched
            .as_ref()
            .is_none_or(|digest| packages.read(digest).is_ok())
        && (!signed || matches!(packages.signature(&candidate.given), Ok(Some(_))));
    if whole {
        // What a process that was stopped left is swept.
        change.commit().map_err(Stop::of)?;
        return Ok(false);
    }
    if candidate.description.digest != before.digest {
        return Err(Stop::of(format_args!(
            "{}: this dsh makes another component of these bytes than the one that is installed; dsh plugin remove {}, then add it",
            before.name, before.name
        )));
    }
    store(packages, candidate, before, came, signature)?;
    change.commit().map_err(Stop::of)?;
    Ok(true)
}

fn added(
    desk: &Desk,
    candidate: &Candidate,
    plugin: &Installed,
    signature: &Signature,
    source: &Source,
    pinned: bool,
) -> Report {
    let missing = consent::missing(&candidate.wants, &plugin.grants);
    let name = &plugin.name;
    let mut text = format!(
        "added {name} {} to the profile {}\n",
        shown(&plugin.version, 60),
        desk.name
    );
    let mut line = |head: &str, value: String| text += &format!("  {head:<9} {value}\n");
    line("rows", names::rows(plugin).join(", "));
    if !plugin.tools.is_empty() {
        line(
            "tools",
            plugin
                .tools
                .iter()
                .map(|tool| shown(tool, 64))
                .collect::<Vec<_>>()
                .join(", "),
        );
    }
    let granted: Vec<String> = plugin
        .grants
        .iter()
        .map(|(grant, what)| given::written(grant, what))
        .collect();
    line(
        "may",
        if granted.is_empty() {
            "nothing that needs a grant".to_owned()
        } else {
            shown(&granted.join(" "), 1000)
        },
    );
    for words in &candidate.also {
        line("it", shown(words, 300));
    }
    line(
        "sha256",
        plugin.fetched.as_ref().unwrap_or(&plugin.digest).clone(),
    );
    line("signed", signature.words());
    if let Some(pin) = pin(source, pinned) {
        line("note", pin.to_owned());
    }
    for grant in &missing {
        line(
            "note",
            format!(
                "without the grant {grant} it is left out of a run; dsh plugin grant {name} {grant}…"
            ),
        );
    }
    let profile = given::quoted(&desk.name);
    line("use it", format!("dsh --profile {profile} \"…\""));
    let of = if desk.name == DEFAULT_PROFILE {
        String::new()
    } else {
        format!(" --profile {profile}")
    };
    line("undo it", format!("dsh plugin remove {name}{of}"));
    Report::new(
        text,
        json!({
            "added": true,
            "plugin": entry::json(plugin),
            "wants": consent::wants_json(&candidate.wants),
            "also": candidate.also,
            "missing": missing,
            "pinned": if pinned { "given" } else { "first-use" },
        }),
    )
}

/// Whether nothing of `lock` is in the way; for `update`.
pub(super) fn free(taken: &Taken, lock: &Lock, plugin: &Installed) -> Result<(), Stop> {
    taken
        .clash(lock, plugin, &[])
        .map_or(Ok(()), |clash| Err(Stop::of(clash)))
}
