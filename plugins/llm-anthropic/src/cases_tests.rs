//! The recorded calls, as the other adapters have them.

use adapter_support::testing::{Framed, cases, chunks_are_as_recorded, requests_are_as_recorded};

use super::Messages;

#[test]
fn requests_are_those_of_the_recordings() {
    requests_are_as_recorded::<Framed<Messages>>(&cases("anthropic-messages", 15));
}

#[test]
fn chunks_are_those_of_the_recordings_however_the_body_is_cut() {
    chunks_are_as_recorded::<Framed<Messages>>(&cases("anthropic-messages", 15));
}
