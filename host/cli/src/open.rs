//! Which session a run is of: a new one, or a stored one under its lock.
//!
//! A session's working directory never changes (spec/cli.md §5), so a stored one
//! goes on where it began, from wherever it is resumed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dsh_agent::{Clock, StartSource, SystemClock};
use dsh_profile::Row;
use dsh_session::{Header, Session};
use dsh_store::{Compression, FailureHook, Store, StoreConfig, StoreError, Writer, layout};
use uuid::Uuid;

use crate::arguments::{Which, usage};
use crate::boot::Composed;
use crate::exit::Failure;
use crate::report;
use crate::run::text;

/// A session that this process writes.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) writer: Writer,
    pub(crate) source: StartSource,
    /// Where it works.
    pub(crate) cwd: PathBuf,
}

/// Opens it. `placed` is whether the person named the working directory.
pub(crate) fn session(composed: &Composed, which: &Which, placed: bool) -> Result<Opened, Failure> {
    let store = store(composed.rows.host(ROW), composed.place.home.path())?;
    let cwd = &composed.place.cwd;
    match which {
        Which::New => create(&store, &format!("session-{}", Uuid::new_v4()), cwd),
        Which::Named(id) => create(&store, id, cwd),
        Which::Resume(id) => resume(&store, id, cwd, placed),
        Which::Last => resume(&store, &newest(&store, cwd)?, cwd, false),
    }
}

fn create(store: &Store, id: &str, cwd: &Path) -> Result<Opened, Failure> {
    /// What a name in a directory may have, in bytes.
    const LONGEST: usize = 255;
    let name = layout::encode_segment(id).map_err(refused)?;
    if name.len() > LONGEST {
        return Err(usage(format_args!(
            "--session-id: the id makes a directory name of {} bytes, and {LONGEST} are allowed; choose a shorter one",
            name.len()
        )));
    }
    let now = u64::try_from(SystemClock.now_ms()).unwrap_or(0);
    let mut header = Header::new(id, now);
    header.cwd = Some(cwd.to_string_lossy().into());
    let session = Session::new(header).map_err(Failure::of)?;
    let writer = store.create(&session).map_err(|error| match error {
        StoreError::AlreadyExists { path, .. } => usage(format_args!(
            "SESSION_ALREADY_EXISTS: session {id:?} is there already ({}); go on with it by --resume {id}, or choose another id",
            path.display()
        )),
        other => refused(other),
    })?;
    Ok(Opened {
        session,
        writer,
        source: StartSource::Startup,
        cwd: cwd.to_owned(),
    })
}

/// `id` may be a shortened one.
fn resume(store: &Store, id: &str, cwd: &Path, placed: bool) -> Result<Opened, Failure> {
    let id = &*store.resolve(id, None).map_err(refused)?;
    let (session, writer) = store.resume(id, SystemClock.now_ms()).map_err(refused)?;
    let own = session.header().cwd.as_deref().map(PathBuf::from);
    let own = own.unwrap_or_else(|| cwd.to_owned());
    if placed && own != cwd {
        return Err(usage(format_args!(
            "session {id:?} works in {}, which cannot be changed; leave --cwd out",
            own.display()
        )));
    }
    if !own.is_dir() {
        return Err(usage(format_args!(
            "session {id:?} works in {}, which is no directory now; make it again, or start a new session",
            own.display()
        )));
    }
    Ok(Opened {
        session,
        writer,
        source: StartSource::Resume,
        cwd: own,
    })
}

/// The id of the session of this directory that was spoken in last, of those that a person started.
fn newest(store: &Store, cwd: &Path) -> Result<String, Failure> {
    let place = cwd.to_string_lossy();
    let id = store.last(Some(&place)).map_err(refused)?.ok_or_else(|| {
        usage(format_args!(
            "--resume last: no session of {place} is stored; leave --resume out to start one"
        ))
    })?;
    Ok(id.to_string())
}

/// What the store says of a session that was asked for, with the cause's name.
#[allow(
    clippy::needless_pass_by_value,
    reason = "errors are handed over by map_err"
)]
pub(crate) fn refused(error: StoreError) -> Failure {
    usage(format_args!("{}: {error}", error.code()))
}

/// The row that says where sessions are and how they are written.
pub(crate) const ROW: &str = "session-persistence-jsonl";

/// The store that the row asks for; below the home where it says nothing.
pub(crate) fn store(row: Option<&Row>, home: &Path) -> Result<Store, Failure> {
    let root = text(row, "root").map_or_else(|| home.join("sessions"), PathBuf::from);
    let mut config = StoreConfig::new(root);
    config.index = Some(home.join("cache/sessions.index"));
    match text(row, "compression") {
        None | Some("zstd") => {}
        Some("none") => config.compression = Compression::None,
        Some(other) => {
            return Err(Failure::of(format_args!(
                "row session-persistence-jsonl: there is no compression {other:?}; take zstd or none"
            )));
        }
    }
    let written = |key: &str| row.and_then(|row| row.config.get(key));
    let wrong = |key: &str, wants: &str| {
        Failure::of(format_args!(
            "row session-persistence-jsonl: {key} must be {wants}"
        ))
    };
    if let Some(pack) = written("packChunks") {
        let pack = pack.as_bool();
        config.pack_chunks = pack.ok_or_else(|| wrong("packChunks", "true or false"))?;
    }
    if let Some(delay) = written("writeBatchMaxDelayMs") {
        // Its range is the store's to check.
        let delay = delay.as_u64();
        let delay = delay.ok_or_else(|| wrong("writeBatchMaxDelayMs", "a whole number"))?;
        config.write_batch_max_delay = Duration::from_millis(delay);
    }
    config.on_failure = Some(told_once(report::line));
    Store::open(config).map_err(Failure::of)
}

/// Says once that a log is not being written: the next batch tries again, and
/// the end of the run says whether it came through.
fn told_once(say: impl Fn(String) + Send + Sync + 'static) -> FailureHook {
    let told = AtomicBool::new(false);
    Arc::new(move |id, error| {
        if !told.swap(true, Ordering::Relaxed) {
            say(format!(
                "the log of session {id:?} cannot be written, what it lacks is kept and tried again: {error}"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_log_that_cannot_be_written_is_told_of_once() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&lines);
        let hook = told_once(move |line| into.lock().unwrap().push(line));
        for reason in ["the disk is full", "still"] {
            hook("s-1", &StoreError::Config(reason.to_owned()));
        }
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("\"s-1\"") && lines[0].contains("the disk is full"));
    }
}
