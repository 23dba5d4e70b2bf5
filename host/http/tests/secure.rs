//! TLS and HTTP/2, with an authority that only the test's process trusts.

mod common;

use common::{ask, named, post, trusting, trusting_by, until};
use dsh_http::{Client, HttpError};
use mock_provider::{Answer, End, Mock, Step};

/// HTTP/2 has no header `host`.
fn over_http2(mock: &Mock) {
    assert!(
        mock.requests()
            .iter()
            .all(|request| request.header("host").is_none())
    );
}

#[test]
fn a_certificate_of_ssl_cert_file_is_trusted_and_no_other() {
    trusting(
        "a_certificate_of_ssl_cert_file_is_trusted_and_no_other",
        |authority| async move {
            let mock = Mock::secure(&authority, "127.0.0.1", |_| Answer::new(200, "hello"));
            assert_eq!(ask(&Client::new(), &mock).await.unwrap().1, "hello");

            let stranger = mock_provider::Authority::new();
            let other = Mock::secure(&stranger, "127.0.0.1", |_| Answer::new(200, ""));
            let error = ask(&Client::new(), &other).await.unwrap_err();
            assert!(
                error.starts_with("TLS") && error.contains("SSL_CERT_FILE"),
                "{error}"
            );

            let misnamed = Mock::secure(&authority, "api.example", |_| Answer::new(200, ""));
            let error = ask(&Client::new(), &misnamed).await.unwrap_err();
            assert!(error.contains("for another name"), "{error}");
            assert_eq!(other.requests().len() + misnamed.requests().len(), 0);
        },
    );
}

#[test]
fn a_certificate_in_ssl_cert_dir_is_trusted_and_no_other() {
    trusting_by(
        "SSL_CERT_DIR",
        "a_certificate_in_ssl_cert_dir_is_trusted_and_no_other",
        |authority| async move {
            let mock = Mock::secure(&authority, "127.0.0.1", |_| Answer::new(200, "hello"));
            assert_eq!(ask(&Client::new(), &mock).await.unwrap().1, "hello");
            let stranger = mock_provider::Authority::new();
            let other = Mock::secure(&stranger, "127.0.0.1", |_| Answer::new(200, ""));
            assert!(ask(&Client::new(), &other).await.is_err());
        },
    );
}

#[test]
fn calls_share_one_connection_over_http2_at_the_same_time() {
    trusting(
        "calls_share_one_connection_over_http2_at_the_same_time",
        |authority| async move {
            let mock = Mock::h2(&authority, "127.0.0.1", |request| {
                if request.text() == "first" {
                    Answer::sse("a").then(Step::Gate).piece("b")
                } else {
                    Answer::new(200, request.body.clone())
                }
            });
            let client = Client::new();
            let policy = named(&mock.base_url());
            let mut first = client
                .send(post(mock.base_url(), "first"), &policy)
                .await
                .unwrap();
            assert_eq!(first.body.next().await.unwrap().as_deref(), Some(&b"a"[..]));
            // The first is not over, and eight others go and come beside it.
            let others = (0..8).map(|_| {
                let (client, policy, url) = (client.clone(), policy.clone(), mock.base_url());
                tokio::spawn(async move {
                    let answer = client.send(post(url, "other"), &policy).await.unwrap();
                    answer.body.collect().await.unwrap()
                })
            });
            for other in others.collect::<Vec<_>>() {
                assert_eq!(other.await.unwrap(), "other");
            }
            mock.open_gate();
            assert_eq!(first.body.next().await.unwrap().as_deref(), Some(&b"b"[..]));
            assert_eq!(first.body.next().await.unwrap(), None);
            assert_eq!((mock.accepted(), mock.requests().len()), (1, 9));
        },
    );
}

