//! `docs/log_reader.py` is what `docs/log-format.md` says in 60 lines; here it reads what this crate reads.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dsh_session::{Draft, Header, Json, Kind, Seq, Session, Surface};
use dsh_store::{Compression, Inspection, Store, StoreConfig, Target, frame};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a reader says of one log.
#[derive(Debug, PartialEq)]
struct Read {
    events: usize,
    sha256: String,
    nodes: Vec<u64>,
}

/// What the reader in Python says of each file.
fn theirs(files: &[PathBuf]) -> Vec<Read> {
    let output = Command::new("python3")
        .arg(project().join("docs/log_reader.py"))
        .args(files)
        .output()
        .expect("python3 is there");
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    assert_eq!(failed, "");
    let text = String::from_utf8(output.stdout).expect("the reader prints UTF-8");
    let mut logs = Vec::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(surface) = line.strip_prefix("{\"surface\":") {
            let nodes = surface.strip_suffix('}').expect("a surface");
            logs.push(Read {
                nodes: serde_json::from_str(nodes).expect("a list of seqs"),
                ..read(&lines[1..])
            });
            lines.clear();
        } else {
            lines.push(line);
        }
    }
    logs
}

fn read(lines: &[&str]) -> Read {
    let mut hash = Sha256::new();
    for line in lines {
        hash.update(line);
        hash.update("\n");
    }
    let hash = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Read {
        events: lines.len(),
        sha256: hash,
        nodes: Vec::new(),
    }
}

fn inspected(file: &Path) -> Inspection {
    let store = Store::open(StoreConfig::new("/nowhere")).unwrap();
    store.inspect(&Target::File(file.to_owned())).unwrap()
}

/// What this crate says of a file, wherever it lies.
fn ours(file: &Path) -> Read {
    let store = Store::open(StoreConfig::new("/nowhere")).unwrap();
    let report = store.report(&Target::File(file.to_owned())).unwrap();
    let found = &report.inspection;
    assert_eq!(found.damage, None, "{}", file.display());
    let mut surface = Surface::at(Seq(0));
    for event in found.log.events_from(Seq(0)) {
        surface
            .push(&event.unwrap(), |seq| found.log.event(seq))
            .unwrap();
    }
    Read {
        events: usize::try_from(found.log.len()).unwrap(),
        sha256: report.unpacked_sha256.clone(),
        nodes: surface.nodes().iter().map(|seq| seq.0).collect(),
    }
}

fn compare(files: &[PathBuf]) {
    let theirs = theirs(files);
    assert_eq!(theirs.len(), files.len());
    for (file, theirs) in files.iter().zip(theirs) {
        assert_eq!(theirs, ours(file), "{}", file.display());
    }
}

/// The conformance logs that can be opened.
fn sound() -> Vec<PathBuf> {
    let root = project().join("tests/conformance/session");
    let index = fs::read_to_string(root.join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let cases = index["cases"].as_array().unwrap().iter().filter(|case| {
        let result = case["outcome"]["result"].as_str().unwrap_or_default();
        case["kind"] == "file" && result.starts_with("accept")
    });
    cases
        .map(|case| {
            let files = case["files"].as_array().unwrap().iter();
            let mut names = files.filter_map(Value::as_str);
            let input = names.find(|name| name.starts_with("input.")).unwrap();
            root.join(case["case"].as_str().unwrap()).join(input)
        })
        .collect()
}

#[test]
fn the_reader_in_python_reads_every_sound_log_as_we_do() {
    let files = sound();
    let framed = files.iter().filter(|f| f.extension().unwrap() == "zstd");
    assert!(
        framed.count() >= 5 && files.len() >= 60,
        "{} files",
        files.len()
    );
    compare(&files);
}

#[test]
fn the_reader_in_python_reads_torn_logs_as_we_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for sound in sound() {
        let name = sound.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&sound).unwrap();
        let framed = name.ends_with(".zstd");
        let header = if framed {
            frame::scan(&bytes).complete[0].end
        } else {
            bytes.iter().position(|&b| b == b'\n').unwrap() + 1
        };
        // Cuts at one byte after the other, over all files together.
        for step in 1..3 {
            let cut = bytes.len() - step * files.len() % (bytes.len() - header + 1);
            let file = dir.path().join(format!("{}-{name}", files.len()));
            fs::write(&file, &bytes[..cut.max(header)]).unwrap();
            files.push(file);
        }
    }
    // A cut between two frames of one line leaves a log that is damaged, not torn.
    let all = files.len();
    files.retain(|file| inspected(file).damage.is_none());
    assert!(files.len() * 10 > all * 9, "{} of {all}", files.len());
    compare(&files);
}

