//! What recovery must make of a crash state, whatever it is.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dsh_session::{Event, Kind, Seq, Session, Surface, closers};
use dsh_store::{Compression, Inspection, Store, StoreConfig, StoreError, Target};

use crate::memory::{Memory, Tree};

/// The session that all scripts write.
pub const ID: &str = "s-1";
/// Where its store lies.
pub const STORE: &str = "/home/sessions";

/// How a store is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setup {
    /// The encoding.
    pub compression: Compression,
    /// Whether runs of chunks become rows.
    pub pack: bool,
}

impl Setup {
    /// A store that writes only when it is told to.
    pub fn store(self, memory: &Memory) -> Store {
        let config = StoreConfig {
            compression: self.compression,
            pack_chunks: self.pack,
            write_batch_max_delay: Duration::from_secs(1_000_000),
            ..StoreConfig::new(STORE)
        };
        Store::with_storage(config, Arc::new(memory.clone())).expect("the setup is valid")
    }
}

/// What was written, as far as anybody can know.
#[derive(Clone, Default)]
pub struct Expected {
    /// All events that were handed to the writer, or that it repairs with.
    pub log: Vec<Arc<Event>>,
    /// So many of them were flushed.
    pub flushed: usize,
    /// The surface after each number of events.
    surfaces: Vec<Vec<Seq>>,
    folded: Surface,
}

impl Expected {
    /// Goes on with these events.
    pub fn extend(&mut self, events: &[Arc<Event>]) {
        if self.surfaces.is_empty() {
            self.surfaces.push(Vec::new());
        }
        for event in events {
            let log = &self.log;
            self.folded
                .push(event, |seq| Ok(log.get(seq.0 as usize).cloned()))
                .expect("a session accepted it");
            self.log.push(event.clone());
            self.surfaces.push(self.folded.nodes().to_vec());
        }
    }
}

/// A machine on which crash states are recovered, one after another.
pub struct Checker {
    setup: Setup,
    memory: Memory,
    store: Store,
    closers: HashMap<usize, Vec<Arc<Event>>>,
}

/// The events of a log as it was read.
pub fn events(found: &Inspection) -> Vec<Arc<Event>> {
    found.log.to_vec().expect("the log can be read")
}

/// The events of a session.
pub fn all(session: &Session) -> Vec<Arc<Event>> {
    session.log().to_vec().expect("the log can be read")
}

impl Checker {
    /// A machine for one setup.
    pub fn new(setup: Setup) -> Checker {
        let memory = Memory::new();
        let store = setup.store(&memory);
        Checker {
            setup,
            memory,
            store,
            closers: HashMap::new(),
        }
    }

    /// Another script begins.
    pub fn forget(&mut self) {
        self.closers.clear();
    }

    fn log_bytes(&self, path: &Path) -> Vec<u8> {
        let mut tree = self.memory.tree();
        match tree.find(path) {
            Ok(ino) => tree.file(ino).to_vec(),
            Err(_) => Vec::new(),
        }
    }

