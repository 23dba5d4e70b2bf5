//! The client against a server on loopback.

use std::time::Duration;

use dsh_http::{Allowed, Bytes, Client, Header, HttpError, Origin, Policy, Reach, Request};
use mock_provider::{Answer, End, Mock, Step};

fn allow(url: &str, reach: Reach) -> Allowed {
    Allowed {
        origin: Origin::parse(url).unwrap(),
        reach,
    }
}

fn named(mock: &Mock) -> Policy {
    Policy::new(vec![allow(&mock.base_url(), Reach::Named)])
}

fn get(url: String) -> Request {
    Request {
        method: String::from("GET"),
        url,
        headers: Vec::new(),
        body: Bytes::new(),
    }
}

async fn code(client: &Client, request: Request, policy: &Policy) -> &'static str {
    client
        .send(request, policy)
        .await
        .map(|_| "")
        .unwrap_or_else(|error| error.code())
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made_and_its_answer_comes_in_pieces() {
    let mock = Mock::start(vec![
        Answer::new(201, "")
            .header("X-Answer", "yes")
            .piece("ab")
            .piece("cde"),
    ]);
    let request = Request {
        method: String::from("POST"),
        url: format!("{}/v1/chat?x=1", mock.base_url()),
        headers: vec![
            Header::secret("Authorization", "Bearer k"),
            Header::new("x-a", "1"),
        ],
        body: Bytes::from_static(b"{}"),
    };
    let mut response = Client::new().send(request, &named(&mock)).await.unwrap();
    assert_eq!(response.status, 201);
    assert!(
        response
            .headers
            .contains(&(String::from("x-answer"), String::from("yes")))
    );
    assert_eq!(
        response.body.next().await.unwrap().as_deref(),
        Some(&b"ab"[..])
    );
    assert_eq!(
        response.body.next().await.unwrap().as_deref(),
        Some(&b"cde"[..])
    );
    assert_eq!(response.body.next().await.unwrap(), None);
    let [request] = &mock.requests()[..] else {
        panic!("one request")
    };
    assert_eq!(
        (&*request.method, &*request.path, &*request.text()),
        ("POST", "/v1/chat?x=1", "{}")
    );
    assert_eq!(request.header("authorization"), Some("Bearer k"));
    assert_eq!(
        request.header("host"),
        Some(&mock.base_url()["http://".len()..])
    );
}

#[tokio::test]
async fn an_origin_that_was_not_granted_is_not_connected_to() {
    let mock = Mock::start(vec![]);
    let other = Mock::start(vec![]);
    let client = Client::new();
    for url in [
        other.base_url(),
        format!("http://localhost:{}", mock.port()),
        format!("https://127.0.0.1:{}", mock.port()),
        String::from("http://127.0.0.1"),
    ] {
        assert_eq!(code(&client, get(url), &named(&mock)).await, "DENIED");
    }
    assert_eq!(
        code(&client, get(mock.base_url()), &Policy::new(vec![])).await,
        "DENIED"
    );
    assert_eq!(mock.requests().len() + other.requests().len(), 0);
}

