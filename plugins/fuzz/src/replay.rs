//! Seeds and a bounded number of their mutations, the same ones every time.

use crate::random::Random;
use crate::{Target, seeds};

/// Pieces that move a reader somewhere else.
const PIECES: [&[u8]; 24] = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"data: ",
    b"data:",
    b"event: ",
    b": ",
    b"data: [DONE]\n\n",
    b"data: null\n\n",
    b"data: {}\n\n",
    b"{",
    b"}",
    b"[",
    b"\"",
    b"\\ud800",
    b"\\u0000",
    b"1e400",
    b"null",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\"index\":9007199254740993,",
    b"\"finish_reason\":\"stop\"",
    b"\"error\":{\"message\":\"no\"}",
];

/// One mutation of a seed, perhaps with another one's middle.
#[must_use]
pub fn mutated(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let end = (at + 1 + random.below(40)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            4 => {
                let end = (at + 1 + random.below(200)).min(bytes.len());
                let piece: Vec<u8> = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 if !other.is_empty() => {
                let from = random.below(other.len());
                let end = (from + 1 + random.below(300)).min(other.len());
                bytes.splice(at..at, other[from..end].iter().copied());
            }
            _ if at < bytes.len() => bytes[at] = PIECES[random.below(PIECES.len())][0],
            _ => {}
        }
    }
    bytes
}

/// Runs every seed, then `count` mutations of them.
pub fn replay(target: &Target, count: usize) {
    let seeds = seeds::of(target);
    for seed in &seeds {
        (target.run)(seed);
    }
    let mut random = Random::new(0x5eed);
    for _ in 0..count {
        let seed = &seeds[random.below(seeds.len())];
        let other = &seeds[random.below(seeds.len())];
        (target.run)(&mutated(seed, other, &mut random));
    }
}
