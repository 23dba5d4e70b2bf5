//! Upgrades of older event shapes, in memory. `spec/session.md` §3.1.
