//! `dsh sessions list`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use dsh_session::Json;
use dsh_session::projection::{Registry, Snapshot};
use dsh_store::projcache::Records;
use dsh_store::{Only, Overview, report};

use super::{Sessions, Words, print, refused};
use crate::exit::Failure;

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    // Before the logs are looked at: a session that is being written would be ahead of what was seen of its log.
    let views = words.has("--json").then(|| sessions.views());
    let rows = rows(sessions, words.value("--cwd"))?;
    if let Some(views) = views {
        return print(&json(&rows, &views), 0);
    }
    if rows.is_empty() {
        crate::report::line(format_args!(
            "no session is stored {}",
            match words.value("--cwd") {
                Some(dir) => format!("that works in {dir}"),
                None => format!("below {}", sessions.store.root().display()),
            }
        ));
    }
    print(&table(&rows, now()), 0)
}

fn rows(sessions: &Sessions, dir: Option<&str>) -> Result<Vec<Overview>, Failure> {
    let Some(dir) = dir else {
        return sessions.store.overview(Only::All).map_err(refused);
    };
    let started = sessions.cwd();
    let mut rows = Vec::new();
    for cwd in spellings(Path::new(&*started), Path::new(dir)) {
        let found = sessions.store.overview(Only::Cwd(&cwd)).map_err(refused)?;
        rows.extend(found);
    }
    rows.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then(a.path.cmp(&b.path)));
    Ok(rows)
}

/// How a header may write a directory: as it is when links are followed, which is what a run writes, and as its name is.
fn spellings(started: &Path, dir: &Path) -> Vec<String> {
    let mut named = PathBuf::new();
    for part in started.join(dir).components() {
        match part {
            std::path::Component::ParentDir => {
                named.pop();
            }
            part => named.push(part),
        }
    }
    let real = std::fs::canonicalize(started.join(dir)).unwrap_or_else(|_| named.clone());
    let mut all = vec![real.to_string_lossy().into_owned()];
    let named = named.to_string_lossy().into_owned();
    if !all.contains(&named) {
        all.push(named);
    }
    all
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

fn json(rows: &[Overview], of: &Records) -> String {
    let registry = Registry::standard();
    let mut text = "[".to_owned();
    for (index, row) in rows.iter().enumerate() {
        text += if index == 0 { "\n" } else { ",\n" };
        let views = row.header.as_ref();
        let views = views.and_then(|header| of.snapshot(&registry, header, row.events));
        text += row_json(row, views.as_ref()).as_str();
    }
    text + if rows.is_empty() { "]\n" } else { "\n]\n" }
}

fn row_json(row: &Overview, views: Option<&Snapshot>) -> Json {
    let header = row.header.as_ref();
    let or_null = |o: &mut dsh_session::ObjectWriter<'_>, key: &str, text: Option<&str>| match text
    {
        Some(text) => drop(o.str(key, text)),
        None => drop(o.null(key)),
    };
    Json::object(|o| {
        or_null(o, "id", row.id.as_deref());
        or_null(o, "title", row.title.as_deref());
        or_null(o, "cwd", header.and_then(|header| header.cwd.as_deref()));
        match header {
            Some(header) => o.u64("createdAt", header.created_at),
            None => o.null("createdAt"),
        };
        o.i64("updatedAt", row.updated_at)
            .u64("turns", row.turns)
            .u64("bytes", row.bytes)
            .json("damage", &report::damage_json(row.damage.as_ref()))
            .str("path", &row.path.to_string_lossy());
        match views {
            Some(views) => o.json("projections", &views.json()),
            None => o.null("projections"),
        };
    })
}

/// So many characters of an id are shown at least.
const SHORTEST: usize = 8;

/// The shortest way to write each id that no other session answers to.
fn short_ids(rows: &[Overview]) -> HashMap<&str, &str> {
    let ids: Vec<&str> = rows.iter().filter_map(|row| row.id.as_deref()).collect();
    // Whatever may be shortened, with whose it is.
    let mut names: Vec<(&str, &str)> = ids.iter().map(|id| (*id, *id)).collect();
    names.extend(ids.iter().map(|id| (handle(id), *id)));
    names.sort_unstable();
    names.dedup();
    let shared = |a: &str, b: &str| {
        let equal = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
        equal.map_or(a.len().min(b.len()), |((at, _), _)| at)
    };
    let mut short = HashMap::new();
    for (at, (name, id)) in names.iter().enumerate() {
        if *name != handle(id) {
            continue;
        }
        let others = |other: &&(&str, &str)| other.1 != *id;
        let before = names[..at].iter().rev().find(others);
        let after = names[at + 1..].iter().find(others);
        let needed = [before, after]
            .into_iter()
            .flatten()
            .map(|(other, _)| shared(name, other))
            .max()
            .unwrap_or(0);
        let end = name
            .char_indices()
            .map(|(at, c)| at + c.len_utf8())
            .find(|end| *end > needed && name[..*end].chars().count() >= SHORTEST);
        short.insert(*id, &name[..end.unwrap_or(name.len())]);
    }
    short
}

/// The part of an id that people write.
fn handle(id: &str) -> &str {
    id.strip_prefix("session-")
        .filter(|rest| !rest.is_empty())
        .unwrap_or(id)
}

fn table(rows: &[Overview], now: i64) -> String {
    let short = short_ids(rows);
    let mut lines = vec![["ID", "AGE", "TURNS", "SIZE", "TITLE"].map(str::to_owned)];
    for row in rows {
        let id = row
            .id
            .as_deref()
            .map_or("?", |id| short.get(id).copied().unwrap_or(id));
        let title = match (&row.damage, row.title.as_deref()) {
            (Some(damage), Some(title)) => format!("! {title} (damaged: {damage})"),
            (Some(damage), None) => format!("! damaged: {damage}"),
            (None, Some(title)) => title.to_owned(),
            (None, None) => "(nothing said yet)".to_owned(),
        };
        lines.push([
            report::line(id, 40),
            report::age(row.updated_at, now),
            row.turns.to_string(),
            report::size(row.bytes),
            report::line(&title, 160),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    // The title stands last, so that its width does not matter.
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    for [id, age, turns, size, title] in &lines {
        let [w0, w1, w2, w3] = widths;
        text += &format!("{id:<w0$}  {age:>w1$}  {turns:>w2$}  {size:>w3$}  {title}\n");
    }
    text
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
