//! The log that a run left, read by the store as any other process would.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::{Event, Kind};
use dsh_store::{Entry, Inspection, Store, StoreConfig, Target};

use super::scratch::Scratch;

/// A log as it is in its file.
pub(crate) struct Record {
    pub(crate) inspection: Inspection,
    events: Vec<Arc<Event>>,
}

impl Scratch {
    pub(crate) fn store(&self) -> Store {
        Store::open(StoreConfig::new(self.sessions())).expect("the store opens")
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.home().join("sessions")
    }

    /// Every session of the home; none where no run came so far.
    pub(crate) fn listed(&self) -> Vec<Entry> {
        if !self.sessions().exists() {
            return Vec::new();
        }
        self.store().list().expect("the sessions can be listed")
    }

    /// The one log of the home.
    pub(crate) fn record(&self) -> Record {
        let listed = self.listed();
        assert_eq!(listed.len(), 1, "one session is listed: {listed:?}");
        Record::read(&self.store(), &listed[0].path)
    }

    /// Where a text is: files of home and workspace as they are, and logs as they read.
    pub(crate) fn files_with(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.home(), self.work(), self.user()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if holds(&std::fs::read(&path).unwrap_or_default(), text) {
                    found.push(path.display().to_string());
                }
            }
        }
        let store = self.store();
        for entry in self.listed() {
            let record = Record::read(&store, &entry.path);
            let mut events = record.events().iter();
            if let Some(event) = events.find(|event| format!("{event:?}").contains(text)) {
                found.push(format!("{}: {}", entry.path.display(), event.kind.as_str()));
            }
        }
        found
    }

    /// As [`Scratch::record`], while the run may not have come so far.
    pub(crate) fn record_so_far(&self) -> Option<Record> {
        let listed = self.listed();
        let store = self.store();
        let target = Target::File(listed.first()?.path.clone());
        Some(Record::new(store.inspect(&target).ok()?))
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

impl Record {
    fn read(store: &Store, path: &Path) -> Self {
        let target = Target::File(path.to_owned());
        let inspection = store
            .inspect(&target)
            .unwrap_or_else(|error| panic!("{} opens: {error}", path.display()));
        assert!(
            inspection.damage.is_none(),
            "the log is sound: {:?}",
            inspection.damage
        );
        Self::new(inspection)
    }

    fn new(inspection: Inspection) -> Self {
        let events = inspection.log.to_vec().expect("the log can be read");
        Self { inspection, events }
    }

    pub(crate) fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    pub(crate) fn of(&self, kind: &Kind) -> Vec<&Event> {
        self.events()
            .iter()
            .filter(|event| event.kind == *kind)
            .map(Arc::as_ref)
            .collect()
    }

    pub(crate) fn has(&self, kind: &Kind) -> bool {
        self.events().iter().any(|event| event.kind == *kind)
    }

    /// What the last turn ended with, as JSON.
    pub(crate) fn turn_end(&self) -> serde_json::Value {
        let ends = self.of(&Kind::TurnEnd);
        let end = ends.last().expect("a turn has ended");
        data(end)["reason"].clone()
    }

    /// What each tool gave back: its text, and the code of its error.
    pub(crate) fn results(&self) -> Vec<(String, Option<String>)> {
        let result = |event: &Event| {
            let data = data(event);
            let blocks = data["message"]["content"][0]["content"].as_array().cloned();
            let texts = blocks.unwrap_or_default();
            let text = texts
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect();
            (text, data["error"]["code"].as_str().map(str::to_owned))
        };
        self.of(&Kind::ToolResult).into_iter().map(result).collect()
    }
}

/// The kinds in order.
pub(crate) fn kinds(events: &[Arc<Event>]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// The kinds in order, chunks of one stream as one.
pub(crate) fn kinds_with_one_chunk(events: &[Arc<Event>]) -> Vec<&str> {
    let mut kinds = kinds(events);
    kinds.dedup_by(|one, other| one == other && *one == Kind::AssistantChunk.as_str());
    kinds
}

/// An event's data as a tree.
pub(crate) fn data(event: &Event) -> serde_json::Value {
    serde_json::from_str(event.data.as_str()).expect("data is JSON")
}
