//! One long session on disk, as long as is asked for: turns of streamed reasoning and text, a tool call and its result,
//! in frames of 40 events, as a 200 ms window at a busy stream gives them. Written as it is made, so that making it takes
//! no memory.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::{Event, Header, rows};
use dsh_store::{Compression, frame, layout};

const WORDS: [&str; 18] = [
    "alpha", "beta", "gamma", "delta", "river", "stone", "cloud", "light", "paper", "method",
    "value", "error", "result", "index", "cache", "parse", "build", "trace",
];
const START: u64 = 1_780_000_000_000;
const BATCH: usize = 40;

/// Lines of a log, batch after batch.
struct Log<W> {
    out: W,
    packed: bool,
    seq: u64,
    random: u64,
    lines: Vec<String>,
}

impl<W: Write> Log<W> {
    fn word(&mut self) -> &'static str {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        WORDS[(self.random >> 33) as usize % WORDS.len()]
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn put(&mut self, kind: &str, data: &str, rest: &str) -> u64 {
        let seq = self.seq;
        let time = START + 13 * (seq + 1);
        self.lines.push(format!(
            "{{\"type\":\"{kind}\",\"seq\":{seq},\"time\":{time},\"data\":{data}{rest}}}"
        ));
        self.seq += 1;
        if self.lines.len() == BATCH {
            self.batch();
        }
        seq
    }

    fn batch(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let text = if self.packed {
            let event = |line: &String| Arc::new(Event::parse(line).expect("a sound event"));
            let events: Vec<_> = lines.iter().map(event).collect();
            let mut text = String::new();
            rows::write_batch(&events, true, &mut text);
            text
        } else {
            lines.join("\n") + "\n"
        };
        if !lines.is_empty() {
            let frame = frame::encode(text.as_bytes()).expect("a frame");
            self.out.write_all(&frame).expect("written");
        }
    }

    fn turn(&mut self, turn: u64) {
        let step = format!("{{\"turn\":{turn},\"step\":1}}");
        self.put("turn/start", &format!("{{\"turn\":{turn}}}"), "");
        self.put("step/start", &step, "");
        let prompt = self.words(30);
        let prompt = format!(
            r#"{{"content":[{{"type":"text","text":"{prompt}"}}],"source":{{"kind":"user"}},"role":"user","id":"u-{turn}"}}"#
        );
        self.put("user/message", &prompt, r#","surfaceOp":"append""#);
        if turn == 1 {
            let system = "You are an agent. ".repeat(200);
            let config = r#"{"provider":"deepseek-official","model":"deepseek-v4-flash"}"#;
            let header = format!(
                r#"{{"header":{{"config":{config},"system":"{system}"}},"reason":"initial"}}"#
            );
            self.put("request/header", &header, "");
        }
        let first = self.seq;
        let mut texts = [String::new(), String::new()];
        for (index, (kind, count)) in [("reasoning", 60), ("text", 40)].into_iter().enumerate() {
            let chunk = |chunk: &str| format!(r#"{{"turn":{turn},"step":1,"chunk":{chunk}}}"#);
            let start = format!(r#"{{"type":"block-start","index":{index},"blockType":"{kind}"}}"#);
            self.put("assistant/chunk", &chunk(&start), "");
            for _ in 0..count {
                let word = format!(" {}", self.word());
                let delta = format!(r#"{{"type":"{kind}-delta","index":{index},"text":"{word}"}}"#);
                self.put("assistant/chunk", &chunk(&delta), "");
                texts[index].push_str(&word);
            }
        }
        for (index, kind) in ["reasoning", "text"].into_iter().enumerate() {
            let text = &texts[index];
            let end = format!(
                r#"{{"turn":{turn},"step":1,"chunk":{{"type":"block-end","index":{index},"block":{{"type":"{kind}","text":"{text}"}}}}}}"#
            );
            self.put("assistant/chunk", &end, "");
        }
        let finish = format!(
            r#"{{"turn":{turn},"step":1,"chunk":{{"type":"finish","reason":{{"kind":"tool-calls"}}}}}}"#
        );
        self.put("assistant/chunk", &finish, "");
        let sources: Vec<String> = (first..self.seq).map(|seq| seq.to_string()).collect();
        let word = self.word();
        let arguments = format!(r#""{{\"command\":\"ls -la {word}\",\"description\":\"list\"}}""#);
        let [reasoning, text] = texts;
        let answer = format!(
            r#"{{"turn":{turn},"step":1,"message":{{"role":"assistant","content":[{{"type":"reasoning","text":"{reasoning}"}},{{"type":"text","text":"{text}"}},{{"type":"tool-call","id":"call-{turn}","name":"bash","arguments":{arguments}}}],"source":{{"kind":"model","provider":"deepseek-official","model":"deepseek-v4-flash"}},"id":"a-{turn}"}}}}"#
        );
        let rest = format!(
            r#","sourceEventSeqs":[{}],"surfaceOp":"append""#,
            sources.join(",")
        );
        self.put("assistant/message", &answer, &rest);
        let call = format!(
            r#"{{"turn":{turn},"step":1,"callId":"call-{turn}","name":"bash","arguments":{arguments}}}"#
        );
        let called = self.put("tool/call", &call, "");
        let rows: Vec<String> = (0..20).map(|_| self.words(8)).collect();
        let output = rows.join("\\n");
        let result = format!(
            r#"{{"turn":{turn},"step":1,"message":{{"source":{{"kind":"tool","callId":"call-{turn}"}},"content":[{{"type":"tool-result","toolCallId":"call-{turn}","content":[{{"type":"text","text":"{output}"}}],"isError":false}}],"role":"user","id":"t-{turn}"}}}}"#
        );
        let rest = format!(r#","sourceEventSeqs":[{called}],"surfaceOp":"append""#);
        self.put("tool/result", &result, &rest);
        self.put("step/end", &step, "");
        let end = format!(r#"{{"turn":{turn},"reason":{{"kind":"completed"}}}}"#);
        self.put("turn/end", &end, "");
    }
}

/// Writes a session of at least `events` events, whole turns, below `root`; gives its log.
pub(crate) fn one(root: &Path, id: &str, events: u64, packed: bool) -> PathBuf {
    let mut header = Header::new(id, START);
    header.cwd = Some("/srv/work/long".into());
    let path = layout::log_path(root, &header, Compression::Zstd).expect("a path");
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    let mut out = BufWriter::new(File::create(&path).expect("created"));
    let first = frame::encode(format!("{}\n", header.line()).as_bytes()).expect("a frame");
    out.write_all(&first).expect("written");
    let mut log = Log {
        out,
        packed,
        seq: 0,
        random: 7,
        lines: Vec::new(),
    };
    for turn in 1.. {
        if log.seq >= events {
            break;
        }
        log.turn(turn);
    }
    log.batch();
    log.out.flush().expect("written");
    path
}
