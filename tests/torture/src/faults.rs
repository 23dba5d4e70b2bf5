//! Every call that the store makes of its file system fails once, in every way, for a moment or until space returns.

use std::io;

use anyhow::{Context, Result, bail, ensure};
use dsh_session::{Event, Session};
use dsh_store::{Store, StoreError, Target, Writer};
use std::sync::Arc;

use crate::check::{ID, Setup, events};
use crate::memory::{Fault, Faults, Memory};
use crate::play::Play;

/// The ways.
pub const WAYS: [Fault; 7] = [
    Fault::Error(io::ErrorKind::StorageFull),
    Fault::Error(io::ErrorKind::QuotaExceeded),
    Fault::Error(io::ErrorKind::Other),
    Fault::Error(io::ErrorKind::Interrupted),
    Fault::Half(io::ErrorKind::StorageFull),
    Fault::Half(io::ErrorKind::Interrupted),
    Fault::Short,
];

/// So many refusals are waited out; then space returns.
const PATIENCE: usize = 3;

struct Run {
    memory: Memory,
    store: Store,
    play: Play,
    session: Session,
    flushed: u64,
}

/// Plays a session of which the calls from `first` on fail, `count` of them (or until space returns). Gives how many
/// calls there were.
///
/// # Errors
/// What was lost or would not work again.
pub fn play(setup: Setup, faults: Faults) -> Result<usize> {
    let memory = Memory::new();
    let mut play = Play::new(7);
    let session = Session::new(play.header())?;
    let mut run = Run {
        store: setup.store(&memory),
        memory,
        play,
        session,
        flushed: 0,
    };
    run.memory.fail(Some(faults));
    run.through()
        .with_context(|| format!("{setup:?}, {faults:?}"))?;
    Ok(run.memory.calls())
}

impl Run {
    fn through(&mut self) -> Result<usize> {
        let writer = self.again(|run| run.store.create(&run.session))?;
        self.batch(&writer, 5)?;
        self.batch(&writer, 9)?;
        drop(writer);
        let (session, writer) = self.again(|run| run.store.resume(ID, 1))?;
        self.session = session;
        self.play.restored();
        self.batch(&writer, 4)?;
        ensure!(self.session.first_live_seq().0 > 0, "it was not resumed");
        drop(writer);
        let calls = self.memory.suspend(true);
        self.sound(self.session.next_seq().0)?;
        Ok(calls)
    }

    /// Tries until it works; space returns after a few times.
    fn again<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Run) -> Result<T, StoreError>,
    ) -> Result<T> {
        for _ in 0..PATIENCE {
            match attempt(self) {
                Ok(done) => return Ok(done),
                Err(e) if e.is_transient() => {
                    let calls = self.memory.suspend(true);
                    let whole = self.sound(self.flushed);
                    self.memory.suspend(false);
                    self.memory.set_calls(calls);
                    whole.with_context(|| format!("after {e}"))?;
                }
                Err(e) => bail!("given up for good: {e}"),
            }
        }
        self.memory.suspend(true);
        attempt(self).context("space is back")
    }

    fn batch(&mut self, writer: &Writer, count: usize) -> Result<()> {
        for event in self.session.live_events() {
            if event.seq.0 >= writer.next_seq().0 {
                writer.enqueue(event.clone())?;
            }
        }
        let made: Vec<Arc<Event>> = self.play.append(&mut self.session, count);
        for event in made {
            writer.enqueue(event)?;
        }
        self.again(|_| writer.flush_blocking())?;
        ensure!(
            writer.paused().is_none(),
            "it works and says that it is paused"
        );
        ensure!(
            writer.durable_seq() == self.session.next_seq(),
            "flushed, and not durable"
        );
        self.flushed = writer.durable_seq().0;
        Ok(())
    }

    /// What is there begins with what was flushed, and nothing is wrong with it.
    fn sound(&self, flushed: u64) -> Result<()> {
        let found = match self.store.inspect(&Target::Id(ID.to_owned())) {
            Err(StoreError::NotFound { .. }) if flushed == 0 => return Ok(()),
            found => found?,
        };
        ensure!(found.damage.is_none(), "damage: {:?}", found.damage);
        let there = events(&found);
        ensure!(
            there.len() as u64 >= flushed,
            "{flushed} were flushed, {} are there",
            there.len()
        );
        let written = self.session.log().to_vec()?;
        // A repair that failed half-way may have closed a turn already.
        let shared = there.len().min(written.len());
        ensure!(
            written[..shared] == there[..shared],
            "other events are there"
        );
        Ok(())
    }
}

/// Plays it for every call and way. Gives how many runs there were.
///
/// # Errors
/// The first that went wrong.
pub fn sweep(setup: Setup) -> Result<usize> {
    let none = Faults {
        first: usize::MAX,
        count: 0,
        how: Fault::Short,
    };
    let calls = play(setup, none)?;
    let mut runs = 0;
    for how in WAYS {
        for first in 0..calls {
            for count in [1, 2, usize::MAX] {
                let interrupted = io::ErrorKind::Interrupted;
                let signal = how == Fault::Error(interrupted) || how == Fault::Half(interrupted);
                if signal && count > 2 {
                    // Nobody is interrupted for ever, and a write goes on after each time.
                    continue;
                }
                play(setup, Faults { first, count, how })?;
                runs += 1;
            }
        }
    }
    Ok(runs)
}
