//! Plugins and their rows by the names that people write.

use dsh_profile::{Installed, Lock, LockedRow};

use super::Stop;
use super::text::shown;

/// What a word means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// A plugin, by its place in the lock.
    Plugin(usize),
    /// A row of one: the plugin's place, the row's place.
    Row(usize, usize),
    Nothing,
}

/// A plugin's rows for a line: their ids, and which of them are disabled.
pub(super) fn rows(plugin: &Installed) -> Vec<String> {
    let one = |row: &LockedRow| match row.disabled {
        true => format!("{} (disabled)", row.id),
        false => row.id.clone(),
    };
    plugin.rows.iter().map(one).collect()
}

/// A plugin's name, what stands behind its colon where that is clear, or the id of a row.
pub(super) fn meant(lock: &Lock, word: &str) -> Meant {
    if let Some(index) = lock.plugins.iter().position(|plugin| plugin.name == word) {
        return Meant::Plugin(index);
    }
    for (index, plugin) in lock.plugins.iter().enumerate() {
        if let Some(row) = plugin.rows.iter().position(|row| row.id == word) {
            return Meant::Row(index, row);
        }
    }
    let short: Vec<usize> = lock
        .plugins
        .iter()
        .enumerate()
        .filter(|(_, plugin)| {
            plugin
                .name
                .split_once(':')
                .is_some_and(|(_, name)| name == word)
        })
        .map(|(index, _)| index)
        .collect();
    match short[..] {
        [index] => Meant::Plugin(index),
        _ => Meant::Nothing,
    }
}

/// The plugin that a word names.
pub(super) fn plugin<'a>(lock: &'a Lock, word: &str, profile: &str) -> Result<&'a Installed, Stop> {
    match meant(lock, word) {
        Meant::Plugin(index) | Meant::Row(index, _) => Ok(&lock.plugins[index]),
        Meant::Nothing => Err(none(lock, word, profile)),
    }
}

/// The plugins that words name, each once; all of them where there is no word.
pub(super) fn plugins(
    lock: &Lock,
    words: &[String],
    profile: &str,
) -> Result<Vec<Installed>, Stop> {
    if words.is_empty() {
        return Ok(lock.plugins.clone());
    }
    let mut found: Vec<Installed> = Vec::new();
    for word in words {
        let plugin = plugin(lock, word, profile)?;
        if found.iter().all(|known| known.name != plugin.name) {
            found.push(plugin.clone());
        }
    }
    Ok(found)
}

/// That there is none, and what there is.
pub(super) fn none(lock: &Lock, word: &str, profile: &str) -> Stop {
    let names: Vec<&str> = lock
        .plugins
        .iter()
        .map(|plugin| plugin.name.as_str())
        .collect();
    let has = if names.is_empty() {
        "it has none (dsh plugin add SOURCE)".to_owned()
    } else {
        format!("it has {}", names.join(", "))
    };
    Stop::of(format_args!(
        "the profile {} has no plugin {}; {has}",
        shown(profile, 80),
        shown(word, 140)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let plugin = |name: &str, row: &str| Installed {
            name: name.to_owned(),
            rows: vec![LockedRow {
                id: row.to_owned(),
                ..LockedRow::default()
            }],
            ..Installed::default()
        };
        Lock {
            plugins: vec![
                plugin("acme:weather", "sky"),
                plugin("acme:time", "clock"),
                plugin("other:time", "tick"),
            ],
            ..Lock::default()
        }
    }

    #[test]
    fn a_word_means_a_plugin_or_one_of_its_rows_and_never_two_things() {
        let lock = lock();
        for (word, expected) in [
            ("acme:weather", Meant::Plugin(0)),
            ("weather", Meant::Plugin(0)),
            ("sky", Meant::Row(0, 0)),
            ("tick", Meant::Row(2, 0)),
            ("time", Meant::Nothing),
            ("acme", Meant::Nothing),
            ("", Meant::Nothing),
        ] {
            assert_eq!(meant(&lock, word), expected, "{word}");
        }
    }
}
