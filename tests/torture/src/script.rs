//! Scripts: a session that is created, written, refused by the disk, killed and resumed, as a seed says; after each step
//! all crash states of what the step did are recovered.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;

use anyhow::{Context, Result};
use dsh_session::{Event, Session};
use dsh_store::{Compression, Store, StoreError, Writer};

use crate::check::{Checker, Expected, ID, STORE, Setup, all};
use crate::crash;
use crate::memory::{Disk, Fault, Faults, Memory, Op, Tree};
use crate::play::Play;
use crate::random::Random;

/// What a run of scripts did.
#[derive(Debug, Default)]
pub struct Tally {
    /// Crash states looked at, repeated ones included.
    pub states: u64,
    /// Different file trees that were recovered.
    pub distinct: u64,
    /// Scripts played.
    pub scripts: u64,
    /// What went wrong, with the seed that shows it again.
    pub failures: Vec<String>,
}

/// How much of each script is looked at.
#[derive(Debug, Clone, Copy)]
pub enum Dose {
    /// Every crash state, script after script, until so many different file trees were recovered.
    Every {
        /// File trees.
        distinct: u64,
    },
    /// One crash state in `one_in`, of so many scripts: many orders of steps, thinly.
    Thin {
        /// How many scripts.
        scripts: u64,
        /// How thinly.
        one_in: usize,
    },
}

const SETUPS: [Setup; 4] = [
    Setup {
        compression: Compression::Zstd,
        pack: true,
    },
    Setup {
        compression: Compression::None,
        pack: true,
    },
    Setup {
        compression: Compression::Zstd,
        pack: false,
    },
    Setup {
        compression: Compression::None,
        pack: false,
    },
];

/// Failures after which a run ends.
const ENOUGH: usize = 5;

/// Plays scripts from `seed` on, until the dose is taken or enough has failed.
pub fn run(seed: u64, dose: Dose) -> Tally {
    let mut tally = Tally::default();
    let mut checkers = SETUPS.map(Checker::new);
    for seed in seed.. {
        let (done, one_in) = match dose {
            Dose::Every { distinct } => (tally.distinct >= distinct, 1),
            Dose::Thin { scripts, one_in } => (tally.scripts >= scripts, one_in),
        };
        if done || tally.failures.len() >= ENOUGH {
            break;
        }
        let which = usize::try_from(seed % 4).unwrap_or(0);
        let checker = &mut checkers[which];
        checker.forget();
        tally.scripts += 1;
        let mut script = Script::new(seed, SETUPS[which], one_in, checker, &mut tally);
        if let Err(e) = script.play() {
            let failure = format!("seed {seed}: the script itself failed: {e:#}");
            tally.failures.push(failure);
        }
    }
    tally
}

struct Script<'a> {
    seed: u64,
    random: Random,
    play: Play,
    memory: Memory,
    disk: Disk,
    store: Store,
    expected: Expected,
    seen: HashSet<u64>,
    one_in: usize,
    checker: &'a mut Checker,
    tally: &'a mut Tally,
}

/// A session and its writer.
type Open = (Session, Writer);

impl<'a> Script<'a> {
    fn new(
        seed: u64,
        setup: Setup,
        one_in: usize,
        checker: &'a mut Checker,
        tally: &'a mut Tally,
    ) -> Self {
        let memory = Memory::new();
        Script {
            seed,
            random: Random::new(seed),
            play: Play::new(seed),
            disk: Disk::default(),
            store: setup.store(&memory),
            memory,
            expected: Expected::default(),
            seen: HashSet::new(),
            one_in,
            checker,
            tally,
        }
    }

    fn play(&mut self) -> Result<()> {
        let mut open = self.create()?;
        for _ in 0..3 + self.random.below(4) {
            open = match self.random.below(10) {
                0..5 => self.batch(open)?,
                5..7 => self.refused(open)?,
                7 => self.close(open)?,
                8 => self.die(open, true)?,
                _ => self.die(open, false)?,
            };
            if self.tally.failures.len() >= ENOUGH {
                break;
            }
        }
        self.abandon(open);
        Ok(())
    }

    fn create(&mut self) -> Result<Open> {
        self.expected = Expected::default();
        let mut session = Session::new(self.play.header())?;
        self.append(&mut session);
        let writer = self.store.create(&session)?;
        self.flush((session, writer))
    }

    /// More events in the session; the writer does not know them yet.
    fn append(&mut self, session: &mut Session) -> Vec<Arc<Event>> {
        let most = if self.random.percent(20) { 12 } else { 3 };
        let count = 1 + self.random.below(most);
        let made = self.play.append(session, count);
        self.expected.extend(&made);
        made
    }

    fn queue(&mut self, (session, writer): &mut Open) -> Result<()> {
        for event in self.append(session) {
            writer.enqueue(event)?;
        }
        Ok(())
    }

    fn batch(&mut self, mut open: Open) -> Result<Open> {
        self.queue(&mut open)?;
        self.flush(open)
    }

    fn flush(&mut self, open: Open) -> Result<Open> {
        open.1.flush_blocking().context("flush")?;
        self.crash_everywhere();
        self.expected.flushed = self.expected.log.len();
        self.crash_now();
        Ok(open)
    }

