//! Checkpoints: states as text, each with the seq that it is as of.

use std::sync::Arc;

use crate::{Json, Seq, Value};

/// One state: `{ver, seq, val}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The version of the unit that wrote it.
    pub version: u64,
    /// The last event in it; `None` (`-1` in the text) before the first one.
    pub as_of: Option<Seq>,
    /// The state.
    pub state: Json,
}

/// States by key, in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Rows(Vec<(Arc<str>, Row)>);

impl Rows {
    /// Reads `{key: {ver, seq, val}}`. What is no row is left out, which is as if it had never been written.
    pub fn read(rows: Value<'_>) -> Rows {
        let rows = rows.entries().filter_map(|(key, row)| {
            let seq = row.get("seq")?.safe_int()?;
            let row = Row {
                version: row.get("ver")?.u64()?,
                as_of: match seq {
                    -1 => None,
                    seq => Some(Seq(u64::try_from(seq).ok()?)),
                },
                state: row.get("val")?.to_json(),
            };
            Some((Arc::from(key.decode()), row))
        });
        Rows(rows.collect())
    }

    /// The text that [`Rows::read`] reads.
    pub fn json(&self) -> Json {
        Json::object(|o| {
            for (key, row) in &self.0 {
                o.object(key, |o| {
                    o.u64("ver", row.version)
                        .i64("seq", seq_number(row.as_of))
                        .json("val", &row.state);
                });
            }
        })
    }

    /// The row of a key.
    pub fn get(&self, key: &str) -> Option<&Row> {
        let found = self.0.iter().find(|(name, _)| **name == *key);
        found.map(|(_, row)| row)
    }

    /// Adds or replaces a row.
    pub fn set(&mut self, key: &str, row: Row) {
        match self.0.iter_mut().find(|(name, _)| **name == *key) {
            Some((_, old)) => *old = row,
            None => self.0.push((key.into(), row)),
        }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Row)> {
        self.0.iter().map(|(key, row)| (&**key, row))
    }
}

/// How a position is written: `-1` before the first event.
pub(super) fn seq_number(as_of: Option<Seq>) -> i64 {
    as_of.map_or(-1, |seq| seq.0 as i64)
}
