//! The recorded cases of `tests/conformance/llm/openai-completions`.

use adapter_support::testing::{self, Framed};

use crate::stream::Completions;

const API: &str = "openai-completions";

#[test]
fn requests_are_as_recorded() {
    testing::requests_are_as_recorded::<Framed<Completions>>(&testing::cases(API, 24));
}

#[test]
fn chunks_are_as_recorded_however_the_body_is_cut() {
    testing::chunks_are_as_recorded::<Framed<Completions>>(&testing::cases(API, 24));
}

#[test]
fn the_catalogue_is_sound() {
    testing::the_catalogue_is_sound::<Completions>();
}
