//! dsh-sandbox
