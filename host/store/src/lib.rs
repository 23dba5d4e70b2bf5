//! dsh-store
