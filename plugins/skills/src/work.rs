//! What is done before a step: the list of skills where it is news, and the
//! skills that a person called.
//!
//! The folders are looked at when a turn begins, when a tool touched one of
//! them, when the list is no longer before the model, and when a person may have
//! called a skill. What the model knows is what the log says (`Follow`).

use std::collections::BTreeMap;

use guest_support::disk::Disk;
use guest_support::follow::{Follow, Seen, Session};
use guest_support::paths;

use crate::catalog::{self, Entries};
use crate::content;
use crate::invoke::{self, Called};
use crate::scan::{Scanner, Skill};
use crate::settings::Settings;

/// Bytes of a skill's instructions in a message; a tool's result may be longer,
/// as the spill policy stands behind it.
const MAX_CALLED: usize = 64 * 1024;

/// The skills of a session.
pub(crate) struct Skills {
    settings: Settings,
    roots: Option<Vec<String>>,
    scanner: Scanner,
    follow: Follow,
    /// What the list before the model says.
    told: Option<Entries>,
    /// A tool touched a folder, or a list was proposed that is not told yet.
    stale: bool,
}

impl Skills {
    pub(crate) fn new(config: &str) -> Self {
        Self {
            settings: Settings::read(config),
            roots: None,
            scanner: Scanner::default(),
            follow: Follow::default(),
            told: None,
            stale: false,
        }
    }

    /// A tool read or changed this file.
    pub(crate) fn touch(&mut self, path: &str) {
        let roots = self.roots.iter().flatten();
        self.stale |= roots.into_iter().any(|root| paths::is_below(root, path));
    }

    /// Every skill there is now.
    pub(crate) fn all(
        &mut self,
        cwd: impl FnOnce() -> String,
        disk: &impl Disk,
    ) -> BTreeMap<String, Skill> {
        let settings = &self.settings;
        let roots = self
            .roots
            .get_or_insert_with(|| settings.roots(&cwd(), disk));
        self.scanner.skills(roots, disk)
    }

    /// Drafts of the messages that this step's model has to be told, in order.
    /// `called` is what may be a call of a person.
    pub(crate) fn before_step(
        &mut self,
        first: bool,
        called: &Called,
        cwd: impl FnOnce() -> String,
        log: &impl Session,
        disk: &impl Disk,
    ) -> Vec<String> {
        let lost = self.catch_up(log);
        let stale = std::mem::take(&mut self.stale);
        if !(first || lost || stale || !called.is_empty()) {
            return Vec::new();
        }
        let skills = self.all(cwd, disk);
        let mut messages = Vec::new();
        let entries = catalog::entries(skills.values());
        let nothing = Entries::new();
        if entries != *self.told.as_ref().unwrap_or(&nothing) {
            messages.push(catalog::message(&entries, self.told.is_some()));
            // Until the log says that it was told.
            self.stale = true;
        }
        let mut brought = 0;
        for name in &called.names {
            let Some(skill) = skills.get(name) else {
                // Most words of this form are paths.
                if !disk.exists(&format!("/{name}")) {
                    disk.warn(&format!(
                        "/{name} calls no skill: there is none of this name"
                    ));
                }
                continue;
            };
            if !skill.person {
                disk.warn(&format!(
                    "/{name} calls no skill: its `user-invocable` says that the model alone does"
                ));
                continue;
            }
            if brought == invoke::MAX {
                disk.warn(&format!(
                    "/{name} calls no skill: {} are called at once at most",
                    invoke::MAX
                ));
                continue;
            }
            brought += 1;
            match content::read(skill, MAX_CALLED, disk) {
                Ok(content) => messages.push(invoke::message(name, &content)),
                Err(error) => disk.warn(&error.message),
            }
        }
        for (word, name) in &called.near {
            if skills.get(name).is_some_and(|skill| skill.person) && !called.names.contains(name) {
                disk.warn(&format!(
                    "{word} calls no skill: write /{name} with nothing but space around it"
                ));
            }
        }
        messages
    }

    /// Follows the log; whether the list before the model may be another one now.
    fn catch_up(&mut self, log: &impl Session) -> bool {
        let (told, stale) = (&mut self.told, &mut self.stale);
        let before = told.clone();
        let mark = format!("\"{}\"", catalog::SOURCE);
        self.follow.on(log, &mark, |seen| match seen {
            Seen::Anew => *told = None,
            Seen::Message(message) => {
                if let Some(entries) = catalog::told(message) {
                    *told = Some(entries);
                    *stale = false;
                }
            }
        });
        before.is_some() && told.is_none()
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
