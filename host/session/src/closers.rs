//! Closers: the events that close a turn that a crash left open. `spec/session.md` §5.1.
//!
//! A pure function of the log: doing it again after another crash gives the same events. Calls left open before a
//! recorded `step/end`, open compactions, approvals and the inbox are not repaired.

use std::sync::Arc;

use crate::{Event, JStr, Json, Kind, Seq, SurfaceOp, Value};

/// The sentences that tell the model what became of an unfinished call.
#[derive(Clone, Copy, Debug)]
pub struct RepairTexts<'a> {
    /// The call was logged as started; its effect is unknown.
    pub outcome_unknown: &'a str,
    /// The call was never started.
    pub not_started: &'a str,
}

/// The sentences that [`closers`] uses.
pub const REPAIR_TEXTS: RepairTexts<'static> = RepairTexts {
    outcome_unknown: "The run was interrupted while this call was in progress, so its outcome is unknown: it may \
        have taken effect in full, in part, or not at all. Find out what state it left behind before going on, and \
        do not simply make the same call again.",
    not_started: "The run was interrupted before this call was started. It had no effect; make it again if it is \
        still needed.",
};

/// The closers of a log, none when its last turn is closed.
pub fn closers(log: &[Arc<Event>]) -> Vec<Arc<Event>> {
    closers_with(log, REPAIR_TEXTS)
}

/// [`closers`] with other sentences.
pub fn closers_with(log: &[Arc<Event>], texts: RepairTexts<'_>) -> Vec<Arc<Event>> {
    let mut open = OpenTurn::default();
    log.iter().for_each(|event| open.fold(event));
    log.last()
        .map_or_else(Vec::new, |last| open.closers(last.seq, last.time, texts))
}

/// The events that closers are made of, as a fold: those of the open turn and of its open step. Empty between turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenTurn {
    events: Vec<Arc<Event>>,
}

impl OpenTurn {
    /// Folds one event; chunks change nothing.
    pub fn fold(&mut self, event: &Arc<Event>) {
        match event.kind {
            Kind::TurnStart => {
                self.events.clear();
                self.events.push(event.clone());
            }
            Kind::TurnEnd => self.events.clear(),
            // What a finished step leaves open is not repaired.
            Kind::StepEnd => self.events.truncate(1),
            Kind::StepStart | Kind::AssistantMessage | Kind::ToolCall | Kind::ToolResult
                if !self.events.is_empty() =>
            {
                self.events.push(event.clone());
            }
            _ => {}
        }
    }

    /// The events, in the order of the log.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// The closers of a log whose last event has this seq and time.
    pub fn closers(&self, seq: Seq, time: i64, texts: RepairTexts<'_>) -> Vec<Arc<Event>> {
        let mut open = Open::default();
        self.events.iter().for_each(|event| open.fold(event));
        open.close(seq, time, texts)
    }
}

/// A call that the model made in the open step and that has no result.
struct Pending<'a> {
    id: JStr<'a>,
    step: Value<'a>,
    /// Its `tool/call`, when it was started.
    call: Option<Seq>,
}

/// What a log leaves open.
#[derive(Default)]
struct Open<'a> {
    turn: Option<Value<'a>>,
    step: Option<Value<'a>>,
    pending: Vec<Pending<'a>>,
}

impl<'a> Open<'a> {
    fn fold(&mut self, event: &'a Event) {
        let data = event.data.value();
        match event.kind {
            Kind::TurnStart => {
                // A turn that no sound `turn/end` can name is left open: closing it would damage the log.
                let number = |turn: &Value<'_>| turn.u64().is_some_and(|number| number >= 1);
                *self = Open {
                    turn: data.get("turn").filter(number),
                    ..Open::default()
                }
            }
            Kind::TurnEnd => *self = Open::default(),
            Kind::StepStart => self.step = data.get("step"),
            Kind::StepEnd => {
                self.step = None;
                self.pending.clear();
            }
            Kind::AssistantMessage => self.calls(data),
            Kind::ToolCall => {
                let id = data.get("callId").and_then(Value::string);
                if let Some(pending) = self.pending.iter_mut().find(|call| Some(call.id) == id) {
                    pending.call = Some(event.seq);
                }
            }
            Kind::ToolResult => {
                let id = data
                    .path(&["message", "source", "callId"])
                    .and_then(Value::string);
                self.pending.retain(|call| Some(call.id) != id);
            }
            _ => {}
        }
    }

