//! The server's HTTP/2: streams of one connection are answered side by side.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use tokio::sync::{mpsc, watch};

use crate::answer::{Answer, End, Step};
use crate::serve::{MAX_BODY, Recorded, Shared, Wire};

/// What a stream asks of its connection.
enum Order {
    /// No stream after this one.
    Leave,
    /// Closed at once.
    Cut,
}

pub(crate) async fn connection(
    stream: impl Wire,
    shared: &Arc<Shared>,
    gate: watch::Receiver<u64>,
    number: u64,
) -> io::Result<()> {
    stream.tcp().set_nodelay(true)?;
    let mut connection = h2::server::handshake(stream).await.map_err(broken)?;
    let (order, mut orders) = mpsc::unbounded_channel();
    let mut before = 0;
    let mut streams = tokio::task::JoinSet::new();
    loop {
        let (request, respond) = tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(accepted) => accepted.map_err(broken)?,
                None => return Ok(()),
            },
            Some(order) = orders.recv() => match order {
                Order::Leave => {
                    connection.graceful_shutdown();
                    continue;
                }
                // Dropping the connection closes it without a word.
                Order::Cut => return Ok(()),
            },
        };
        let (shared, gate, order) = (Arc::clone(shared), gate.clone(), order.clone());
        let nth = before;
        before += 1;
        streams.spawn(async move {
            // A client that goes away is part of what tests do.
            let _ = serve(request, respond, &shared, gate, &order, (number, nth)).await;
        });
    }
}

async fn serve(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    shared: &Shared,
    gate: watch::Receiver<u64>,
    order: &mpsc::UnboundedSender<Order>,
    (connection, before): (u64, u64),
) -> Result<(), h2::Error> {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let piece = piece?;
        incoming.flow_control().release_capacity(piece.len())?;
        if body.len() + piece.len() > MAX_BODY {
            return Ok(());
        }
        body.extend_from_slice(&piece);
    }
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let recorded = Recorded {
        method: head.method.to_string(),
        path: path.to_owned(),
        headers: headers.collect(),
        body,
        connection,
        before,
    };
    let answer = shared.answer(&recorded);
    play(respond, answer, shared, gate, order).await
}

async fn play(
    mut respond: SendResponse<Bytes>,
    answer: Answer,
    shared: &Shared,
    mut gate: watch::Receiver<u64>,
    order: &mpsc::UnboundedSender<Order>,
) -> Result<(), h2::Error> {
    if let Some(delay) = answer.delay {
        tokio::time::sleep(delay).await;
    }
    if answer.silent {
        match answer.end {
            End::Reset => respond.send_reset(Reason::INTERNAL_ERROR),
            End::Cut => drop(order.send(Order::Cut)),
            _ => {}
        }
        return gone(|context| respond.poll_reset(context)).await;
    }
    if answer.end == End::Leave {
        let _ = order.send(Order::Leave);
    }
    let mut head = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        head = head.header(name, value);
    }
    let head = head.body(()).expect("a test's answer can be sent");
    let mut stream = respond.send_response(head, false)?;
    let mut gates = 0;
    for step in answer.steps {
        match step {
            Step::Bytes(bytes) => send(&mut stream, bytes.into(), shared).await?,
            Step::Pause(time) => tokio::time::sleep(time).await,
            Step::Gate => {
                gates += 1;
                let _ = gate.wait_for(|opened| *opened >= gates).await;
            }
        }
    }
    match answer.end {
        End::Clean | End::Leave => return stream.send_data(Bytes::new(), true),
        End::Reset => stream.send_reset(Reason::INTERNAL_ERROR),
        End::Cut => drop(order.send(Order::Cut)),
        End::Stall => {}
    }
    gone(|context| stream.poll_reset(context)).await
}

/// As much at a time as the client lets through.
async fn send(
    stream: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    shared: &Shared,
) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let ready = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(ready) = ready else {
            return Ok(());
        };
        let piece = bytes.split_to(ready?.min(bytes.len()));
        let size = piece.len() as u64;
        stream.send_data(piece, false)?;
        shared.written.fetch_add(size, Ordering::SeqCst);
    }
    Ok(())
}

/// Waits until the client resets the stream or goes away.
async fn gone(
    poll: impl FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Result<Reason, h2::Error>>,
) -> Result<(), h2::Error> {
    std::future::poll_fn(poll).await.map(|_| ())
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::other(error)
}
