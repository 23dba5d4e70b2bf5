//! Realistic sessions: turns, steps, streamed chunks, tool calls, compactions; made through [`Session::append`], so that
//! what is written is what a session accepts.

use std::collections::VecDeque;
use std::sync::Arc;

use dsh_session::{Draft, Event, Header, Json, Kind, Seq, Session};

use crate::random::Random;

/// What comes next; what depends on the log is filled in when its turn comes.
enum Next {
    TurnStart,
    StepStart,
    User,
    Header,
    Text,
    Reasoning,
    Arguments,
    Answer { calls: usize },
    Call(usize),
    Result(usize),
    StepEnd,
    TurnEnd,
    Compact,
    Note,
    Todo,
}

/// A session that goes on for ever.
pub struct Play {
    random: Random,
    queue: VecDeque<Next>,
    chunks: Vec<Seq>,
    calls: Vec<Seq>,
    step: u64,
    time: i64,
}

const WORDS: [&str; 16] = [
    "the",
    "file",
    "src/main.rs",
    "error[E0308]",
    "cargo",
    "test",
    "\n",
    "fn ",
    "\"quoted\"",
    "é",
    "日本",
    "{}",
    "0x1f",
    "returns",
    "because",
    "\\",
];

impl Play {
    /// A play of one seed.
    pub fn new(seed: u64) -> Play {
        Play {
            random: Random::new(seed),
            queue: VecDeque::new(),
            chunks: Vec::new(),
            calls: Vec::new(),
            step: 0,
            time: 1_700_000_000_000,
        }
    }

    /// The header of the session.
    pub fn header(&mut self) -> Header {
        let mut header = Header::new("s-1", 1_700_000_000_000);
        if self.random.percent(80) {
            header.cwd = Some(format!("/work/p{}", self.random.below(10)).into());
        }
        header
    }

    /// The session was restored: whatever was going on is over.
    pub fn restored(&mut self) {
        self.queue.clear();
        self.chunks.clear();
        self.calls.clear();
    }

    fn words(&mut self, most: usize) -> String {
        let count = 1 + self.random.below(most);
        (0..count).fold(String::new(), |text, _| {
            text + WORDS[self.random.below(16)] + " "
        })
    }

    fn plan_turn(&mut self) {
        let queue = &mut self.queue;
        queue.push_back(Next::TurnStart);
        self.step = 0;
        let steps = 1 + self.random.below(2);
        for step in 0..steps {
            queue.push_back(Next::StepStart);
            if step == 0 {
                queue.push_back(Next::User);
                if self.random.percent(30) {
                    queue.push_back(Next::Header);
                }
            }
            for _ in 0..self.random.below(6) {
                queue.push_back(Next::Reasoning);
            }
            for _ in 0..self.random.below(8) {
                queue.push_back(Next::Text);
            }
            let calls = self.random.below(3);
            for _ in 0..calls * 3 {
                queue.push_back(Next::Arguments);
            }
            queue.push_back(Next::Answer { calls });
            (0..calls).for_each(|call| queue.push_back(Next::Call(call)));
            (0..calls).for_each(|call| queue.push_back(Next::Result(call)));
            if self.random.percent(20) {
                queue.push_back(Next::Todo);
            }
            queue.push_back(Next::StepEnd);
        }
        queue.push_back(Next::TurnEnd);
        if self.random.percent(25) {
            queue.push_back(Next::Compact);
        }
        if self.random.percent(25) {
            queue.push_back(Next::Note);
        }
    }

    /// Appends at least `count` events to the session and gives them.
    pub fn append(&mut self, session: &mut Session, count: usize) -> Vec<Arc<Event>> {
        let mut made = Vec::new();
        while made.len() < count {
            match self.queue.pop_front() {
                None => self.plan_turn(),
                Some(next) => {
                    for draft in self.drafts(session, &next) {
                        made.push(self.one(session, draft));
                    }
                    if let Next::Compact = next {
                        self.compact(session, &mut made);
                    }
                }
            }
        }
        made
    }

    fn one(&mut self, session: &mut Session, draft: Draft) -> Arc<Event> {
        self.time += i64::try_from(self.random.below(40)).unwrap_or(0);
        session
            .append(draft, self.time)
            .expect("a play appends what a session accepts")
    }

