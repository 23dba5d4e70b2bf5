//! Opens one log and says what that took: `open [inspect|messages|resume] FILE`, in a process of its own, so that the
//! peak of its memory is that of the opening.
//!
//! Prints one line: events, surface nodes, milliseconds, peak resident MiB (`VmHWM`).

use std::path::PathBuf;
use std::time::Instant;

use dsh_store::{Store, StoreConfig, Target};

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse().ok())
        .unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let path = PathBuf::from(
        args.next()
            .ok_or("usage: open [inspect|messages|resume] FILE")?,
    );
    let dir = path.parent().ok_or("no directory")?;
    let root = dir.parent().and_then(|project| project.parent());
    let store = Store::open(StoreConfig::new(root.ok_or("no root")?))?;
    let begun = Instant::now();
    let (events, detail) = match &*what {
        "inspect" => {
            let found = store.inspect(&Target::File(path))?;
            assert_eq!(found.damage, None);
            (found.log.len(), format!("{} closers", found.closers.len()))
        }
        _ => {
            let id = dir.file_name().and_then(|name| name.to_str());
            let (mut session, writer) = store.resume(id.ok_or("no id")?, 0)?;
            let nodes = session.surface().nodes().len();
            let opened = begun.elapsed().as_secs_f64() * 1e3;
            if what == "messages" {
                let count = session.messages()?.len();
                println!("{count} messages after {opened:.1} ms");
            }
            drop(writer);
            (
                session.next_seq().0,
                format!("{nodes} nodes, open {opened:.1} ms"),
            )
        }
    };
    let took = begun.elapsed().as_secs_f64() * 1e3;
    println!(
        "{events} events, {detail}: {took:.1} ms, peak {:.1} MiB",
        peak_kib() as f64 / 1024.0
    );
    Ok(())
}
