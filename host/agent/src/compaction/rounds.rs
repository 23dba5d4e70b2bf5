//! Asking the rows, again and again, until nothing is left to do.

use std::collections::HashSet;
use std::sync::Arc;

use dsh_plugin::api::{Plan, Situation, Trigger, Trim, code};
use dsh_session::Json;

use super::error::CompactionError;
use super::selection::Selection;
use super::transaction::Transaction;
use super::{Compacted, Compactor, trim};
use crate::agent::Inner;
use crate::cancel::Signal;
use crate::ports::{context_window, count};

/// Far more than any plan needs; a row that always has another one ends here.
const MOST: usize = 32;

/// One occasion to make the surface smaller.
pub(super) struct Rounds<'a> {
    pub(super) agent: &'a Inner,
    pub(super) signal: &'a Signal,
    pub(super) trigger: Trigger,
    /// The open turn; none between turns.
    pub(super) turn: Option<u64>,
    /// `provider/model`, as it is told of.
    pub(super) route: &'a str,
    /// The command that it is done for, by its id.
    pub(super) command: Option<&'a str>,
    /// A person's words.
    pub(super) instructions: Option<&'a str>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// How many plans were carried out.
    pub(super) carried: usize,
    /// The last summary.
    pub(super) compacted: Option<Compacted>,
}

/// What the rows of a round want.
#[derive(Default)]
struct Wanted {
    trims: Vec<(usize, Vec<Trim>)>,
    summarise: Option<(usize, (u32, u32))>,
    /// Rows that had nothing to say and did not know yet that one would summarise.
    unknowing: Vec<usize>,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        agent: &'a Inner,
        signal: &'a Signal,
        trigger: Trigger,
        turn: Option<u64>,
        route: &'a str,
    ) -> Self {
        Self {
            agent,
            signal,
            trigger,
            turn,
            route,
            command: None,
            instructions: None,
        }
    }

    /// Asks and carries out.
    pub(super) async fn run(&self) -> Result<Done, CompactionError> {
        let rows = &self.agent.compactors.rows;
        if self.agent.log.read(super::locked) {
            return Err(CompactionError::Locked);
        }
        let mut carried = vec![0_u32; rows.len()];
        // Rows whose trims were none: a summary is not held up by them.
        let mut ignored = HashSet::new();
        let mut done = Done::default();
        for _ in 0..MOST {
            let mut wanted = self.ask(rows, &carried).await?;
            wanted.trims.retain(|(at, _)| !ignored.contains(at));
            let Some((at, nodes)) = wanted.summarise else {
                break;
            };
            // Cheaper than a summary, and perhaps enough. Who asks by hand wants a summary.
            let trims = self.trigger != Trigger::Manual && !wanted.trims.is_empty();
            if trims {
                for (at, trims) in wanted.trims {
                    match trim::carry_out(self.agent, rows[at].row(), &trims) {
                        Ok(()) => {
                            done.carried += 1;
                            carried[at] += 1;
                        }
                        Err(error) => {
                            self.agent.compactors.say_failed(self.route, &error);
                            ignored.insert(at);
                        }
                    }
                }
                continue;
            }
            let row = rows[at].as_ref();
            let situation = self.situation(carried[at], false)?;
            let selection = self
                .agent
                .log
                .metered(|session, meter| Selection::of(session, meter, row.row(), nodes))??;
            let transaction = Transaction::new(self, row, &selection);
            done.compacted = Some(transaction.run(&situation, nodes).await?);
            done.carried += 1;
            carried[at] += 1;
        }
        Ok(done)
    }

    /// What everybody wants. A row that fails is left out, unless nobody else has a plan.
    async fn ask(
        &self,
        rows: &[Arc<dyn Compactor>],
        carried: &[u32],
    ) -> Result<Wanted, CompactionError> {
        let mut wanted = Wanted::default();
        let mut failures = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let decided = wanted.summarise.is_some();
            match self.choose(row.as_ref(), carried[at], decided).await {
                Ok(Plan::Nothing) if !decided => wanted.unknowing.push(at),
                Ok(Plan::Nothing) => {}
                Ok(Plan::Trim(trims)) => wanted.trims.push((at, trims)),
                Ok(Plan::Summarise(nodes)) if !decided => wanted.summarise = Some((at, nodes)),
                Ok(Plan::Summarise(_)) => {}
                Err(error) => failures.push(error),
            }
            if self.signal.aborted() {
                return Err(CompactionError::Cancelled);
            }
        }
        if wanted.summarise.is_some() {
            for at in std::mem::take(&mut wanted.unknowing) {
                match self.choose(rows[at].as_ref(), carried[at], true).await {
                    Ok(Plan::Trim(trims)) => wanted.trims.push((at, trims)),
                    Ok(_) => {}
                    Err(error) => failures.push(error),
                }
            }
            for error in failures {
                self.agent.compactors.say_failed(self.route, &error);
            }
        } else if let Some(error) = failures.into_iter().next() {
            return Err(error);
        }
        wanted.trims.retain(|(_, trims)| !trims.is_empty());
        Ok(wanted)
    }

    async fn choose(
        &self,
        row: &dyn Compactor,
        round: u32,
        decided: bool,
    ) -> Result<Plan, CompactionError> {
        let situation = self.situation(round, decided)?;
        let chosen = row.choose(&situation, &self.agent.scope(self.signal)).await;
        chosen.map_err(|error| self.failed(row.row(), error))
    }

    /// A row's error as one of a compaction.
    pub(super) fn failed(&self, row: &str, error: dsh_plugin::api::PluginError) -> CompactionError {
        if self.signal.aborted() || error.code == code::CANCELLED {
            return CompactionError::Cancelled;
        }
        CompactionError::Row {
            row: row.to_owned(),
            code: error.code,
            message: error.message,
        }
    }

    /// What a row is told, measured now.
    fn situation(&self, round: u32, decided: bool) -> Result<Situation, CompactionError> {
        let more = Json::object(|more| {
            more.opt_str("instructions", self.instructions);
            if decided {
                more.bool("summarise", true);
            }
        });
        let compactors = &self.agent.compactors;
        Ok(Situation {
            trigger: self.trigger,
            tokens: count(self.agent.log.measure()?),
            context_window: self.agent.log.read(context_window),
            round,
            recoveries: compactors
                .recoveries
                .load(std::sync::atomic::Ordering::Relaxed),
            more: (more != Json::empty_object()).then(|| more.as_str().to_owned()),
        })
    }
}
