//! The front: one store is one root directory.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dsh_session::{Seq, Session};

use crate::StoreError;
use crate::checkpoint;
use crate::layout::Compression;
use crate::list::{Entry, list};
use crate::load::{Inspection, Loaded, Place, Target, load, load_watched, reopen};
use crate::locate::{Located, locate};
use crate::log_file::{Encoding, LogFile, Settled, take_lock};
use crate::overview::{Lister, Only, Overview, Page};
use crate::pool::Pool;
use crate::resolve::{LAST, resolve as resolve_id};
use crate::storage::{Disk, Storage};
use crate::survey::Watch;
use crate::writer::Writer;

/// The longest batch window: what a signed 32-bit count of milliseconds holds, as upstream's timers do.
const MAX_DELAY: Duration = Duration::from_millis(i32::MAX as u64);

/// Called when background writing of a session begins to fail, once until it has worked again: the events are kept and
/// the next one, or a flush, tries again. Also called when a writer is dropped with events that it cannot write.
/// Gets the session's id and the cause. Must not block.
pub type FailureHook = Arc<dyn Fn(&str, &StoreError) + Send + Sync>;

/// How a store works. Start from [`StoreConfig::new`].
#[derive(Clone)]
pub struct StoreConfig {
    /// Where the projects lie; made on the first write. A relative path is resolved once.
    pub root: PathBuf,
    /// How logs are encoded.
    pub compression: Compression,
    /// Whether runs of streamed chunks are written as one line. Affects writing only.
    pub pack_chunks: bool,
    /// How long the first event of a batch may wait for others, 1 ms to 2^31-1 ms.
    pub write_batch_max_delay: Duration,
    /// Where to remember what lists show; outside the root. It is derived from the logs, may be deleted at any time, and
    /// is ignored when it does not fit them. Without one, [`Store::overview`] reads every log each time.
    pub index: Option<PathBuf>,
    /// Told when background writing fails.
    pub on_failure: Option<FailureHook>,
}

impl StoreConfig {
    /// Upstream's defaults: Zstandard, packed, 200 ms.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            compression: Compression::Zstd,
            pack_chunks: true,
            write_batch_max_delay: Duration::from_millis(200),
            index: None,
            on_failure: None,
        }
    }
}

/// Session logs below one root. Cheap to clone; clones share the writing threads.
///
/// Calls block on the file system; an async caller wraps those that read ([`Store::resume`], [`Store::inspect`],
/// [`Store::list`]) in `spawn_blocking`.
#[derive(Clone)]
pub struct Store {
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) storage: Arc<dyn Storage>,
    pool: Arc<Pool>,
    settled: Settled,
}

impl Store {
    /// A store on the real file system. Nothing is touched yet.
    ///
    /// # Errors
    /// [`StoreError::Config`].
    pub fn open(config: StoreConfig) -> Result<Self, StoreError> {
        Self::with_storage(config, Arc::new(Disk))
    }

    /// A store on another file system.
    ///
    /// # Errors
    /// [`StoreError::Config`].
    pub fn with_storage(
        mut config: StoreConfig,
        storage: Arc<dyn Storage>,
    ) -> Result<Self, StoreError> {
        config.root = resolve(&config.root)
            .map_err(|e| StoreError::Config(format!("root {:?} is no path: {e}", config.root)))?;
        let delay = config.write_batch_max_delay;
        if delay < Duration::from_millis(1) || delay > MAX_DELAY {
            return Err(StoreError::Config(format!(
                "write_batch_max_delay is {delay:?}, allowed are 1 ms to {MAX_DELAY:?}"
            )));
        }
        Ok(Self {
            config: Arc::new(config),
            storage,
            pool: Arc::new(Pool::new()),
            settled: Settled::default(),
        })
    }

    /// The absolute root.
    pub fn root(&self) -> &Path {
        &self.config.root
    }

    pub(crate) fn encoding(&self) -> Encoding {
        Encoding {
            compression: self.config.compression,
            pack: self.config.pack_chunks,
        }
    }

