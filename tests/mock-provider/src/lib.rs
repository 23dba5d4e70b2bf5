//! A loopback HTTP server that plays recorded provider answers, for tests.
//!
//! ```no_run
//! use mock_provider::{Answer, Mock};
//! let mock = Mock::start(vec![Answer::sse("data: [DONE]\n\n").split(&[3])]);
//! // ... send requests to mock.base_url() ...
//! assert_eq!(mock.requests().len(), 1);
//! ```
//!
//! It runs on a thread of its own, so that synchronous tests can use it too.
//! Bodies are sent in chunked encoding, a chunk a piece, so that a client sees
//! the pieces that the test meant whatever the socket does with them. It is no
//! server for anything else: bodies with a length, a bound on all that it keeps.
//! [`Mock::secure`] is the same over TLS, with a certificate of a test's own
//! [`Authority`], [`Mock::h2`] speaks HTTP/2 there, and [`Mock::proxy`] is a proxy.
//! Dropping a [`Mock`] ends its thread and its connections.

#![forbid(unsafe_code)]

mod answer;
mod authority;
mod h2;
mod serve;
mod speech;

pub use answer::{Answer, End, Step};
pub use authority::Authority;
pub use serve::{Mock, Recorded};
pub use speech::{Protocol, Speech};
