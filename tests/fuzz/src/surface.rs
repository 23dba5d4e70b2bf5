//! The surface fold (`spec/session.md` §2, §3) against the rules written down once more, plainly.
//!
//! Bytes are a program: each draft takes a few of them for its kind, its operation and its sources.

use std::sync::Arc;

use dsh_session::{Draft, Event, Header, Json, Kind, Seq, Session, SurfaceOp};

/// Longer programs say nothing that shorter ones do not.
const MAX_DRAFTS: usize = 200;

struct Program<'a>(&'a [u8]);

impl Program<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// A seq that mostly exists.
    fn seq(&mut self, len: usize) -> Seq {
        Seq(u64::from(self.byte()) % (len as u64 + 2))
    }
}

/// What the rules say of one event.
#[derive(Clone)]
struct Node {
    kind: Kind,
    data: Json,
    /// Everything but what a tool said.
    rest: (u8, bool),
}

#[derive(Default)]
struct Model {
    log: Vec<Node>,
    nodes: Vec<usize>,
    replaces: u64,
}

impl Model {
    /// Whether the rules take the draft, and what becomes of the nodes.
    fn take(&mut self, draft: &Draft, node: Node) -> bool {
        let next = self.log.len();
        let surface = matches!(
            draft.kind,
            Kind::UserMessage | Kind::AssistantMessage | Kind::ToolResult
        );
        let nodes = match (surface, draft.surface_op) {
            (false, None) if draft.source_event_seqs.is_none() => self.nodes.clone(),
            (false, _) | (true, None) => return false,
            (true, Some(op)) => match self.surface(op, draft, &node, next) {
                Some(nodes) => nodes,
                None => return false,
            },
        };
        if matches!(draft.surface_op, Some(SurfaceOp::Replace { .. })) {
            self.replaces += 1;
        }
        self.nodes = nodes;
        self.log.push(node);
        true
    }

    fn surface(
        &self,
        op: SurfaceOp,
        draft: &Draft,
        node: &Node,
        next: usize,
    ) -> Option<Vec<usize>> {
        let mut range = self.nodes.len()..self.nodes.len();
        if let SurfaceOp::Replace { start, end } = op {
            let position = |seq: Seq| self.nodes.iter().position(|n| *n as u64 == seq.0);
            let (first, last) = (position(start)?, position(end)?);
            if first > last {
                return None;
            }
            range = first..last + 1;
        }
        if let Some(sources) = &draft.source_event_seqs {
            let may_be_empty = draft.kind == Kind::AssistantMessage;
            let mut sorted = sources.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let sound = (may_be_empty || !sources.is_empty())
                && sorted.len() == sources.len()
                && sources.iter().all(|seq| seq.0 < next as u64);
            if !sound {
                return None;
            }
        }
        let shadowed = &self.nodes[range.clone()];
        let sources = draft.source_event_seqs.as_deref().unwrap_or(&[]);
        if !shadowed.iter().all(|n| sources.contains(&Seq(*n as u64))) {
            return None;
        }
        if let (Kind::ToolResult, SurfaceOp::Replace { .. }) = (&draft.kind, op) {
            let [one] = shadowed else { return None };
            let old = &self.log[*one];
            if old.kind != Kind::ToolResult || old.rest != node.rest {
                return None;
            }
        }
        let mut nodes = self.nodes.clone();
        nodes.splice(range, [next]);
        Some(nodes)
    }

    /// The messages' texts, in order.
    fn messages(&self) -> Vec<String> {
        let message = |node: &usize| {
            let Node { kind, data, .. } = &self.log[*node];
            match kind {
                Kind::UserMessage => Some(data.as_str().to_owned()),
                _ => {
                    let message = data.get("message")?;
                    let empty = message.get("content")?.items().next().is_none();
                    let hidden = *kind == Kind::AssistantMessage && empty;
                    (!hidden).then(|| message.as_str().to_owned())
                }
            }
        };
        self.nodes.iter().filter_map(message).collect()
    }
}

