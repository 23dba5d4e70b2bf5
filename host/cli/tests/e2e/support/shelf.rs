//! Sessions that lie in a home without a run that made them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dsh_session::Header;
use dsh_store::{Compression, frame, layout};

use super::run::Ended;
use super::scratch::Scratch;

impl Scratch {
    /// Puts a log there, header in a frame of its own and `lines` in another one.
    pub(crate) fn shelve(&self, header: &Header, lines: &[String]) -> PathBuf {
        let path = layout::log_path(&self.sessions(), header, Compression::Zstd).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut bytes = frame::encode((header.line() + "\n").as_bytes()).unwrap();
        if !lines.is_empty() {
            let text = lines.join("\n") + "\n";
            bytes.extend(frame::encode(text.as_bytes()).unwrap());
        }
        fs::write(&path, bytes).unwrap();
        path
    }

    /// `dsh sessions` with these words.
    pub(crate) fn sessions_command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Ended {
        self.dsh().args(["sessions"]).args(words).run()
    }
}

/// A header with a directory.
pub(crate) fn header(id: &str, created_at: u64, cwd: &Path) -> Header {
    let mut header = Header::new(id, created_at);
    header.cwd = Some(cwd.to_str().unwrap().into());
    header
}

/// A line of a log.
pub(crate) fn event(kind: &str, seq: u64, time: u64, data: &str) -> String {
    format!(r#"{{"type":"{kind}","seq":{seq},"time":{time},"data":{data}}}"#)
}

/// A line that is appended to the surface.
pub(crate) fn spoken(kind: &str, seq: u64, time: u64, data: &str) -> String {
    let line = event(kind, seq, time, data);
    format!("{},\"surfaceOp\":\"append\"}}", &line[..line.len() - 1])
}

/// What a person said, as JSON of their text.
pub(crate) fn said(seq: u64, time: u64, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    spoken(
        "user/message",
        seq,
        time,
        &format!(
            r#"{{"content":[{{"type":"text","text":{text}}}],"source":{{"kind":"user"}},"role":"user","id":"u{seq}"}}"#
        ),
    )
}

/// One turn in which a person said something and got an answer: four lines.
pub(crate) fn turn(number: u64, seq: u64, time: u64, text: &str, answer: &str) -> Vec<String> {
    let answer = serde_json::to_string(answer).unwrap();
    vec![
        event("turn/start", seq, time, &format!(r#"{{"turn":{number}}}"#)),
        said(seq + 1, time + 1, text),
        spoken(
            "assistant/message",
            seq + 2,
            time + 2,
            &format!(
                r#"{{"turn":{number},"step":1,"message":{{"role":"assistant","content":[{{"type":"text","text":{answer}}}],"source":{{"kind":"model","provider":"p","model":"m"}},"id":"a{seq}"}}}}"#
            ),
        ),
        event(
            "turn/end",
            seq + 3,
            time + 3,
            &format!(r#"{{"turn":{number},"reason":{{"kind":"completed"}}}}"#),
        ),
    ]
}

/// Everything below a directory, with when it was written; for saying that nothing changed.
pub(crate) fn photograph(dir: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let Ok(names) = fs::read_dir(&dir) else {
            continue;
        };
        let modified = fs::metadata(&dir).unwrap().modified().unwrap();
        all.insert(dir, (None, modified));
        for name in names {
            let path = name.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let modified = fs::metadata(&path).unwrap().modified().unwrap();
                let bytes = fs::read(&path).unwrap();
                all.insert(path, (Some(bytes), modified));
            }
        }
    }
    all
}
