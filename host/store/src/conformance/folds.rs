//! What folds from a file that was read: surface, messages, measure, projections. All file cases are here, also those
//! in frames; the plain ones are compared once more, without the store, in `host/session/tests/conformance`.

use std::sync::Arc;

use dsh_session::projection::Registry;
use dsh_session::{
    ConsumedWork, Error, Event, Json, RepairTexts, Seq, Session, Surface, SurfaceOp, closers_with,
    estimate, meter, title,
};
use serde_json::{Map, Value, json};

use super::Deviations;
use crate::load::Inspection;
use crate::testing::whole_pairs;

/// The tokens that stand for upstream's sentences, and how long those are (README of the data).
const TOKENS: RepairTexts<'static> = RepairTexts {
    outcome_unknown: "{{TEXT:TOOL_OUTCOME_UNKNOWN}}",
    not_started: "{{TEXT:TOOL_NOT_STARTED}}",
};
pub(super) const SENTENCES: [usize; 2] = [313, 104];

fn serde(json: &Json) -> Value {
    serde_json::from_str(&whole_pairs(json.as_str())).unwrap()
}

/// The log as it is after repair, with sentences of one kind or another.
fn repaired(inspection: &Inspection, texts: RepairTexts<'_>) -> Vec<Arc<Event>> {
    let mut events = inspection.log.to_vec().unwrap();
    let closers = closers_with(&events, texts);
    assert_eq!(closers.len(), inspection.closers.len());
    events.extend(closers);
    events
}

pub(super) fn folds(
    name: &str,
    expected: &Value,
    inspection: &Inspection,
    deviations: &mut Deviations,
) {
    let session = |texts| {
        let events = repaired(inspection, texts);
        Session::restore(inspection.header.clone(), events, 9_999).unwrap()
    };
    let [unknown, not_started] = SENTENCES.map(|length| "x".repeat(length));
    let measured = session(RepairTexts {
        outcome_unknown: &unknown,
        not_started: &not_started,
    });
    let want = &expected["session"]["value"];
    surface(name, want, session(TOKENS), deviations);
    measure(name, want, measured, deviations);
    let events = repaired(
        inspection,
        RepairTexts {
            outcome_unknown: &unknown,
            not_started: &not_started,
        },
    );
    projections(name, &expected["projections"], &events, deviations);
}

fn surface(name: &str, want: &Value, mut session: Session, deviations: &mut Deviations) {
    let nodes: Vec<u64> = session.surface().nodes().iter().map(|seq| seq.0).collect();
    let optional = |json: Option<Json>| json.as_ref().map_or(Value::Null, serde);
    let header = session.request_header().map(|header| header.json().clone());
    let context = session.request_context().map(|context| context.data());
    let mut ours = json!({
        "nodes": nodes,
        "replaceGeneration": session.surface().replace_generation(),
        "replacements": replacements(&session),
        "requestHeader": optional(header),
        "requestContext": optional(context),
    });
    // The data leaves the messages of one huge log out.
    if want["messages"].is_array() {
        ours["messages"] = serde(&session.messages().unwrap().to_json());
    }
    check(name, "surface", ours, want, deviations);
}

/// Compares those members of `want` that `ours` has.
fn check(name: &str, aspect: &str, ours: Value, want: &Value, deviations: &mut Deviations) {
    let keys = ours.as_object().unwrap().keys();
    let want: Map<_, _> = keys.map(|key| (key.clone(), want[key].clone())).collect();
    deviations.check(name, aspect, ours, &want.into());
}

fn replacements(session: &Session) -> Vec<Value> {
    let mut surface = Surface::default();
    let mut all = Vec::new();
    for event in session.events_from(Seq(0)) {
        let event = event.unwrap();
        let before: Vec<u64> = surface.nodes().iter().map(|seq| seq.0).collect();
        surface.push(&event, |seq| session.event(seq)).unwrap();
        if let Some(SurfaceOp::Replace { start, end }) = event.surface_op {
            let at = |seq: u64| before.iter().position(|node| *node == seq).unwrap();
            let shadowed = &before[at(start.0)..=at(end.0)];
            all.push(json!({
                "seq": event.seq.0, "start": start.0, "end": end.0, "shadowedSeqs": shadowed
            }));
        }
    }
    all
}

fn measure(name: &str, want: &Value, mut session: Session, deviations: &mut Deviations) {
    let messages = session.messages().unwrap();
    let tokens: Vec<u64> = messages
        .iter()
        .map(|message| estimate::message(message.value()))
        .collect();
    let measured = meter::measure(session.events_from(Seq(0)));
    let measured = measured.map(|measured| serde(&measured.json()));
    let ours = json!({"messageTokens": tokens, "tokenMeter": outcome(measured)});
    check(name, "measure", ours, &outcome_only(want), deviations);
}

/// A result as the data has it; of an error, only that it is one.
fn outcome(result: Result<Value, Error>) -> Value {
    result.map_or_else(
        |_| json!({"ok": false}),
        |value| json!({"ok": true, "value": value}),
    )
}

/// The same value with the words of upstream's errors left out.
fn outcome_only(value: &Value) -> Value {
    let mut value = value.clone();
    for member in value.as_object_mut().unwrap().values_mut() {
        if member["ok"] == false {
            *member = json!({"ok": false});
        }
    }
    value
}

fn projections(name: &str, want: &Value, events: &[Arc<Event>], deviations: &mut Deviations) {
    let mut folded = Registry::standard().start();
    let (mut titles, mut work) = (title::Titles::default(), ConsumedWork::default());
    for event in events {
        folded.fold(event);
        titles.fold(event);
        work.fold(event);
    }
    let (rows, snapshot) = (folded.checkpoint(), folded.snapshot());
    let fallback = titles.prompts().first();
    let fallback = fallback.map(|prompt| title::fallback(&prompt.text, 5, 40));
    let mut ours = json!({
        "title": outcome(Ok(json!({
            "snapshot": serde(&titles.snapshot()),
            "eligible": titles.prompts().len(),
            "fallback5words40bytes": fallback,
        }))),
        "consumedWork": outcome(Ok(serde(&work.json()))),
    });
    for key in [
        "sessionStats",
        "tokenUsage",
        "contextPressure",
        "contextBreakdown",
    ] {
        ours[key] = match (rows.get(key), snapshot.get(key)) {
            (Some(row), Some(view)) => outcome(Ok(json!({
                "stateVersion": row.version, "state": serde(&row.state), "view": serde(view)
            }))),
            _ => json!({"ok": false}),
        };
    }
    let want = outcome_only(want);
    // Upstream's data has a fold for each of these keys and for no other.
    assert_eq!(
        ours.as_object().unwrap().len(),
        want.as_object().unwrap().len()
    );
    check(name, "projections", ours, &want, deviations);
}
