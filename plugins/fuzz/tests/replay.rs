//! The test run's share of fuzzing: every seed, every input that once broke something, some mutations.

use adapter_fuzz::replay::replay;

#[track_caller]
fn run(name: &str, mutations: usize) {
    replay(&adapter_fuzz::target(name).expect("a target"), mutations);
}

#[test]
fn events_are_those_of_the_rules_however_they_are_cut() {
    run("sse", 1_000);
}

#[test]
fn what_is_read_as_json_is_json() {
    run("json", 2_000);
}

#[test]
fn messages_of_any_shape_are_refused_or_make_json() {
    run("requests", 1_500);
}

#[test]
fn deepseek_makes_the_same_chunks_however_a_body_is_cut() {
    run("deepseek", 500);
}

#[test]
fn chat_completions_make_the_same_chunks_however_a_body_is_cut() {
    run("openai-completions", 500);
}

#[test]
fn responses_make_the_same_chunks_however_a_body_is_cut() {
    run("openai-responses", 500);
}

#[test]
fn messages_make_the_same_chunks_however_a_body_is_cut() {
    run("anthropic-messages", 500);
}
