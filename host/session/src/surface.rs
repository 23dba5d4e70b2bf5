//! The surface: which events the model sees, and in what order. `spec/session.md` §3.
//!
//! A fold in two halves: [`Surface::check`] plans and refuses without touching anything, `apply` cannot fail. So a
//! refused event leaves nothing behind.
//!
//! A node is found in logarithmic time: it has an *anchor*, its own seq when it was appended and the anchor of the first
//! node that it replaced otherwise. Anchors ascend along the surface whatever was replaced, so they can be searched.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Error, Event, Kind, Seq, SurfaceFault, SurfaceOp, Value};

/// The ordered nodes, as a fold over events.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    nodes: Vec<Seq>,
    /// The anchor of each node.
    anchors: Vec<Seq>,
    /// The anchors of nodes that replaced others.
    moved: HashMap<Seq, Seq>,
    replace_generation: u64,
    next: u64,
}

/// What a checked event will do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    Nothing,
    Push,
    Replace { first: usize, last: usize },
}

impl Surface {
    /// A surface over a log window that begins at `base`; replaces that reach before it fail.
    pub fn at(base: Seq) -> Surface {
        Surface {
            next: base.0,
            ..Surface::default()
        }
    }

    /// The seqs on the surface, in the order that the model sees them.
    pub fn nodes(&self) -> &[Seq] {
        &self.nodes
    }

    /// The nodes and their anchors.
    pub(crate) fn parts(&self) -> (&[Seq], &[Seq]) {
        (&self.nodes, &self.anchors)
    }

    /// A surface of such parts; `None` when they are not those of one.
    pub(crate) fn from_parts(
        nodes: Vec<Seq>,
        anchors: Vec<Seq>,
        replace_generation: u64,
        next: Seq,
    ) -> Option<Surface> {
        let fits = nodes.len() == anchors.len()
            && anchors.is_sorted_by(|a, b| a < b)
            && nodes.iter().all(|node| *node < next);
        let pairs = nodes.iter().copied().zip(anchors.iter().copied());
        let moved = pairs.filter(|(node, anchor)| node != anchor).collect();
        fits.then_some(Surface {
            moved,
            nodes,
            anchors,
            replace_generation,
            next: next.0,
        })
    }

    /// Passes over log-only events up to `seq`, which were checked to be there and to be bare.
    pub(crate) fn pass_to(&mut self, seq: Seq) {
        self.next = seq.0;
    }

    /// The seq that the next event must have.
    pub(crate) fn next_seq(&self) -> Seq {
        Seq(self.next)
    }

    /// How many replaces there were.
    pub fn replace_generation(&self) -> u64 {
        self.replace_generation
    }

    /// Checks the next event and folds it. `find` gives earlier events; only a replacing tool result asks.
    ///
    /// # Errors
    /// [`Error::Surface`], the first rule broken, or what `find` failed with; the surface is unchanged then.
    pub fn push(
        &mut self,
        event: &Event,
        find: impl Fn(Seq) -> Result<Option<Arc<Event>>, Error>,
    ) -> Result<(), Error> {
        let plan = self.check(event, find)?;
        self.apply(event.seq, plan);
        Ok(())
    }

    /// Checks a candidate and leaves the surface as it is.
    pub(crate) fn check(
        &self,
        event: &Event,
        find: impl Fn(Seq) -> Result<Option<Arc<Event>>, Error>,
    ) -> Result<Plan, Error> {
        let refused = |fault| Error::Surface {
            kind: event.kind.clone(),
            seq: event.seq,
            fault,
        };
        let plan = self.plan(event).map_err(refused)?;
        // Only a tool result that replaces another one is compared with an earlier event.
        if let Plan::Replace { first, .. } = plan
            && event.kind == Kind::ToolResult
        {
            let target = self.nodes[first];
            let old = find(target)?.filter(|old| old.kind == Kind::ToolResult);
            let old = old.ok_or_else(|| refused(SurfaceFault::ToolTarget(target)))?;
            if !same_but_content(old.data.value(), event.data.value()) {
                return Err(refused(SurfaceFault::ToolRewrite));
            }
        }
        Ok(plan)
    }

