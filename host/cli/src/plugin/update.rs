//! `dsh plugin update`: the same source once more, or another one.
//!
//! What changes is shown, what it wants first. Grants carry over only for what is still wanted, as they were given, also
//! where they are narrower than the wish; they count for the new digest because the person who runs this said so. Where
//! it wants more, that is a decision of its own. One plugin that cannot be updated keeps no other from it.

use dsh_plugin::want::{self, Difference};
use dsh_plugin::{Description, Offered};
use dsh_profile::{Installed, Packages, Profile, Terms};
use serde_json::{Map, Value, json};

use super::consent::{self, Said, Unasked, Way};
use super::look::Candidate;
use super::source::Source;
use super::taken::Taken;
use super::text::{list, short, shown};
use super::trust::{self, Signature};
use super::words::DEFAULT_PROFILE;
use super::{Desk, Done, Report, Stop, add, entry, fetch, given, look, names, patience};
use crate::arguments::usage;
use crate::report;
use crate::words::Words;

/// What every update of one command shares.
struct Order {
    said: Said,
    key: Option<dsh_profile::signature::Key>,
    sha256: Option<String>,
    from: Option<Source>,
    dry: bool,
    allow_downgrade: bool,
    limit: std::time::Duration,
}

/// What became of one plugin.
struct Outcome {
    text: String,
    json: Value,
}

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    let from = words
        .value("--from")
        .map(|text| Source::read(text, &desk.place.cwd))
        .transpose()
        .map_err(usage)?;
    let order = Order {
        said: Said::read(words)?,
        key: trust::key(words)?,
        sha256: trust::sha256(words)?,
        from,
        dry: words.has("--dry-run"),
        allow_downgrade: words.has("--allow-downgrade"),
        limit: patience(words)?,
    };
    let profile = desk.profile()?;
    let lock = desk.lock(&profile)?;
    let plugins = names::plugins(&lock, &words.arguments, &desk.name)?;
    let single = [
        ("--from", order.from.is_some()),
        ("--sha256", order.sha256.is_some()),
        ("--key", order.key.is_some()),
    ];
    if let Some((flag, _)) = single
        .iter()
        .find(|(_, given)| *given && plugins.len() != 1)
    {
        return Err(usage(format_args!(
            "dsh plugin update: {flag} is about one plugin; name it"
        ))
        .into());
    }
    let mut report = Report::new(String::new(), json!({}));
    let mut updates = Vec::new();
    let mut taken = None;
    for plugin in &plugins {
        match one(desk, &profile, plugin, &order, &mut taken) {
            Ok(outcome) => {
                report.text += &outcome.text;
                updates.push(outcome.json);
            }
            Err(stop) if plugins.len() == 1 => return Err(stop),
            Err(stop) => {
                report.code = 1;
                report::line(stop.failure.message());
                let mut json = json!({"name": plugin.name, "status": "failed", "error": {"message": stop.failure.message()}});
                if let Some(members) = json.as_object_mut() {
                    members.extend(stop.json);
                }
                updates.push(json);
            }
        }
    }
    if plugins.is_empty() {
        report.text = format!("the profile {} has no plugins\n", desk.name);
    }
    report
        .json
        .insert("updates".to_owned(), Value::Array(updates));
    Ok(report)
}

