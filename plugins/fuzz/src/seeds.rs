//! Where targets begin: the recorded bodies of `tests/conformance/llm`, and every input that once broke something.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Target;
use crate::random::Random;

/// Longer seeds teach nothing more and slow every mutation of them.
const MAX_SEED: usize = 16 * 1024;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The kept inputs and the seeds that fit a target, in an order that does not change.
///
/// # Panics
/// Where the recorded cases are not there.
#[must_use]
pub fn of(target: &Target) -> Vec<Vec<u8>> {
    let mut seeds = files(&root().join("corpus").join(target.name), |_| true);
    let cases = root().join("../../tests/conformance/llm");
    for protocol in target.protocols {
        let bodies = files(&cases.join(protocol), |path| path.ends_with("response.sse"));
        assert!(
            bodies.len() > 8,
            "only {} bodies of {protocol}",
            bodies.len()
        );
        // Cut somehow, and with status 200 and a clean end; and as an error's body.
        let head: &[u8] = if target.name == "sse" { &[7] } else { &[7, 2] };
        seeds.extend(bodies.iter().map(|body| [head, body].concat()));
        if target.name != "sse" {
            seeds.extend(bodies.iter().map(|body| [&[7, 0xa2], &body[..]].concat()));
        }
    }
    match target.name {
        "json" => {
            for protocol in crate::ALL {
                seeds.extend(files(&cases.join(protocol), |path| {
                    path.ends_with("request.json")
                }));
            }
        }
        // Programs: any bytes are one.
        "requests" => {
            let mut random = Random::new(1);
            seeds.extend((0..64).map(|_| {
                let length = 20 + random.below(400);
                (0..length).map(|_| (random.number() >> 56) as u8).collect()
            }));
        }
        _ => {}
    }
    seeds.retain(|seed| seed.len() <= MAX_SEED);
    seeds.sort();
    seeds.dedup();
    seeds
}

/// Files of a folder and of those in it.
fn files(folder: &Path, wanted: impl Fn(&Path) -> bool + Copy) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if wanted(&path) {
            found.extend(fs::read(&path));
        }
    }
    found
}
