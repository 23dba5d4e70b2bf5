//! The crash states of the store's operations; `cargo xtask torture` takes fifty times as many.

use dsh_torture::script::{Dose, Tally, run};

fn sound(tally: &Tally) {
    let failures = tally.failures.join("\n");
    assert!(tally.failures.is_empty(), "{tally:?}\n{failures}");
}

#[test]
fn every_crash_state_recovers_to_what_was_flushed() {
    let distinct = 10_000;
    let halves =
        [1, 1_000_001].map(|seed| std::thread::spawn(move || run(seed, Dose::Every { distinct })));
    let tallies = halves.map(|half| half.join().unwrap());
    tallies.iter().for_each(sound);
    assert!(tallies.iter().map(|tally| tally.distinct).sum::<u64>() >= 20_000);
}

#[test]
fn many_orders_of_steps_recover_too() {
    let dose = Dose::Thin {
        scripts: 60,
        one_in: 100,
    };
    let tally = run(2_000_001, dose);
    sound(&tally);
    assert_eq!(tally.scripts, 60);
}
