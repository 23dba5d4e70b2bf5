use adapter_support::testing::{Framed, cases, chunks_are_as_recorded, requests_are_as_recorded};

use crate::Responses;

const API: &str = "openai-responses";

#[test]
fn requests_are_as_upstream_sends_them() {
    requests_are_as_recorded::<Framed<Responses>>(&cases(API, 11));
}

#[test]
fn chunks_are_as_recorded_however_the_body_is_cut() {
    chunks_are_as_recorded::<Framed<Responses>>(&cases(API, 11));
}
