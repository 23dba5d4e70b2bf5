//! Upstream's measured behaviour, case by case. The data is in `tests/conformance/session`; its README says what each
//! file means. Cases about frames, layouts and writing belong to the store.

mod cases;
mod damage;
mod files;
mod inbox;
mod projections;
mod sweeps;
mod tables;
mod titles;
