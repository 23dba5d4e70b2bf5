//! Plugins made on the spot: small components that the build has, each with a manifest of the test's.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::run::Ended;
use super::scratch::{Scratch, root};

/// A component with the tool `c_count` that imports its log alone.
pub(crate) const COUNTER: &str = "target/guests/c.wasm";
/// The same as a core module with its component-type section.
pub(crate) const CORE: &str = "target/guests/c.core.wasm";
/// A component with the tool `todo_write` that imports `journal`.
pub(crate) const TODO: &str = "target/components/tool-todo.wasm";

/// A component of the build with this manifest in place of its own.
pub(crate) fn made(base: &str, manifest: &Value) -> Vec<u8> {
    let path = root().join(base);
    let bytes = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask guests`", path.display()));
    with_section(&bytes, "dsh:manifest", manifest.to_string().as_bytes())
}

/// `acme:counter` in this version: wants nothing but its tool.
pub(crate) fn counter(version: &str) -> Vec<u8> {
    made(
        COUNTER,
        &json!({
            "plugin": {"name": "acme:counter", "version": version, "description": "Counts bytes"},
            "rows": [{"id": "counter", "config": {"unit": "x"}}],
        }),
    )
}

/// `acme:counter` in a version that wants more: it appends to the log, and lists a tool `acme_write` that it does not
/// answer to.
pub(crate) fn greedy(version: &str) -> Vec<u8> {
    let bytes = made(
        TODO,
        &json!({
            "plugin": {"name": "acme:counter", "version": version},
            "rows": [{"id": "counter"}],
            "wants": {"journal": ["todo/write"]},
        }),
    );
    replaced(&bytes, b"todo_write", b"acme_write")
}

/// `acme:todo`, which lists a tool `acme_write` that it does not answer to.
pub(crate) fn todo() -> Vec<u8> {
    let bytes = made(
        TODO,
        &json!({
            "plugin": {"name": "acme:todo", "version": "1.0.0"},
            "rows": [{"id": "todo"}],
            "wants": {"journal": ["todo/write"]},
        }),
    );
    replaced(&bytes, b"todo_write", b"acme_write")
}

/// Every `from` as `to`, which is as long.
pub(crate) fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut out = bytes.to_vec();
    let mut count = 0;
    for at in 0..=out.len() - from.len() {
        if out[at..].starts_with(from) {
            out[at..at + to.len()].copy_from_slice(to);
            count += 1;
        }
    }
    assert!(count > 0, "there is nothing to replace");
    out
}

/// The binary with one custom section of this name, at its end.
pub(crate) fn with_section(bytes: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut out = bytes[..8].to_vec();
    let mut at = 8;
    while at < bytes.len() {
        let (length, body) = number(bytes, at + 1);
        let end = body + length;
        let (named, text) = number(bytes, body);
        let ours = bytes[at] == 0 && bytes.get(text..text + named) == Some(name.as_bytes());
        if !ours {
            out.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
    let mut body = leb(name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    out.push(0);
    out.extend(leb(body.len()));
    out.extend(body);
    out
}

fn number(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[at];
        at += 1;
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return (number, at);
        }
    }
}

fn leb(mut number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

impl Scratch {
    /// Puts a component into the workspace.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// `dsh plugin` with these words.
    pub(crate) fn plugin<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Ended {
        self.dsh().args(["plugin"]).args(words).run()
    }

    /// `dsh plugin … --json`, and its one object.
    pub(crate) fn plugin_json<'a>(
        &self,
        words: impl IntoIterator<Item = &'a str>,
    ) -> (Ended, Value) {
        let ended = self.dsh().args(["plugin", "--json"]).args(words).run();
        let value = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("one JSON object on stdout: {error}: {ended:?}"));
        (ended, value)
    }

    /// Adds `acme:counter` 1.0.0 with what it wants.
    pub(crate) fn with_counter(&self) -> PathBuf {
        let path = self.put("counter.wasm", &counter("1.0.0"));
        self.plugin(["add", "--yes", "counter.wasm"]).done();
        path
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.home().join("profiles/headless/dsh.lock")
    }

    pub(crate) fn lock_text(&self) -> String {
        std::fs::read_to_string(self.lock_file()).unwrap_or_default()
    }

    /// The digests of all packages.
    pub(crate) fn packages(&self) -> Vec<String> {
        let dir = self.home().join("plugins/sha256");
        let names = std::fs::read_dir(dir).into_iter().flatten();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter_map(|name| name.strip_suffix(".wasm").map(str::to_owned))
            .collect();
        names.sort();
        names
    }

    /// What the profile composes to.
    pub(crate) fn dump(&self) -> String {
        let ended = self.dsh().headless().args(["--dump-config"]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    }

    /// Lets the scripted model call a tool once, and gives what came of it.
    pub(crate) fn calls(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> (Ended, Vec<(String, Option<String>)>) {
        let _ = std::fs::remove_dir_all(self.sessions());
        let script =
            json!([{"calls": [{"name": tool, "arguments": arguments}]}, {"text": "Called."}]);
        let patch = self.script(&script);
        let ended = self.dsh().headless().patch(patch).args(["Call it"]).run();
        (ended, self.record().results())
    }
}

impl Ended {
    /// It did what it was told, and had nothing to report.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// It was refused by one line on stderr, the last one, which holds each of these.
    #[track_caller]
    pub(crate) fn refused(self, parts: &[&str]) -> Self {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{self:?}");
        let line = self.stderr.lines().last().unwrap_or_default();
        assert!(
            line.starts_with("dsh: ") || line.starts_with("error: "),
            "{self:?}"
        );
        for part in parts {
            assert!(line.contains(part), "{part:?} in {line}");
        }
        self
    }
}
