//! What a server may say that is not an answer as one would wish for.

mod common;

use std::io::Write;

use common::{ask, named, post};
use dsh_http::{Client, HttpError, Policy};
use flate2::Compression;
use flate2::write::GzEncoder;
use mock_provider::{Answer, Mock, Step};

/// An event stream of three events, each compressed and flushed on its own, as servers do.
fn flushed(encoding: &str) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let events = ["data: one\n\n", "data: zwei\u{e9}\n\n", "data: [DONE]\n\n"];
    if encoding == "gzip" {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for event in events {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            pieces.push(std::mem::take(encoder.get_mut()));
        }
        pieces.push(encoder.finish().unwrap());
    } else {
        let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
        for event in events {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            pieces.push(std::mem::take(encoder.get_mut()));
        }
        pieces.push(encoder.into_inner());
    }
    pieces
}

#[tokio::test]
async fn a_compressed_stream_comes_as_it_was_flushed() {
    for encoding in ["gzip", "br"] {
        let mut answer = Answer::sse("").header("content-encoding", encoding);
        for piece in flushed(encoding) {
            answer = answer.piece(piece).then(Step::Gate);
        }
        let mock = Mock::start(vec![answer]);
        let mut answer = Client::new()
            .send(post(mock.base_url(), ""), &named(&mock.base_url()))
            .await
            .unwrap();
        // Each gate opens when all before it has been read, and not before.
        for event in ["data: one\n\n", "data: zwei\u{e9}\n\n", "data: [DONE]\n\n"] {
            let mut got = Vec::new();
            while got.len() < event.len() {
                got.extend_from_slice(&answer.body.next().await.unwrap().unwrap());
            }
            assert_eq!(String::from_utf8(got).unwrap(), event, "{encoding}");
            mock.open_gate();
        }
        mock.open_gate();
        assert_eq!(answer.body.next().await.unwrap(), None, "{encoding}");
        let accepts = mock.requests()[0]
            .header("accept-encoding")
            .map(str::to_owned);
        assert!(accepts.is_some_and(|accepts| accepts.contains(encoding)));
    }
}

#[tokio::test]
async fn a_decompression_bomb_meets_the_limit() {
    let zeros = vec![0; 1 << 20];
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let mut br = brotli::CompressorWriter::new(Vec::new(), 1 << 16, 5, 22);
    for _ in 0..64 {
        gzip.write_all(&zeros).unwrap();
        br.write_all(&zeros).unwrap();
    }
    for (encoding, bomb) in [("gzip", gzip.finish().unwrap()), ("br", br.into_inner())] {
        assert!(bomb.len() < 200_000, "it is small on the wire");
        let mock = Mock::start(vec![
            Answer::new(200, bomb).header("content-encoding", encoding),
        ]);
        let policy = Policy {
            max_body: 1 << 20,
            ..named(&mock.base_url())
        };
        let mut answer = Client::new()
            .send(post(mock.base_url(), ""), &policy)
            .await
            .unwrap();
        let mut read = 0;
        let error = loop {
            match answer.body.next().await {
                Ok(bytes) => read += bytes.unwrap().len(),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, HttpError::Limit { cap: 0x10_0000, .. }),
            "{error}"
        );
        assert!(read <= 1 << 20, "{encoding}: {read}");
    }
}

#[tokio::test]
async fn what_is_not_as_it_is_declared_is_transport_and_says_so() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(2 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(2000));
    for (what, raw) in [
        (
            "garbage for a head",
            "<html>hello</html>\r\n\r\n".to_owned(),
        ),
        ("another protocol", "SSH-2.0-OpenSSH_9.9\r\n".to_owned()),
        (
            "a head that does not end",
            "HTTP/1.1 200 OK\r\nx: y\r\n".to_owned(),
        ),
        ("a head of two megabytes", huge),
        ("two thousand headers", many),
        (
            "a size of a chunk that is none",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n".to_owned(),
        ),
        (
            "a chunk beyond all sizes",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n"
                .to_owned(),
        ),
        (
            "a body that is too short",
            "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_owned(),
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nabc".to_owned(),
        ),
        (
            "a compression that it is not",
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\nplain"
                .to_owned(),
        ),
    ] {
        let mock = Mock::start(vec![Answer::raw(raw)]);
        let error = ask(&Client::new(), &mock).await.expect_err(what);
        assert!(
            error.starts_with("TRANSPORT: the connection to http://127"),
            "{what}: {error}"
        );
        assert!(error.len() < 300, "{what}: {error}");
        assert_eq!(mock.requests().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn informational_heads_are_passed_over_and_an_answer_may_have_no_body() {
    for (raw, status, body) in [
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            200,
            "ok",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", 304, ""),
        (
            "HTTP/1.0 200 OK\r\n\r\nuntil it closes",
            200,
            "until it closes",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nuntil it closes",
            200,
            "until it closes",
        ),
    ] {
        let mock = Mock::start(vec![Answer::raw(raw)]);
        let came = ask(&Client::new(), &mock).await.unwrap();
        assert_eq!(came, (status, body.to_owned()), "{raw:?}");
    }
}
