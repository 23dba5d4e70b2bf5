//! A recording as it lies beside the checkout, its older shapes upgraded by the
//! store as any reader sees them.

use std::path::{Path, PathBuf};

use dsh_session::{Event, SurfaceOp};
use dsh_store::{Compression, Store, StoreConfig, Target};
use serde_json::{Value, json};

/// One event, as far as a comparison looks at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Its place in its log.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// Its data as a tree; half surrogate pairs come out as U+FFFD.
    pub data: Value,
    /// `"append"`, `{"start", "end"}`, or null.
    pub surface: Value,
    /// The events that it says it was made of.
    pub sources: Vec<u64>,
}

impl Told {
    /// Of an event of a log.
    ///
    /// # Panics
    /// When its data is no JSON, which a log does not hold.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        let surface = match event.surface_op {
            None => Value::Null,
            Some(SurfaceOp::Append) => json!("append"),
            Some(SurfaceOp::Replace { start, end }) => json!({"start": start.0, "end": end.0}),
        };
        let sources = event.source_event_seqs.iter().flat_map(|seqs| seqs.iter());
        Self {
            seq: event.seq.0,
            kind: event.kind.as_str().to_owned(),
            data: serde_json::from_str(event.data.as_str()).expect("an event's data is JSON"),
            surface,
            sources: sources.map(|seq| seq.0).collect(),
        }
    }

    /// Where a message or a title came from.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.data["source"]["kind"].as_str()
    }

    /// Whether a model gave the session this title.
    #[must_use]
    pub fn is_models_title(&self) -> bool {
        self.kind == "session/title" && self.source() == Some("provider")
    }
}

/// A recorded session.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The folder's name.
    pub case: String,
    /// The working directory, as the header names it.
    pub cwd: String,
    /// Whether another session started it.
    pub child: bool,
    /// Whether upstream opens it.
    pub opens: bool,
    /// What happened.
    pub events: Vec<Told>,
    /// The lines of the file, header first, as they were written.
    pub lines: Vec<String>,
}

impl Recording {
    /// Whether an event of this kind is in it.
    #[must_use]
    pub fn has(&self, kind: &str) -> bool {
        self.events.iter().any(|event| event.kind == kind)
    }

    /// Its events of one kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Told> {
        self.events.iter().filter(move |event| event.kind == kind)
    }

    /// Where a later process took it up: the event behind the last seed marker, or the first one.
    #[must_use]
    pub fn begin(&self) -> usize {
        let seed = self
            .events
            .iter()
            .rposition(|event| event.kind == "session/end-seed");
        seed.unwrap_or(0)
    }

    /// Whether a model's title came when the turn was over.
    #[must_use]
    pub fn is_titled_late(&self) -> bool {
        let title = self.events.iter().position(Told::is_models_title);
        let end = self
            .events
            .iter()
            .position(|event| event.kind == "turn/end");
        title.is_some_and(|title| end.is_some_and(|end| end < title))
    }

    /// Whether it was recorded before inbox and routes were logged.
    #[must_use]
    pub fn is_old(&self) -> bool {
        !self.has("agent/inbox/spliced")
    }
}

/// All recordings, in the order of their index; none where they are not at hand:
/// below `DSH_SHARED`, or in a `shared` beside a folder above `checkout`.
///
/// # Panics
/// When one of them cannot be read.
#[must_use]
pub fn recordings(checkout: &Path) -> Option<Vec<Recording>> {
    let named = std::env::var_os("DSH_SHARED").map(PathBuf::from);
    let beside = checkout.ancestors().map(|dir| dir.join("shared"));
    let mut places = named
        .into_iter()
        .chain(beside)
        .map(|dir| dir.join("conformance/session/recorded"));
    let place = places.find(|place| place.join("index.json").exists())?;
    let index = std::fs::read_to_string(place.join("index.json")).expect("the index can be read");
    let index: Value = serde_json::from_str(&index).expect("the index is JSON");
    let cases = index["cases"].as_array().expect("the index lists cases");
    Some(cases.iter().map(|case| read(&place, case)).collect())
}

fn read(place: &Path, case: &Value) -> Recording {
    let name = case["case"].as_str().expect("a case has a name");
    let path = place.join(name).join("input.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let header: Value = serde_json::from_str(&lines[0]).unwrap_or_default();
    let refused = case["outcome"]["result"] == "refuse";
    let events = if refused { Vec::new() } else { events(&path) };
    Recording {
        case: name.to_owned(),
        cwd: header["cwd"].as_str().unwrap_or_default().to_owned(),
        child: header.get("parentSession").is_some() || header.get("origin").is_some(),
        opens: !refused,
        events,
        lines,
    }
}

fn events(path: &Path) -> Vec<Told> {
    let config = StoreConfig {
        compression: Compression::None,
        // Nothing is written; the file lies outside of it.
        ..StoreConfig::new(std::env::temp_dir().join("playback-reads-only"))
    };
    let store = Store::open(config).expect("a store opens");
    let inspection = store.inspect(&Target::File(path.to_owned()));
    let inspection = inspection.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let events = inspection.log.to_vec().expect("the log can be read");
    events.iter().map(|event| Told::of(event)).collect()
}
