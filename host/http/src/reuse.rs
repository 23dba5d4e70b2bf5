//! Whether a request went over a connection that had served another before.
//!
//! A server may close an idle connection in the moment in which the next request is written to
//! it, or a router may have forgotten it. Nobody has done anything wrong then, and a call must
//! not fail for it: such a request is sent once more, over a new connection. That is safe
//! enough to be done without being asked: not a byte of an answer came, so nothing that anyone
//! has seen is doubled; and a server that did take the request before it broke off answers it
//! twice at the worst, which is what retrying a broken call does anyway. A request over a
//! connection of its own that breaks has told something about the server, and is not sent again.
//!
//! The client library does not tell which of the two it was; but it makes a connection inside
//! of the request that waits for it, so the connector can leave a mark there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static OPENED: Arc<AtomicBool>;
}

/// Runs one request; true beside what it came to if no connection was opened for it.
pub(crate) async fn watch<T>(request: impl Future<Output = T>) -> (T, bool) {
    let opened = Arc::new(AtomicBool::new(false));
    let done = OPENED.scope(Arc::clone(&opened), request).await;
    (done, !opened.load(Ordering::Relaxed))
}

/// Marks the request for which a connection is opened.
#[derive(Clone)]
pub(crate) struct Marking;

impl<S> Layer<S> for Marking {
    type Service = Marked<S>;

    fn layer(&self, inner: S) -> Marked<S> {
        Marked(inner)
    }
}

/// A connector that leaves the mark.
#[derive(Clone)]
pub(crate) struct Marked<S>(S);

impl<R, S: Service<R>> Service<R> for Marked<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        // A connection that is made ahead of need has no request.
        let _ = OPENED.try_with(|opened| opened.store(true, Ordering::Relaxed));
        self.0.call(request)
    }
}
