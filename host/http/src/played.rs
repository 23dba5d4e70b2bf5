//! A client that plays recordings in place of sending.
//!
//! What it is for: an adapter's author has a response in a file and no server.
//! Everything above the socket is the same code: what may not be sent is refused
//! here as it is there, and a body is read, counted and cut as one from a
//! connection is. Nothing is ever sent, and no time is waited for: a recording
//! that leaves its connection open is a time-out at once.

use std::collections::VecDeque;

use bytes::Bytes;
use reqwest::Url;

use crate::client::shown_redirect;
use crate::error::HttpError;
use crate::origin::Origin;
use crate::request::{Body, Policy, Request, Response, Source};

/// An answer as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// 100..=999.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, as the pieces in which it arrived.
    pub pieces: Vec<Bytes>,
    /// What became of the connection.
    pub ending: Ending,
}

/// How a recorded body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As its framing said it would.
    Clean,
    /// The connection broke.
    Cut,
    /// It stayed open, and nothing came any more.
    Stall,
}

/// Answers in place of a network.
pub(crate) type Player = dyn Fn(&Request) -> Recording + Send + Sync;

/// What is left of a recorded body.
pub(crate) struct Rest {
    pub(crate) pieces: VecDeque<Bytes>,
    pub(crate) ending: Ending,
}

impl Rest {
    /// As a connection would have it.
    pub(crate) fn next(&mut self, origin: &Origin) -> Result<Option<Bytes>, HttpError> {
        let origin = || origin.to_string();
        match (self.pieces.pop_front(), self.ending) {
            (Some(piece), _) => Ok(Some(piece)),
            (None, Ending::Clean) => Ok(None),
            (None, Ending::Cut) => Err(HttpError::Transport {
                origin: origin(),
                reason: "the recording says that the connection was reset".to_owned(),
            }),
            (None, Ending::Stall) => Err(HttpError::Timeout {
                origin: origin(),
                reason: "the recording leaves the connection open and sends nothing more"
                    .to_owned(),
            }),
        }
    }
}

/// The answer to a request that might have been sent.
pub(crate) fn answer(
    player: &Player,
    request: &Request,
    policy: &Policy,
    (url, origin): (&Url, Origin),
) -> Response {
    let recording = player(request);
    let location = recording
        .headers
        .iter()
        .find(|(name, _)| name == "location");
    Response {
        status: recording.status,
        redirect: location.and_then(|(_, to)| shown_redirect(recording.status, to, url)),
        headers: recording.headers,
        body: Body {
            inner: Source::Played(Rest {
                pieces: recording.pieces.into(),
                ending: recording.ending,
            }),
            origin,
            left: policy.max_body,
            cap: policy.max_body,
        },
    }
}
