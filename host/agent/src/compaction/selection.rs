//! The nodes that are to become a summary, as they were when they were chosen.

use dsh_session::meter::TokenMeter;
use dsh_session::{Seq, Session};

use super::error::CompactionError;
use crate::error::AgentError;
use crate::ports::calls;

/// A range of the surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// The nodes, in the surface's order; never none.
    pub(super) nodes: Vec<Seq>,
    /// What the token measure charges for them.
    pub(super) tokens: u64,
    /// The whole surface.
    surface: Vec<Seq>,
}

impl Selection {
    /// The nodes from `first` to `last`, if that range may be cut out: no call is
    /// parted from its result (spec/loop.md §10.3).
    pub(super) fn of(
        session: &Session,
        meter: &TokenMeter,
        row: &str,
        (first, last): (u32, u32),
    ) -> Result<Self, CompactionError> {
        let wrong = |what: String| CompactionError::Plan {
            row: row.to_owned(),
            what,
        };
        let surface = session.surface().nodes();
        let position = |seq: u32| {
            let at = surface.iter().position(|node| node.0 == u64::from(seq));
            at.ok_or_else(|| wrong(format!("chose node {seq}, which is not on the surface")))
        };
        let (from, to) = (position(first)?, position(last)?);
        if from > to {
            return Err(wrong(format!(
                "chose nodes {first} to {last}, which are the wrong way round"
            )));
        }
        let mut balance = 0;
        for (at, &node) in surface[..=to].iter().enumerate() {
            if at == from && balance != 0 {
                return Err(wrong(format!(
                    "would part a tool call from its result before node {first}"
                )));
            }
            let event = session.event(node).map_err(AgentError::from)?;
            balance += event.map_or(0, |event| calls(&event));
            if balance < 0 {
                return Err(wrong(format!(
                    "cannot choose: node {node} answers a tool call that nobody made"
                )));
            }
        }
        if balance != 0 {
            return Err(wrong(format!(
                "would part a tool call from its result behind node {last}"
            )));
        }
        let prices = meter.nodes().get(from..=to).unwrap_or_default();
        Ok(Self {
            nodes: surface[from..=to].to_vec(),
            tokens: prices.iter().map(|(_, price)| price).sum(),
            surface: surface.to_vec(),
        })
    }

    pub(super) fn first(&self) -> Seq {
        self.nodes[0]
    }

    pub(super) fn last(&self) -> Seq {
        self.nodes[self.nodes.len() - 1]
    }

    /// Whether what was chosen is still there: inside of a turn the whole surface,
    /// between turns the chosen nodes, side by side.
    pub(super) fn stands(&self, session: &Session, in_turn: bool) -> bool {
        let surface = session.surface().nodes();
        if in_turn {
            return surface == self.surface;
        }
        let from = surface.iter().position(|node| *node == self.first());
        let there = from.and_then(|from| surface.get(from..from + self.nodes.len()));
        there == Some(&self.nodes[..])
    }
}
