//! `adapter-fuzz TARGET SECONDS`: mutates seeds without guidance, for machines that cannot build libFuzzer. An input that
//! breaks the target is written to the working directory.

#[cfg(target_family = "wasm")]
fn main() {}

#[cfg(not(target_family = "wasm"))]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;
    use std::time::{Duration, Instant};

    use adapter_fuzz::{random::Random, replay::mutated, seeds, target};

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (target, seconds) = match arguments.as_slice() {
        [name, seconds] => (target(name), seconds.parse().ok()),
        _ => (None, None),
    };
    let (Some(target), Some(seconds)) = (target, seconds) else {
        eprintln!("usage: adapter-fuzz TARGET SECONDS");
        return ExitCode::FAILURE;
    };
    let seeds = seeds::of(&target);
    let end = Instant::now() + Duration::from_secs(seconds);
    // Another order each time: this is for finding, not for repeating.
    let mut random = Random::new(u64::from(std::process::id()));
    let mut runs = 0u64;
    while Instant::now() < end {
        let (seed, other) = (random.below(seeds.len()), random.below(seeds.len()));
        let bytes = mutated(&seeds[seed], &seeds[other], &mut random);
        if std::panic::catch_unwind(|| (target.run)(&bytes)).is_err() {
            let path = format!("{}-{}-{runs}", target.name, std::process::id());
            match std::fs::write(&path, &bytes) {
                Ok(()) => eprintln!("the input is in {path}"),
                Err(e) => eprintln!("the input cannot be written to {path}: {e}; it is {bytes:?}"),
            }
            return ExitCode::FAILURE;
        }
        runs += 1;
    }
    eprintln!("{}: {runs} inputs, nothing broke", target.name);
    ExitCode::SUCCESS
}