#[test]
fn the_reader_in_python_reads_what_we_write() {
    let mut files = Vec::new();
    let dir = tempfile::tempdir().unwrap();
    for (compression, pack) in [
        (Compression::Zstd, true),
        (Compression::Zstd, false),
        (Compression::None, true),
        (Compression::None, false),
    ] {
        let root = dir.path().join(format!("{compression:?}-{pack}"));
        let store = Store::open(StoreConfig {
            compression,
            pack_chunks: pack,
            ..StoreConfig::new(root)
        });
        files.push(written(&store.unwrap()));
    }
    compare(&files);
}

/// A session with all that may be hard to read: rows of every sort, replaces, odd numbers, keys and halves of pairs.
fn written(store: &Store) -> PathBuf {
    let mut session = Session::new(Header::new("odd ~ id/ä", 1_700_000_000_000)).unwrap();
    let writer = store.create(&session).unwrap();
    let mut append = |draft: Draft, flush: bool| {
        let time = 1_700_000_000_000 + i64::try_from(session.next_seq().0).unwrap() * 7;
        let event = session.append(draft, time).unwrap();
        let seq = event.seq;
        writer.enqueue(event).unwrap();
        if flush {
            writer.flush_blocking().unwrap();
        }
        seq
    };
    let draft = |kind, data: &str| Draft::new(kind, Json::normalise(data).unwrap());
    let prompt = r#"{"content":[{"type":"text","text":"\ud83d \u2028 \u0007 /"}],"source":{"kind":"user"},"role":"user","id":"u"}"#;
    let first = append(draft(Kind::UserMessage, prompt).append(), true);
    let note = r#"{"10":1e21,"b":[1.50,1e-7,0.000001,12345678901234567890,-3],"2":{"__proto__":null,"10":true}}"#;
    append(draft(Kind::from_name("acme/note"), note), false);
    let chunks = [
        r#"{"type":"reasoning-delta","index":0,"text":"T"}"#,
        r#"{"type":"text-delta","index":1,"text":"\ude00"}"#,
        r#"{"type":"tool-call-delta","index":2,"id":"c","name":"bash","argumentsDelta":"{"}"#,
        r#"{"type":"tool-call-delta","index":2,"id":"c","argumentsDelta":"}"}"#,
        r#"{"type":"finish","reason":{"kind":"stop"}}"#,
    ];
    for (number, chunk) in chunks.iter().enumerate() {
        for _ in 0..number + 2 {
            let data = format!("{{\"turn\":1,\"step\":1,\"chunk\":{chunk}}}");
            append(draft(Kind::AssistantChunk, &data), false);
        }
    }
    let answer = r#"{"turn":1,"step":1,"message":{"role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"},"id":"a"}}"#;
    let last = append(draft(Kind::AssistantMessage, answer).append(), true);
    let summary = draft(Kind::UserMessage, prompt).replace(first, last);
    append(summary.sources(vec![first, last]), true);
    append(draft(Kind::UserMessage, prompt).append(), false);
    writer.flush_blocking().unwrap();
    store.find("odd ~ id/ä").unwrap()
}

/// So that nobody has to count.
#[test]
fn the_reader_in_python_has_at_most_sixty_lines() {
    let text = fs::read_to_string(project().join("docs/log_reader.py")).unwrap();
    assert!(text.lines().count() <= 60);
}

#[test]
fn the_reader_in_python_refuses_damage_before_a_finished_turn() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.jsonl");
    let header = Header::new("s", 5).line();
    let end =
        r#"{"type":"turn/end","seq":1,"time":5,"data":{"turn":1,"reason":{"kind":"completed"}}}"#;
    fs::write(&file, format!("{header}\nnot json\n{end}\n")).unwrap();
    let output = Command::new("python3")
        .arg(project().join("docs/log_reader.py"))
        .arg(&file)
        .output()
        .unwrap();
    assert!(!output.status.success());
}
