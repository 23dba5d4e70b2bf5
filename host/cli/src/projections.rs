//! The row `session-projection`: the read models of a run, those of the host and
//! those of rows that export `projection`, and where their states are kept.

use std::sync::Arc;
use std::time::Duration;

use dsh_agent::projection::{ComponentUnit, Keep, Projections, Registry};
use dsh_agent::{Log, StartSource};
use dsh_profile::{Composition, Row};
use dsh_store::projcache::{ProjectionCache, WRITE_EVERY_EVENTS, WRITE_INTERVAL, WritePoints};
use serde_json::Value;

use crate::boot::{Composed, Mount};
use crate::exit::Failure;
use crate::report;
use crate::run::watch;

const ROW: &str = "session-projection";

/// Starts them; none where the row is disabled.
pub(crate) fn start(
    composed: &Composed,
    mounts: &[Mount],
    log: &Arc<Log>,
    source: StartSource,
) -> Result<Option<Arc<Projections>>, Failure> {
    let Some(row) = composed.rows.host(ROW) else {
        return Ok(None);
    };
    let (points, faults) = write_points(row);
    for fault in faults {
        composed.left_out.note(fault)?;
    }
    let header = log.read(|session| session.header().clone());
    let mut registry = Registry::host();
    let told = watch(log);
    for mount in mounts {
        let config = mount.row.config.to_string();
        let told = Some(Arc::clone(&told));
        for unit in ComponentUnit::all(&mount.mounted, &config, &header.id, told) {
            if let Err(reason) = registry.register(Arc::new(unit)) {
                composed.left_out.row(&mount.row, &reason)?;
            }
        }
    }
    let keep = Keep::new(
        ProjectionCache::at(composed.place.home.path()),
        header,
        source == StartSource::Resume,
        points,
        |why| report::line(format_args!("row {ROW}: views are not kept: {why}")),
    );
    Ok(Some(Projections::start(
        Arc::clone(log),
        registry,
        Some(keep),
    )))
}

/// `writeEveryEvents` and `writeIntervalMs`, from 1 on; upstream's where the row says
/// none or something else, and then a line for it.
fn write_points(row: &Row) -> (WritePoints, Vec<String>) {
    let mut faults = Vec::new();
    let mut number = |key: &str, usual: u64| match row.config.get(key).map(Value::as_u64) {
        None => usual,
        Some(Some(number)) if number > 0 => number,
        // Without the value: an expression may have put a secret there.
        Some(_) => {
            let place = match row.patched_by.last().unwrap_or(&row.origin) {
                layer if layer.contains('/') => format!(" in {layer}"),
                _ => String::new(),
            };
            faults.push(format!(
                "row {ROW}: {key} is no whole number from 1 on, so {usual} counts; mend the row{place}"
            ));
            usual
        }
    };
    let interval = u64::try_from(WRITE_INTERVAL.as_millis()).unwrap_or(u64::MAX);
    let every = number("writeEveryEvents", WRITE_EVERY_EVENTS);
    let interval = Duration::from_millis(number("writeIntervalMs", interval));
    (WritePoints::new(every, interval), faults)
}

/// What of the row's configuration does not count, a line each.
pub(crate) fn faults(rows: &Composition) -> Vec<String> {
    let row = rows.host(ROW);
    row.map(|row| write_points(row).1).unwrap_or_default()
}
