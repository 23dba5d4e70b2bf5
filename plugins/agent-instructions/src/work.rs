//! What is done before a step.
//!
//! Files are looked at when a turn begins, when a tool touched a directory that
//! was not looked at yet or an instruction file itself, and when what was told is
//! no longer before the model; at any other step nothing is. What the model knows
//! is what the log says (`Follow`), so a message that no step took in is made
//! again, and one that is there already is not.

use std::collections::BTreeSet;

use guest_support::disk::Disk;
use guest_support::follow::{Follow, Seen, Session};
use guest_support::json::{Object, array};
use guest_support::{paths, tool};

use crate::files::{File, Files, Found};
use crate::known::{self, Action, Change, Known};
use crate::render::{self, Piece, Why};
use crate::settings::Settings;

/// Directories that one step looks at because a tool touched them.
const MAX_TOUCHED: usize = 256;

/// Where the files are that concern the session.
struct Places {
    cwd: String,
    project: String,
    /// The directory of the person's own file.
    user: Option<String>,
    /// From the project's down to the working directory.
    chain: Vec<String>,
}

/// The instructions of a session.
pub(crate) struct Instructions {
    settings: Settings,
    places: Option<Places>,
    files: Files,
    known: Known,
    follow: Follow,
    /// Directories to look at before the next step.
    touched: BTreeSet<String>,
    /// Directories below the project that were looked at since the surface was read.
    settled: BTreeSet<String>,
    /// What was touched when a message was proposed that is not on the surface yet.
    proposed: Option<BTreeSet<String>>,
}

impl Instructions {
    pub(crate) fn new(config: &str) -> Self {
        Self {
            settings: Settings::read(config),
            places: None,
            files: Files::default(),
            known: Known::default(),
            follow: Follow::default(),
            touched: BTreeSet::new(),
            settled: BTreeSet::new(),
            proposed: None,
        }
    }

    /// A tool read or changed this file.
    pub(crate) fn touch(&mut self, path: &str) {
        let Some(directory) = paths::parent(path) else {
            return;
        };
        let is_instructions = self
            .settings
            .all_names()
            .any(|name| name == paths::name(path))
            || self.settings.user_file.as_deref() == Some(path);
        let places = self.places.as_ref();
        let may_have_some = !self.settled.contains(directory)
            && places.is_none_or(|places| !places.below(directory).is_empty());
        if (is_instructions || may_have_some) && self.touched.len() < MAX_TOUCHED {
            self.touched.insert(directory.to_owned());
        }
    }

    /// The message that this step's model has to be told, as a draft.
    pub(crate) fn before_step(
        &mut self,
        first: bool,
        cwd: impl FnOnce() -> String,
        log: &impl Session,
        disk: &impl Disk,
    ) -> Option<String> {
        let mut lost = self.catch_up(log);
        // Nothing of the kind was ever told: there is nothing to be lost.
        lost &= self.places.is_some();
        let unheard = self.proposed.take();
        if !(first || lost || unheard.is_some() || !self.touched.is_empty()) {
            return None;
        }
        if self.places.is_none() {
            self.places = Some(Places::find(&cwd(), &self.settings, disk));
        }
        let whole = first || lost || unheard.is_some();
        let mut touched = std::mem::take(&mut self.touched);
        touched.extend(unheard.into_iter().flatten());
        let message = self.message(whole, &touched, disk)?;
        self.proposed = Some(touched);
        Some(message)
    }

    /// Follows the log; whether the surface was read anew.
    fn catch_up(&mut self, log: &impl Session) -> bool {
        let (known, settled, proposed) = (&mut self.known, &mut self.settled, &mut self.proposed);
        let mut anew = false;
        let mark = format!("\"{}\"", known::SOURCE);
        self.follow.on(log, &mark, |seen| match seen {
            Seen::Anew => {
                anew = true;
                *known = Known::default();
                settled.clear();
            }
            Seen::Message(message) => {
                if known.take(message) {
                    *proposed = None;
                }
            }
        });
        anew
    }

    fn message(
        &mut self,
        whole: bool,
        touched: &BTreeSet<String>,
        disk: &impl Disk,
    ) -> Option<String> {
        let places = self.places.as_ref()?;
        self.files.begin();
        let identity = self.settings.identity(&places.cwd, &places.project);
        let mut below: BTreeSet<String> = touched
            .iter()
            .flat_map(|directory| places.below(directory))
            .collect();
        let base = whole
            || touched
                .iter()
                .any(|directory| places.is_of_baseline(directory));
        if base {
            below.extend(places.told(&self.known));
        }

        let chain = places
            .chain
            .iter()
            .filter(|_| base)
            .map(|path| (path, true));
        let places_to_look: Vec<_> = chain
            .chain(below.iter().map(|path| (path, false)))
            .collect();
        // Where there is too much, what is broader gives way.
        let mut looked: Vec<Directory> = places_to_look
            .into_iter()
            .rev()
            .map(|(path, base)| Directory::read(path, base, &mut self.files, &self.settings, disk))
            .collect();
        if let Some(path) = self.settings.user_file.as_ref().filter(|_| base) {
            looked.push(Directory::of_file(
                path,
                &mut self.files,
                &self.settings,
                disk,
            ));
        }
        looked.reverse();
        self.settled.extend(below);

        let has_base = looked
            .iter()
            .any(|directory| directory.base && !directory.files.is_empty());
        let stale = self
            .known
            .baseline
            .as_ref()
            .is_some_and(|known| *known != identity);
        let baseline = has_base && (stale || self.known.baseline.is_none());
        // Another baseline is told whole, with what stands below it.
        let nothing = Known::default();
        let told = if baseline && stale {
            &nothing
        } else {
            &self.known
        };
        let (changes, pieces) = differences(&looked, told, baseline, &places.cwd);
        if changes.is_empty() {
            return None;
        }
        let blocks = render::blocks(&pieces, baseline && stale, self.settings.max);
        let content = array(blocks.iter().map(|block| tool::text_block(block)));
        let source = known::source(baseline.then_some(identity.as_str()), &changes);
        Some(
            Object::new()
                .raw("content", &content)
                .raw("source", &source)
                .build(),
        )
    }
}

