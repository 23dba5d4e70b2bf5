//! Rival writers: real processes that append to one session, killed and stopped at any moment, while its directory is
//! copied and put back.
//!
//! A child resumes (or creates) the session, appends and flushes, and says on its output what is durable; it is refused
//! while another holds the lock, and tries again. The parent kills and stops children at random, and now and then puts a copy
//! of the directory back in place of the living one, as a backup tool would: then what was acknowledged since may
//! be gone, but never may a `seq` be there twice, nor the log be damaged.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dsh_session::{Draft, Header, Json, Kind, Session};
use dsh_store::{Store, StoreConfig, StoreError, Target};
use rustix::process::{Pid, Signal, kill_process};

use crate::random::Random;

const ID: &str = "rivals";

fn store(root: &Path) -> Result<Store> {
    Ok(Store::open(StoreConfig {
        write_batch_max_delay: Duration::from_millis(5),
        ..StoreConfig::new(root)
    })?)
}

/// What a child does until it is killed or has nobody to tell: appends `batch` events at a time.
///
/// # Errors
/// What no rival explains.
pub fn child(root: &Path, batch: usize) -> Result<()> {
    let store = store(root)?;
    let mut out = std::io::stdout();
    loop {
        let opened = match store.resume(ID, 1) {
            Err(StoreError::NotFound { .. }) => {
                let session = Session::new(Header::new(ID, 1))?;
                store.create(&session).map(|writer| (session, writer))
            }
            opened => opened,
        };
        let (mut session, writer) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                writeln!(out, "refused {}", e.code())?;
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
        };
        loop {
            // What is acknowledged counts for the directory that was there before it was written.
            let dir = session_dir(root).metadata().map_or(0, |meta| meta.ino());
            let mut refused = None;
            for _ in 0..batch {
                let event = session.append(draft(&session), 1_700_000_000_000)?;
                if let Err(e) = writer.enqueue(event) {
                    refused = Some(e);
                    break;
                }
            }
            if refused.is_none() {
                refused = writer.flush_blocking().err();
            }
            if let Some(e) = refused {
                writeln!(out, "refused {}", e.code())?;
                break;
            }
            writeln!(out, "durable {} {batch} {dir}", writer.durable_seq())?;
            // Others get their turn.
            if session.next_seq().0 % 7 == 0 {
                break;
            }
        }
    }
}

