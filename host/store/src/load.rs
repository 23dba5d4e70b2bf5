//! Reading a stored log: file, scan, identity, the session's rules, closers (spec/session.md §9.8).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::{
    Event, Header, Interpreted, Kind, Log, REPAIR_TEXTS, Seq, Session, Stored, closers,
    interpret_prefix, is_current,
};

use crate::archive::FrameArchive;
use crate::checkpoint::{self, Reopened};
use crate::layout::{self, Compression};
use crate::log_file::Tail;
use crate::scan::{Scanned, scan};
use crate::storage::{self, Revision, Storage};
use crate::survey::{Survey, Watch, survey, threads};
use crate::{Damage, DamageClass, Stage, StoreError};

/// A file that changes while it is read is read again so many times; then the last reading stands, whose end is torn.
const READ_ATTEMPTS: usize = 8;

/// Logs from this size on are surveyed. Smaller ones are small enough to be held in memory as they are.
const LONG: usize = if cfg!(test) { 1 } else { 64 * 1024 };

/// Which log to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A session of this store.
    Id(String),
    /// Any file; the encoding is told by its name (`.zstd` or not), its place is not checked.
    File(PathBuf),
}

/// A tail that a crash left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Where the kept part of the file ends.
    pub truncate_to: u64,
    /// How many events after that were still readable and are part of the log.
    pub recovered: usize,
}

/// What reading a log gives.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The header.
    pub header: Header,
    /// The longest sound prefix, upgraded where events had an older shape, without closers.
    pub log: Log,
    /// The events that would close an open turn; empty when the log is damaged.
    pub closers: Vec<Arc<Event>>,
    /// How many events were upgraded in memory.
    pub migrated: usize,
    /// The torn tail, which is normal after a crash.
    pub torn: Option<Torn>,
    /// Why the log ends where it does, when it should not.
    pub damage: Option<Damage>,
}

/// An [`Inspection`] and what else a writer needs.
pub(crate) struct Loaded {
    pub(crate) inspection: Inspection,
    /// How many events the file gives, those of a torn frame included.
    pub(crate) stored: u64,
    /// The events as they are in the file, where they were decoded one by one. A surveyed log has none of them at hand:
    /// its events are as they are in the file.
    pub(crate) decoded: Vec<Stored>,
    /// The end of the file.
    pub(crate) end: Tail,
    /// The end that it has when a torn tail is cut off.
    pub(crate) kept: Tail,
    /// A checkpoint of the log, where it is long enough for one.
    pub(crate) checkpoint: Option<Vec<u8>>,
}

impl Loaded {
    /// Gives the events before `end` as they are in the file, one by one.
    pub(crate) fn stored_to(
        &self,
        end: u64,
        each: &mut dyn FnMut(&Stored),
    ) -> Result<(), dsh_session::Error> {
        if !self.decoded.is_empty() {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            self.decoded.iter().take(end).for_each(each);
            return Ok(());
        }
        for event in self.inspection.log.events_from(Seq(0)) {
            let event = event?;
            if event.seq.0 >= end {
                break;
            }
            each(&Stored::Sound(event));
        }
        Ok(())
    }
}

/// Reads a file as it was at one moment.
fn read_stable(storage: &dyn Storage, path: &Path) -> Result<(Vec<u8>, Revision), StoreError> {
    let revision = || {
        storage
            .metadata(path)
            .map(|m| m.revision)
            .map_err(StoreError::io("look at", path))
    };
    let mut before = revision()?;
    for _ in 1..READ_ATTEMPTS {
        let bytes = storage::read(storage, path).map_err(StoreError::io("read", path))?;
        let after = revision()?;
        if before == after {
            return Ok((bytes, after));
        }
        before = after;
    }
    let bytes = storage::read(storage, path).map_err(StoreError::io("read", path))?;
    Ok((bytes, before))
}

/// What identity a file must have: the root it lies in and, when it was asked for by id, that id.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) root: &'a Path,
    pub(crate) id: Option<&'a str>,
}

/// Reads and judges a log, and gives the session of its events and closers, or the damage that forbids it.
/// `time_ms` stamps what the session appends when it is restored.
pub(crate) fn load(
    storage: &Arc<dyn Storage>,
    path: &Path,
    place: Option<Place<'_>>,
    time_ms: i64,
) -> Result<(Loaded, Result<Session, Damage>), StoreError> {
    load_watched(storage, path, place, time_ms, &mut ())
}