#[test]
fn a_stream_that_breaks_or_is_dropped_leaves_the_others_and_the_connection() {
    trusting(
        "a_stream_that_breaks_or_is_dropped_leaves_the_others_and_the_connection",
        |authority| async move {
            let mock = Mock::h2(&authority, "127.0.0.1", |request| match &*request.text() {
                "reset" => Answer::sse("a").then(Step::Gate).ending(End::Reset),
                "early" => Answer::silence().ending(End::Reset),
                "stall" => Answer::sse("a").ending(End::Stall),
                _ => Answer::new(200, "fine"),
            });
            let client = Client::new();
            let policy = named(&mock.base_url());
            let send = |body: &'static str| client.send(post(mock.base_url(), body), &policy);
            let mut stalled = send("stall").await.unwrap();
            assert!(stalled.body.next().await.unwrap().is_some());

            let mut reset = send("reset").await.unwrap();
            assert!(reset.body.next().await.unwrap().is_some());
            mock.open_gate();
            let error = reset.body.next().await.unwrap_err();
            assert!(matches!(error, HttpError::Transport { .. }), "{error}");
            // A stream that the server gave up on was its answer: it is not asked again.
            let error = send("early").await.unwrap_err();
            assert!(matches!(error, HttpError::Transport { .. }), "{error}");

            drop(stalled);
            assert_eq!(
                send("x").await.unwrap().body.collect().await.unwrap(),
                "fine"
            );
            assert_eq!((mock.accepted(), mock.requests().len()), (1, 4));
        },
    );
}

#[test]
fn a_connection_that_the_server_leaves_is_finished_and_replaced() {
    trusting(
        "a_connection_that_the_server_leaves_is_finished_and_replaced",
        |authority| async move {
            let mock = Mock::h2(&authority, "127.0.0.1", |request| {
                if request.connection == 0 {
                    let answer = Answer::sse("a").then(Step::Gate).piece("b");
                    answer.ending(End::Leave)
                } else {
                    Answer::new(200, "fine")
                }
            });
            let client = Client::new();
            let policy = named(&mock.base_url());
            let first = client
                .send(post(mock.base_url(), ""), &policy)
                .await
                .unwrap();
            mock.open_gate();
            assert_eq!(first.body.collect().await.unwrap(), "ab");
            until("it was closed", || mock.closed() == 1).await;
            assert_eq!(ask(&client, &mock).await.unwrap().1, "fine");
            assert_eq!(mock.accepted(), 2);
            over_http2(&mock);
        },
    );
}

#[test]
fn a_kept_http2_connection_that_is_gone_is_replaced_once() {
    trusting(
        "a_kept_http2_connection_that_is_gone_is_replaced_once",
        |authority| async move {
            for always in [false, true] {
                let mock = Mock::h2(&authority, "127.0.0.1", move |request| {
                    if request.before > 0 || always && request.connection > 0 {
                        Answer::silence().ending(End::Cut)
                    } else {
                        Answer::new(200, "fine")
                    }
                });
                let client = Client::new();
                ask(&client, &mock).await.unwrap();
                let second = ask(&client, &mock).await;
                assert_eq!(second.is_ok(), !always, "{second:?}");
                assert_eq!(mock.requests().len(), 3);
                over_http2(&mock);
            }
        },
    );
}

#[test]
fn a_slow_reader_slows_an_http2_server() {
    trusting(
        "a_slow_reader_slows_an_http2_server",
        |authority| async move {
            const TOTAL: usize = 40 << 20;
            let mock = Mock::h2(&authority, "127.0.0.1", |_| Answer::sse(vec![b'x'; TOTAL]));
            let mut answer = Client::new()
                .send(post(mock.base_url(), ""), &named(&mock.base_url()))
                .await
                .unwrap();
            let mut read = answer.body.next().await.unwrap().unwrap().len();
            // As far as it gets while nobody reads.
            let mut written = 0;
            while written != mock.written() {
                written = mock.written();
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            assert!(written < (TOTAL / 2) as u64, "{written}");
            while let Some(bytes) = answer.body.next().await.unwrap() {
                read += bytes.len();
            }
            assert_eq!(read, TOTAL);
            over_http2(&mock);
        },
    );
}

#[test]
fn the_server_chooses_http1_where_it_speaks_no_other() {
    trusting(
        "the_server_chooses_http1_where_it_speaks_no_other",
        |authority| async move {
            let mock = Mock::secure(&authority, "127.0.0.1", |_| Answer::new(200, "one"));
            let client = Client::new();
            for _ in 0..3 {
                assert_eq!(ask(&client, &mock).await.unwrap().1, "one");
            }
            assert_eq!(mock.accepted(), 1);
            assert!(mock.requests()[0].header("host").is_some());
        },
    );
}
