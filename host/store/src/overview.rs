//! What a list shows of each session: title, time, turns, damage (spec/session.md §10.1, §10.4).
//!
//! All of it is a fold of the whole log, so it costs a full reading. The derived index ([`crate::index`]) remembers it:
//! a log whose revision is the remembered one is not read again. With a current index a list costs a walk of the
//! directories and one look at each file; without one everything is read, on several threads, and remembered.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::projection::ListFacts;
use dsh_session::{Event, Header, Kind, Value, title};

use crate::index::{self, Head, Of, Reader, Row, token};
use crate::layout::{self, Compression};
use crate::load::{Place, load_watched};
use crate::storage::{Meta, Revision, Storage};
use crate::survey::Watch;
use crate::walk::{self, Spot, encoding_damage, flat_damage, parallel, twice, unreadable};
use crate::{Damage, DamageClass, Stage, StoreError};

/// How many logs a thread looks at before it takes more; whole readings dwarf the taking.
const CHUNK: usize = 16;
/// How many of the newest sessions a page looks at anew: whoever is working now is among them.
const HOT: usize = index::BLOCK;

/// One session as a list shows it, or what stands where one should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// The log.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written, epoch milliseconds.
    pub modified_ms: i64,
    /// The header's id, else the one that the directory's name stands for.
    pub id: Option<Arc<str>>,
    /// The header, when it can be read.
    pub header: Option<Header>,
    /// The last title that was given, as it is stored; else one made of the first prompt; else none.
    pub title: Option<Arc<str>>,
    /// Creation or the last message of a person, whichever is later, epoch milliseconds; without a header when the file
    /// was last written.
    pub updated_at: i64,
    /// How many events the sound part has.
    pub events: u64,
    /// How many turns were started.
    pub turns: u64,
    /// Whether a crash left a tail that resuming will cut.
    pub torn: bool,
    /// Why the log cannot be resumed, or ends before its end.
    pub damage: Option<Damage>,
}

/// Which sessions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only<'a> {
    /// All of the root.
    All,
    /// Those that work in a directory, and what lies damaged among them. Other projects are not even looked at.
    Cwd(&'a str),
}

/// The newest sessions, quickly.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Newest first.
    pub rows: Vec<Overview>,
    /// Whether it is certain that no newer session is missing, see [`crate::Store::page`].
    pub complete: bool,
}

impl Overview {
    /// Whether no turn was started yet.
    pub fn blank(&self) -> bool {
        self.turns == 0
    }

    pub(crate) fn id_of(header: Option<&Header>, path: &Path) -> Option<Arc<str>> {
        match header {
            Some(header) => Some(header.id.clone()),
            None => layout::id_of_path(path).map(Into::into),
        }
    }

    fn damaged(path: PathBuf, meta: Option<Meta>, damage: Damage) -> Overview {
        let modified_ms = meta.map_or(0, |m| m.modified_ms);
        Overview {
            id: Overview::id_of(None, &path),
            path,
            bytes: meta.map_or(0, |m| m.len),
            modified_ms,
            header: None,
            title: None,
            updated_at: modified_ms,
            events: 0,
            turns: 0,
            torn: false,
            damage: Some(damage),
        }
    }

    /// Whether `--resume last` may mean it: a person started it, and it lies where it belongs.
    fn resumable(&self, cwd: Option<&str>) -> bool {
        let misplaced = self.damage.as_ref().is_some_and(|damage| {
            use DamageClass::{Identity, Layout, Unreadable};
            matches!(damage.class, Identity | Layout | Unreadable)
        });
        !misplaced
            && self.header.as_ref().is_some_and(|header| {
                let here = cwd.is_none_or(|cwd| header.cwd.as_deref() == Some(cwd));
                here && header.origin.is_none() && header.check().is_ok()
            })
    }
}

/// The fold.
struct Summary {
    facts: ListFacts,
    title: Option<Arc<str>>,
    fallback: Option<Arc<str>>,
    turns: u64,
}

