//! dsh-http
