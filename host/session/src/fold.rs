//! What a session keeps of its log besides the log: one fold over all events, current as of the last one.
//!
//! It holds what a run asks for again and again, so that no answer needs an old event from the disk: the surface, the
//! newest event of every kind, what an open turn would be closed with, and what waits in the inbox. A reader folds a
//! stored log into it once; a checkpoint is a stored one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::closers::OpenTurn;
use crate::surface::Plan;
use crate::{Error, Event, Inbox, JStr, Kind, Seq, Stretch, Surface, Value};

/// The state of a log after its last event.
#[derive(Clone, Debug)]
pub struct Fold {
    pub(crate) surface: Surface,
    /// The newest event of each known kind, by [`Kind::index`].
    pub(crate) newest: Vec<Option<Arc<Event>>>,
    /// The newest event of each foreign kind.
    pub(crate) foreign: HashMap<Kind, Arc<Event>>,
    /// The newest `user/message` of each plugin that is a message's source.
    pub(crate) plugins: HashMap<Box<str>, Arc<Event>>,
    pub(crate) open: OpenTurn,
    pub(crate) inbox: Result<Inbox, Error>,
    /// Where the inbox begins: what a seed brought does not wait.
    seed_length: u64,
    pub(crate) last: Option<Arc<Event>>,
}

impl Fold {
    /// The state of an empty log. `seed_length` is the header's, or 0.
    pub fn new(seed_length: u64) -> Fold {
        Fold {
            surface: Surface::default(),
            newest: vec![None; Kind::KNOWN.len()],
            foreign: HashMap::new(),
            plugins: HashMap::new(),
            open: OpenTurn::default(),
            inbox: Ok(Inbox::default()),
            seed_length,
            last: None,
        }
    }

    /// The seq that the next event must have.
    pub fn next_seq(&self) -> Seq {
        self.surface.next_seq()
    }

    pub(crate) fn check(
        &self,
        event: &Event,
        find: impl Fn(Seq) -> Result<Option<Arc<Event>>, Error>,
    ) -> Result<Plan, Error> {
        self.surface.check(event, find)
    }

    /// Folds a checked event. Gives the index of the first surface node that is no longer what it was.
    pub(crate) fn apply(&mut self, event: &Arc<Event>, plan: Plan) -> usize {
        match event.kind.index() {
            Some(index) => self.newest[index] = Some(event.clone()),
            None => drop(self.foreign.insert(event.kind.clone(), event.clone())),
        }
        match event.kind {
            Kind::UserMessage => {
                if let Some(plugin) = Fold::plugin(event) {
                    self.plugins.insert(plugin.into(), event.clone());
                }
            }
            Kind::InboxSpliced if event.seq.0 >= self.seed_length => {
                // The first splice that does not fit spoils the inbox for good.
                if let Ok(inbox) = &mut self.inbox
                    && let Err(fault) = inbox.fold(event)
                {
                    self.inbox = Err(fault);
                }
            }
            _ => {}
        }
        self.open.fold(event);
        self.last = Some(event.clone());
        self.surface.apply(event.seq, plan)
    }

    /// Folds a stretch of a stored log. `false` when it does not follow or breaks a rule of the surface; the fold is of
    /// no use then. `find` gives events that are on the surface, `apart` gets each one that joins it and what leaves.
    pub fn take(&mut self, stretch: Stretch, kept: &mut HashMap<Seq, Arc<Event>>) -> bool {
        if stretch.first != self.next_seq() {
            return false;
        }
        let end = Seq(stretch.first.0 + stretch.count);
        for event in stretch.events {
            self.surface.pass_to(event.seq);
            let Ok(plan) = self.check(&event, |seq| Ok(kept.get(&seq).cloned())) else {
                return false;
            };
            match plan {
                Plan::Nothing => {}
                Plan::Push => drop(kept.insert(event.seq, event.clone())),
                Plan::Replace { first, last } => {
                    for gone in &self.surface.nodes()[first..=last] {
                        kept.remove(gone);
                    }
                    kept.insert(event.seq, event.clone());
                }
            }
            self.apply(&event, plan);
        }
        if let Some(chunk) = stretch.last_chunk {
            if chunk.seq.0 + 1 == end.0 {
                self.last = Some(chunk.clone());
            }
            if let Some(index) = Kind::AssistantChunk.index() {
                self.newest[index] = Some(chunk);
            }
        }
        self.surface.pass_to(end);
        true
    }

    /// The surface.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// The plugin that a message came from, as it stands in the text.
    pub(crate) fn plugin(event: &Event) -> Option<&str> {
        let plugin = event.data.value().path(&["source", "plugin"]);
        plugin.and_then(Value::string).map(JStr::raw)
    }

    /// The newest event.
    pub fn last(&self) -> Option<&Arc<Event>> {
        self.last.as_ref()
    }

    /// The newest event of a kind.
    pub fn last_of(&self, kind: &Kind) -> Option<&Arc<Event>> {
        match kind.index() {
            Some(index) => self.newest[index].as_ref(),
            None => self.foreign.get(kind),
        }
    }

    /// The newest `user/message` whose source is this plugin.
    pub fn last_from(&self, plugin: &str) -> Option<&Arc<Event>> {
        self.plugins.get(plugin)
    }

    /// What the closers of the log are made of.
    pub fn open_turn(&self) -> &OpenTurn {
        &self.open
    }

    /// What waits in the inbox.
    ///
    /// # Errors
    /// [`Error::Inbox`] of the first splice that does not fit.
    pub fn inbox(&self) -> Result<Inbox, Error> {
        self.inbox.clone()
    }
}