impl Places {
    fn find(cwd: &str, settings: &Settings, disk: &impl Disk) -> Self {
        let marked = |directory: &&str| {
            let markers = settings.markers.iter();
            markers
                .into_iter()
                .any(|marker| disk.exists(&paths::join(directory, marker)))
        };
        let ancestors = || std::iter::successors(Some(cwd), |path| paths::parent(path));
        let project = ancestors().find(marked).unwrap_or(cwd);
        let mut chain: Vec<String> = ancestors()
            .take_while(|directory| paths::is_below(project, directory))
            .map(str::to_owned)
            .collect();
        chain.reverse();
        Self {
            cwd: cwd.to_owned(),
            project: project.to_owned(),
            user: settings
                .user_file
                .as_deref()
                .and_then(paths::parent)
                .map(str::to_owned),
            chain,
        }
    }

    /// The directories from the project's down to this one that are none of the
    /// baseline's; none outside of the project.
    fn below(&self, directory: &str) -> Vec<String> {
        if !paths::is_below(&self.project, directory) {
            return Vec::new();
        }
        let ancestors = std::iter::successors(Some(directory), |path| paths::parent(path));
        ancestors
            .take_while(|directory| paths::is_below(&self.project, directory))
            .filter(|directory| !self.is_of_baseline(directory))
            .map(str::to_owned)
            .collect()
    }

    fn is_of_baseline(&self, directory: &str) -> bool {
        self.user.as_deref() == Some(directory) || self.chain.iter().any(|base| base == directory)
    }

    /// Directories outside of the baseline whose files the model was told.
    fn told(&self, known: &Known) -> Vec<String> {
        let scopes = known
            .files
            .iter()
            .filter_map(|(scope, _)| scope.split_once('\0'));
        scopes
            .map(|(directory, _)| paths::join(&self.cwd, directory))
            .flat_map(|directory| self.below(&directory))
            .collect()
    }
}

/// A directory that was looked at.
struct Directory {
    path: String,
    base: bool,
    /// Whether it stands for one file of it alone, by its whole path.
    alone: bool,
    files: Vec<File>,
    /// Names of files that could not be told.
    unknown: Vec<String>,
    names: Vec<String>,
}

impl Directory {
    fn read(
        path: &str,
        base: bool,
        files: &mut Files,
        settings: &Settings,
        disk: &impl Disk,
    ) -> Self {
        let (found, unknown) = files.of_directory(path, settings, disk);
        Self {
            path: path.to_owned(),
            base,
            alone: false,
            files: found,
            unknown,
            names: settings.all_names().map(str::to_owned).collect(),
        }
    }

    fn of_file(path: &str, files: &mut Files, settings: &Settings, disk: &impl Disk) -> Self {
        let name = paths::name(path).to_owned();
        let (found, unknown) = match files.find(path, settings, disk) {
            Found::There(file) => (vec![file], Vec::new()),
            Found::Unknown => (Vec::new(), vec![name.clone()]),
            Found::Absent => Default::default(),
        };
        Self {
            path: paths::parent(path).unwrap_or("/").to_owned(),
            base: true,
            alone: true,
            files: found,
            unknown,
            names: vec![name],
        }
    }

    /// As the message names it: seen from the working directory, but for the person's own.
    fn shown(&self, cwd: &str) -> String {
        if self.alone {
            return self.path.clone();
        }
        let relative = paths::relative(cwd, &self.path);
        if relative.is_empty() {
            ".".to_owned()
        } else {
            relative
        }
    }
}

/// What the model has to be told, from the broadest to the most specific.
fn differences(
    looked: &[Directory],
    told: &Known,
    baseline: bool,
    cwd: &str,
) -> (Vec<Change>, Vec<Piece>) {
    let (mut changes, mut pieces) = (Vec::new(), Vec::new());
    for directory in looked {
        let shown = directory.shown(cwd);
        let path = |name: &str| match shown.as_str() {
            "." => name.to_owned(),
            shown => format!("{}/{name}", shown.trim_end_matches('/')),
        };
        let scope = |name: &str| format!("{shown}\0{name}");
        let whole = baseline && directory.base;
        for file in &directory.files {
            let scope = scope(&file.name);
            let (action, why) = match told.digest(&scope) {
                _ if whole => (Action::Set, Why::Baseline),
                None => (Action::Set, Why::Additional),
                Some(digest) if digest != file.digest => (Action::Replace, Why::Updated),
                Some(_) => continue,
            };
            pieces.push(Piece {
                why,
                path: path(&file.name),
                directory: shown.clone(),
                content: file.text.clone(),
            });
            changes.push(Change {
                action,
                scope,
                path: path(&file.name),
                digest: Some(file.digest.clone()),
            });
        }
        for name in directory.names.iter().filter(|_| !whole) {
            let there = directory.files.iter().any(|file| file.name == *name);
            if there || directory.unknown.contains(name) || told.digest(&scope(name)).is_none() {
                continue;
            }
            pieces.push(Piece {
                why: Why::Removed,
                path: path(name),
                directory: shown.clone(),
                content: String::new(),
            });
            changes.push(Change {
                action: Action::Remove,
                scope: scope(name),
                path: path(name),
                digest: None,
            });
        }
    }
    (changes, pieces)
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