pub(crate) fn check(bytes: &[u8]) {
    let mut program = Program(bytes);
    let mut session = Session::new(Header::new("s", 0)).expect("a sound header");
    let mut model = Model::default();
    for _ in 0..MAX_DRAFTS {
        if program.0.is_empty() {
            break;
        }
        let (draft, node) = draft(&mut program, &model);
        let before = (session.next_seq(), session.surface().nodes().to_vec());
        let ours = session.append(draft.clone(), 0);
        let expected = model.take(&draft, node);
        assert_eq!(
            ours.is_ok(),
            expected,
            "{draft:?} on {:?}: {ours:?}",
            model.nodes
        );
        if ours.is_err() {
            let after = (session.next_seq(), session.surface().nodes().to_vec());
            assert_eq!(before, after, "a refused draft left a trace");
        }
        let nodes: Vec<usize> = seqs(&session);
        assert_eq!(nodes, model.nodes);
        assert_eq!(session.surface().replace_generation(), model.replaces);
        // Now and then, so that both growing and rebuilding of the derivation are seen.
        if nodes.len().is_multiple_of(3) {
            assert_eq!(texts(&mut session), model.messages());
        }
    }
    let kept = texts(&mut session);
    assert_eq!(kept, model.messages());
    let events: Result<Vec<Arc<Event>>, _> = session.events_from(Seq(0)).collect();
    let events = events.expect("they are in memory");
    let mut fresh = Session::with_seed(Header::new("s", 0), events, 0).expect("a log is a seed");
    assert_eq!(
        seqs(&fresh),
        model.nodes,
        "a fresh fold gives another surface"
    );
    assert_eq!(texts(&mut fresh), kept, "a fresh fold gives other messages");
    let digests = (session.digest(), fresh.digest());
    assert_eq!(digests.0.expect("in memory"), digests.1.expect("in memory"));
}

fn seqs(session: &Session) -> Vec<usize> {
    let nodes = session.surface().nodes();
    nodes.iter().map(|seq| seq.0 as usize).collect()
}

fn texts(session: &mut Session) -> Vec<String> {
    let messages = session.messages().expect("they are in memory");
    messages
        .iter()
        .map(|message| message.as_str().to_owned())
        .collect()
}

fn draft(program: &mut Program<'_>, model: &Model) -> (Draft, Node) {
    let what = program.byte();
    let len = model.log.len();
    let detail = program.byte();
    let said = format!("{{\"type\":\"text\",\"text\":\"{detail}\"}}");
    let content = if detail.is_multiple_of(4) { "" } else { &*said };
    let (call, error) = (detail % 3, detail & 64 != 0);
    let (kind, data) = match what % 8 {
        0 | 1 => (
            Kind::UserMessage,
            format!(
                "{{\"content\":[{content}],\"source\":{{\"kind\":\"user\"}},\"role\":\"user\",\"id\":\"u\"}}"
            ),
        ),
        2 | 3 => (
            Kind::AssistantMessage,
            format!(
                "{{\"turn\":1,\"step\":1,\"message\":{{\"role\":\"assistant\",\"content\":[{content}],\"source\":{{\"kind\":\"model\",\"provider\":\"p\",\"model\":\"m\"}},\"id\":\"a\"}}}}"
            ),
        ),
        4..=6 => (
            Kind::ToolResult,
            format!(
                "{{\"turn\":1,\"step\":1,\"message\":{{\"source\":{{\"kind\":\"tool\",\"callId\":\"c{call}\"}},\"content\":[{{\"type\":\"tool-result\",\"toolCallId\":\"c{call}\",\"content\":[{content}],\"isError\":{error}}}],\"role\":\"user\",\"id\":\"r\"}}}}"
            ),
        ),
        _ => (Kind::TurnStart, "{\"turn\":1}".to_owned()),
    };
    let data = Json::normalise(&data).expect("it is JSON");
    let node = Node {
        kind: kind.clone(),
        data: data.clone(),
        rest: (call, error),
    };
    let mut draft = Draft::new(kind, data);
    match (what >> 3) % 4 {
        0 => {}
        1 => draft = draft.append(),
        _ => {
            let (start, end) = (program.seq(len), program.seq(len));
            draft = draft.replace(start, end);
        }
    }
    match (what >> 5) % 4 {
        0 => {}
        1 => {
            let count = usize::from(program.byte() % 4);
            draft = draft.sources((0..count).map(|_| program.seq(len)).collect());
        }
        // All that a replace may need, which random seqs seldom are.
        2 => draft = draft.sources(model.nodes.iter().map(|n| Seq(*n as u64)).collect()),
        _ => draft = draft.sources((0..len as u64).map(Seq).collect()),
    }
    (draft, node)
}
