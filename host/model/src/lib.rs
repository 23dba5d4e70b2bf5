//! From a prepared call to a stream of chunks.
//!
//! An *adapter* knows a provider's protocol and nothing else: it says what is to
//! be sent and makes chunks of the bytes that come back. It has no socket, no
//! clock and no credential. A *route* is a provider as one adapter serves it;
//! a [`RouteGrant`] says where its exchanges may go and with which credential.
//! [`Models`] knows the routes; [`Models::prepare`] completes a call's
//! configuration; [`PreparedCall::stream`] runs one attempt as an [`LlmStream`].
//!
//! What it promises:
//!
//! - **One end.** Every stream ends with exactly one `finish` chunk, whatever the
//!   adapter, the network or the caller does, and nothing comes after it.
//! - **Who was first.** A silent provider is `TIMEOUT`, a caller's cancel is
//!   `aborted`, and only then does the adapter's or the network's failure count.
//! - **Only where it was granted.** The origin is checked before the credential
//!   is looked up, and the credential is put in on the way out: the adapter never
//!   holds it, and no error shows it.
//! - **As slow as its reader.** Bytes are taken from the socket when the next
//!   chunk is asked for.
//! - **Logged or auxiliary.** A [`Request`] is made of a session's
//!   [`Messages`](dsh_session::Messages), or says what it is for.
//!
//! One attempt is one call: retrying is the agent's, by the route's
//! [`RetryPolicy`]. The rules are those of `spec/llm.md`.

#![forbid(unsafe_code)]

mod adapter;
mod assembler;
mod check;
mod component;
mod credential;
mod error;
mod exchange;
mod failure;
mod finish;
mod history;
mod info;
mod models;
mod outgoing;
mod redact;
mod registration;
mod request;
mod retry;
mod route;
mod usage;

pub use adapter::{Adapter, Attempt};
pub use assembler::BlockAssembler;
pub use check::{Served, check};
pub use component::ComponentAdapter;
pub use credential::{Credentials, Secret, check_key};
pub use dsh_plugin::CallContext;
pub use dsh_plugin::api::{
    Action, CallConfig, Emission, EndCause, GenerateRequest, HttpRequest, Part, Prepared,
};
pub use error::ModelError;
pub use exchange::LlmStream;
pub use failure::{LlmFailure, code};
pub use finish::FinishReason;
pub use info::{Effort, ModelInfo, Reasoning};
pub use models::{AdapterDefaults, Models, PreparedCall, Provider, Refresh};
pub use outgoing::{Gateway, NoPictures, Pictures, RouteGrant};
pub use registration::Registration;
pub use request::Request;
pub use retry::{Backoff, RetryPolicy};
pub use route::Route;
pub use usage::TokenUsage;
