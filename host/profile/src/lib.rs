//! dsh-profile
