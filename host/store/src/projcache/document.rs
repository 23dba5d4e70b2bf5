//! The text of the file: `{unit: {name, version}, global: null, tables: {sessions: {id: {identity, rows}}}}`, printed
//! with two spaces and a line feed at its end.

use std::collections::HashMap;
use std::sync::Arc;

use dsh_session::projection::{Registry, Row, Rows, Snapshot};
use dsh_session::{Header, Json, Value};

use super::made;

const NAME: &str = "session_projcache";
const VERSION: u64 = 3;

/// Deeper than any state; what is printed with indents grows with the square of its depth.
const MAX_DEPTH: usize = 64;

/// Bytes of all records, as they stand in memory. The file is read and written whole, at each end of a turn of whatever
/// session; a record has about one KiB.
pub const LARGEST: usize = 1 << 20;

/// The records of all sessions, those that were written last at the end.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Ids with the text of their record, in the file's order.
    records: Vec<(Arc<str>, Json)>,
    at: HashMap<Arc<str>, usize>,
}

impl Records {
    /// Reads the file; the error says why it is none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Records, String> {
        let document = Json::restore(&String::from_utf8_lossy(bytes));
        let document = document.map_err(|e| e.to_string())?;
        if depth(document.as_str()) > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        let unit = document.get("unit");
        let member = |key| unit.and_then(|unit| unit.get(key));
        if !member("name").is_some_and(|name| name.is(NAME)) {
            return Err(format!("it is not a file of {NAME:?}"));
        }
        let version = member("version");
        if version.and_then(Value::u64) != Some(VERSION) {
            let found = version.map_or("none", Value::as_str);
            return Err(format!(
                "its version is {found}, this program reads {VERSION}"
            ));
        }
        let sessions = document.value().path(&["tables", "sessions"]);
        let Some(sessions) = sessions.filter(|sessions| sessions.is_object()) else {
            return Err("it has no table of sessions".to_owned());
        };
        let mut records = Records::default();
        for (id, record) in sessions.entries() {
            records.set(&id.decode(), record.to_json());
        }
        Ok(records)
    }

    /// The whole file.
    pub(super) fn text(&self) -> String {
        let document = Json::object(|o| {
            o.object("unit", |o| {
                o.str("name", NAME).u64("version", VERSION);
            });
            o.null("global");
            o.object("tables", |o| {
                o.object("sessions", |o| {
                    for (id, record) in &self.records {
                        o.json(id, record);
                    }
                });
            });
        });
        pretty(document.as_str()) + "\n"
    }

    fn record(&self, id: &str) -> Option<&Json> {
        self.at.get(id).map(|at| &self.records[*at].1)
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.at.contains_key(id)
    }

    /// How many sessions have a record.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The rows of a session. A record that is another session's, by creation time or directory, is none.
    pub fn rows(&self, header: &Header) -> Option<Rows> {
        let record = self.record(&header.id)?;
        let same = record.get("identity")?.same(identity(header).value());
        same.then(|| record.get("rows").map(Rows::read))?
    }

    /// What is cached of a session: the views that stand beside its rows ([`made`]), and those that `registry` can make
    /// of the others, as of the oldest row among them. `length` is how many events the log has: a row that says that
    /// it knows more was made of something else.
    pub fn snapshot(&self, registry: &Registry, header: &Header, length: u64) -> Option<Snapshot> {
        let rows = self.rows(header)?;
        let own = registry.view_checkpoint(&rows);
        let shown = |key: &str| {
            made::view(&rows, key).or_else(|| own.as_ref().and_then(|own| own.get(key)).cloned())
        };
        let mut snapshot: Option<Snapshot> = None;
        let known = |row: &Row| row.as_of.is_none_or(|seq| seq.0 < length);
        let rows_of_it = rows.iter().filter(|(_, row)| known(row));
        for (key, row) in rows_of_it.filter(|(key, _)| !made::is_key(key)) {
            let Some(view) = shown(key) else { continue };
            let snapshot = snapshot.get_or_insert_with(|| Snapshot {
                as_of: row.as_of,
                values: Vec::new(),
            });
            snapshot.as_of = snapshot.as_of.min(row.as_of);
            snapshot.values.push((key.into(), view));
        }
        snapshot
    }

    /// Whether that changed anything.
    pub(super) fn put(&mut self, header: &Header, rows: &Rows) -> bool {
        let mut merged = self.rows(header).unwrap_or_default();
        for (key, row) in rows.iter() {
            merged.set(key, row.clone());
        }
        let record = Json::object(|o| {
            o.json("identity", &identity(header))
                .json("rows", &merged.json());
        });
        if self.record(&header.id) == Some(&record) {
            return false;
        }
        self.remove(&header.id);
        self.set(&header.id, record);
        self.shorten();
        true
    }

    /// Forgets what was written longest ago, but never the last record.
    fn shorten(&mut self) {
        let mut bytes: usize = self
            .records
            .iter()
            .map(|(_, record)| record.as_str().len())
            .sum();
        let mut gone = 0;
        while bytes > LARGEST && gone + 1 < self.records.len() {
            bytes -= self.records[gone].1.as_str().len();
            gone += 1;
        }
        if gone > 0 {
            let kept = std::mem::take(self).records.split_off(gone);
            for (id, record) in kept {
                self.set(&id, record);
            }
        }
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        if !self.contains(id) {
            return false;
        }
        let records = std::mem::take(self).records;
        for (known, record) in records {
            if *known != *id {
                self.set(&known, record);
            }
        }
        true
    }

    fn set(&mut self, id: &str, record: Json) {
        if let Some(at) = self.at.get(id) {
            self.records[*at].1 = record;
            return;
        }
        let id: Arc<str> = id.into();
        self.at.insert(id.clone(), self.records.len());
        self.records.push((id, record));
    }
}

/// What tells a session from another one that had its id: `{createdAt, cwd?}`.
fn identity(header: &Header) -> Json {
    Json::object(|o| {
        o.u64("createdAt", header.created_at)
            .opt_str("cwd", header.cwd.as_deref());
    })
}

/// How deep a text in normal form is nested.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for token in Tokens(text) {
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A text in normal form as `JSON.stringify(value, null, 2)` prints it.
fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut tokens = Tokens(text).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if let Some(end) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth -= 1;
                line(&mut out, depth);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            scalar => out.push_str(scalar),
        }
    }
    out
}

/// The tokens of a text in normal form: one of `{}[],:`, or a whole scalar.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.0.as_bytes();
        let length = match *bytes.first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => {
                let mut at = 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                (at + 1).min(bytes.len())
            }
            _ => bytes
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']'))
                .unwrap_or(bytes.len()),
        };
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(token)
    }
}