    fn writer(&self, log: LogFile, next_seq: u64) -> Result<Writer, StoreError> {
        let StoreConfig {
            write_batch_max_delay,
            on_failure,
            ..
        } = &*self.config;
        Writer::new(
            &self.pool,
            log,
            next_seq,
            *write_batch_max_delay,
            on_failure.clone(),
        )
    }

    /// A writer for a session that is not stored yet. Events that the session already has are queued. Nothing is on
    /// disk before the first batch, which takes the lock.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`], [`StoreError::Layout`], [`StoreError::EmptyName`], [`StoreError::Io`];
    /// [`StoreError::Session`] when an event that the session already has cannot be read.
    pub fn create(&self, session: &Session) -> Result<Writer, StoreError> {
        let id = session.id();
        if let Some(path) = self.locate(id)?.only(id, self.config.compression)? {
            return Err(StoreError::AlreadyExists {
                id: id.to_string(),
                path: path.to_owned(),
            });
        }
        let log = LogFile::absent(
            self.storage.clone(),
            self.root(),
            session.header(),
            self.encoding(),
        )?
        .sharing(&self.settled);
        let writer = self.writer(log, 0)?;
        for event in session.events_from(Seq(0)) {
            let event = event.map_err(|source| StoreError::Session {
                id: id.to_string(),
                source,
            })?;
            writer.enqueue(event)?;
        }
        Ok(writer)
    }

    /// A writer for a live session whose log may be stored already (spec/session.md §9.6): a stored log whose events are
    /// the first ones of the live session is continued, without closers, after a torn tail is cut. Without one it is
    /// [`Store::create`].
    ///
    /// # Errors
    /// [`StoreError::Collision`] when the stored log is another session's; else as [`Store::resume`] and [`Store::create`].
    pub fn adopt(&self, session: &Session) -> Result<Writer, StoreError> {
        let id = session.id();
        let Some(path) = self
            .locate(id)?
            .only(id, self.config.compression)?
            .map(Path::to_owned)
        else {
            return self.create(session);
        };
        let lock = take_lock(&*self.storage, path.parent().unwrap_or(self.root()), id)?;
        let (loaded, _) = self.load_sound(id, &path, 0)?;
        let found = &loaded.inspection;
        let failed = |source| StoreError::Session {
            id: id.to_string(),
            source,
        };
        let collision = |reason: String| StoreError::Collision {
            id: id.to_string(),
            path: path.clone(),
            reason,
        };
        if found.header.cwd != session.header().cwd {
            return Err(collision("it was started in another directory".to_owned()));
        }
        let mut live = session.events_from(Seq(0));
        for stored in found.log.events_from(Seq(0)) {
            let stored = stored.map_err(failed)?;
            let same = match live.next().transpose().map_err(failed)? {
                Some(live) => live.line() == stored.line(),
                None => false,
            };
            if !same {
                return Err(collision(format!(
                    "its event {} is another one",
                    stored.seq
                )));
            }
        }
        let mut log = LogFile::absent(
            self.storage.clone(),
            self.root(),
            &found.header,
            self.encoding(),
        )?
        .opened(&path, lock, loaded.end.clone(), loaded.stored);
        log.settle_found()?;
        let mut kept = loaded.stored;
        if let Some(torn) = found.torn {
            kept -= torn.recovered as u64;
            log.cut(loaded.kept.clone(), kept)?;
        }
        let writer = self.writer(log, kept)?;
        for event in session.events_from(Seq(kept)) {
            writer.enqueue(event.map_err(failed)?)?;
        }
        Ok(writer)
    }

    /// Opens a stored session for writing: takes the lock, cuts a torn tail, commits the closers of an open turn, and
    /// restores the session. What the session appends on being restored (`session/end-seed`, stamped with `time_ms`)
    /// is queued.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Locked`], [`StoreError::Damaged`], [`StoreError::Layout`], [`StoreError::Io`].
    pub fn resume(&self, id: &str, time_ms: i64) -> Result<(Session, Writer), StoreError> {
        let (loaded, session, log) = self.open_for_writing(id, time_ms)?;
        let writer = self.writer(log, loaded.stored)?;
        for event in session.live_events() {
            writer.enqueue(event.clone())?;
        }
        Ok((session, writer))
    }

