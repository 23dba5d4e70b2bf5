//! Connections are kept, and a kept one that is gone costs nobody a call.

mod common;

use common::{ask, named, post, until};
use dsh_http::{Client, HttpError};
use mock_provider::{Answer, End, Mock, Step};

#[tokio::test]
async fn one_connection_serves_calls_one_after_another_whatever_their_status() {
    let mock = Mock::start(vec![
        Answer::new(200, "a"),
        Answer::new(429, "slower"),
        Answer::new(500, ""),
        Answer::new(200, "b"),
    ]);
    let client = Client::new();
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(ask(&client, &mock).await.unwrap().0);
    }
    assert_eq!((statuses, mock.accepted()), (vec![200, 429, 500, 200], 1));
}

#[tokio::test]
async fn a_body_that_was_not_read_to_its_end_is_released_and_its_connection_used_again() {
    // The end of the framing comes after the reader has lost interest.
    let mock = Mock::start(vec![
        Answer::sse("data: [DONE]\n\n")
            .then(Step::Gate)
            .piece(": bye\n\n"),
        Answer::new(200, "b"),
    ]);
    let client = Client::new();
    let policy = named(&mock.base_url());
    let mut answer = client
        .send(post(mock.base_url(), ""), &policy)
        .await
        .unwrap();
    assert!(answer.body.next().await.unwrap().is_some());
    answer.body.release();
    mock.open_gate();
    // Who comes before the end gets a connection of their own, and the first is kept too.
    let metrics = tokio::runtime::Handle::current().metrics();
    until("what is left is of connection and pool", || {
        metrics.num_alive_tasks() <= 2
    })
    .await;
    ask(&client, &mock).await.unwrap();
    assert_eq!((mock.accepted(), mock.requests()[1].connection), (1, 0));
}

#[tokio::test]
async fn a_released_body_that_goes_on_is_cut_off() {
    let mut answer = Answer::sse("a");
    for _ in 0..64 {
        answer = answer.piece(vec![b'x'; 64 << 10]);
    }
    let mock = Mock::start(vec![answer.then(Step::Gate), Answer::new(200, "b")]);
    let client = Client::new();
    let mut answer = client
        .send(post(mock.base_url(), ""), &named(&mock.base_url()))
        .await
        .unwrap();
    assert!(answer.body.next().await.unwrap().is_some());
    answer.body.release();
    until("it was closed", || mock.closed() == 1).await;
    ask(&client, &mock).await.unwrap();
    assert_eq!(mock.accepted(), 2);
}

#[tokio::test]
async fn a_dropped_body_closes_its_connection_at_once() {
    let mock = Mock::start(vec![Answer::sse("a").ending(End::Stall)]);
    let mut answer = Client::new()
        .send(post(mock.base_url(), ""), &named(&mock.base_url()))
        .await
        .unwrap();
    assert!(answer.body.next().await.unwrap().is_some());
    drop(answer);
    until("it was closed", || mock.closed() == 1).await;
}

/// A server that breaks off, as one does whose idle time ran out while a request was on its way.
fn closing(first: impl Fn(u64, u64) -> bool + Send + 'static, end: End) -> Mock {
    Mock::with(move |request| {
        if first(request.connection, request.before) {
            Answer::silence().ending(end)
        } else {
            Answer::new(200, "fine")
        }
    })
}

#[tokio::test]
async fn a_kept_connection_that_turns_out_to_be_closed_is_replaced_once() {
    for end in [End::Cut, End::Reset] {
        let mock = closing(|connection, before| connection == 0 && before > 0, end);
        let client = Client::new();
        ask(&client, &mock).await.unwrap();
        assert_eq!(ask(&client, &mock).await.unwrap().1, "fine", "{end:?}");
        let came: Vec<(u64, u64)> = mock
            .requests()
            .iter()
            .map(|request| (request.connection, request.before))
            .collect();
        assert_eq!(came, [(0, 0), (0, 1), (1, 0)], "{end:?}");
        assert!(mock.requests().iter().all(|request| request.body == b"{}"));

        // And not twice: the second failure is the server's.
        let mock = closing(|connection, before| connection + before > 0, end);
        let client = Client::new();
        ask(&client, &mock).await.unwrap();
        let error = ask(&client, &mock).await.unwrap_err();
        assert!(error.starts_with("TRANSPORT"), "{error}");
        assert_eq!(mock.requests().len(), 3, "{end:?}");
    }
}

#[tokio::test]
async fn a_connection_of_its_own_that_breaks_is_no_reason_to_send_again() {
    for end in [End::Cut, End::Reset] {
        let mock = closing(|_, _| true, end);
        let error = ask(&Client::new(), &mock).await.unwrap_err();
        assert!(error.starts_with("TRANSPORT"), "{error}");
        assert_eq!(mock.requests().len(), 1, "{end:?}");
    }
}

#[tokio::test]
async fn what_comes_over_a_kept_connection_and_makes_no_sense_is_not_asked_for_again() {
    let mock = Mock::start(vec![
        Answer::new(200, "a"),
        Answer::raw("no HTTP at all\r\n\r\n"),
    ]);
    let client = Client::new();
    ask(&client, &mock).await.unwrap();
    let error = ask(&client, &mock).await.unwrap_err();
    assert!(error.starts_with("TRANSPORT"), "{error}");
    assert_eq!(mock.requests().len(), 2);
}

#[tokio::test]
async fn a_server_that_says_that_it_closes_is_taken_at_its_word() {
    let mock = Mock::start(vec![
        Answer::new(200, "a").ending(End::Leave),
        Answer::new(200, "b"),
    ]);
    let client = Client::new();
    for _ in 0..2 {
        ask(&client, &mock).await.unwrap();
    }
    let [first, second] = &mock.requests()[..] else {
        panic!("two requests")
    };
    assert_eq!((first.connection, second.connection), (0, 1));
}

#[tokio::test]
async fn a_call_that_is_given_up_while_it_connects_leaves_nothing() {
    let listener = full_listener().await;
    let url = format!(
        "http://127.0.0.1:{}",
        listener.0.local_addr().unwrap().port()
    );
    let (client, policy) = (Client::new(), named(&url));
    let send = client.send(post(&*url, ""), &policy);
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(100), send).await;
    assert!(given_up.is_err(), "nobody accepts");
    let metrics = tokio::runtime::Handle::current().metrics();
    until("no task is left", || metrics.num_alive_tasks() == 0).await;
}

#[tokio::test]
async fn connecting_has_a_limit_of_its_own() {
    let listener = full_listener().await;
    let url = format!(
        "http://127.0.0.1:{}",
        listener.0.local_addr().unwrap().port()
    );
    let client = Client::with(dsh_http::ClientConfig {
        connect_timeout: std::time::Duration::from_millis(100),
        ..Default::default()
    });
    let error = client
        .send(post(&*url, ""), &named(&url))
        .await
        .unwrap_err();
    assert!(matches!(error, HttpError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("while connecting"), "{error}");
}

/// A listener whose queue is full, so that the system answers no further SYN.
async fn full_listener() -> (tokio::net::TcpListener, Vec<tokio::net::TcpStream>) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    loop {
        let connect = tokio::net::TcpStream::connect(address);
        match tokio::time::timeout(std::time::Duration::from_millis(200), connect).await {
            Ok(stream) => held.push(stream.unwrap()),
            Err(_) => return (listener, held),
        }
    }
}
