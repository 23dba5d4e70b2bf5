//! `dsh plugin remove`.

use serde_json::{Value, json};

use super::names::{self, Meant};
use super::text::shown;
use super::{Desk, Done, Report, Stop, entry};
use crate::words::Words;

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    let profile = desk.profile()?;
    let mut change = profile.change().map_err(Stop::of)?;
    let lock = change.before().clone();
    let mut removed: Vec<Value> = Vec::new();
    let mut text = String::new();
    // Every name must be one before any plugin goes.
    for word in &words.arguments {
        match names::meant(&lock, word) {
            Meant::Plugin(index) => {
                let plugin = &lock.plugins[index];
                if change.lock().remove(&plugin.name) {
                    text += &format!("removed {} {}\n", plugin.name, shown(&plugin.version, 60));
                    removed.push(entry::json(plugin));
                }
            }
            Meant::Row(index, _) => {
                return Err(Stop::of(format_args!(
                    "{word} is a row of {}; to keep it from being mounted: dsh plugin disable {word}; to remove the plugin: dsh plugin remove {}",
                    lock.plugins[index].name, lock.plugins[index].name
                )));
            }
            // A damaged entry has a name at most.
            Meant::Nothing if change.lock().remove(word) => {
                text += &format!("removed the damaged entry of {}\n", shown(word, 140));
                removed.push(json!({"name": word}));
            }
            Meant::Nothing => return Err(names::none(&lock, word, &desk.name)),
        }
    }
    change.commit().map_err(Stop::of)?;
    desk.sweep();
    Ok(Report::new(text, json!({"removed": removed})))
}