    fn plan(&self, event: &Event) -> Result<Plan, SurfaceFault> {
        if event.seq.0 != self.next {
            return Err(SurfaceFault::NotContiguous {
                expected: self.next,
            });
        }
        if !event.kind.is_surface() {
            return match (event.surface_op, &event.source_event_seqs) {
                (Some(_), _) => Err(SurfaceFault::OpOnLogOnly),
                (None, Some(_)) => Err(SurfaceFault::SourcesOnLogOnly),
                (None, None) => Ok(Plan::Nothing),
            };
        }
        let op = event.surface_op.ok_or(SurfaceFault::MissingOp)?;
        let range = match op {
            SurfaceOp::Append => None,
            SurfaceOp::Replace { start, end } => {
                let first = self
                    .position(start)
                    .ok_or(SurfaceFault::StartNotFound(start))?;
                let last = self.position(end).ok_or(SurfaceFault::EndNotFound(end))?;
                if first > last {
                    return Err(SurfaceFault::Reversed(start, end));
                }
                Some((first, last))
            }
        };
        let sources = event.source_event_seqs.as_deref();
        if let Some(sources) = sources {
            check_sources(event, sources)?;
        }
        let Some((first, last)) = range else {
            return Ok(Plan::Push);
        };
        let shadowed = &self.nodes[first..=last];
        check_cover(shadowed, sources.unwrap_or_default())?;
        if event.kind == Kind::ToolResult && first != last {
            return Err(SurfaceFault::ToolRange);
        }
        Ok(Plan::Replace { first, last })
    }

    /// Where a node stands.
    pub(crate) fn position(&self, seq: Seq) -> Option<usize> {
        let anchor = self.moved.get(&seq).copied().unwrap_or(seq);
        let at = self.anchors.binary_search(&anchor).ok()?;
        (self.nodes[at] == seq).then_some(at)
    }

    /// Whether a seq is on the surface.
    pub fn contains(&self, seq: Seq) -> bool {
        self.position(seq).is_some()
    }

    /// Makes a checked change. Gives the index of the first node that is no longer what it was.
    pub(crate) fn apply(&mut self, seq: Seq, plan: Plan) -> usize {
        self.next = seq.0 + 1;
        match plan {
            Plan::Nothing => self.nodes.len(),
            Plan::Push => {
                self.nodes.push(seq);
                self.anchors.push(seq);
                self.nodes.len() - 1
            }
            Plan::Replace { first, last } => {
                for gone in self.nodes.splice(first..=last, [seq]) {
                    self.moved.remove(&gone);
                }
                let anchor = self.anchors[first];
                self.anchors.drain(first + 1..=last);
                self.moved.insert(seq, anchor);
                self.replace_generation += 1;
                first
            }
        }
    }
}

/// Up to this many sources are compared pairwise; a list of an assistant's chunks can be thousands long.
const PAIRWISE: usize = 16;

fn check_sources(event: &Event, sources: &[Seq]) -> Result<(), SurfaceFault> {
    if sources.is_empty() && event.kind != Kind::AssistantMessage {
        return Err(SurfaceFault::SourcesEmpty);
    }
    if sources.iter().any(|seq| seq.0 > crate::MAX_SAFE_INTEGER) {
        return Err(SurfaceFault::SourcesItem);
    }
    // Ascending lists, which nearly all are, hold nothing twice.
    if !sources.is_sorted_by(|a, b| a < b) {
        let mut seen = std::collections::HashSet::new();
        let double = if sources.len() <= PAIRWISE {
            (1..sources.len()).find(|&index| sources[..index].contains(&sources[index]))
        } else {
            sources.iter().position(|seq| !seen.insert(*seq))
        };
        if let Some(index) = double {
            return Err(SurfaceFault::SourcesDuplicate(sources[index]));
        }
    }
    match sources.iter().find(|source| **source >= event.seq) {
        Some(source) => Err(SurfaceFault::SourcesNotEarlier(*source)),
        None => Ok(()),
    }
}

fn check_cover(shadowed: &[Seq], sources: &[Seq]) -> Result<(), SurfaceFault> {
    let named: std::collections::HashSet<Seq> = sources.iter().copied().collect();
    let missing: Vec<Seq> = shadowed
        .iter()
        .copied()
        .filter(|seq| !named.contains(seq))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(SurfaceFault::NotCovered(missing))
    }
}

/// Whether two tool results differ at most in the content of their first block.
fn same_but_content(old: Value<'_>, new: Value<'_>) -> bool {
    without_content(old)
        .zip(without_content(new))
        .is_some_and(|(a, b)| a.value().same(b.value()))
}

/// A tool result's data with `message.content[0].content` set to `null`.
fn without_content(data: Value<'_>) -> Option<crate::Json> {
    let block = data.path(&["message", "content"])?.items().next()?;
    let content = block.get("content")?;
    let whole = data.as_str();
    let range = content.range_in(data);
    crate::Json::restore(&format!(
        "{}null{}",
        &whole[..range.start],
        &whole[range.end..]
    ))
    .ok()
}

#[cfg(test)]
#[path = "surface_tests.rs"]
mod tests;
