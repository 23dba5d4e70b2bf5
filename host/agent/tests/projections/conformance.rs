//! Every log of the conformance data, folded by the components through the engine: states and views are upstream's,
//! however the events are cut into lists.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_agent::projection::{Fault, Stretch, Unit};
use dsh_session::{Event, Json, RepairTexts, Seq, Value, closers_with, interpret, scan};
use tokio_util::sync::CancellationToken;

use crate::{mounted, official, root, units};

/// A case: its events after repair, and what upstream makes of them.
struct Case {
    name: String,
    events: Vec<Arc<Event>>,
    expected: Json,
}

/// Cases recorded from upstream's own fixtures may be used where they lie and are not part of the project.
fn recorded() -> Option<PathBuf> {
    let named = std::env::var_os("DSH_SHARED").map(PathBuf::from);
    let above = root().ancestors().map(|dir| dir.join("shared"));
    let mut places = named
        .into_iter()
        .chain(above)
        .map(|dir| dir.join("conformance/session/recorded"));
    places.find(|dir| dir.is_dir())
}

fn cases(dir: &Path) -> Vec<Case> {
    // Upstream's repair sentences count with their lengths.
    let (unknown, not_started) = ("x".repeat(313), "x".repeat(104));
    let texts = RepairTexts {
        outcome_unknown: &unknown,
        not_started: &not_started,
    };
    let mut folders: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let mut cases = Vec::new();
    for folder in folders {
        let (input, output) = (folder.join("input.jsonl"), folder.join("expected.json"));
        if !input.is_file() || !output.is_file() {
            continue;
        }
        let expected = std::fs::read(&output).unwrap();
        let expected = Json::restore(&String::from_utf8_lossy(&expected)).unwrap();
        let Some(projections) = expected.get("projections").map(Value::to_json) else {
            continue;
        };
        let scan = scan::plain(&std::fs::read(&input).unwrap()).unwrap();
        let mut events = interpret(&scan.header, &scan.events).unwrap().events;
        events.extend(closers_with(&events, texts));
        cases.push(Case {
            name: folder.file_name().unwrap().to_string_lossy().into_owned(),
            events,
            expected: projections,
        });
    }
    cases
}

/// Folds a log in pieces of these sizes, over and over.
async fn fold(unit: &dyn Unit, events: &[Arc<Event>], sizes: &[usize]) -> Result<Json, Fault> {
    let cancel = CancellationToken::new();
    let mut state: Option<Json> = None;
    let mut rest = events;
    let mut sizes = sizes.iter().cycle();
    loop {
        let size = *sizes.next().unwrap();
        let (piece, after) = rest.split_at(size.min(rest.len()));
        let as_of = piece
            .first()
            .and_then(|event| event.seq.0.checked_sub(1))
            .map(Seq);
        let read: Vec<_> = piece
            .iter()
            .filter(|event| unit.reads(&event.kind))
            .cloned()
            .collect();
        let stretch = Stretch {
            state: state.as_ref(),
            as_of,
            events: &read,
            end: piece.last().map(|event| event.seq),
            cancel: &cancel,
        };
        state = Some(unit.fold(stretch).await?);
        rest = after;
        if rest.is_empty() {
            return Ok(state.unwrap());
        }
    }
}

/// Numbers that look as if they came from chance, the same each time.
fn sizes(seed: usize) -> Vec<usize> {
    (1..20).map(|at| 1 + (seed * 31 + at * 17) % 37).collect()
}

#[tokio::test]
async fn every_projection_of_every_log_is_upstreams() {
    let crafted = cases(&root().join("tests/conformance/session"));
    assert!(crafted.len() >= 55, "only {} crafted cases", crafted.len());
    let recorded = recorded().map(|dir| cases(&dir)).unwrap_or_default();
    println!(
        "{} crafted and {} recorded cases",
        crafted.len(),
        recorded.len()
    );
    let mut units_of_all = Vec::new();
    for name in ["session-stats", "token-usage", "context-pressure"] {
        let mounted = mounted(name, official(name).await, "{}").await;
        units_of_all.extend(units(&mounted, "{}", None));
    }
    let (mut values, mut none) = (0, 0);
    for (number, case) in crafted.iter().chain(&recorded).enumerate() {
        for unit in &units_of_all {
            let of = format!("{}: {}", case.name, unit.key());
            let want = case.expected.get(unit.key()).unwrap();
            let whole = fold(&**unit, &case.events, &[usize::MAX]).await;
            if want.get("ok").and_then(Value::bool) != Some(true) {
                assert!(matches!(whole, Err(Fault::NoValue(_))), "{of}: {whole:?}");
                none += 1;
                continue;
            }
            let want = want.get("value").unwrap();
            let state = whole.unwrap_or_else(|fault| panic!("{of}: {fault:?}"));
            assert_eq!(
                want.get("stateVersion").unwrap().u64(),
                Some(unit.version()),
                "{of}"
            );
            assert!(
                state.value().same(want.get("state").unwrap()),
                "{of}: {state:?}"
            );
            let cancel = CancellationToken::new();
            let view = unit.view(&state, None, &cancel).await.unwrap();
            assert!(
                view.value().same(want.get("view").unwrap()),
                "{of}: {view:?}"
            );
            for sizes in [vec![1], vec![7], sizes(number), sizes(number + 1)] {
                // One by one takes long where there are many.
                if sizes == [1] && case.events.len() > 2_000 {
                    continue;
                }
                let cut = fold(&**unit, &case.events, &sizes).await.unwrap();
                assert_eq!(cut, state, "{of}: cut by {sizes:?}");
            }
            values += 1;
        }
    }
    println!("{values} values, {none} logs without one");
    assert!(values > 150);
}
