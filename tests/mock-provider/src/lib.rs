//! A loopback HTTP server that plays recorded provider answers.
