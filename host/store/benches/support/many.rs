//! Many small sessions on disk: one turn each of streamed reasoning and text, a tool call and its result, packed and in
//! frames of 40 events, as a busy stream gives them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dsh_session::{Event, Header, rows};
use dsh_store::{Compression, frame, layout};

const WORDS: [&str; 18] = [
    "alpha", "beta", "gamma", "delta", "river", "stone", "cloud", "light", "paper", "method",
    "value", "error", "result", "index", "cache", "parse", "build", "trace",
];
const START: u64 = 1_780_000_000_000;
const BATCH: usize = 40;

/// Words in an order of their own for each seed.
struct Words(u64);

impl Words {
    fn next(&mut self) -> &'static str {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        WORDS[(self.0 >> 33) as usize % WORDS.len()]
    }

    fn many(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.next()).collect();
        words.join(" ")
    }
}

#[derive(Default)]
struct Log(Vec<Arc<Event>>);

impl Log {
    fn push(&mut self, kind: &str, data: &str, rest: &str) -> usize {
        let seq = self.0.len();
        let time = START + 13 * (seq as u64 + 1);
        let line =
            format!("{{\"type\":\"{kind}\",\"seq\":{seq},\"time\":{time},\"data\":{data}{rest}}}");
        self.0
            .push(Arc::new(Event::parse(&line).expect("a sound event")));
        seq
    }

    fn chunk(&mut self, chunk: &str) -> usize {
        let data = format!("{{\"turn\":1,\"step\":1,\"chunk\":{chunk}}}");
        self.push("assistant/chunk", &data, "")
    }

    fn deltas(&mut self, index: usize, kind: &str, words: &mut Words, count: usize) -> String {
        let mut text = String::new();
        self.chunk(&format!(
            "{{\"type\":\"block-start\",\"index\":{index},\"blockType\":\"{kind}\"}}"
        ));
        for _ in 0..count {
            let word = words.next();
            text.push(' ');
            text.push_str(word);
            self.chunk(&format!(
                "{{\"type\":\"{kind}-delta\",\"index\":{index},\"text\":\" {word}\"}}"
            ));
        }
        text
    }
}

fn turn(words: &mut Words, id: usize) -> Vec<Arc<Event>> {
    const STEP: &str = "{\"turn\":1,\"step\":1}";
    let mut log = Log::default();
    log.push("turn/start", "{\"turn\":1}", "");
    log.push("step/start", STEP, "");
    let prompt = format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}],\"source\":{{\"kind\":\"user\"}},\"role\":\"user\",\"id\":\"u-{id}\"}}",
        words.many(30)
    );
    log.push("user/message", &prompt, ",\"surfaceOp\":\"append\"");
    let first = log.0.len();
    let reasoning = log.deltas(0, "reasoning", words, 60);
    let text = log.deltas(1, "text", words, 40);
    log.chunk("{\"type\":\"finish\",\"reason\":{\"kind\":\"tool-calls\"}}");
    let sources: Vec<String> = (first..log.0.len()).map(|seq| seq.to_string()).collect();
    let call = "{\\\"command\\\":\\\"ls\\\"}";
    let answer = format!(
        "{{\"turn\":1,\"step\":1,\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"reasoning\",\"text\":\"{reasoning}\"}},{{\"type\":\"text\",\"text\":\"{text}\"}},{{\"type\":\"tool-call\",\"id\":\"c\",\"name\":\"bash\",\"arguments\":\"{call}\"}}],\"source\":{{\"kind\":\"model\",\"provider\":\"p\",\"model\":\"m\"}},\"id\":\"a-{id}\"}}}}"
    );
    let rest = format!(
        ",\"sourceEventSeqs\":[{}],\"surfaceOp\":\"append\"",
        sources.join(",")
    );
    log.push("assistant/message", &answer, &rest);
    let data = format!(
        "{{\"turn\":1,\"step\":1,\"callId\":\"c\",\"name\":\"bash\",\"arguments\":\"{call}\"}}"
    );
    let called = log.push("tool/call", &data, "");
    let result = format!(
        "{{\"turn\":1,\"step\":1,\"message\":{{\"source\":{{\"kind\":\"tool\",\"callId\":\"c\"}},\"content\":[{{\"type\":\"tool-result\",\"toolCallId\":\"c\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}],\"isError\":false}}],\"role\":\"user\",\"id\":\"t-{id}\"}}}}",
        words.many(160)
    );
    let rest = format!(",\"sourceEventSeqs\":[{called}],\"surfaceOp\":\"append\"");
    log.push("tool/result", &result, &rest);
    log.push("step/end", STEP, "");
    let end = "{\"turn\":1,\"reason\":{\"kind\":\"completed\"}}";
    log.push("turn/end", end, "");
    log.0
}

/// Writes `count` sessions below `root`, over 40 projects.
pub(crate) fn many(root: &Path, count: usize) {
    for id in 0..count {
        let mut words = Words(id as u64);
        let mut header = Header::new(format!("session-{id:06}"), START + id as u64);
        header.cwd = Some(format!("/srv/work/p{}", id % 40).into());
        let mut bytes = frame::encode(format!("{}\n", header.line()).as_bytes()).expect("a frame");
        for batch in turn(&mut words, id).chunks(BATCH) {
            let mut lines = String::new();
            rows::write_batch(batch, true, &mut lines);
            bytes.extend(frame::encode(lines.as_bytes()).expect("a frame"));
        }
        let path = layout::log_path(root, &header, Compression::Zstd).expect("a path");
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, bytes).expect("written");
    }
}
