//! mock-provider