    /// Commits the repair that [`Store::resume`] would, and nothing else.
    ///
    /// # Errors
    /// As [`Store::resume`].
    pub fn repair(&self, id: &str) -> Result<Inspection, StoreError> {
        Ok(self.open_for_writing(id, 0)?.0.inspection)
    }

    /// Takes the lock, reads, and leaves a log that ends with a whole batch and a closed turn.
    fn open_for_writing(
        &self,
        id: &str,
        time_ms: i64,
    ) -> Result<(Loaded, Session, LogFile), StoreError> {
        let path = self.find(id)?;
        let storage = &self.storage;
        let lock = take_lock(&**storage, path.parent().unwrap_or(self.root()), id)?;
        let (loaded, session) = self.load_sound(id, &path, time_ms)?;
        let Inspection {
            header,
            torn,
            closers,
            ..
        } = &loaded.inspection;
        let mut log = LogFile::absent(storage.clone(), self.root(), header, self.encoding())?
            .opened(&path, lock, loaded.end.clone(), loaded.stored);
        log.settle_found()?;
        if torn.is_none() && closers.is_empty() {
            self.keep_checkpoint(&path, &loaded);
            return Ok((loaded, session, log));
        }
        let mut batch = Vec::new();
        if let Some(torn) = torn {
            let kept = loaded.stored - torn.recovered as u64;
            log.cut(loaded.kept.clone(), kept)?;
            batch.extend(
                loaded
                    .decoded
                    .iter()
                    .skip(usize::try_from(kept).unwrap_or(usize::MAX))
                    .filter_map(|stored| stored.event().cloned()),
            );
        }
        batch.extend(closers.iter().cloned());
        log.write(&batch)?;
        // What is on disk is what counts, so it is read again rather than trusted.
        let (loaded, session) = self.load_sound(id, &path, time_ms)?;
        if loaded.inspection.torn.is_some() || !loaded.inspection.closers.is_empty() {
            let reason = "the repair that was written is not what is there".to_owned();
            return Err(StoreError::TailChanged { path, reason });
        }
        self.keep_checkpoint(&path, &loaded);
        Ok((loaded, session, log))
    }

    /// What a full read of a long log found out is kept for the next time.
    fn keep_checkpoint(&self, path: &Path, loaded: &Loaded) {
        if let Some(bytes) = &loaded.checkpoint {
            checkpoint::keep(&*self.storage, path, bytes);
        }
    }

    /// Loads a log that may be written to.
    fn load_sound(
        &self,
        id: &str,
        path: &Path,
        time_ms: i64,
    ) -> Result<(Loaded, Session), StoreError> {
        let place = Place {
            root: self.root(),
            id: Some(id),
        };
        if let Some(reopened) = reopen(&self.storage, path, place, time_ms) {
            return Ok(reopened);
        }
        let (loaded, session) = load(&self.storage, path, Some(place), time_ms)?;
        match session {
            Ok(session) => Ok((loaded, session)),
            Err(damage) => Err(StoreError::Damaged {
                path: path.to_owned(),
                damage: Box::new(damage),
            }),
        }
    }

    /// Reads a log without changing anything: the longest sound prefix, and the damage if there is one. A file below
    /// the root must be where its header says, any other may lie anywhere.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Layout`], [`StoreError::Io`]; [`StoreError::Damaged`] only when not even
    /// the header can be read.
    pub fn inspect(&self, target: &Target) -> Result<Inspection, StoreError> {
        Ok(self.read(target)?.inspection)
    }

    /// [`Store::inspect`] that lets somebody fold the sound prefix as it is read, chunks aside: one pass, and nothing of
    /// a long log is kept for it.
    ///
    /// # Errors
    /// As [`Store::inspect`].
    pub fn fold(&self, target: &Target, watch: &mut dyn Watch) -> Result<Inspection, StoreError> {
        Ok(self.read_watched(target, watch)?.inspection)
    }

