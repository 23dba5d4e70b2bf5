//! Plugins over HTTPS, from a real server with a certificate that only the test trusts.

use std::sync::{Arc, Mutex};

use mock_provider::{Answer, Authority, End, Mock, Recorded, Step};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Ended, Scratch, Signer, counter, wait_until};

/// A server that this test's `dsh` trusts.
struct Shop {
    scratch: Scratch,
    mock: Mock,
    root: std::path::PathBuf,
}

impl Shop {
    fn open(script: impl FnMut(&Recorded) -> Answer + Send + 'static) -> Self {
        let authority = Authority::new();
        let scratch = Scratch::new();
        let root = scratch.write_beside("root.pem", authority.pem());
        let mock = Mock::secure(&authority, "127.0.0.1", script);
        Self {
            scratch,
            mock,
            root,
        }
    }

    /// One that has these bytes under `/counter.wasm`, and nothing else.
    fn with(bytes: Vec<u8>) -> Self {
        Self::open(move |request| match request.path.as_str() {
            "/counter.wasm" => Answer::new(200, bytes.clone()),
            _ => Answer::new(404, "nothing here"),
        })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.mock.base_url())
    }

    fn plugin(&self, words: &[&str]) -> Ended {
        let dsh = self.scratch.dsh().env("SSL_CERT_FILE", &self.root);
        dsh.args(["plugin"]).args(words.iter().copied()).run()
    }

    fn added_nothing(&self) {
        assert!(self.scratch.lock_text().is_empty() && self.scratch.packages().is_empty());
    }
}

fn sha256(bytes: &[u8]) -> String {
    dsh_profile::digest(bytes)
}

#[test]
fn it_is_added_with_its_digest_and_runs() {
    let bytes = counter("1.0.0");
    let shop = Shop::with(bytes.clone());
    let url = shop.url("/counter.wasm");
    let added = shop
        .plugin(&["add", "--yes", "--sha256", &sha256(&bytes), &url])
        .done();
    assert!(!added.stdout.contains("on trust"), "{added:?}");
    let (ended, results) = shop.scratch.calls("c_count", &json!({"text": ""}));
    ended.answered("Called.");
    assert_eq!(results[0].1, None);
    let (_, list) = shop.scratch.plugin_json(["list"]);
    assert_eq!(list["plugins"][0]["source"], url.as_str());
}

#[test]
fn without_a_digest_the_one_that_came_is_pinned_and_said_so() {
    let served = Arc::new(Mutex::new(counter("1.0.0")));
    let of_server = Arc::clone(&served);
    let shop = Shop::open(move |request| match request.path.as_str() {
        "/counter.wasm" => Answer::new(200, of_server.lock().unwrap().clone()),
        _ => Answer::new(404, ""),
    });
    let url = shop.url("/counter.wasm");
    let added = shop.plugin(&["add", "--yes", &url]).done();
    assert!(
        added.stdout.contains("taken on trust now and pinned"),
        "{added:?}"
    );
    // Other bytes under the same version: refused, with what was pinned and what came.
    let first = sha256(&counter("1.0.0"));
    let other = crate::support::with_section(&counter("1.0.0"), "x", b"changed");
    *served.lock().unwrap() = other.clone();
    shop.plugin(&["update", "--yes"])
        .refused(&[&first, &sha256(&other), "was pinned"]);
    shop.plugin(&[
        "update",
        "--yes",
        "--sha256",
        &sha256(&other),
        "acme:counter",
    ])
    .done();
}

#[test]
fn a_wrong_digest_is_refused_with_what_was_expected_and_what_came() {
    let bytes = counter("1.0.0");
    let shop = Shop::with(bytes.clone());
    let expected = "0".repeat(64);
    shop.plugin(&[
        "add",
        "--yes",
        "--sha256",
        &expected,
        &shop.url("/counter.wasm"),
    ])
    .refused(&[&expected, &sha256(&bytes)]);
    shop.added_nothing();
}

#[test]
fn a_signature_beside_it_is_fetched_and_verified() {
    let signer = Signer::new(0x33);
    let bytes = counter("1.0.0");
    let (of_server, signature) = (bytes.clone(), signer.sign(&bytes, "acme:counter 1.0.0"));
    let shop = Shop::open(move |request| match request.path.as_str() {
        "/counter.wasm?v=1" => Answer::new(200, of_server.clone()),
        "/counter.wasm.minisig?v=1" => Answer::new(200, signature.clone()),
        _ => Answer::new(404, ""),
    });
    let url = shop.url("/counter.wasm?v=1");
    let added = shop
        .plugin(&["add", "--yes", "--key", &signer.public(), &url])
        .done();
    assert!(
        added.stdout.contains(&format!("by key {}", signer.id())),
        "{added:?}"
    );
}

#[test]
fn a_certificate_that_nobody_trusts_or_of_another_name_is_refused() {
    let scratch = Scratch::new();
    let (trusted, other) = (Authority::new(), Authority::new());
    let root = scratch.write_beside("root.pem", trusted.pem());
    for (authority, subject, says) in [
        (&other, "127.0.0.1", "SSL_CERT_FILE"),
        // No authority makes that good.
        (&trusted, "plugins.example", "for another name"),
    ] {
        let mock = Mock::secure(authority, subject, |_| Answer::new(200, counter("1.0.0")));
        let dsh = scratch.dsh().env("SSL_CERT_FILE", &root);
        let ended = dsh
            .args([
                "plugin",
                "add",
                "--yes",
                &format!("{}/x.wasm", mock.base_url()),
            ])
            .run();
        ended.refused(&["TLS", says]);
        assert!(mock.requests().is_empty(), "nothing was asked of it");
    }
    assert!(scratch.lock_text().is_empty());
}

