//! Requests through a proxy: a tunnel for `https`, the whole address for `http`.

mod common;

use common::{ask_at, named, post, through, trusting, until};
use dsh_http::{Allowed, Client, Origin, Policy, Reach};
use mock_provider::{Answer, Mock};

#[tokio::test]
async fn http_is_asked_of_the_proxy_by_its_whole_address_and_with_its_password() {
    let proxy = Mock::proxy(1, |_| Answer::new(200, "from the proxy"));
    let host = &proxy.base_url()["http://".len()..];
    let client = through(&[("HTTP_PROXY", format!("http://us3r:s3cr%40t@{host}"))]);
    for _ in 0..2 {
        let came = ask_at(&client, "http://api.example:8080/v1/x?y=z")
            .await
            .unwrap();
        assert_eq!(came.1, "from the proxy");
    }
    let [request, _] = &proxy.requests()[..] else {
        panic!("two requests")
    };
    assert_eq!(request.path, "http://api.example:8080/v1/x?y=z");
    assert_eq!(request.header("host"), Some("api.example:8080"));
    // us3r:s3cr@t
    assert_eq!(
        request.header("proxy-authorization"),
        Some("Basic dXMzcjpzM2NyQHQ=")
    );
    assert_eq!(proxy.accepted(), 1);
}

#[test]
fn https_goes_through_a_tunnel_that_sees_names_and_nothing_else() {
    trusting(
        "https_goes_through_a_tunnel_that_sees_names_and_nothing_else",
        |authority| async move {
            let mock = Mock::h2(&authority, "api.example", |_| Answer::new(200, "hello"));
            let proxy = Mock::proxy(mock.port(), |_| Answer::new(200, ""));
            let host = &proxy.base_url()["http://".len()..];
            let client = through(&[("HTTPS_PROXY", format!("http://us3r:s3cret@{host}"))]);
            let ask = async || ask_at(&client, "https://api.example:8443/v1").await;
            assert_eq!(ask().await.unwrap().1, "hello");
            assert_eq!(ask().await.unwrap().1, "hello");
            let [connect] = &proxy.requests()[..] else {
                panic!("one tunnel for both")
            };
            assert_eq!(
                (&*connect.method, &*connect.path),
                ("CONNECT", "api.example:8443")
            );
            assert_eq!(
                connect.header("proxy-authorization"),
                Some("Basic dXMzcjpzM2NyZXQ=")
            );
            assert_eq!(mock.requests()[0].path, "/v1");
            assert_eq!(mock.requests()[0].header("proxy-authorization"), None);
            // The name was resolved by the proxy alone: nobody here knows `api.example`.
        },
    );
}

#[tokio::test]
async fn a_proxy_that_fails_is_named_without_its_password() {
    let gone = {
        let mock = Mock::start(vec![]);
        mock.base_url()
    };
    let gone = format!("http://us3r:s3cret@{}", &gone["http://".len()..]);
    let refusing = Mock::proxy(1, |request| match &*request.path {
        "denied.example:443" => Answer::new(403, "no"),
        _ => Answer::new(407, ""),
    });
    let refusing = refusing_url(&refusing);
    for (proxy, url, code, says) in [
        (
            &gone,
            "https://api.example",
            "CONNECT",
            "nothing listens there",
        ),
        (
            &refusing,
            "https://denied.example",
            "CONNECT",
            "does not let this origin through",
        ),
        (
            &refusing,
            "https://api.example",
            "CONNECT",
            "wants a user and a password",
        ),
        (
            &"http://no-such-proxy.invalid:1".to_owned(),
            "https://api.example",
            "CONNECT",
            "no-such-proxy.invalid leads nowhere",
        ),
    ] {
        let client = through(&[("HTTPS_PROXY", proxy.clone())]);
        let error = ask_at(&client, url).await.unwrap_err();
        assert!(error.starts_with(code) && error.contains(says), "{error}");
        assert!(error.contains("(HTTPS_PROXY)"), "{error}");
        assert!(
            !error.contains("s3cret") && !error.contains("us3r"),
            "{error}"
        );
    }
}

fn refusing_url(mock: &Mock) -> String {
    format!("http://us3r:s3cret@{}", &mock.base_url()["http://".len()..])
}

#[tokio::test]
async fn this_machine_is_asked_directly_and_what_cannot_be_a_proxy_stops_the_rest() {
    let proxy = Mock::proxy(1, |_| Answer::new(500, ""));
    let mock = Mock::with(|_| Answer::new(200, "direct"));
    let client = through(&[
        ("ALL_PROXY", proxy.base_url()),
        ("HTTPS_PROXY", String::from("socks5://s3cret")),
    ]);
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}", mock.port());
        assert_eq!(ask_at(&client, &url).await.unwrap().1, "direct");
    }
    let error = ask_at(&client, "https://api.example").await.unwrap_err();
    assert!(
        error.starts_with("INVALID: HTTPS_PROXY names a SOCKS proxy"),
        "{error}"
    );
    assert!(!error.contains("s3cret"));
    assert_eq!(proxy.requests().len(), 0);
}

/// What an address is can be told before anyone is asked; what a name leads to is the proxy's
/// matter then.
#[tokio::test]
async fn a_public_grant_leads_to_no_private_address_by_a_proxy_either() {
    let proxy = Mock::proxy(1, |_| Answer::new(200, "x"));
    let client = through(&[("ALL_PROXY", proxy.base_url())]);
    let send = async |url: &str| {
        let policy = Policy::new(vec![Allowed {
            origin: Origin::parse(url).unwrap(),
            reach: Reach::Public,
        }]);
        client
            .send(post(url, ""), &policy)
            .await
            .map(|answer| answer.status)
    };
    for url in [
        "http://10.0.0.1",
        "http://169.254.169.254",
        "http://[fd00::1]",
    ] {
        assert_eq!(send(url).await.unwrap_err().code(), "DENIED", "{url}");
    }
    assert_eq!(send("http://intranet.example").await.unwrap(), 200);
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_given_up_in_a_proxys_tunnel_leaves_nothing() {
    let proxy = Mock::proxy(1, |_| Answer::silence());
    let client = through(&[("HTTPS_PROXY", proxy.base_url())]);
    let policy = named("https://api.example");
    let send = client.send(post("https://api.example", ""), &policy);
    tokio::select! {
        _ = send => panic!("nobody answers"),
        () = until("it asks", || !proxy.requests().is_empty()) => {}
    }
    until("it was closed", || proxy.closed() == 1).await;
    assert_eq!(format!("{:?}", Client::new()), "Client { .. }");
}