    /// Recovers one state and checks all that the module promises.
    ///
    /// # Errors
    /// What was broken.
    pub fn check(&mut self, tree: &Tree, expected: &Expected, play: &[Arc<Event>]) -> Result<()> {
        self.memory.boot(tree.clone());
        let listed = self.store.list().context("list")?;
        ensure!(listed.len() <= 1, "{} sessions are listed", listed.len());
        for entry in &listed {
            entry
                .header
                .as_ref()
                .map_err(|damage| anyhow::anyhow!("listed with {damage}"))?;
        }
        let found = match self.store.inspect(&Target::Id(ID.to_owned())) {
            Ok(found) => found,
            Err(StoreError::NotFound { .. }) => {
                ensure!(
                    expected.flushed == 0,
                    "the session is gone, {} events were flushed",
                    expected.flushed
                );
                return self.begin_anew(play);
            }
            Err(e) => bail!("inspect: {e}"),
        };
        ensure!(
            found.damage.is_none(),
            "damage: {}",
            found
                .damage
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default()
        );
        let stored = events(&found);
        let count = stored.len();
        ensure!(
            count >= expected.flushed,
            "{} events were flushed, {count} are there",
            expected.flushed
        );
        ensure!(
            count <= expected.log.len(),
            "{count} events are there, {} were written",
            expected.log.len()
        );
        ensure!(
            stored[..] == expected.log[..count],
            "other events are there than were written"
        );
        let ends = self
            .closers
            .entry(count)
            .or_insert_with(|| closers(&expected.log[..count]));
        ensure!(
            found.closers == *ends,
            "other closers than those of the prefix"
        );
        let mut whole = stored;
        whole.extend(ends.iter().cloned());

        let path = found.path.clone();
        let repaired = self.store.repair(ID).context("repair")?;
        ensure!(events(&repaired) == whole, "the repair left other events");
        ensure!(
            repaired.torn.is_none() && repaired.closers.is_empty(),
            "the repair left something to repair"
        );
        let bytes = self.log_bytes(&path);
        self.store.repair(ID).context("second repair")?;
        ensure!(
            self.log_bytes(&path) == bytes,
            "a second recovery changed the file"
        );
        self.go_on(&path, &whole, expected, count)
    }

    /// Resumes, checks the surface, appends, and looks whether it is there.
    fn go_on(
        &mut self,
        path: &Path,
        whole: &[Arc<Event>],
        expected: &Expected,
        count: usize,
    ) -> Result<()> {
        let (mut session, writer) = self.store.resume(ID, 5).context("resume")?;
        ensure!(
            session.first_live_seq() == Seq(whole.len() as u64),
            "the session starts elsewhere"
        );
        let mut nodes = expected.surfaces[count].clone();
        nodes.extend(
            whole[count..]
                .iter()
                .filter(|event| event.surface_op.is_some())
                .map(|event| event.seq),
        );
        ensure!(
            session.surface().nodes() == nodes,
            "the surface is not the fold of the prefix"
        );
        let turn = session.last_turn() + 1;
        let draft = dsh_session::Draft::new(
            Kind::TurnStart,
            dsh_session::Json::object(|o| {
                o.u64("turn", turn);
            }),
        );
        writer.enqueue(session.append(draft, 9)?)?;
        writer.flush_blocking().context("flush after recovery")?;
        drop(writer);
        let again = self
            .store
            .inspect(&Target::File(path.to_owned()))
            .context("inspect after an append")?;
        ensure!(
            again.damage.is_none() && again.torn.is_none(),
            "the log that was continued is not sound"
        );
        ensure!(
            events(&again) == all(&session),
            "the log that was continued holds something else"
        );
        self.tidy(path)
    }

    /// Nothing is published: the session can be created, whatever litter there is.
    fn begin_anew(&mut self, play: &[Arc<Event>]) -> Result<()> {
        let mut header = dsh_session::Header::new(ID, 1_700_000_000_000);
        header.cwd = Some("/work/p1".into());
        let session = Session::new(header)?;
        let writer = self.store.create(&session).context("create")?;
        for event in play.iter().take(3) {
            writer.enqueue(event.clone())?;
        }
        writer
            .flush_blocking()
            .context("flush of a session begun anew")?;
        let path = writer.path().to_owned();
        drop(writer);
        let again = self.store.inspect(&Target::Id(ID.to_owned()))?;
        ensure!(
            again.damage.is_none() && events(&again)[..] == play[..play.len().min(3)],
            "the session begun anew is not there"
        );
        self.tidy(&path)
    }

    /// Nothing but the log and the lock is left beside it.
    fn tidy(&self, path: &Path) -> Result<()> {
        let dir = path
            .parent()
            .context("the log lies in a directory")?
            .to_string_lossy()
            .into_owned()
            + "/";
        let litter: Vec<String> = self
            .memory
            .tree()
            .files()
            .into_keys()
            .filter(|name| name.starts_with(&dir) && name.contains(".tmp"))
            .collect();
        ensure!(litter.is_empty(), "{litter:?} was left ({:?})", self.setup);
        Ok(())
    }
}