impl Summary {
    fn new(header: &Header) -> Summary {
        Summary {
            facts: ListFacts::new(i64::try_from(header.created_at).unwrap_or(i64::MAX)),
            title: None,
            fallback: None,
            turns: 0,
        }
    }
}

impl Watch for Summary {
    fn begin(&mut self, header: &Header) {
        *self = Summary::new(header);
    }

    fn event(&mut self, event: &Arc<Event>) {
        self.facts.fold(event);
        match event.kind {
            Kind::TurnStart => self.turns += 1,
            Kind::SessionTitle => {
                let title = event.data.get("title").and_then(Value::text);
                self.title = title.map(Into::into);
            }
            Kind::UserMessage if self.fallback.is_none() => {
                let prompt = title::eligible_prompt(event);
                let fallback = prompt.map(|prompt| {
                    title::fallback(&prompt, title::FALLBACK_WORDS, title::FALLBACK_BYTES)
                });
                self.fallback = fallback.map(Into::into);
            }
            _ => {}
        }
    }
}

/// Sessions below a root, as they are seen by one listing.
pub(crate) struct Lister<'a> {
    pub(crate) storage: &'a Arc<dyn Storage>,
    pub(crate) root: &'a Path,
    pub(crate) compression: Compression,
    /// The index file, if there is to be one.
    pub(crate) index: Option<&'a Path>,
}

/// Rows of the index, by number, of their logs.
type Known<'a> = HashMap<&'a OsStr, usize>;

/// What was found of one log.
enum Seen {
    /// It is as the row of this number says.
    Known(usize),
    /// It was read; with the state of the log that this is true of, when that is known and worth remembering.
    Read(Box<Overview>, Option<Revision>),
}

impl Seen {
    fn damaged(path: PathBuf, meta: Option<Meta>, damage: Damage) -> Seen {
        Seen::Read(Box::new(Overview::damaged(path, meta, damage)), None)
    }
}