fn one(
    desk: &Desk,
    profile: &Profile,
    before: &Installed,
    order: &Order,
    taken: &mut Option<Taken>,
) -> Result<Outcome, Stop> {
    let name = &before.name;
    let source = match &order.from {
        Some(source) => source.clone(),
        None => Source::read(&before.source, &desk.place.cwd)
            .map_err(|error| Stop::of(format_args!("{name}: {error}")))?,
    };
    let from = source.text();
    let fetched = fetch::component(desk, &source, order.limit).map_err(|error| {
        Stop::of(format_args!(
            "{name}: {error}; dsh plugin update --from SOURCE {name} takes it from elsewhere"
        ))
    })?;
    let policy = profile.policy().map_err(Stop::of)?;
    let terms = Terms {
        policy: policy.clone(),
        sha256: order.sha256.clone(),
        allow_downgrade: order.allow_downgrade,
        updating: Some(name.clone()),
    };
    let bytes = fetched.bytes.clone();
    let mut candidate = look::at(desk, &from, fetched.bytes)?;
    let signature = trust::check(
        &bytes,
        fetched.signature.as_deref(),
        order.key.as_ref(),
        Some(before),
        &policy,
        &from,
    )?;
    let admitted = trust::admitted(&candidate, &from, &signature, Some(before), &terms)?;
    if admitted.same && from == before.source && signature.signed() == before.signature.as_ref() {
        let restored = !order.dry
            && add::heal(
                profile,
                before,
                &candidate,
                (&bytes, fetched.signature.as_deref()),
            )?;
        let and = if restored {
            "; its package was missing or damaged and is whole again"
        } else {
            ""
        };
        return Ok(Outcome {
            text: format!(
                "{name} {} has not changed{and}\n",
                shown(&before.version, 60)
            ),
            json: json!({"name": name, "status": "unchanged", "plugin": entry::json(before)}),
        });
    }
    keep_ids(before, &mut candidate);
    let mut plugin = candidate.installed(&from);
    plugin.disabled = before.disabled;
    plugin.signature = signature.signed().cloned();
    let taken = match taken {
        Some(taken) => taken,
        None => taken.insert(Taken::by_others(desk)?),
    };
    add::free(taken, &desk.lock(profile)?, &plugin)?;
    if let Some(clash) = taken.serves(name, &candidate.providers()) {
        return Err(Stop::of(clash));
    }

    let had = before.granted();
    let difference = want::difference(&had, &candidate.wants);
    // Gone or damaged, it has nothing to compare with.
    let old = Packages::at(&desk.place.home).read(&before.digest).ok();
    let old = old.and_then(|bytes| Description::read(&bytes).ok());
    let news = News {
        difference,
        also: also_new(old.as_ref(), &candidate.description),
    };
    let changes = changes(
        (before, old.as_ref()),
        &plugin,
        &candidate,
        &news,
        &signature,
    );
    let block =
        block(before, &candidate, &changes) + &add::remarks(&source, true, &admitted.remarks);
    let mut json = json!({
        "name": name,
        "status": if order.dry { "would-update" } else { "updated" },
        "from": {"version": before.version, "digest": before.digest, "source": before.source},
        "to": {"version": plugin.version, "digest": plugin.digest, "source": plugin.source},
        "more": consent::wants_json(&news.difference.more),
        "less": news.difference.less,
        "same": news.difference.same,
        "also": news.also,
        "changes": changes.other,
    });
    if order.dry {
        return Ok(Outcome { text: block, json });
    }
    let kept = carried(&had, &candidate);
    plugin.grants = decide(desk, order, before, &candidate, &news, kept, &block)?;
    plugin.granted_to.clone_from(&plugin.digest);
    let came = (&bytes[..], fetched.signature.as_deref());
    commit(profile, taken, before, &candidate, &plugin, came)?;
    desk.sweep();
    let missing = consent::missing(&candidate.wants, &plugin.grants);
    let mut text = block;
    text += &format!(
        "updated {name} to {} ({})\n",
        shown(&plugin.version, 60),
        short(&plugin.digest)
    );
    for grant in &missing {
        text += &format!(
            "  note      without the grant {grant} it is left out of a run; dsh plugin grant {name} {grant}…\n"
        );
    }
    json["plugin"] = entry::json(&plugin);
    json["missing"] = json!(missing);
    Ok(Outcome { text, json })
}

/// What a person has to decide again.
struct News {
    difference: Difference,
    /// What it does now without any grant, and did not before.
    also: Vec<String>,
}

impl News {
    fn is_nothing(&self) -> bool {
        self.difference.asks_nothing() && self.also.is_empty()
    }
}

/// Where the old version cannot be read, all of it is new.
fn also_new(old: Option<&Description>, new: &Description) -> Vec<String> {
    let offered = Offered::default();
    let known = old.map(|old| want::also(old, &offered)).unwrap_or_default();
    let mut news = want::also(new, &offered);
    news.retain(|words| !known.contains(words));
    news
}

/// A row that a person named otherwise keeps that name, and its state.
fn keep_ids(before: &Installed, candidate: &mut Candidate) {
    let manifest = candidate.rows.clone();
    for (index, row) in candidate.rows.iter_mut().enumerate() {
        // Rows are told apart by their ids; where a person chose those, by their places.
        let same = before.rows.iter().find(|old| old.id == row.id);
        let renamed = || {
            let old = before.rows.get(index)?;
            (before.rows.len() == manifest.len() && manifest.iter().all(|row| row.id != old.id))
                .then_some(old)
        };
        if let Some(old) = same.or_else(renamed) {
            row.id.clone_from(&old.id);
            row.disabled = old.disabled;
        }
    }
}

/// Grants as they were given, for what is still wanted. A list of which some is wanted no more is cut to what is.
fn carried(had: &Map<String, Value>, candidate: &Candidate) -> Map<String, Value> {
    let mut kept = Map::new();
    for want in &candidate.wants {
        let Some(what) = had.get(&want.grant) else {
            continue;
        };
        let own = Map::from_iter([(want.grant.clone(), what.clone())]);
        let between = want::difference(&own, std::slice::from_ref(want));
        let what = if between.less.is_empty() || !between.more.is_empty() {
            what
        } else {
            &want.parameters
        };
        kept.insert(want.grant.clone(), what.clone());
    }
    kept
}

