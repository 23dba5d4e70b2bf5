//! Where targets begin: the conformance data of the log, and every input that once broke something.

use std::fs;
use std::path::{Path, PathBuf};

use dsh_store::frame;

use crate::{Takes, Target};

/// Longer seeds teach nothing more and slow every mutation of them.
const MAX_SEED: usize = 16 * 1024;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Where inputs are kept that once broke a target.
pub fn kept(target: &Target) -> PathBuf {
    root().join("corpus").join(target.name)
}

/// The kept inputs and the seeds that fit a target, in an order that does not change.
pub fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = files(&kept(target));
    let logs = logs();
    for (is_framed, log) in &logs {
        match target.takes {
            Takes::Frames if *is_framed => seeds.push(log.clone()),
            Takes::Lines if !is_framed => seeds.push(log.clone()),
            Takes::Lines => seeds.push(plain(log)),
            Takes::Json => seeds.extend(lines(&if *is_framed { plain(log) } else { log.clone() })),
            Takes::Log => {
                // As it is, and its lines under a header of the target's own.
                seeds.push([&[u8::from(*is_framed)], &log[..]].concat());
                let text = if *is_framed { plain(log) } else { log.clone() };
                if let Some(end) = text.iter().position(|&b| b == b'\n') {
                    seeds.push([&[2], &text[end + 1..]].concat());
                    seeds.push([&[3], &text[end + 1..]].concat());
                    let split: Vec<u8> = text[end + 1..]
                        .iter()
                        .flat_map(|&b| if b == b'\n' { vec![b, 0xff] } else { vec![b] })
                        .collect();
                    seeds.push([&[4 * 9 + 3], &split[..]].concat());
                }
            }
            _ => {}
        }
    }
    if target.takes == Takes::Lock {
        let example = root().join("../../docs/schema/dsh.lock");
        let example = fs::read(&example).unwrap_or_else(|e| panic!("{}: {e}", example.display()));
        // Without its comments, which nothing can be learnt from.
        let lines = example.split_inclusive(|&b| b == b'\n');
        seeds.push(
            lines
                .filter(|line| !line.starts_with(b"#"))
                .flatten()
                .copied()
                .collect(),
        );
    }
    if target.takes == Takes::Drafts {
        seeds.extend(programs());
    }
    seeds.retain(|seed| seed.len() <= MAX_SEED);
    seeds.sort();
    seeds.dedup();
    seeds
}

/// Programs of drafts that get somewhere: appends, then replaces of what is there.
fn programs() -> Vec<Vec<u8>> {
    let append = |kind: u8, detail: u8| [kind | 1 << 3, detail];
    let replace =
        |kind: u8, detail: u8, start: u8, end: u8| [kind | 2 << 3 | 3 << 5, detail, start, end];
    let mut long = Vec::new();
    for n in 0..40 {
        long.extend(append(n % 7, n));
        if n % 5 == 4 {
            long.extend(replace(n % 4, n, n - 3, n - 1));
        }
    }
    vec![
        [append(0, 1), append(2, 1), append(4, 1)].concat(),
        [&append(0, 1)[..], &append(2, 2), &replace(0, 3, 0, 1)].concat(),
        [&append(4, 1)[..], &replace(4, 4, 0, 0)].concat(),
        long,
    ]
}

/// The logs of the conformance data; with whether they are frames.
fn logs() -> Vec<(bool, Vec<u8>)> {
    let cases = root().join("../conformance/session");
    let mut dirs: Vec<PathBuf> = fs::read_dir(&cases)
        .unwrap_or_else(|e| panic!("{}: {e}", cases.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    dirs.sort();
    let mut logs = Vec::new();
    for dir in dirs {
        for (name, is_framed) in [("input.jsonl", false), ("input.jsonl.zstd", true)] {
            if let Ok(log) = fs::read(dir.join(name)) {
                logs.push((is_framed, log));
            }
        }
    }
    assert!(
        logs.len() > 100,
        "only {} logs in {}",
        logs.len(),
        cases.display()
    );
    logs
}

fn files(dir: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .collect()
}

fn plain(log: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for at in frame::scan(log).complete {
        text.extend(frame::decode(&log[at.start..at.end], MAX_SEED).unwrap_or_default());
    }
    text
}

fn lines(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    text.split(|&b| b == b'\n').map(<[u8]>::to_vec)
}
