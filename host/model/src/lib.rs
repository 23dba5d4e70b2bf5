//! dsh-model
