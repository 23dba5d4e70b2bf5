//! The one HTTP client of `dsh`.
//!
//! Components never open a socket: they say what is to be sent, and this crate
//! sends it, where their owner allowed and nowhere else. A request names a URL;
//! a [`Policy`] names the origins that were granted. What it promises:
//!
//! - **Only a granted origin.** [`Origin`] is scheme, host and port, compared
//!   exactly. URLs that could be read in two ways (credentials before the host,
//!   a trailing dot, another scheme) are refused, not repaired.
//! - **Only an address of that reach.** A name is resolved once, by the
//!   connector itself, and each address is held against [`Reach`]: a public
//!   origin never leads to loopback, to a private network or to a link-local
//!   metadata service, whatever the name server says.
//! - **Nothing follows unasked.** No redirect unless the policy counts some, and
//!   each hop is checked like the first; no cookie; no proxy but those of
//!   [`Proxies`]. A request is sent again only where the server says that it did
//!   not look at it, or where a connection that had served others was gone.
//! - **Bounded.** Connecting has a time limit, a body a size, a request a
//!   deadline if the policy gives one.
//! - **Silent about secrets.** No error and no `Debug` of this crate holds a
//!   header's value or more of a URL than its origin.
//!
//! A [`Client`] costs nothing until its first request, and trust roots are read
//! before the first `https` request only.
#![forbid(unsafe_code)]

mod address;
mod check;
mod client;
mod error;
mod header;
mod origin;
mod played;
mod proxy;
mod request;
mod resolve;
mod reuse;

pub use address::{Reach, Scope, scope};
pub use bytes::Bytes;
pub use check::check;
pub use client::{Client, ClientConfig};
pub use error::HttpError;
pub use header::Header;
pub use origin::Origin;
pub use played::{Ending, Recording};
pub use proxy::Proxies;
pub use request::{Allowed, Body, Policy, Request, Response};