/// [`load`], with somebody who folds the sound prefix as it is read.
pub(crate) fn load_watched(
    storage: &Arc<dyn Storage>,
    path: &Path,
    place: Option<Place<'_>>,
    time_ms: i64,
    watch: &mut dyn Watch,
) -> Result<(Loaded, Result<Session, Damage>), StoreError> {
    let compression = Compression::of(path);
    let (bytes, revision) = read_stable(&**storage, path)?;
    if compression == Compression::Zstd
        && bytes.len() >= LONG
        && let Some(survey) = survey(&bytes, threads(bytes.len()), watch)
    {
        let end = Tail::default().after(&bytes);
        let file = (revision.0, revision.1);
        let checkpoint = checkpoint::encode(&survey, &end, file);
        if let Some((inspection, session)) = sound(storage, path, file, survey, time_ms) {
            return placed(
                &**storage,
                place,
                Loaded {
                    stored: inspection.log.len(),
                    decoded: Vec::new(),
                    inspection,
                    kept: end.clone(),
                    end,
                    checkpoint,
                },
                session,
            );
        }
    }
    let Scanned {
        header,
        stored,
        torn,
        mut damage,
    } = scan(&bytes, compression).map_err(|damage| StoreError::Damaged {
        path: path.to_owned(),
        damage: Box::new(damage),
    })?;
    if damage.is_none()
        && let Some(place) = place
    {
        damage = check_identity(&**storage, path, &header, place, compression)?;
    }
    let judged = judge(&header, &stored, time_ms);
    // A tail counts as torn only behind a log that is sound.
    let torn = torn.filter(|_| judged.session.is_ok());
    let session = match (damage, judged.session) {
        // Of two damages the earlier one is where the events end.
        (
            Some(Damage {
                stage: Stage::Scan, ..
            }),
            Err(earlier),
        ) => Err(earlier),
        (Some(damage), _) => Err(damage),
        (None, session) => session,
    };
    let closers = if session.is_ok() {
        judged.closers
    } else {
        Vec::new()
    };
    watch.begin(&header);
    for event in &judged.events {
        if event.kind != Kind::AssistantChunk {
            watch.event(event);
        }
    }
    let inspection = Inspection {
        path: path.to_owned(),
        bytes: bytes.len() as u64,
        header,
        log: judged.events.into(),
        closers,
        migrated: judged.migrated,
        torn,
        damage: session.as_ref().err().cloned(),
    };
    let kept = torn.map_or(bytes.len(), |torn| {
        usize::try_from(torn.truncate_to).map_or(bytes.len(), |end| end.min(bytes.len()))
    });
    Ok((
        Loaded {
            inspection,
            stored: stored.len() as u64,
            decoded: stored,
            end: Tail::default().after(&bytes),
            kept: Tail::default().after(&bytes[..kept]),
            checkpoint: None,
        },
        session,
    ))
}

/// A sound log, if it lies where it belongs.
fn placed(
    storage: &dyn Storage,
    place: Option<Place<'_>>,
    mut loaded: Loaded,
    session: Session,
) -> Result<(Loaded, Result<Session, Damage>), StoreError> {
    let Inspection { path, header, .. } = &loaded.inspection;
    let damage = match place {
        Some(place) => check_identity(storage, path, header, place, Compression::of(path))?,
        None => None,
    };
    Ok(match damage {
        None => (loaded, Ok(session)),
        Some(damage) => {
            loaded.inspection.closers.clear();
            loaded.inspection.damage = Some(damage.clone());
            (loaded, Err(damage))
        }
    })
}

/// Opens a log by its checkpoint, where it has one that fits. For whoever holds its lock.
pub(crate) fn reopen(
    storage: &Arc<dyn Storage>,
    path: &Path,
    place: Place<'_>,
    time_ms: i64,
) -> Option<(Loaded, Session)> {
    let Reopened {
        survey, end, file, ..
    } = checkpoint::read(storage, path)?;
    let (inspection, session) = sound(storage, path, file, survey, time_ms)?;
    let loaded = Loaded {
        stored: inspection.log.len(),
        decoded: Vec::new(),
        inspection,
        kept: end.clone(),
        end,
        checkpoint: None,
    };
    let (loaded, session) = placed(&**storage, Some(place), loaded, session).ok()?;
    Some((loaded, session.ok()?))
}

