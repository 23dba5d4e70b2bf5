//! `docs/events/`, written by who knows the table: a test of `dsh-agent`, which
//! otherwise compares it.

use anyhow::Result;

use crate::process;

/// Writes the pages that are stale.
pub(crate) fn write() -> Result<()> {
    let test = "dispatch::docs::tests::docs_events_is_what_the_table_says";
    let arguments = [
        "test",
        "--quiet",
        "--locked",
        "-p",
        "dsh-agent",
        "--lib",
        "--",
    ];
    process::run(
        process::cargo()
            .args(arguments)
            .args(["--exact", test])
            .env("DSH_WRITE_EVENTS", "1"),
    )
}