    /// Notes the calls of an assistant message. A repeated id keeps its place and counts as not started.
    fn calls(&mut self, data: Value<'a>) {
        let step = data.get("step").unwrap_or(Value::trusted("null"));
        let content = data.path(&["message", "content"]);
        for block in content.into_iter().flat_map(Value::items) {
            let id = block.get("id").and_then(Value::string);
            let is_call = block.get("type").is_some_and(|tag| tag.is("tool-call"));
            // No sound result can name a call by an empty id.
            let Some(id) = id.filter(|id| is_call && !id.is_empty()) else {
                continue;
            };
            let call = Pending {
                id,
                step,
                call: None,
            };
            match self.pending.iter_mut().find(|known| known.id == id) {
                Some(known) => *known = call,
                None => self.pending.push(call),
            }
        }
    }

    fn close(&self, last: Seq, time: i64, texts: RepairTexts<'_>) -> Vec<Arc<Event>> {
        let Some(turn) = self.turn else {
            return Vec::new();
        };
        let mut seq = last.0;
        let mut events = Vec::new();
        let mut close = |kind, data, op, sources: Option<Arc<[Seq]>>| {
            seq += 1;
            let mut event = Event::plain(kind, Seq(seq), time, data);
            event.surface_op = op;
            event.source_event_seqs = sources;
            events.push(Arc::new(event.with_repair_order()));
        };
        for (index, call) in self.pending.iter().enumerate() {
            let own = last.0 + 1 + index as u64;
            let sources = call.call.map(|seq| Arc::from([seq]));
            let data = result(turn, call, own, texts);
            close(Kind::ToolResult, data, Some(SurfaceOp::Append), sources);
        }
        if let Some(step) = self.step {
            let data = Json::object(|o| {
                o.value("turn", turn).value("step", step);
            });
            close(Kind::StepEnd, data, None, None);
        }
        let data = Json::object(|o| {
            o.value("turn", turn).object("reason", |o| {
                o.str("kind", "interrupted");
            });
        });
        close(Kind::TurnEnd, data, None, None);
        events
    }
}

/// The result that a call gets in place of the one that never came.
fn result(turn: Value<'_>, call: &Pending<'_>, own: u64, texts: RepairTexts<'_>) -> Json {
    let (text, name, code) = match call.call {
        Some(_) => (
            texts.outcome_unknown,
            "ToolOutcomeUnknownError",
            "TOOL_OUTCOME_UNKNOWN",
        ),
        None => (texts.not_started, "ToolNotStartedError", "TOOL_NOT_STARTED"),
    };
    // The id is kept as it stands, so that one with lone surrogates still names its call.
    let raw = format!("\"{}\"", call.id.raw());
    let id = Value::trusted(&raw);
    let message_id = format!("\"interrupted-tool-result-{}-{own}\"", call.id.raw());
    Json::object(|o| {
        o.value("turn", turn).value("step", call.step);
        o.object("message", |o| {
            o.value("id", Value::trusted(&message_id))
                .str("role", "user");
            o.object("source", |o| {
                o.str("kind", "tool").value("callId", id);
            });
            o.array("content", |a| {
                a.object(|o| {
                    o.str("type", "tool-result")
                        .value("toolCallId", id)
                        .bool("isError", true);
                    o.array("content", |a| {
                        a.object(|o| {
                            o.str("type", "text").str("text", text);
                        });
                    });
                });
            });
        });
        o.object("error", |o| {
            o.str("name", name).str("code", code);
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(turn: &str, call: &str) -> Vec<Arc<Event>> {
        let lines = [
            format!(r#"{{"type":"turn/start","seq":0,"time":5,"data":{{"turn":{turn}}}}}"#),
            format!(
                r#"{{"type":"assistant/message","seq":1,"time":5,"data":{{"turn":1,"step":1,"message":{{"content":[{{"type":"tool-call","id":"{call}"}}]}}}},"surfaceOp":"append"}}"#
            ),
        ];
        let parse = |line: &String| Arc::new(Event::parse(line).unwrap());
        lines.iter().map(parse).collect()
    }

    #[test]
    fn a_turn_that_no_end_can_name_is_left_open() {
        for turn in ["0", "-1", "1.5", "\"1\"", "null"] {
            assert_eq!(closers(&log(turn, "c")), [], "{turn}");
        }
    }

    #[test]
    fn a_call_that_no_result_can_name_gets_none() {
        let kinds = |call| -> Vec<Kind> {
            let closers = closers(&log("1", call));
            closers.iter().map(|event| event.kind.clone()).collect()
        };
        assert_eq!(kinds("c"), [Kind::ToolResult, Kind::TurnEnd]);
        assert_eq!(kinds(""), [Kind::TurnEnd]);
    }
}
