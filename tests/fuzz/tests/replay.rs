//! The test run's share of fuzzing: every seed, every input that once broke something, some mutations.

use dsh_fuzz::replay::replay;

#[track_caller]
fn run(name: &str, mutations: usize) {
    replay(&dsh_fuzz::target(name).expect("a target"), mutations);
}

#[test]
fn the_frame_scanner_partitions_any_bytes() {
    run("frames", 2_000);
}

#[test]
fn the_line_scanner_accepts_what_stays_accepted() {
    run("lines", 2_000);
}

#[test]
fn a_normal_form_is_valid_final_and_means_the_same() {
    run("normaliser", 20_000);
}

#[test]
fn the_surface_is_what_the_rules_say() {
    run("surface", 2_000);
}

#[test]
fn what_is_read_of_a_lock_is_sound_and_is_written_as_it_was() {
    run("lock", 5_000);
}

#[test]
fn any_log_opens_to_a_prefix_and_repairs_once() {
    run("repair", 1_000);
}
