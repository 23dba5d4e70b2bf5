//! What the server says to one request.

use std::time::Duration;

/// One answer. Made by [`Answer::sse`] or [`Answer::new`] and changed by the rest.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Before the head.
    pub(crate) delay: Option<Duration>,
    /// The head never comes.
    pub(crate) silent: bool,
    /// The steps are what is sent: no head, no framing.
    pub(crate) raw: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
}

/// A part of a body.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sent as one chunk.
    Bytes(Vec<u8>),
    /// Nothing for so long.
    Pause(Duration),
    /// Nothing until [`crate::Mock::open_gate`] was called once more.
    Gate,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As its framing says.
    Clean,
    /// The connection is reset; over HTTP/2 the stream is. What the client did not
    /// read by then may be lost, so let a [`Step::Gate`] go before it.
    Reset,
    /// The connection is closed in the middle.
    Cut,
    /// As its framing says; and before the body the client is told that this is the
    /// connection's last answer (`connection: close`, over HTTP/2 GOAWAY).
    Leave,
    /// Nothing more comes, and the connection stays.
    Stall,
}

impl Answer {
    /// An answer with this body in one piece.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let steps = if body.is_empty() {
            Vec::new()
        } else {
            vec![Step::Bytes(body)]
        };
        Self {
            status,
            headers: Vec::new(),
            delay: None,
            silent: false,
            raw: false,
            steps,
            end: End::Clean,
        }
    }

    /// A `200` event stream with this body.
    #[must_use]
    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body).header("content-type", "text/event-stream")
    }

    /// These bytes in place of a head, a framing and a body; then the connection is
    /// closed, unless it [ends](Answer::ending) in another way. For HTTP/1.1 only.
    #[must_use]
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            raw: true,
            ..Self::new(0, bytes)
        }
        .ending(End::Cut)
    }

    /// No byte ever comes: the connection stays open, or is [reset](End::Reset) or
    /// [cut](End::Cut) where it is made to end so.
    #[must_use]
    pub fn silence() -> Self {
        Self {
            silent: true,
            ..Self::new(200, "")
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Cuts what there is of the body into pieces of these sizes, over and over;
    /// without a size above 0 it is left as it is.
    #[must_use]
    pub fn split(mut self, sizes: &[usize]) -> Self {
        let whole: Vec<u8> = self
            .steps
            .iter()
            .filter_map(|step| {
                if let Step::Bytes(bytes) = step {
                    Some(&bytes[..])
                } else {
                    None
                }
            })
            .flatten()
            .copied()
            .collect();
        let mut sizes = sizes
            .iter()
            .copied()
            .filter(|size| *size > 0)
            .collect::<Vec<_>>()
            .into_iter()
            .cycle();
        let mut rest = &whole[..];
        self.steps.clear();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap_or(rest.len()).min(rest.len()));
            self.steps.push(Step::Bytes(piece.to_vec()));
            rest = after;
        }
        self
    }

    /// Adds a step to the body.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds bytes to the body, as a piece.
    #[must_use]
    pub fn piece(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Bytes(bytes.into()))
    }

    /// Ends it like that.
    #[must_use]
    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Lets the head wait.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }
}