    /// Reads a log without changing anything.
    pub(crate) fn read(&self, target: &Target) -> Result<Loaded, StoreError> {
        self.read_watched(target, &mut ())
    }

    fn read_watched(&self, target: &Target, watch: &mut dyn Watch) -> Result<Loaded, StoreError> {
        let (path, id) = match target {
            Target::File(path) => (path.clone(), None),
            Target::Id(id) => (self.find(id)?, Some(&**id)),
        };
        let root = self.root();
        let is_log = [Compression::None, Compression::Zstd]
            .iter()
            .any(|c| path.ends_with(c.file_name()));
        let at_home = is_log && resolve(&path).is_ok_and(|path| path.starts_with(root));
        let place = at_home.then_some(Place { root, id });
        Ok(load_watched(&self.storage, &path, place, 0, watch)?.0)
    }

    /// All stored sessions, ordered by path, by their headers alone. One that cannot be read is an entry with its
    /// damage; it hides no other.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the root itself cannot be read; an absent root is empty.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        list(&*self.storage, self.root(), self.config.compression)
    }

    /// What a list shows of each session, newest first. A session that cannot be read is a row with its damage; it hides
    /// no other. Every row is true of its log as it is now. Logs that the index does not know are read whole.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the root itself cannot be read; an absent root is empty. [`StoreError::EmptyName`].
    pub fn overview(&self, only: Only<'_>) -> Result<Vec<Overview>, StoreError> {
        self.lister().overview(only)
    }

    /// The newest `count` rows of [`Store::overview`], in a small part of its time, when there is an index.
    ///
    /// Every row is true of its log as it is now. New and removed sessions are seen, whoever made them, and so is every
    /// change of the few hundred newest ones. An older session that was taken up again since the last overview may be
    /// missing; [`Page::complete`] is false whenever that is possible. Show the page at once, then call
    /// [`Store::overview`], which finds it and brings the index up to date.
    ///
    /// # Errors
    /// As [`Store::overview`].
    pub fn page(&self, count: usize) -> Result<Page, StoreError> {
        self.lister().page(count)
    }

    /// The id that a person means by `text`: that very id, else what follows `session-` in one, else the only id that
    /// begins so, with or without `session-`. The word `last` is [`Store::last`] of `cwd`.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`], [`StoreError::NotFound`], [`StoreError::Io`].
    pub fn resolve(&self, text: &str, cwd: Option<&str>) -> Result<Arc<str>, StoreError> {
        if text == LAST {
            return self.last(cwd)?.ok_or_else(|| StoreError::NotFound {
                id: text.to_owned(),
                root: self.root().to_owned(),
            });
        }
        let compression = self.config.compression;
        resolve_id(&*self.storage, self.root(), compression, text)
    }

    /// The newest session, by the last message of a person, that a person started and that lies where it belongs; of
    /// one working directory, or of all.
    ///
    /// # Errors
    /// As [`Store::overview`].
    pub fn last(&self, cwd: Option<&str>) -> Result<Option<Arc<str>>, StoreError> {
        self.lister().last(cwd)
    }

    pub(crate) fn lister(&self) -> Lister<'_> {
        Lister {
            storage: &self.storage,
            root: self.root(),
            compression: self.config.compression,
            index: self.config.index.as_deref(),
        }
    }

    /// The log of a session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Layout`], [`StoreError::Io`].
    pub fn find(&self, id: &str) -> Result<PathBuf, StoreError> {
        match self.locate(id)?.only(id, self.config.compression)? {
            Some(path) => Ok(path.to_owned()),
            None => Err(StoreError::NotFound {
                id: id.to_owned(),
                root: self.root().to_owned(),
            }),
        }
    }

    fn locate(&self, id: &str) -> Result<Located, StoreError> {
        locate(&*self.storage, self.root(), id, self.config.compression)
    }
}

/// An absolute path without `.` and `..`, by its text alone as upstream resolves it.
fn resolve(path: &Path) -> std::io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        if part == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(part);
        }
    }
    Ok(resolved)
}
