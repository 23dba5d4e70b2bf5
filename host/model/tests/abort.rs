//! A caller who gives up gets away at once, wherever the call is, and leaves nothing: the
//! provider sees the connection go, and no task stays.

mod lines;

use std::time::Duration;

use mock_provider::{Answer, End, Mock};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use lines::{STOP, TEXT, drain, ending, open, plain, send_to, send_to_url, stream};

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

async fn until_no_task_is_left() {
    let metrics = tokio::runtime::Handle::current().metrics();
    until("no task is left", || metrics.num_alive_tasks() == 0).await;
}

/// Gives up after `reached`, and has to be done without anybody's help.
async fn give_up(origin: &str, reached: impl Future<Output = ()>) {
    let (mut stream, ctx) = open(send_to_url(origin), origin, "KEY", plain()).await;
    let cancel = async {
        reached.await;
        ctx.cancel.cancel();
    };
    let both = async { tokio::join!(drain(&mut stream), cancel) };
    let (chunks, ()) = tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .unwrap();
    assert_eq!(ending(&chunks), "aborted ABORTED");
    drop(stream);
}

#[tokio::test]
async fn while_it_connects_to_an_address_that_does_not_answer() {
    // A listener whose queue is full: the system answers no further SYN.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(stream) =
        tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        held.push(stream.unwrap());
    }
    let wait = tokio::time::sleep(Duration::from_millis(50));
    give_up(&format!("http://{address}"), wait).await;
    until_no_task_is_left().await;
}

#[tokio::test]
async fn while_it_waits_for_the_other_side_of_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("https://{}", listener.local_addr().unwrap());
    let (tell, told) = tokio::sync::oneshot::channel();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 16];
        stream.read_exact(&mut hello).await.unwrap();
        tell.send(()).unwrap();
        // To the end: the caller closes.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    });
    give_up(&origin, async { told.await.unwrap() }).await;
    tokio::time::timeout(Duration::from_secs(60), server)
        .await
        .expect("the connection is closed")
        .unwrap();
    until_no_task_is_left().await;
}

#[tokio::test]
async fn while_it_waits_for_the_head_and_for_the_body() {
    for answer in [
        Answer::silence(),
        Answer::sse("").ending(End::Stall),
        Answer::sse("half a li").ending(End::Stall),
        Answer::new(500, "half an err").ending(End::Stall),
    ] {
        let mock = Mock::start(vec![answer]);
        let arrived = until("the request is there", || !mock.requests().is_empty());
        give_up(&mock.base_url(), arrived).await;
        until("it was closed", || mock.closed() == 1).await;
        until_no_task_is_left().await;
    }
}

#[tokio::test]
async fn between_two_chunks() {
    let mock = Mock::start(vec![
        Answer::sse(format!("{TEXT}\n{TEXT}\n")).ending(End::Stall),
    ]);
    let (mut stream, ctx) = stream(send_to(&mock), &mock).await;
    assert_eq!(stream.next().await.unwrap().as_str(), TEXT);
    ctx.cancel.cancel();
    assert_eq!(ending(&drain(&mut stream).await), "aborted ABORTED");
    until("it was closed", || mock.closed() == 1).await;
    until_no_task_is_left().await;
}

/// The other way round: a call that ended well is not in a hurry.
#[tokio::test]
async fn a_call_that_came_to_its_end_leaves_its_connection_to_the_next() {
    let mock = Mock::with(|_| Answer::sse(format!("{TEXT}\n{STOP}\n")).piece(": bye\n\n"));
    let models = lines::models(send_to(&mock), &mock.base_url(), "KEY");
    for _ in 0..5 {
        let (mut stream, _) = lines::call(&models, plain()).await;
        assert_eq!(ending(&drain(&mut stream).await), "stop");
        drop(stream);
        // A step takes longer to be written down than the rest to be read.
        let metrics = tokio::runtime::Handle::current().metrics();
        until("what is left is of connection and pool", || {
            metrics.num_alive_tasks() <= 2
        })
        .await;
    }
    let connections: Vec<u64> = mock.requests().iter().map(|one| one.connection).collect();
    assert_eq!(connections, [0; 5]);
}