fn draft(session: &Session) -> Draft {
    let n = session.next_seq().0;
    let data = format!(r#"{{"pid":{},"n":{n}}}"#, std::process::id());
    let data = Json::normalise(&data).expect("this is JSON");
    Draft::new(Kind::from_name("acme/rival"), data)
}

/// What happened.
#[derive(Debug, Default)]
pub struct Rivalry {
    /// Appends that were acknowledged.
    pub appends: u64,
    /// Processes started.
    pub processes: u64,
    /// Killed with `SIGKILL`.
    pub kills: u64,
    /// Stopped and continued.
    pub stops: u64,
    /// Times that an older copy of the directory was put back.
    pub restores: u64,
    /// Times that a rival was refused.
    pub refusals: u64,
    /// Logs looked at.
    pub checks: u64,
}

impl Rivalry {
    /// Adds another fight's.
    pub fn add(&mut self, other: &Rivalry) {
        self.appends += other.appends;
        self.processes += other.processes;
        self.kills += other.kills;
        self.stops += other.stops;
        self.restores += other.restores;
        self.refusals += other.refusals;
        self.checks += other.checks;
    }
}

struct Rival {
    child: Child,
    stopped: bool,
}

struct Counts {
    appends: AtomicU64,
    refusals: AtomicU64,
    /// The session's directory, and what was acknowledged in it.
    durable: Mutex<(u64, u64)>,
}

impl Counts {
    fn durable(&self) -> MutexGuard<'_, (u64, u64)> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets `rivals` processes of the program `program` (this crate's) fight until `appends` were acknowledged, within
/// `limit`.
///
/// # Errors
/// A duplicate or missing `seq`, a damaged log, or acknowledged events that are gone.
pub fn fight(
    program: &Path,
    rivals: usize,
    appends: u64,
    batch: usize,
    seed: u64,
    limit: Duration,
) -> Result<Rivalry> {
    let dir = scratch()?;
    let root = dir.join("sessions");
    let mut random = Random::new(seed);
    let mut done = Rivalry::default();
    let counts = Arc::new(Counts {
        appends: AtomicU64::new(0),
        refusals: AtomicU64::new(0),
        durable: Mutex::new((0, 0)),
    });
    let mut children: Vec<Rival> = Vec::new();
    let end = Instant::now() + limit;
    let fought = (|| -> Result<()> {
        let mut copy: Option<PathBuf> = None;
        while counts.appends.load(Ordering::Acquire) < appends {
            ensure!(Instant::now() < end, "not done in {limit:?}: {done:?}");
            while children.len() < rivals {
                children.push(start(program, &root, batch, &counts)?);
                done.processes += 1;
            }
            std::thread::sleep(Duration::from_millis(5 + random.number() % 40));
            let which = random.below(children.len());
            match random.below(10) {
                0..3 => {
                    let mut rival = children.swap_remove(which);
                    rival.child.kill()?;
                    rival.child.wait()?;
                    done.kills += 1;
                }
                3..7 => {
                    let rival = &mut children[which];
                    let pid = Pid::from_child(&rival.child);
                    kill_process(
                        pid,
                        if rival.stopped {
                            Signal::CONT
                        } else {
                            Signal::STOP
                        },
                    )?;
                    rival.stopped = !rival.stopped;
                    done.stops += u64::from(rival.stopped);
                    if children.iter().all(|rival| rival.stopped) {
                        wake(&mut children)?;
                    }
                }
                7 => copy = copy_of(&root, &dir).or(copy),
                8 => {
                    if let Some(copy) = copy.take() {
                        put_back(&copy, &root, &dir)?;
                        let dir = session_dir(&root).metadata()?.ino();
                        *counts.durable() = (dir, 0);
                        done.restores += 1;
                    }
                }
                _ => {
                    look(&root, &counts, &mut done)?;
                }
            }
        }
        Ok(())
    })();
    let woken = wake(&mut children);
    for rival in &mut children {
        let _ = rival.child.kill();
        let _ = rival.child.wait();
    }
    done.appends = counts.appends.load(Ordering::Acquire);
    done.refusals = counts.refusals.load(Ordering::Acquire);
    let result = fought
        .and(woken)
        .and_then(|()| look(&root, &counts, &mut done));
    let _ = std::fs::remove_dir_all(&dir);
    result.with_context(|| format!("seed {seed}, {rivals} rivals"))?;
    Ok(done)
}

fn scratch() -> Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let shm = Path::new("/dev/shm");
    let base = if shm.is_dir() {
        shm.to_owned()
    } else {
        std::env::temp_dir()
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = base.join(format!("dsh-torture-{}-{number}", std::process::id()));
    std::fs::create_dir(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir)
}

fn start(program: &Path, root: &Path, batch: usize, counts: &Arc<Counts>) -> Result<Rival> {
    let mut child = Command::new(program)
        .arg("child")
        .arg(root)
        .arg(batch.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let output = child.stdout.take().context("it has an output")?;
    let counts = counts.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("durable"), Some(seq), Some(batch), Some(dir)) => {
                    let mut durable = counts.durable();
                    let dir = dir.parse().unwrap_or(0);
                    if durable.0 == 0 {
                        durable.0 = dir;
                    }
                    // Else it was put away since.
                    if durable.0 == dir {
                        durable.1 = durable.1.max(seq.parse().unwrap_or(0));
                    }
                    drop(durable);
                    counts
                        .appends
                        .fetch_add(batch.parse().unwrap_or(0), Ordering::AcqRel);
                }
                _ => drop(counts.refusals.fetch_add(1, Ordering::AcqRel)),
            }
        }
    });
    Ok(Rival {
        child,
        stopped: false,
    })
}

fn wake(children: &mut [Rival]) -> Result<()> {
    for rival in children.iter_mut().filter(|rival| rival.stopped) {
        kill_process(Pid::from_child(&rival.child), Signal::CONT)?;
        rival.stopped = false;
    }
    Ok(())
}

fn session_dir(root: &Path) -> PathBuf {
    root.join("_no-cwd").join(ID)
}

/// A copy of the session's log as it is now, if it is there.
fn copy_of(root: &Path, dir: &Path) -> Option<PathBuf> {
    let copy = dir.join("copy");
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir(&copy).ok()?;
    let log = "session.jsonl.zstd";
    std::fs::copy(session_dir(root).join(log), copy.join(log)).ok()?;
    Some(copy)
}

/// Puts the copy in the session's place, in one step each; the living one goes away.
fn put_back(copy: &Path, root: &Path, dir: &Path) -> Result<()> {
    let old = dir.join("old");
    std::fs::rename(session_dir(root), &old)?;
    let put = std::fs::rename(copy, session_dir(root));
    // A rival may have begun the session anew in between; then the copy is not needed.
    if put.is_err() {
        let _ = std::fs::remove_dir_all(copy);
    }
    std::fs::remove_dir_all(&old)?;
    Ok(())
}

/// Reads the log as anybody may at any moment: whole, without a gap, without a `seq` twice.
fn look(root: &Path, counts: &Counts, done: &mut Rivalry) -> Result<()> {
    let durable = counts.durable().1;
    let found = match store(root)?.inspect(&Target::Id(ID.to_owned())) {
        Ok(found) => found,
        Err(StoreError::NotFound { .. }) if durable == 0 => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    ensure!(
        found.damage.is_none(),
        "damage: {}",
        found.damage.map(|d| d.to_string()).unwrap_or_default()
    );
    for (expected, event) in (0..).zip(found.log.events_from(dsh_session::Seq(0))) {
        let event = event?;
        ensure!(
            event.seq.0 == expected,
            "seq {} where {expected} belongs",
            event.seq
        );
    }
    ensure!(
        found.log.len() >= durable,
        "{durable} were acknowledged, {} are there",
        found.log.len()
    );
    done.checks += 1;
    Ok(())
}