impl Lister<'_> {
    fn of(&self) -> Of<'_> {
        Of {
            root: self.root,
            compression: self.compression,
        }
    }

    fn reader(&self) -> Option<Reader> {
        Reader::open(&**self.storage, self.index?, self.of())
    }

    /// Rows newest first, all of them current.
    pub(crate) fn overview(&self, only: Only<'_>) -> Result<Vec<Overview>, StoreError> {
        // Tokens are older than what is found, so a change in between shows the next time.
        let root_token = token(&**self.storage, self.root);
        let projects = match only {
            Only::All => walk::projects(&**self.storage, self.root)?,
            Only::Cwd(cwd) => vec![self.root.join(layout::project_key(Some(cwd))?)],
        };
        let tokens = projects.iter().map(|dir| token(&**self.storage, dir));
        let scope: Vec<_> = projects.iter().cloned().zip(tokens).collect();

        let mut reader = self.reader();
        let rows = reader.as_mut().map(Reader::rest).unwrap_or_default();
        let seen = self.see(&projects, &rows);
        if self.index.is_some() {
            let before = reader.map(|reader| reader.head);
            self.remember(only, root_token, &scope, before.as_ref(), &rows, &seen);
        }
        let mut views = views(rows, seen);
        if let Only::Cwd(cwd) = only {
            views.retain(|view| {
                let header = view.header.as_ref();
                header.is_none_or(|header| header.cwd.as_deref() == Some(cwd))
            });
        }
        mark_duplicates(&mut views);
        Ok(sorted(views))
    }

    /// Everything in some project directories.
    fn see(&self, projects: &[PathBuf], rows: &[Row]) -> Vec<Seen> {
        let known = known(rows);
        let spots: Vec<Spot> = projects
            .iter()
            .flat_map(|project| walk::spots(&**self.storage, project))
            .collect();
        let seen = parallel(&spots, CHUNK, || (), |(), spot| self.at(spot, rows, &known));
        seen.into_iter().flatten().collect()
    }

    fn at(&self, spot: &Spot, rows: &[Row], known: &Known<'_>) -> Vec<Seen> {
        let odd = |path: &Path, damage| {
            Seen::damaged(path.to_owned(), self.storage.metadata(path).ok(), damage)
        };
        match spot {
            Spot::Flat(path) => vec![odd(path, flat_damage())],
            Spot::Unreadable(path, e) => vec![odd(path, unreadable(e))],
            Spot::Dir(dir) => {
                let mut seen = Vec::with_capacity(1);
                let other = dir.join(self.compression.other().file_name());
                if self.storage.metadata(&other).is_ok() {
                    seen.push(odd(&other, encoding_damage(self.compression)));
                }
                let path = dir.join(self.compression.file_name());
                let row = known.get(path.as_os_str());
                let row = row.map(|&number| (number, &rows[number]));
                seen.extend(self.log(path, row));
                seen
            }
        }
    }

    /// One log: as its row says when it is in this very state, else by reading it whole.
    fn log(&self, path: PathBuf, row: Option<(usize, &Row)>) -> Option<Seen> {
        let meta = match self.storage.metadata(&path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return Some(Seen::damaged(path, None, unreadable(&e))),
        };
        match row {
            Some((number, row)) if row.revision == meta.revision => Some(Seen::Known(number)),
            _ => self.read(path, meta),
        }
    }

    fn read(&self, path: PathBuf, meta: Meta) -> Option<Seen> {
        let place = Place {
            root: self.root,
            id: None,
        };
        let mut summary = Summary::new(&Header::new("", 0));
        let view = match load_watched(self.storage, &path, Some(place), 0, &mut summary) {
            Ok((loaded, _)) => {
                let found = loaded.inspection;
                Overview {
                    path,
                    bytes: found.bytes,
                    modified_ms: meta.modified_ms,
                    id: Some(found.header.id.clone()),
                    header: Some(found.header),
                    title: summary.title.or(summary.fallback),
                    updated_at: summary.facts.updated_at(),
                    events: found.log.len(),
                    turns: summary.turns,
                    torn: found.torn.is_some(),
                    damage: found.damage,
                }
            }
            Err(StoreError::Damaged { damage, .. }) => Overview::damaged(path, Some(meta), *damage),
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return None;
            }
            Err(StoreError::Io { source, .. }) => {
                Overview::damaged(path, Some(meta), unreadable(&source))
            }
            Err(e) => {
                let damage = walk::damage(DamageClass::Identity, Stage::Identity, e.to_string());
                Overview::damaged(path, Some(meta), damage)
            }
        };
        let after = self.storage.metadata(&view.path).ok();
        let same = after.is_some_and(|after| after.revision == meta.revision);
        let revision = (same && self.memorable(&view)).then_some(meta.revision);
        Some(Seen::Read(Box::new(view), revision))
    }

    /// Whether a row is a function of its log alone. What hangs on other files is looked at anew each time, and so is a
    /// header that holds more than its fields say.
    fn memorable(&self, view: &Overview) -> bool {
        let damage = view.damage.as_ref();
        let own = damage.is_none_or(|damage| {
            matches!(
                damage.class,
                DamageClass::Corrupt | DamageClass::Unsupported
            )
        });
        own && view.header.as_ref().is_none_or(|header| {
            let place = layout::log_path(self.root, header, self.compression);
            header.check().is_ok() && place.is_ok_and(|place| place == view.path)
        })
    }

    /// Writes the index when what it says is not what was found. It is only memory, so failing to is no error.
    fn remember(
        &self,
        only: Only<'_>,
        root_token: index::Token,
        scope: &[(PathBuf, index::Token)],
        before: Option<&Head>,
        rows: &[Row],
        seen: &[Seen],
    ) {
        let Some(path) = self.index else { return };
        let inside = |row: &Row| {
            let project = row.view.path.parent().and_then(Path::parent);
            scope.iter().any(|(dir, _)| Some(dir.as_path()) == project)
        };
        let mut head = Head::default();
        let mut elsewhere = Vec::new();
        let names = scope
            .iter()
            .filter_map(|(dir, token)| Some((PathBuf::from(dir.file_name()?), *token)));
        match only {
            Only::All => {
                head.root = root_token;
                head.projects = names.collect();
            }
            Only::Cwd(_) => {
                // Whether there are other projects was not asked, so the root's own token stays what it was.
                head = before.cloned().unwrap_or_default();
                for (name, token) in names {
                    head.projects.retain(|(other, _)| *other != name);
                    head.projects.push((name, token));
                }
                head.projects.sort_by(|a, b| a.0.cmp(&b.0));
                elsewhere = rows.iter().filter(|row| !inside(row)).collect();
            }
        }
        let mut all = elsewhere;
        let mut found = Vec::new();
        for seen in seen {
            match seen {
                Seen::Known(number) => all.push(&rows[*number]),
                Seen::Read(view, Some(revision)) => found.push(Row {
                    revision: *revision,
                    view: (**view).clone(),
                }),
                Seen::Read(_, None) => {}
            }
        }
        let same = found.is_empty() && all.len() == rows.len();
        if same && (before == Some(&head) || (before.is_none() && all.is_empty())) {
            return;
        }
        all.extend(&found);
        all.sort_by(|a, b| newest_first(&a.view, &b.view));
        let _ = index::save(&**self.storage, path, self.of(), &head, &all);
    }

    /// The newest `count` rows by the index.
    pub(crate) fn page(&self, count: usize) -> Result<Page, StoreError> {
        if let Some(mut reader) = self.reader()
            && let Some(page) = self.page_of(&mut reader, count)?
        {
            return Ok(page);
        }
        let mut rows = self.overview(Only::All)?;
        rows.truncate(count);
        Ok(Page {
            rows,
            complete: true,
        })
    }

    /// A page of an index; `None` when the index is damaged.
    fn page_of(&self, reader: &mut Reader, count: usize) -> Result<Option<Page>, StoreError> {
        let changed = self.changed_projects(&reader.head)?;
        let mut found = Vec::new();
        if !changed.is_empty() {
            let rows = reader.rest();
            if !reader.sound() || reader.rewind().is_err() {
                return Ok(None);
            }
            let seen = self.see(&changed, &rows);
            found = views(rows, seen);
        }
        let mut looked_at = 0;
        loop {
            let mut rows = reader.block().unwrap_or_default();
            if !reader.sound() {
                return Ok(None);
            }
            looked_at += rows.len();
            // Whatever was not read yet is not newer than this.
            let oldest = rows.last().map_or(i64::MAX, |row| row.view.updated_at);
            rows.retain(|row| {
                let project = row.view.path.parent().and_then(Path::parent);
                !changed.iter().any(|dir| Some(dir.as_path()) == project)
            });
            let numbers: Vec<usize> = (0..rows.len()).collect();
            let seen = parallel(
                &numbers,
                CHUNK,
                || (),
                |(), &number| {
                    let row = &rows[number];
                    self.log(row.view.path.clone(), Some((number, row)))
                },
            );
            found.extend(views(rows, seen.into_iter().flatten()));
            let newer = found.iter().filter(|view| view.updated_at >= oldest);
            if reader.at_end() || (newer.count() >= count && looked_at >= HOT) {
                break;
            }
        }
        mark_duplicates(&mut found);
        let mut rows = sorted(found);
        rows.truncate(count);
        Ok(Some(Page {
            rows,
            complete: reader.at_end(),
        }))
    }

    /// The project directories whose names are not surely those that the index knows.
    fn changed_projects(&self, head: &Head) -> Result<Vec<PathBuf>, StoreError> {
        let same = |dir: &Path, before: index::Token| {
            let now = self.storage.metadata(dir).ok().map(|meta| meta.revision);
            before.is_some() && now == before
        };
        let mut changed = Vec::new();
        if same(self.root, head.root) {
            for (name, before) in &head.projects {
                let dir = self.root.join(name);
                if !same(&dir, *before) {
                    changed.push(dir);
                }
            }
            return Ok(changed);
        }
        let known: HashMap<&Path, index::Token> = head
            .projects
            .iter()
            .map(|(name, token)| (name.as_path(), *token))
            .collect();
        for dir in walk::projects(&**self.storage, self.root)? {
            let before = dir.file_name().and_then(|name| known.get(Path::new(name)));
            if !same(&dir, before.copied().flatten()) {
                changed.push(dir);
            }
        }
        Ok(changed)
    }

    /// The session that `last` means.
    pub(crate) fn last(&self, cwd: Option<&str>) -> Result<Option<Arc<str>>, StoreError> {
        let projects = match cwd {
            None => walk::projects(&**self.storage, self.root)?,
            Some(cwd) => vec![self.root.join(layout::project_key(Some(cwd))?)],
        };
        let spots: Vec<Spot> = projects
            .iter()
            .flat_map(|project| walk::spots(&**self.storage, project))
            .collect();
        let looked = parallel(
            &spots,
            CHUNK,
            || (),
            |(), spot| {
                let Spot::Dir(dir) = spot else { return None };
                let path = dir.join(self.compression.file_name());
                let meta = self.storage.metadata(&path).ok()?;
                Some((meta.modified_ms, path))
            },
        );
        let mut logs: Vec<_> = looked.into_iter().flatten().collect();
        logs.sort_unstable_by(|a, b| b.cmp(a));
        let rows = self.reader().map(|mut reader| reader.rest());
        let rows = rows.unwrap_or_default();
        let known = known(&rows);
        let mut best: Option<Overview> = None;
        for (modified_ms, path) in logs {
            // An event is not younger than the file that it was written to.
            if best
                .as_ref()
                .is_some_and(|best| best.updated_at > modified_ms)
            {
                break;
            }
            let row = known.get(path.as_os_str());
            let row = row.map(|&number| (number, &rows[number]));
            let view = match self.log(path, row) {
                Some(Seen::Known(number)) => rows[number].view.clone(),
                Some(Seen::Read(view, _)) => *view,
                None => continue,
            };
            let newer = |best: &Overview| newest_first(&view, best).is_lt();
            if view.resumable(cwd) && best.as_ref().is_none_or(newer) {
                best = Some(view);
            }
        }
        Ok(best.and_then(|best| best.id))
    }
}