    /// The disk refuses for a while.
    fn refused(&mut self, mut open: Open) -> Result<Open> {
        self.queue(&mut open)?;
        let kind = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::Other,
            io::ErrorKind::QuotaExceeded,
        ][self.random.below(3)];
        let how = [Fault::Error(kind), Fault::Half(kind), Fault::Short][self.random.below(3)];
        self.memory.fail(Some(Faults {
            first: self.random.below(8),
            count: 1 + self.random.below(3),
            how,
        }));
        let refused = open.1.flush_blocking();
        self.memory.fail(None);
        self.crash_everywhere();
        if refused.is_ok() {
            self.expected.flushed = self.expected.log.len();
        }
        if self.random.percent(50) {
            self.queue(&mut open)?;
        }
        self.flush(open)
    }

    fn close(&mut self, open: Open) -> Result<Open> {
        drop(open);
        self.crash_everywhere();
        self.resume()
    }

    fn resume(&mut self) -> Result<Open> {
        self.play.restored();
        match self.store.resume(ID, 1_700_000_900_000) {
            Ok((session, writer)) => {
                let log = all(&session);
                let known = self
                    .expected
                    .log
                    .iter()
                    .zip(&log)
                    .take_while(|(a, b)| a == b)
                    .count();
                let flushed = self.expected.flushed;
                self.expected = Expected::default();
                self.expected.extend(&log);
                self.expected.flushed = flushed;
                anyhow::ensure!(known >= flushed, "resuming lost flushed events");
                self.checker.forget();
                self.crash_everywhere();
                self.expected.flushed = usize::try_from(session.first_live_seq().0)?;
                self.crash_now();
                Ok((session, writer))
            }
            Err(StoreError::NotFound { .. }) => {
                self.checker.forget();
                self.create()
            }
            Err(e) => Err(e).context("resume"),
        }
    }

    /// The process forgets all, and its disk refuses what it would write on its way out.
    fn abandon(&mut self, open: Open) {
        self.memory.fail(Some(Faults {
            first: 0,
            count: usize::MAX,
            how: Fault::Error(io::ErrorKind::Other),
        }));
        drop(open);
        self.memory.journal();
    }

    /// The process is killed somewhere in a batch; so is the machine, or what the process wrote is still to be seen.
    fn die(&mut self, mut open: Open, machine: bool) -> Result<Open> {
        self.queue(&mut open)?;
        let before = self.memory.tree();
        open.1.flush_blocking().context("flush")?;
        let ops = self.memory.journal();
        self.abandon(open);
        let end = self.random.below(ops.len() + 1);
        let mut tree = before;
        for op in &ops[..end] {
            tree.apply(op);
            self.step(op);
        }
        if machine {
            let mut left = Vec::new();
            crash::states(&self.disk, &mut self.random.clone(), &mut |state| {
                left.push(state.clone());
            });
            tree = left.swap_remove(self.random.below(left.len()));
            self.disk = Disk {
                durable: tree.clone(),
                pending: Vec::new(),
            };
        }
        self.memory.boot(tree);
        self.resume()
    }

    fn step(&mut self, op: &Op) {
        if matches!(op, Op::SyncFile(_) | Op::SyncDir(_)) {
            self.crash_now();
        }
        self.disk.advance(op, &mut self.random);
    }

    /// Crashes before each sync of what was done since the last time.
    fn crash_everywhere(&mut self) {
        for op in self.memory.journal() {
            self.step(&op);
        }
        self.crash_now();
    }

    fn crash_now(&mut self) {
        let Script {
            seed,
            random,
            disk,
            expected,
            seen,
            one_in,
            checker,
            tally,
            ..
        } = self;
        let mut chance = Random::new(random.number());
        crash::states(disk, random, &mut |tree| {
            if *one_in > 1 && chance.below(*one_in) > 0 {
                return;
            }
            tally.states += 1;
            let trees = hash(tree, 0);
            if !seen.insert(hash(tree, 1 + expected.flushed)) || tally.failures.len() >= ENOUGH {
                return;
            }
            if seen.insert(trees) {
                tally.distinct += 1;
            }
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                checker.check(tree, expected, &expected.log)
            }));
            let wrong = match checked {
                Ok(Ok(())) => return,
                Ok(Err(e)) => format!("{e:#}"),
                Err(_) => "it panicked".to_owned(),
            };
            let files: Vec<String> = tree
                .files()
                .iter()
                .filter(|(path, _)| path.starts_with(STORE))
                .map(|(path, bytes)| format!("{path} ({} bytes)", bytes.len()))
                .collect();
            tally.failures.push(format!(
                "seed {seed}, state {}: {wrong}; flushed {} of {}; pending {}; {}",
                tally.states,
                expected.flushed,
                expected.log.len(),
                pending(disk),
                files.join(", ")
            ));
        });
    }
}

fn pending(disk: &Disk) -> String {
    disk.pending
        .iter()
        .map(|(op, doubtful)| {
            let op = match op {
                Op::Write(ino, at, bytes) => format!("write {ino} at {at} {} bytes", bytes.len()),
                op => format!("{op:?}"),
            };
            if *doubtful { op + " (in doubt)" } else { op }
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn hash(tree: &Tree, salt: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    salt.hash(&mut hasher);
    tree.files().hash(&mut hasher);
    hasher.finish()
}