#[test]
fn a_redirect_is_followed_to_https_alone_and_not_into_the_own_network() {
    let bytes = counter("1.0.0");
    let elsewhere = Mock::start(vec![Answer::new(200, counter("1.0.0"))]);
    let (plain, of_server) = (elsewhere.base_url(), bytes.clone());
    let shop = Shop::open(move |request| {
        let to = |to: &str| Answer::new(302, "").header("location", to);
        match request.path.as_str() {
            "/moved" => to("/new/./place"),
            "/new/./place" | "/new/place" => to("counter.wasm"),
            "/new/counter.wasm" => Answer::new(200, of_server.clone()),
            "/plain" => to(&format!("{plain}/x.wasm")),
            "/inside" => to("https://127.0.0.2:1/x.wasm"),
            "/metadata" => to("https://169.254.169.254/latest"),
            "/loop" => to("/loop"),
            "/nowhere" => Answer::new(302, ""),
            _ => Answer::new(404, ""),
        }
    });
    for (path, part) in [
        ("/plain", "no https:// address"),
        ("/inside", "loopback"),
        ("/metadata", "link-local"),
        ("/loop", "more than 5 redirects"),
        ("/nowhere", "redirect to nowhere"),
        ("/gone", "nothing there (404)"),
    ] {
        shop.plugin(&["add", "--yes", &shop.url(path)])
            .refused(&[part]);
    }
    shop.added_nothing();
    assert!(elsewhere.requests().is_empty());
    shop.plugin(&[
        "add",
        "--yes",
        "--sha256",
        &sha256(&bytes),
        &shop.url("/moved"),
    ])
    .done();
}

#[test]
fn a_body_that_is_too_large_slow_or_cut_off_is_given_up() {
    let shop = Shop::open(|request| match request.path.as_str() {
        "/huge" => (0..65).fold(Answer::new(200, ""), |answer, _| {
            answer.piece(vec![0; 1 << 20])
        }),
        "/said-huge" => Answer::new(200, "")
            .header("x", "y")
            .piece(vec![0; 10])
            .ending(End::Stall),
        "/slow" => Answer::new(200, counter("1.0.0")).then(Step::Gate),
        "/cut" => Answer::new(200, vec![0; 100]).ending(End::Cut),
        "/error" => Answer::new(503, "later"),
        "/silent" => Answer::silence(),
        _ => Answer::new(404, ""),
    });
    for (path, parts) in [
        ("/huge", &["larger than 64.0 MiB"][..]),
        ("/slow", &["not there after 1 s", "--timeout"]),
        ("/said-huge", &["not there after 1 s"]),
        ("/silent", &["not there after 1 s"]),
        ("/cut", &["cannot fetch"]),
        ("/error", &["answered 503"]),
    ] {
        let limit = if path == "/huge" { "100" } else { "1" };
        shop.plugin(&["add", "--yes", "--timeout", limit, &shop.url(path)])
            .refused(parts);
    }
    shop.added_nothing();
}

#[test]
fn progress_is_told_where_it_is_asked_for_and_never_on_stdout() {
    let bytes = counter("1.0.0");
    let large = crate::support::with_section(&bytes, "padding", &vec![7; 3 << 20]);
    let shop = Shop::open(move |request| match request.path.as_str() {
        "/counter.wasm" => Answer::new(200, large.clone()).split(&[256 << 10]),
        _ => Answer::new(404, ""),
    });
    let ended = shop.plugin(&[
        "add",
        "--json",
        "--yes",
        "--progress",
        &shop.url("/counter.wasm"),
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "one object");
    assert!(
        ended.stderr.contains("dsh: fetching https://") && ended.stderr.contains("MiB"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("dsh: compiling acme:counter"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.lines().all(|line| line.starts_with("dsh: ")),
        "{ended:?}"
    );
}

#[test]
fn plain_http_and_addresses_with_secrets_are_refused_before_anything_is_sent() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![]);
    scratch
        .plugin(["add", "--yes", &format!("{}/x.wasm", mock.base_url())])
        .refused(&["http://", "give its path"]);
    let ended = scratch.plugin(["add", "--yes", "https://me:hunter2@plugins.example/x.wasm"]);
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
    ended.refused(&["password"]);
    assert!(mock.requests().is_empty());
}

#[test]
fn an_interrupt_while_it_is_fetched_leaves_nothing() {
    let shop = Shop::open(|request| match request.path.as_str() {
        "/counter.wasm" => Answer::new(200, counter("1.0.0")).then(Step::Gate),
        _ => Answer::new(404, ""),
    });
    let dsh = shop.scratch.dsh().env("SSL_CERT_FILE", &shop.root);
    let url = shop.url("/counter.wasm");
    let run = dsh.args(["plugin", "add", "--yes", &url]).start();
    wait_until("most of it was sent", || shop.mock.written() > 0);
    run.signal(Signal::INT);
    assert_eq!(run.end().signal, Some(2));
    shop.added_nothing();
}