#[tokio::test]
async fn a_public_grant_does_not_lead_to_loopback_by_address_or_by_name() {
    let mock = Mock::start(vec![Answer::new(200, ""), Answer::new(200, "")]);
    let client = Client::new();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}", mock.port());
        let public = Policy::new(vec![allow(&url, Reach::Public)]);
        let error = client.send(get(url.clone()), &public).await.unwrap_err();
        assert_eq!(error.code(), "DENIED", "{host}: {error}");
        assert!(error.to_string().contains("loopback"), "{host}: {error}");
    }
    // And stays out when a request of a wider reach left a connection in the pool.
    let url = format!("http://localhost:{}", mock.port());
    let wide = Policy::new(vec![allow(&url, Reach::Named)]);
    client
        .send(get(url.clone()), &wide)
        .await
        .unwrap()
        .body
        .collect()
        .await
        .unwrap();
    let public = Policy::new(vec![allow(&url, Reach::Public)]);
    assert_eq!(code(&client, get(url), &public).await, "DENIED");
    assert_eq!(mock.requests().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_the_answer_unless_the_policy_follows_some() {
    let target = Mock::start(vec![Answer::new(200, "there")]);
    let elsewhere = format!("{}/x", target.base_url());
    let mock = Mock::with(move |request| match &*request.path {
        "/away" => Answer::new(307, "").header("location", elsewhere.clone()),
        "/same" => Answer::new(302, "").header("location", "/end"),
        "/loop" => Answer::new(302, "").header("location", "/loop"),
        _ => Answer::new(200, "here"),
    });
    let client = Client::new();
    let at = |path: &str| Request {
        method: String::from("POST"),
        headers: vec![
            Header::secret("x-key", "s3cret"),
            Header::new("x-plain", "p"),
        ],
        body: Bytes::from_static(b"body"),
        ..get(format!("{}{path}", mock.base_url()))
    };
    let none = named(&mock);
    assert_eq!(client.send(at("/away"), &none).await.unwrap().status, 307);

    let some = Policy {
        redirects: 3,
        ..named(&mock)
    };
    let same = client.send(at("/same"), &some).await.unwrap();
    assert_eq!(same.body.collect().await.unwrap(), "here");
    let end = mock.requests().pop().unwrap();
    assert_eq!(
        (&*end.method, &*end.text(), end.header("x-key")),
        ("GET", "", Some("s3cret"))
    );
    assert_eq!(client.send(at("/loop"), &some).await.unwrap().status, 302);
    assert_eq!(code(&client, at("/away"), &some).await, "DENIED");
    assert_eq!(target.requests().len(), 0);

    let mut both = Policy {
        redirects: 1,
        ..named(&mock)
    };
    both.allowed.push(allow(&target.base_url(), Reach::Named));
    let there = client.send(at("/away"), &both).await.unwrap();
    assert_eq!(there.body.collect().await.unwrap(), "there");
    let request = target.requests().pop().unwrap();
    assert_eq!((&*request.method, &*request.text()), ("POST", "body"));
    assert_eq!(
        (request.header("x-key"), request.header("x-plain")),
        (None, Some("p"))
    );
}

#[tokio::test]
async fn a_body_beyond_its_cap_is_cut_off() {
    let mock = Mock::start(vec![Answer::new(200, "").piece("1234").piece("5678"); 2]);
    let client = Client::new();
    let exact = Policy {
        max_body: 8,
        ..named(&mock)
    };
    let response = client.send(get(mock.base_url()), &exact).await.unwrap();
    assert_eq!(response.body.collect().await.unwrap().len(), 8);
    let less = Policy {
        max_body: 7,
        ..named(&mock)
    };
    let mut response = client.send(get(mock.base_url()), &less).await.unwrap();
    assert!(response.body.next().await.unwrap().is_some());
    assert_eq!(response.body.next().await.unwrap_err().code(), "LIMIT");
}

#[tokio::test]
async fn a_broken_connection_is_transport_and_a_clean_end_is_not() {
    let client = Client::new();
    for end in [End::Reset, End::Cut] {
        let mock = Mock::start(vec![Answer::new(200, "abc").then(Step::Gate).ending(end)]);
        let mut response = client
            .send(get(mock.base_url()), &named(&mock))
            .await
            .unwrap();
        assert_eq!(
            response.body.next().await.unwrap().as_deref(),
            Some(&b"abc"[..]),
            "{end:?}"
        );
        mock.open_gate();
        assert_eq!(
            response.body.next().await.unwrap_err().code(),
            "TRANSPORT",
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn nobody_there_is_connect_and_a_name_nobody_knows_too() {
    let gone = {
        let mock = Mock::start(vec![]);
        mock.base_url()
    };
    let client = Client::new();
    let policy = Policy::new(vec![allow(&gone, Reach::Named)]);
    assert_eq!(code(&client, get(gone), &policy).await, "CONNECT");
    let unknown = String::from("http://no-such-name.invalid");
    let policy = Policy::new(vec![allow(&unknown, Reach::Public)]);
    assert_eq!(code(&client, get(unknown), &policy).await, "CONNECT");
}

#[tokio::test]
async fn https_to_a_server_without_tls_is_tls() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let url = format!(
        "https://127.0.0.1:{}",
        listener.local_addr().unwrap().port()
    );
    let server = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        stream
    });
    let policy = Policy::new(vec![allow(&url, Reach::Named)]);
    let error = Client::new().send(get(url), &policy).await.unwrap_err();
    assert_eq!(error.code(), "TLS", "{error}");
    assert!(
        error.to_string().contains("is it an http:// address?"),
        "{error}"
    );
    drop(server.await);
}

#[tokio::test]
async fn a_policy_with_a_time_limit_holds_it_for_the_head_and_for_the_body() {
    let mock = Mock::start(vec![
        Answer::silence(),
        Answer::new(200, "a").ending(End::Stall),
    ]);
    let client = Client::new();
    let policy = Policy {
        timeout: Some(Duration::from_millis(60)),
        ..named(&mock)
    };
    assert_eq!(
        code(&client, get(mock.base_url()), &policy).await,
        "TIMEOUT"
    );
    let policy = Policy {
        timeout: Some(Duration::from_millis(1500)),
        ..named(&mock)
    };
    let mut response = client.send(get(mock.base_url()), &policy).await.unwrap();
    assert!(response.body.next().await.unwrap().is_some());
    assert_eq!(response.body.next().await.unwrap_err().code(), "TIMEOUT");
}

#[tokio::test]
async fn no_error_shows_a_header_or_a_path() {
    let mock = Mock::start(vec![Answer::new(200, "x").ending(End::Reset)]);
    let client = Client::new();
    let request = |url: String, value: &str| Request {
        headers: vec![Header::secret("authorization", value)],
        ..get(url)
    };
    let path = format!("{}/p4th?key=qu3ry", mock.base_url());
    let mut errors: Vec<HttpError> = Vec::new();
    let mut response = client
        .send(request(path.clone(), "s3cret"), &named(&mock))
        .await
        .unwrap();
    while errors.is_empty() {
        errors.extend(response.body.next().await.err());
    }
    drop(response);
    errors.push(
        client
            .send(request(path.clone(), "s3cret\n"), &named(&mock))
            .await
            .unwrap_err(),
    );
    errors.push(
        client
            .send(request(path.clone(), "s3cret"), &Policy::new(vec![]))
            .await
            .unwrap_err(),
    );
    let policy = named(&mock);
    drop(mock);
    errors.push(
        client
            .send(request(path.clone(), "s3cret"), &policy)
            .await
            .unwrap_err(),
    );
    for error in errors {
        let text = format!("{error} {error:?}");
        for hidden in ["s3cret", "p4th", "qu3ry"] {
            assert!(!text.contains(hidden), "{text}");
        }
    }
    let text = format!("{:?}", request(path, "s3cret"));
    assert!(
        !text.contains("s3cret") && !text.contains("qu3ry"),
        "{text}"
    );
}

#[tokio::test]
async fn bytes_are_read_as_they_are_consumed() {
    // More than all buffers between the two hold.
    let piece = vec![b'x'; 1 << 20];
    let mut answer = Answer::new(200, "");
    for _ in 0..40 {
        answer = answer.piece(piece.clone());
    }
    let mock = Mock::start(vec![answer.then(Step::Gate)]);
    let mut response = Client::new()
        .send(get(mock.base_url()), &named(&mock))
        .await
        .unwrap();
    assert!(response.body.next().await.unwrap().is_some());
    assert!(
        mock.written() < 40 << 20,
        "the server must wait for the reader"
    );
    mock.open_gate();
    let mut total = 1;
    while let Some(bytes) = response.body.next().await.unwrap() {
        total += bytes.len();
    }
    assert!(total > 39 << 20);
}

#[tokio::test]
async fn a_playing_client_sends_nothing_and_keeps_to_the_policy() {
    let (told, asked) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let ends = |ending| {
        let told = told.lock().unwrap().clone();
        Client::playing(move |request| {
            told.send(request.url.clone()).unwrap();
            dsh_http::Recording {
                status: 418,
                headers: vec![("x-a".to_owned(), "b".to_owned())],
                pieces: vec![
                    dsh_http::Bytes::from_static(b"one"),
                    dsh_http::Bytes::from_static(b"two"),
                ],
                ending,
            }
        })
    };
    let origin = Origin::parse("http://127.0.0.1:1").unwrap();
    let mut policy = Policy::new(vec![Allowed {
        origin,
        reach: Reach::Named,
    }]);
    let request = || get("http://127.0.0.1:1/x".to_owned());

    let mut answer = ends(dsh_http::Ending::Clean)
        .send(request(), &policy)
        .await
        .unwrap();
    assert_eq!((answer.status, answer.headers.len()), (418, 1));
    assert_eq!(&answer.body.next().await.unwrap().unwrap()[..], b"one");
    assert_eq!(&answer.body.next().await.unwrap().unwrap()[..], b"two");
    assert_eq!(answer.body.next().await.unwrap(), None);
    assert_eq!(asked.try_recv().unwrap(), "http://127.0.0.1:1/x");

    for (ending, code) in [
        (dsh_http::Ending::Cut, "TRANSPORT"),
        (dsh_http::Ending::Stall, "TIMEOUT"),
    ] {
        let answer = ends(ending).send(request(), &policy).await.unwrap();
        assert_eq!(answer.body.collect().await.unwrap_err().code(), code);
    }

    policy.max_body = 4;
    let answer = ends(dsh_http::Ending::Clean)
        .send(request(), &policy)
        .await
        .unwrap();
    assert_eq!(answer.body.collect().await.unwrap_err().code(), "LIMIT");
    while asked.try_recv().is_ok() {}

    let client = ends(dsh_http::Ending::Clean);
    let elsewhere = get("http://127.0.0.1:2/".to_owned());
    assert_eq!(
        client.send(elsewhere, &policy).await.unwrap_err().code(),
        "DENIED"
    );
    let mut framed = request();
    framed
        .headers
        .push(dsh_http::Header::new("content-length", "3"));
    assert_eq!(
        client.send(framed, &policy).await.unwrap_err().code(),
        "INVALID"
    );
    assert!(asked.try_recv().is_err(), "what is refused is not played");
}
