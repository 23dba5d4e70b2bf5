//! The test run's share of the soak.

use dsh_soak::soak;
use mock_provider::Protocol;

/// Requests: enough for each weather to come on some protocol.
const CALLS: u64 = 120;
const SEED: u64 = 6;
/// What may be resident beside what was after the warm-up, in KiB.
const GROWTH: u64 = 32 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_sound_and_nothing_is_left_over_after_calls_in_all_weathers() {
    let folder = tempfile::tempdir().unwrap();
    let tally = soak::run(&Protocol::ALL, CALLS, SEED, folder.path()).await;
    let tally = tally.unwrap_or_else(|error| panic!("seed {SEED}: {error:#}"));
    println!("{tally}");
    assert!(tally.calls >= CALLS && tally.turns.contains_key("completed"));
    let [warm, end] = tally.resident_kib;
    assert!(end < warm + GROWTH, "seed {SEED}: {tally}");
}