fn decide(
    desk: &Desk,
    order: &Order,
    before: &Installed,
    candidate: &Candidate,
    news: &News,
    kept: Map<String, Value>,
    block: &str,
) -> Result<Map<String, Value>, Stop> {
    if order.said == Said::Nothing && news.is_nothing() {
        return Ok(kept);
    }
    let mut wanted = kept;
    for want in &news.difference.more {
        wanted.insert(want.grant.clone(), want.parameters.clone());
    }
    let grants = match consent::way(&order.said, wanted.clone(), consent::somebody()) {
        Way::Grant(grants) => grants,
        Way::Ask(grants) => {
            consent::show(desk, block);
            if !consent::ask(desk, "Update it, and allow it that too?") {
                return Err(Stop::of(format_args!(
                    "{} stays at {}",
                    before.name,
                    shown(&before.version, 60)
                )));
            }
            grants
        }
        Way::Refuse => {
            consent::show(desk, block);
            return Err(consent::refuse(&Unasked {
                verb: "update",
                profile: &desk.name,
                object: &before.name,
                name: &before.name,
                wants: &news.difference.more,
                also: &news.also,
                grants: &wanted,
            }));
        }
    };
    consent::useful(&candidate.description, &grants, candidate.name())?;
    Ok(grants)
}

/// What is not about grants, and changes.
struct Changes {
    /// Of what it wants: lines with `+` and `-`.
    wants: String,
    other: Vec<String>,
}

/// The limits that a manifest asks for.
fn asked(description: &Description) -> String {
    let manifest = description.manifest.as_ref();
    manifest.map_or_else(String::new, |manifest| consent::limits(&manifest.limits))
}

fn changes(
    (before, old): (&Installed, Option<&Description>),
    after: &Installed,
    candidate: &Candidate,
    news: &News,
    signature: &Signature,
) -> Changes {
    let difference = &news.difference;
    let mut wants = String::new();
    if !difference.more.is_empty() {
        wants += "It wants more than it has; given that, it also\n";
        wants += &consent::sentences(&difference.more);
    }
    if !difference.less.is_empty() {
        wants += "It has this and wants it no more, so it goes:\n";
        for words in &difference.less {
            wants += &format!("  - {}\n", shown(words, 300));
        }
    }
    if !news.also.is_empty() {
        wants += "Whatever it is given, it now\n";
        for words in &news.also {
            wants += &format!("  - {words}\n");
        }
    }
    if wants.is_empty() {
        wants += "It wants no more than it has.\n";
    }
    let mut other = Vec::new();
    let mut change = |what: &str, old: &str, new: &str| {
        if old != new {
            other.push(format!(
                "{what}: {} -> {}",
                shown(old, 300),
                shown(new, 300)
            ));
        }
    };
    change("version", &before.version, &after.version);
    change(
        "digest",
        before.fetched.as_ref().unwrap_or(&before.digest),
        &candidate.given,
    );
    change("source", &before.source, &after.source);
    change("contract", &before.contract, &after.contract);
    let signed = |by: Option<&dsh_profile::Signed>| {
        by.map_or("nobody".to_owned(), |signed| entry::key_id(&signed.key))
    };
    change(
        "signed by",
        &signed(before.signature.as_ref()),
        &signed(signature.signed()),
    );
    let rows = |plugin: &Installed| {
        let rows: Vec<String> = plugin
            .rows
            .iter()
            .map(|row| format!("{} {}", row.id, row.config))
            .collect();
        list(&rows)
    };
    change("rows", &rows(before), &rows(after));
    change("tools", &list(&before.tools), &list(&after.tools));
    change(
        "limits that it asks for",
        &old.map(asked).unwrap_or_default(),
        &asked(&candidate.description),
    );
    Changes { wants, other }
}

fn block(before: &Installed, candidate: &Candidate, changes: &Changes) -> String {
    let mut text = format!("{} {}\n", before.name, shown(&before.version, 60));
    text += &changes.wants;
    for change in &changes.other {
        text += &format!("  {change}\n");
    }
    if !candidate.beyond.is_empty() {
        let names = candidate.beyond.join(", ");
        text += &format!(
            "  it asks for more {names} than a row gets; `limits` in a patch of yours would give it\n"
        );
    }
    text
}

fn commit(
    profile: &Profile,
    taken: &Taken,
    before: &Installed,
    candidate: &Candidate,
    plugin: &Installed,
    (came, signature): (&[u8], Option<&str>),
) -> Result<(), Stop> {
    let mut change = profile.change().map_err(Stop::of)?;
    if change.before().find(&before.name) != Some(before) {
        return Err(Stop::of(format_args!(
            "{} was changed by another process meanwhile; run this again",
            before.name
        )));
    }
    add::free(taken, change.before(), plugin)?;
    add::store(change.packages(), candidate, plugin, came, signature)?;
    change.lock().put(plugin.clone());
    change.commit().map_err(Stop::of)
}

/// Whether the source gives other bytes; for `outdated`.
pub(super) fn differs(before: &Installed, given: &str) -> bool {
    before.fetched.as_ref().unwrap_or(&before.digest) != given
}

/// For a line that a person can copy.
pub(super) fn command(profile: &str, name: &str) -> String {
    if profile == DEFAULT_PROFILE {
        format!("dsh plugin update {name}")
    } else {
        format!(
            "dsh plugin --profile {} update {name}",
            given::quoted(profile)
        )
    }
}
