//! The row `session-projection`: the read models of a run, those of the host and
//! those of rows that export `projection`, and where their states are kept.

use std::sync::Arc;
use std::time::Duration;

use dsh_agent::projection::{ComponentUnit, Keep, Projections, Registry};
use dsh_agent::{Log, StartSource};
use dsh_profile::Row;
use dsh_store::projcache::{ProjectionCache, WRITE_EVERY_EVENTS, WRITE_INTERVAL, WritePoints};

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
    let points = write_points(row)?;
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
/// none.
fn write_points(row: &Row) -> Result<WritePoints, Failure> {
    let number = |key: &str, usual: u64| match row.config.get(key) {
        None => Ok(usual),
        Some(written) => written
            .as_u64()
            .filter(|number| *number > 0)
            .ok_or_else(|| {
                Failure::of(format_args!(
                    "row {ROW}: {key} is {written}; set it to a whole number from 1 on"
                ))
            }),
    };
    let interval = u64::try_from(WRITE_INTERVAL.as_millis()).unwrap_or(u64::MAX);
    Ok(WritePoints::new(
        number("writeEveryEvents", WRITE_EVERY_EVENTS)?,
        Duration::from_millis(number("writeIntervalMs", interval)?),
    ))
}