fn known(rows: &[Row]) -> Known<'_> {
    rows.iter()
        .enumerate()
        .map(|(number, row)| (row.view.path.as_os_str(), number))
        .collect()
}

/// What was seen; known rows keep their order, so that sorting has little to do.
fn views(rows: Vec<Row>, seen: impl IntoIterator<Item = Seen>) -> Vec<Overview> {
    let mut keep = vec![false; rows.len()];
    let mut read = Vec::new();
    for seen in seen {
        match seen {
            Seen::Known(number) => keep[number] = true,
            Seen::Read(view, _) => read.push(*view),
        }
    }
    let known = rows.into_iter().zip(keep).filter(|(_, keep)| *keep);
    let mut views: Vec<Overview> = known.map(|(row, _)| row.view).collect();
    views.append(&mut read);
    views
}

fn newest_first(a: &Overview, b: &Overview) -> std::cmp::Ordering {
    (b.updated_at.cmp(&a.updated_at)).then_with(|| a.path.as_os_str().cmp(b.path.as_os_str()))
}

fn sorted(mut views: Vec<Overview>) -> Vec<Overview> {
    views.sort_by(newest_first);
    views
}

fn mark_duplicates(views: &mut [Overview]) {
    let mut seen = HashSet::with_capacity(views.len());
    let ids = views
        .iter()
        .filter_map(|view| view.header.as_ref().map(|header| &header.id));
    let twice_there: HashSet<Arc<str>> = ids.filter(|id| !seen.insert(&***id)).cloned().collect();
    if twice_there.is_empty() {
        return;
    }
    for view in views {
        if let Some(header) = &view.header
            && twice_there.contains(&header.id)
        {
            view.damage.get_or_insert_with(|| twice(&header.id));
        }
    }
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
