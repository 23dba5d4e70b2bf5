//! What goes over the wire of a whole run, and over which.

use mock_provider::{Answer, Authority, Mock};

use crate::support::{Scratch, counter, say};

const KEY: &str = "sk-e2e-0123456789abcdef";

/// A run without calls beside the loop, so that what is counted is the loop's.
fn untitled(scratch: &Scratch) -> std::path::PathBuf {
    scratch.write_beside(
        "untitled.yml",
        "- id: session-title-llm\n  disabled: true\n",
    )
}

#[test]
fn a_run_of_many_steps_and_a_retry_uses_one_connection() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![
        say("").bash("true").answer(),
        Answer::new(429, r#"{"error":{"message":"slow down"}}"#),
        // Something behind the end mark, which nobody reads for its own sake.
        say("").bash("true").answer().piece(": bye\n\n"),
        say("").bash("true").answer(),
        say("Done.").answer(),
    ]);
    scratch
        .dsh()
        .provider(&mock)
        .headless()
        .patch(untitled(&scratch))
        .patch(scratch.write_beside("soon.yml", include_str!("retry-soon.yml")))
        .arg("Go")
        .run()
        .answered("Done.");
    assert_eq!((mock.requests().len(), mock.accepted()), (5, 1));
}

#[test]
fn a_run_goes_through_the_environments_proxy_whose_password_is_shown_nowhere() {
    let scratch = Scratch::new();
    let proxy = Mock::proxy(1, |_| say("By proxy.").answer());
    let run = || {
        let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", KEY);
        dsh.env("DEEPSEEK_BASE_URL", "http://api.example/v9")
            .headless()
    };
    let address = format!(
        "http://us3r:pr0xyw0rd@{}",
        &proxy.base_url()["http://".len()..]
    );
    run()
        .env("HTTP_PROXY", &address)
        .arg("Go")
        .run()
        .answered("By proxy.");
    let request = proxy.requests().remove(0);
    assert_eq!(request.path, "http://api.example/v9/chat/completions");
    assert!(request.header("proxy-authorization").is_some());

    let port = proxy.port();
    drop(proxy);
    for (variable, value, says) in [
        (
            "HTTP_PROXY",
            address.as_str(),
            format!(
                "through the proxy http://127.0.0.1:{port} (HTTP_PROXY): nothing listens there"
            ),
        ),
        (
            "ALL_PROXY",
            "socks5://us3r:pr0xyw0rd@x",
            "ALL_PROXY names a SOCKS proxy".to_owned(),
        ),
    ] {
        let patch = scratch.write_beside("soon.yml", include_str!("retry-soon.yml"));
        let ended = run().env(variable, value).patch(patch).arg("Go").run();
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains(&says), "{ended:?}");
    }
    // Not even where logs and settings are.
    for word in ["pr0xyw0rd", "cHIweHl3b3Jk"] {
        assert_eq!(scratch.files_with(word), Vec::<String>::new(), "{word}");
    }
}

#[test]
fn doctor_tells_of_proxies_without_their_password() {
    let scratch = Scratch::new();
    let ended = scratch
        .dsh()
        .env("HTTPS_PROXY", "http://us3r:pr0xyw0rd@p.example:3128")
        .env("http_proxy", "pr0xyw0rd://x")
        .args(["doctor"])
        .run();
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "https:// is asked through the proxy http://p.example:3128 (HTTPS_PROXY)",
        "http_proxy is no address of a proxy",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(
        !said.contains("pr0xyw0rd") && !said.contains("us3r"),
        "{said}"
    );
}

#[test]
fn a_plugin_comes_through_the_proxy_too() {
    let authority = Authority::new();
    let scratch = Scratch::new();
    let root = scratch.write_beside("root.pem", authority.pem());
    let bytes = counter("1.0.0");
    let shop = Mock::secure(&authority, "plugins.example", move |request| match request
        .path
        .as_str()
    {
        "/counter.wasm" => Answer::new(200, bytes.clone()),
        _ => Answer::new(404, ""),
    });
    let proxy = Mock::proxy(shop.port(), |_| Answer::new(200, ""));
    scratch
        .dsh()
        .env("SSL_CERT_FILE", &root)
        .env("HTTPS_PROXY", proxy.base_url())
        .args([
            "plugin",
            "add",
            "--yes",
            "https://plugins.example/counter.wasm",
        ])
        .run()
        .done();
    assert_eq!(proxy.requests()[0].path, "plugins.example:443");
    assert!(!shop.requests().is_empty());
}

/// Whatever a provider makes of the key: nothing that a run leaves has it, however much is
/// asked to be logged.
#[test]
fn a_key_is_in_nothing_that_a_run_says_or_leaves() {
    let scratch = Scratch::new();
    let quoting = |status: u16| {
        let body = format!(
            r#"{{"error":{{"message":"no such key: {KEY} (Basic c2stZTJlLTAxMjM0NTY3ODlhYmNkZWY=)"}}}}"#
        );
        Answer::new(status, body)
            .header("x-request-id", format!("req-{KEY}"))
            .header("set-cookie", format!("key={KEY}"))
    };
    for answer in [
        quoting(401),
        quoting(500),
        quoting(307).header("location", format!("/{KEY}?key={KEY}")),
        Answer::new(200, format!("data: {{{KEY}\n\ndata: [DONE]\n\n")),
    ] {
        let mock = Mock::with(move |_| answer.clone());
        let ended = scratch
            .dsh()
            .provider(&mock)
            .env("DEEPSEEK_API_KEY", KEY)
            .env("RUST_LOG", "trace")
            .headless()
            .patch(scratch.write_beside("soon.yml", include_str!("retry-soon.yml")))
            .arg("Go")
            .run();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("[credential]"), "{ended:?}");
        assert!(
            ended.stderr.lines().all(|line| line.starts_with("dsh: ")),
            "{ended:?}"
        );
        let said = format!("{}{}", ended.stdout, ended.stderr);
        for form in [KEY, "c2stZTJlLTAxMjM0NTY3ODlhYmNkZWY"] {
            assert!(!said.contains(form), "{said}");
        }
    }
    // The log is looked into, as it holds what stands in the key's place.
    assert!(!scratch.files_with("no such key: [credential]").is_empty());
    for form in [KEY, "c2stZTJlLTAxMjM0NTY3ODlhYmNkZWY"] {
        assert_eq!(scratch.files_with(form), Vec::<String>::new(), "{form}");
    }
}
