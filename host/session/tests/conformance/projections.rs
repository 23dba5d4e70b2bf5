//! Read models and measures: over every file case, and restored from checkpoints.

use std::path::Path;
use std::sync::Arc;

use dsh_session::projection::{self, Registry, Rows, Unit};
use dsh_session::{
    ConsumedWork, Error, Event, Header, Json, RepairTexts, Seq, Session, Value, closers_with,
    estimate, interpret, meter, meter::TokenMeter, scan,
};

use crate::cases::{flag, json, member, number, recorded, root, table};
use crate::sweeps::sound;

/// Each case with projections, its events after repair. Upstream's repair sentences count with their lengths.
fn each(dir: &Path, mut check: impl FnMut(&str, Value<'_>, Header, Vec<Arc<Event>>)) -> usize {
    let (unknown, not_started) = ("x".repeat(313), "x".repeat(104));
    let texts = RepairTexts {
        outcome_unknown: &unknown,
        not_started: &not_started,
    };
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    let mut count = 0;
    for case in names {
        let (input, output) = (case.join("input.jsonl"), case.join("expected.json"));
        if !input.is_file() || !output.is_file() {
            continue;
        }
        let expected = json(&output);
        if expected.get("projections").is_none() {
            continue;
        }
        let scan = scan::plain(&std::fs::read(&input).unwrap()).unwrap();
        let mut events = interpret(&scan.header, &scan.events).unwrap().events;
        events.extend(closers_with(&events, texts));
        let name = case.file_name().unwrap().to_string_lossy();
        check(&name, expected.value(), scan.header, events);
        count += 1;
    }
    count
}

/// Runs a check over the crafted cases, and over the recorded ones where they are.
fn everywhere(mut check: impl FnMut(&str, Value<'_>, Header, Vec<Arc<Event>>)) {
    let crafted = each(&root(), &mut check);
    assert!(crafted >= 55, "only {crafted} crafted cases were found");
    if let Some(dir) = recorded() {
        let count = each(&dir, &mut check);
        assert!(count > 140, "only {count} recorded cases were found");
        println!("{crafted} crafted and {count} recorded cases");
    } else {
        println!("{crafted} crafted cases; set DSH_SHARED to check the recorded ones too");
    }
}

fn ok(events: &[Arc<Event>]) -> impl Iterator<Item = Result<Arc<Event>, Error>> {
    events.iter().cloned().map(Ok)
}

#[test]
fn every_projection_of_every_log_is_upstreams() {
    everywhere(|name, expected, _, events| {
        let want = member(expected, "projections");
        let mut projections = Registry::standard().start();
        for event in &events {
            projections.fold(event);
        }
        let (rows, snapshot) = (projections.checkpoint(), projections.snapshot());
        for key in [
            "sessionStats",
            "tokenUsage",
            "contextPressure",
            "contextBreakdown",
        ] {
            let want = member(want, key);
            if !flag(want, "ok") {
                assert!(projections.fault(key).is_some(), "{name}: {key}");
                assert!(
                    rows.get(key).is_none() && snapshot.get(key).is_none(),
                    "{name}: {key}"
                );
                continue;
            }
            let (want, row) = (member(want, "value"), rows.get(key).unwrap());
            assert_eq!(row.version, number(want, "stateVersion"), "{name}: {key}");
            assert_eq!(row.state.value(), member(want, "state"), "{name}: {key}");
            assert_eq!(
                row.as_of.map(|seq| seq.0 + 1).unwrap_or(0),
                events.len() as u64
            );
            let view = snapshot.get(key).unwrap();
            assert_eq!(view.value(), member(want, "view"), "{name}: {key}");
        }
        let title = member(member(want, "title"), "value");
        let title = member(title, "snapshot")
            .get("title")
            .map_or(Json::null(), Value::to_json);
        assert_eq!(snapshot.get("title"), Some(&title), "{name}");
        let mut work = ConsumedWork::default();
        events.iter().for_each(|event| work.fold(event));
        let want = member(member(want, "consumedWork"), "value");
        assert_eq!(work.json().value(), want, "{name}");
    });
}

#[test]
fn views_are_one_object_from_key_to_bare_value() {
    everywhere(|name, expected, _, events| {
        let views = projection::views(ok(&events)).unwrap();
        for (key, want) in member(expected, "projections").entries() {
            let got = views.get(&key.decode());
            if !flag(want, "ok") {
                assert_eq!(got, None, "{name}: {key:?}");
            } else if key.is("title") {
                let title = want.path(&["value", "snapshot", "title"]);
                assert_eq!(got, title.or(Some(Json::null().value())), "{name}");
            } else {
                let want = want.path(&["value", "view"]).or(want.get("value"));
                assert_eq!(got, want, "{name}: {key:?}");
            }
        }
        assert!(views.value().entries().count() <= 6, "{name}");
    });
}

/// Wherever a fold is cut and taken up again, it comes to the same.
#[test]
fn a_checkpoint_taken_anywhere_restores_to_the_whole_fold() {
    everywhere(|name, _, _, events| {
        let registry = Registry::standard();
        let mut whole = registry.start();
        events.iter().for_each(|event| whole.fold(event));
        let next = Seq(events.len() as u64);
        let mut prefix = registry.start();
        // Short logs are cut everywhere, long ones where a few cuts fall.
        let stride = if events.len() <= 24 {
            1
        } else {
            events.len() / 6
        };
        for (at, event) in events.iter().enumerate() {
            prefix.fold(event);
            if at % stride != 0 {
                continue;
            }
            // Through text, as a cache does it.
            let rows = Rows::read(prefix.checkpoint().json().value());
            let floor = registry.restore_floor(&rows).unwrap();
            let faulty = ["contextPressure", "contextBreakdown"];
            if faulty.iter().any(|key| prefix.fault(key).is_some()) {
                assert_eq!(floor, Seq(0), "{name}: a unit without a value begins again");
                continue;
            }
            assert_eq!(floor, event.seq, "{name}");
            let rest = ok(&events[at..]);
            let restored = registry.restore(&rows, floor, next, rest).unwrap();
            assert_eq!(
                restored.snapshot(),
                whole.snapshot(),
                "{name}: cut after {at}"
            );
        }
    });
}

#[test]
fn contexts_are_measured_as_upstream() {
    everywhere(|name, expected, header, events| {
        let want = member(member(expected, "session"), "value");
        let mut session = Session::restore(header, events, 9_999).unwrap();
        let got: Vec<_> = session
            .messages()
            .unwrap()
            .iter()
            .map(|message| Some(estimate::message(message.value())))
            .collect();
        let tokens: Vec<_> = member(want, "messageTokens")
            .items()
            .map(Value::u64)
            .collect();
        assert_eq!(got, tokens, "{name}");
        let measured = meter::measure(session.events_from(Seq(0)));
        let want = member(want, "tokenMeter");
        match measured {
            Ok(measured) => assert_eq!(measured.json().value(), member(want, "value"), "{name}"),
            Err(error) => assert!(!flag(want, "ok"), "{name}: {error}"),
        }
    });
}

/// Taking a session up reads the last step only, and measures as who read the whole log, or by the heuristic.
#[test]
fn a_meter_that_is_taken_up_measures_as_one_that_read_everything() {
    let (mut anchored, mut bare) = (0, 0);
    everywhere(|name, _, header, events| {
        let session = Session::restore(header, events, 9_999).unwrap();
        let Ok(whole) = meter::measure(session.events_from(Seq(0))) else {
            return;
        };
        let meter = TokenMeter::take_up(&session).unwrap();
        assert_eq!(meter.nodes(), whole.nodes, "{name}");
        assert_eq!(meter.next_seq(), session.next_seq(), "{name}");
        if meter.measure() == whole {
            anchored += 1;
        } else {
            let without = TokenMeter::without_anchor(&session).unwrap();
            assert_eq!(meter.measure(), without.measure(), "{name}");
            bare += 1;
        }
    });
    assert!(anchored > 100 && bare * 10 < anchored, "{anchored} {bare}");
}

#[test]
fn the_first_token_is_text_or_a_call() {
    table("tbl-token-delta", |name, input, expected| {
        assert_eq!(Some(projection::is_token(input)), expected.bool(), "{name}");
    });
}

#[test]
fn checkpoints_are_restored_and_refused_as_upstream() {
    let input = std::fs::read(root().join("tbl-projection-log/input.jsonl")).unwrap();
    let log = sound(&scan::plain(&input).unwrap().events);
    let mut registry = Registry::new();
    let units: [Arc<dyn Unit>; 5] = [
        Arc::new(projection::SessionStats),
        Arc::new(projection::Title),
        Arc::new(projection::TokenUsage),
        Arc::new(projection::ContextPressure),
        Arc::new(projection::ContextBreakdown),
    ];
    for unit in units {
        registry.register(unit).unwrap();
    }
    assert_eq!(Registry::new().restore_floor(&Rows::default()), None);
    let mut checked = 0;
    table("tbl-projection-restore", |name, input, expected| {
        let rows = Rows::read(member(input, "checkpoint"));
        let floor = registry.restore_floor(&rows).unwrap();
        assert_eq!(floor.0, number(expected, "restoreFloor"), "{name}");
        let base = Seq(number(input, "suppliedFrom"));
        let supplied = number(input, "supplied");
        let end = Seq(base.0 + supplied);
        let events = &log[base.0 as usize..end.0 as usize];
        let restored = registry.restore(&rows, base, end, ok(events));
        let want = member(expected, "restore");
        match restored {
            Ok(restored) => {
                let want = member(want, "value");
                let got = restored.snapshot().json();
                assert_eq!(got.value(), member(want, "snapshot"), "{name}");
                let got = restored.checkpoint().json();
                assert_eq!(got.value(), member(want, "checkpoint"), "{name}");
            }
            Err(error) => {
                assert!(!flag(want, "ok"), "{name}: {error}");
                assert_eq!(error.code(), "PROJECTION_RESTORE_REFUSED", "{name}");
                let message = member(member(want, "error"), "message").text().unwrap();
                if let Some(key) = message
                    .split('"')
                    .nth(1)
                    .filter(|_| message.contains("projection"))
                {
                    assert!(error.to_string().contains(key), "{name}: {error}");
                }
            }
        }
        let views = registry.view_checkpoint(&rows);
        let got = Json::object(|o| {
            for (key, value) in views.iter().flat_map(|snapshot| &snapshot.values) {
                o.json(key, value);
            }
        });
        let want = member(member(expected, "viewCheckpoint"), "value");
        assert_eq!(got.value(), want, "{name}");
        checked += 1;
    });
    assert_eq!(checked, 10);
}
