//! What must hold for any bytes: plain functions that panic when it does not.
//!
//! A target takes bytes and calls what people's logs go through (the frame scanner, the line scanner, the normaliser,
//! the surface fold, and repair), or their profiles: the lock of installed plugins. The test run replays seeds and a bounded number of mutations of them ([`replay`]);
//! `cargo xtask fuzz` drives the same functions guided by coverage. An input that once broke something is kept below
//! `corpus/TARGET` for ever.

pub mod corpus;
mod frames;
mod lines;
mod lock;
mod normaliser;
mod repair;
pub mod replay;
mod surface;

/// A named function over bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// As `cargo xtask fuzz` calls it.
    pub name: &'static str,
    /// Panics when an invariant breaks.
    pub run: fn(&[u8]),
    /// What its bytes look like, so that seeds fit.
    pub takes: Takes,
}

/// What a target's bytes look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A log of frames.
    Frames,
    /// A log of plain lines.
    Lines,
    /// One JSON text.
    Json,
    /// A profile's lock.
    Lock,
    /// A program of drafts.
    Drafts,
    /// One byte of kind, then a log of either sort.
    Log,
}

/// All targets.
pub const TARGETS: [Target; 6] = [
    Target {
        name: "frames",
        run: frames::check,
        takes: Takes::Frames,
    },
    Target {
        name: "lines",
        run: lines::check,
        takes: Takes::Lines,
    },
    Target {
        name: "normaliser",
        run: normaliser::check,
        takes: Takes::Json,
    },
    Target {
        name: "surface",
        run: surface::check,
        takes: Takes::Drafts,
    },
    Target {
        name: "repair",
        run: repair::check,
        takes: Takes::Log,
    },
    Target {
        name: "lock",
        run: lock::check,
        takes: Takes::Lock,
    },
];

/// The target of a name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