    fn drafts(&mut self, session: &Session, next: &Next) -> Vec<Draft> {
        let turn = session.last_turn();
        let step = self.step;
        let at = session.next_seq();
        let draft = match next {
            Next::TurnStart => data(Kind::TurnStart, format!(r#"{{"turn":{}}}"#, turn + 1)),
            Next::StepStart => {
                self.step += 1;
                data(
                    Kind::StepStart,
                    format!(r#"{{"turn":{turn},"step":{}}}"#, step + 1),
                )
            }
            Next::User => user(&self.words(12), at, r#"{"kind":"user"}"#).append(),
            Next::Header => data(
                Kind::RequestHeader,
                format!(
                    r#"{{"header":{{"config":{{"provider":"p","model":"m{}"}},"system":{}}},"reason":"change"}}"#,
                    self.random.below(5),
                    text(&self.words(9))
                ),
            ),
            Next::Text | Next::Reasoning | Next::Arguments => {
                self.chunks.push(at);
                let piece = text(&self.words(4));
                let chunk = match next {
                    Next::Text => format!(r#"{{"type":"text-delta","index":1,"text":{piece}}}"#),
                    Next::Reasoning => {
                        format!(r#"{{"type":"reasoning-delta","index":0,"text":{piece}}}"#)
                    }
                    _ => format!(
                        r#"{{"type":"tool-call-delta","index":2,"id":"c{turn}","argumentsDelta":{piece}}}"#
                    ),
                };
                data(
                    Kind::AssistantChunk,
                    format!(r#"{{"turn":{turn},"step":{step},"chunk":{chunk}}}"#),
                )
            }
            Next::Answer { calls } => {
                self.calls.clear();
                let blocks: String = (0..*calls)
                    .map(|call| format!(r#",{{"type":"tool-call","id":"c{turn}-{step}-{call}","name":"shell","arguments":"{{}}"}}"#))
                    .collect();
                let said = text(&self.words(12));
                let json = format!(
                    r#"{{"turn":{turn},"step":{step},"message":{{"role":"assistant","content":[{{"type":"text","text":{said}}}{blocks}],"source":{{"kind":"model","provider":"p","model":"m"}},"id":"a{at}"}},"usage":{{"inputTokens":{},"outputTokens":7}}}}"#,
                    self.random.below(9000)
                );
                let chunks = std::mem::take(&mut self.chunks);
                data(Kind::AssistantMessage, json).append().sources(chunks)
            }
            Next::Call(call) => {
                self.calls.push(at);
                data(
                    Kind::ToolCall,
                    format!(
                        r#"{{"turn":{turn},"step":{step},"callId":"c{turn}-{step}-{call}","name":"shell","arguments":"{{}}"}}"#
                    ),
                )
            }
            Next::Result(call) => {
                let out = text(&self.words(25));
                let id = format!("c{turn}-{step}-{call}");
                let json = format!(
                    r#"{{"turn":{turn},"step":{step},"message":{{"source":{{"kind":"tool","callId":"{id}"}},"content":[{{"type":"tool-result","toolCallId":"{id}","content":[{{"type":"text","text":{out}}}],"isError":false}}],"role":"user","id":"r{at}"}}}}"#
                );
                let cause = self.calls.get(*call).copied().unwrap_or(Seq(0));
                data(Kind::ToolResult, json).append().sources(vec![cause])
            }
            Next::StepEnd => data(Kind::StepEnd, format!(r#"{{"turn":{turn},"step":{step}}}"#)),
            Next::TurnEnd => data(
                Kind::TurnEnd,
                format!(r#"{{"turn":{turn},"reason":{{"kind":"completed"}}}}"#),
            ),
            Next::Note => data(
                Kind::from_name("acme/note"),
                format!(r#"{{"n":{}}}"#, self.random.below(1000)),
            ),
            Next::Todo => data(
                Kind::TodoWrite,
                format!(
                    r#"{{"todos":[{{"content":{},"status":"pending"}}]}}"#,
                    text(&self.words(5))
                ),
            ),
            Next::Compact => return Vec::new(),
        };
        vec![draft]
    }

    /// A compaction of all but the newest nodes.
    fn compact(&mut self, session: &mut Session, made: &mut Vec<Arc<Event>>) {
        let nodes = session.surface().nodes().to_vec();
        let Some(last) = nodes.len().checked_sub(2) else {
            return;
        };
        let shadowed = &nodes[..=last];
        let list = shadowed
            .iter()
            .map(Seq::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let id = format!("k{}", session.next_seq());
        let start = data(
            Kind::CompactionStart,
            format!(r#"{{"compactionId":"{id}","turn":null}}"#),
        );
        let start = self.one(session, start);
        let summary = format!(
            r#"{{"compactionId":"{id}","summary":[{{"type":"text","text":{}}}],"shadowedRange":{{"start":{},"end":{}}},"shadowedSeqs":[{list}],"shadowedTokenCount":9,"provider":"p","model":"m"}}"#,
            text(&self.words(9)),
            shadowed[0],
            shadowed[last],
        );
        let summary = self.one(session, data(Kind::CompactionSummary, summary));
        let mut sources = vec![start.seq, summary.seq];
        sources.extend_from_slice(shadowed);
        let source = format!(r#"{{"kind":"plugin","plugin":"compact","compactionId":"{id}"}}"#);
        let replacement = user(&self.words(9), session.next_seq(), &source)
            .replace(shadowed[0], shadowed[last])
            .sources(sources);
        let replacement = self.one(session, replacement);
        let end = data(
            Kind::CompactionEnd,
            format!(r#"{{"compactionId":"{id}","turn":null}}"#),
        );
        let end = self.one(session, end);
        made.extend([start, summary, replacement, end]);
    }
}

fn text(text: &str) -> String {
    Json::string(text).as_str().to_owned()
}

fn data(kind: Kind, json: impl AsRef<str>) -> Draft {
    let data = Json::normalise(json.as_ref()).expect("a play makes JSON");
    Draft::new(kind, data)
}

fn user(said: &str, at: Seq, source: &str) -> Draft {
    let said = text(said);
    data(
        Kind::UserMessage,
        format!(
            r#"{{"content":[{{"type":"text","text":{said}}}],"source":{source},"role":"user","id":"u{at}"}}"#
        ),
    )
}
