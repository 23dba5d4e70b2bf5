//! The frame scanner (`spec/session.md` §9.3): it partitions any bytes, and a cut changes nothing before it.

use dsh_store::frame::{self, Frames};

/// More than any sound seed holds; a few bytes can ask for far more.
const LIMIT: usize = 1 << 20;

pub(crate) fn check(bytes: &[u8]) {
    let frames = frame::scan(bytes);
    partition(bytes, &frames);
    for at in &frames.complete {
        let one = &bytes[at.start..at.end];
        assert_eq!(
            frame::scan(one).complete.len(),
            1,
            "a frame is one by itself"
        );
        let whole = frame::decode(one, LIMIT);
        let Ok(plaintext) = whole else { continue };
        assert!(plaintext.len() <= LIMIT);
        // libzstd takes a wrong size in the header from one of its two ways of decoding, where the last block is empty.
        let torn = frame::decode_torn(one);
        assert!(
            torn == plaintext || torn.is_empty(),
            "whole and torn decoding differ"
        );
        for cut in [one.len() / 3, one.len() / 2, one.len() - 1] {
            let torn = frame::decode_torn(&one[..cut]);
            assert!(
                plaintext.starts_with(&torn),
                "a cut frame gave what is not in it"
            );
        }
        if !plaintext.is_empty() {
            let again = frame::encode(&plaintext).expect("encoding works");
            assert_eq!(
                frame::decode(&again, LIMIT).expect("ours is sound"),
                plaintext
            );
            assert_eq!(frame::scan(&again).complete.len(), 1);
        }
    }
    for cut in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let shorter = frame::scan(&bytes[..cut]);
        partition(&bytes[..cut], &shorter);
        assert!(
            frames.complete.starts_with(&shorter.complete),
            "a cut changed a frame before it"
        );
    }
}

/// Complete frames lie end to end from byte 0; then comes the end, a torn frame, or what is none.
fn partition(bytes: &[u8], frames: &Frames) {
    let mut at = 0;
    for frame in &frames.complete {
        assert_eq!(frame.start, at);
        assert!(frame.end > frame.start && frame.end <= bytes.len());
        at = frame.end;
    }
    match (frames.torn, &frames.invalid) {
        (None, None) => assert_eq!(at, bytes.len()),
        (Some(torn), None) => assert!(torn == at && at < bytes.len()),
        (None, Some(invalid)) => {
            assert!(invalid.frame_start == at && invalid.offset >= at);
            assert!(invalid.offset < bytes.len());
        }
        (Some(_), Some(_)) => panic!("torn and invalid at once"),
    }
}
