//! A stretch is what the line scanner and the interpreter say of the same lines, or nothing.

use super::*;
use crate::scan::LineScanner;
use crate::{Header, Session, interpret};

/// What the sequential readers make of the lines, when they find nothing to object to and nothing to upgrade.
fn slowly(session: &str, lines: &[u8], first: u64) -> Option<Vec<Arc<Event>>> {
    let mut scanner = LineScanner::new(first);
    let text = lines.strip_suffix(b"\n")?;
    for line in text.split(|byte| *byte == b'\n') {
        if !matches!(scanner.line(line), Ok(true)) {
            return None;
        }
    }
    let stored = scanner.into_events();
    let log = interpret(&Header::new(session, 0), &stored).ok()?;
    log.migrated.is_empty().then_some(log.events)
}

/// Whether the quick reader took the lines; panics where it says anything else than the slow ones.
fn agree(scanner: &mut StretchScanner, lines: &[u8]) -> bool {
    let Some(stretch) = scanner.read(lines, true) else {
        return false;
    };
    let shown = String::from_utf8_lossy(lines);
    let events = slowly("s", lines, stretch.first.0).unwrap_or_else(|| panic!("taken: {shown}"));
    assert_eq!(stretch.count, events.len() as u64, "{shown}");
    let (chunks, others): (Vec<_>, Vec<_>) = events
        .into_iter()
        .partition(|event| event.kind == Kind::AssistantChunk);
    assert_eq!(stretch.events, others, "{shown}");
    assert_eq!(stretch.last_chunk, chunks.last().cloned(), "{shown}");
    for event in others.iter().filter(|event| !event.kind.is_surface()) {
        // What is not for the surface to judge, a session takes.
        let mut alone = (**event).clone();
        alone.seq = Seq(0);
        let taken = Session::with_seed(Header::new("s", 0), vec![Arc::new(alone)], 0);
        assert!(taken.is_ok(), "{shown}");
    }
    let same = scanner.read(lines, false).expect("it was taken before");
    assert_eq!((same.count, same.last_chunk), (stretch.count, None));
    true
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn chunk(seq: u64, time: &str, text: &str) -> String {
    format!(
        r#"{{"type":"assistant/chunk","seq":{seq},"time":{time},"data":{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}}}"#
    )
}

/// Lines to begin with: those of every crafted log, and some that lie close to what the quick paths take.
fn corpus() -> Vec<Vec<u8>> {
    let root =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/session");
    let mut corpus: Vec<Vec<u8>> = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path().join("input.jsonl");
        let Ok(bytes) = std::fs::read(path) else {
            continue;
        };
        if bytes.len() < 20_000
            && let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
        {
            corpus.push(bytes[end + 1..].to_vec());
        }
    }
    let lines = |lines: &[String]| (lines.join("\n") + "\n").into_bytes();
    let run: Vec<String> = (0..6).map(|n| chunk(n, "5", &format!(" w{n}"))).collect();
    corpus.push(lines(&run));
    for (time, text) in [
        ("-7", "ü\u{2028}"),
        ("0", ""),
        ("1", "\\n"),
        ("-0", "x"),
        ("01", "x"),
    ] {
        let mut run = run.clone();
        run[3] = chunk(3, time, text);
        corpus.push(lines(&run));
    }
    for texts in [
        r#""a",",""#,
        r#""","b""#,
        r#""a" ,"b""#,
        r#""a","b\"""#,
        r#""a",1"#,
    ] {
        corpus.push(lines(&[format!(
            r#"{{"type":"text-chunks","seq0":4,"time0":9,"data":{{"turn":1,"step":1,"index":0,"dt":[-3],"texts":[{texts}]}}}}"#
        )]));
    }
    corpus
}

#[test]
fn lines_are_read_as_the_slow_readers_read_them_or_not_at_all() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let pieces: [&[u8]; 12] = [
        b"\"",
        b"\\",
        b"\\u0041",
        b"1",
        b"-",
        b"0",
        b",",
        b"]}}",
        b" ",
        b"\n",
        b"\xff",
        b"{\"a\":1}",
    ];
    let (mut taken, mut refused) = (0, 0);
    let mut scanner = StretchScanner::new("s");
    for lines in corpus() {
        agree(&mut scanner, &lines);
        for _ in 0..150 {
            let mut lines = lines.clone();
            for _ in 0..random.below(3) {
                let at = random.below(lines.len() + 1);
                match random.below(3) {
                    0 => drop(lines.splice(at..at, pieces[random.below(12)].iter().copied())),
                    1 if at < lines.len() => drop(lines.remove(at)),
                    _ => {
                        let end = (at + random.below(30)).min(lines.len());
                        let copy = lines[at..end].to_vec();
                        let to = random.below(lines.len() + 1);
                        drop(lines.splice(to..to, copy));
                    }
                }
            }
            match agree(&mut scanner, &lines) {
                true => taken += 1,
                false => refused += 1,
            }
        }
    }
    assert!(taken > 1000 && refused > 1000, "{taken} {refused}");
}

#[test]
fn logs_as_they_are_written_are_taken() {
    let mut scanner = StretchScanner::new("s");
    let run: Vec<String> = (7..17).map(|n| chunk(n, "5", "x")).collect();
    let stretch = scanner
        .read((run.join("\n") + "\n").as_bytes(), true)
        .unwrap();
    assert_eq!((stretch.first, stretch.count), (Seq(7), 10));
    assert!(!scanner.like.before.is_empty());
    assert_eq!(
        scanner.like.seq(chunk(99, "-1", "other").as_bytes()),
        Some(99)
    );
    assert_eq!(scanner.like.seq(chunk(99, "1", "a\\\"").as_bytes()), None);
    let row = br#"{"type":"reasoning-chunks","seq0":9,"time0":-3,"data":{"turn":1,"step":1,"index":0,"dt":[1,-2],"texts":["a","","c"]}}"#;
    assert_eq!(plain_row(row), Some((9, 3)));
    for (gaps, texts) in [
        ("1", r#""a","","c""#),
        ("1,2,3", r#""a","","c""#),
        ("1,", r#""a","b","c""#),
        (",1", r#""a","b","c""#),
        ("", ""),
    ] {
        let row = format!(
            r#"{{"type":"text-chunks","seq0":9,"time0":3,"data":{{"turn":1,"step":1,"index":0,"dt":[{gaps}],"texts":[{texts}]}}}}"#
        );
        assert_eq!(plain_row(row.as_bytes()), None, "{row}");
    }
}