/// What a surveyed log gives, when a session can be opened on it.
fn sound(
    storage: &Arc<dyn Storage>,
    path: &Path,
    file: (u64, u64),
    survey: Survey,
    time_ms: i64,
) -> Option<(Inspection, Session)> {
    let Survey {
        header,
        fold,
        kept,
        index,
    } = survey;
    let bytes = index.end.0;
    let archive = FrameArchive::new(storage.clone(), path, file, index);
    let log = Log::stored(Arc::new(archive), kept);
    let closers = match fold.last() {
        Some(last) => fold.open_turn().closers(last.seq, last.time, REPAIR_TEXTS),
        None => Vec::new(),
    };
    // Closers that a reader would refuse are for the slow way to judge.
    if !closers.iter().all(|event| is_current(event, &header.id)) {
        return None;
    }
    let session = Session::open(header.clone(), log.clone(), fold, &closers, time_ms).ok()?;
    let inspection = Inspection {
        path: path.to_owned(),
        bytes,
        header,
        log,
        closers,
        migrated: 0,
        torn: None,
        damage: None,
    };
    Some((inspection, session))
}

/// Whether a header belongs where it lies: id as asked for, path as computed, or another name of the same file.
pub(crate) fn check_identity(
    storage: &dyn Storage,
    path: &Path,
    header: &Header,
    place: Place<'_>,
    compression: Compression,
) -> Result<Option<Damage>, StoreError> {
    let damage = |reason| {
        Some(Damage {
            class: DamageClass::Identity,
            stage: Stage::Identity,
            offset: None,
            seq: None,
            reason,
        })
    };
    if let Some(id) = place.id.filter(|id| **id != *header.id) {
        return Ok(damage(format!(
            "its header says session {:?}, not {id:?}",
            &*header.id
        )));
    }
    let expected = layout::log_path(place.root, header, compression)?;
    if expected == path {
        return Ok(None);
    }
    let same = match (storage.metadata(&expected), storage.metadata(path)) {
        (Ok(a), Ok(b)) => (a.revision.0, a.revision.1) == (b.revision.0, b.revision.1),
        _ => false,
    };
    Ok(if same {
        None
    } else {
        damage(format!(
            "its header's id and cwd belong at {}",
            expected.display()
        ))
    })
}

struct Judged {
    events: Vec<Arc<Event>>,
    closers: Vec<Arc<Event>>,
    migrated: usize,
    session: Result<Session, Damage>,
}

/// Puts events through the session's rules, as far as they hold.
fn judge(header: &Header, stored: &[Stored], time_ms: i64) -> Judged {
    let (
        Interpreted {
            mut events,
            migrated,
        },
        fault,
    ) = interpret_prefix(header, stored);
    let closers = if fault.is_none() {
        closers(&events)
    } else {
        Vec::new()
    };
    let all = events.iter().chain(&closers).cloned().collect();
    let (sound, fault) = match Session::salvage(header.clone(), all, time_ms) {
        Ok((session, None)) if fault.is_none() => {
            return Judged {
                events,
                closers,
                migrated: migrated.len(),
                session: Ok(session),
            };
        }
        Ok((session, earlier)) => (session.first_live_seq(), earlier.or(fault)),
        // Under a header that no session can have the events may be sound all the same.
        Err(unsound) => {
            let bare = Header::new(header.id.clone(), header.created_at);
            let session = Session::salvage(bare, events.clone(), time_ms);
            (
                session.map_or(Seq(0), |(session, _)| session.first_live_seq()),
                Some(unsound),
            )
        }
    };
    events.truncate(usize::try_from(sound.0).unwrap_or(usize::MAX));
    let (class, reason) = match fault {
        Some(fault) => (fault.class().into(), fault.to_string()),
        None => (
            DamageClass::Corrupt,
            "the log breaks a rule of the session".to_owned(),
        ),
    };
    let damage = Damage {
        class,
        stage: Stage::Interpret,
        offset: None,
        seq: Some(sound.0),
        reason,
    };
    let migrated = migrated.iter().filter(|seq| **seq < sound).count();
    Judged {
        events,
        closers: Vec::new(),
        migrated,
        session: Err(damage),
    }
}
