//! What the client's tests share.
#![allow(dead_code, reason = "each test takes what it needs")]

use dsh_http::{Allowed, Bytes, Client, ClientConfig, Origin, Policy, Proxies, Reach, Request};
use mock_provider::{Authority, Mock};

pub(crate) fn named(url: &str) -> Policy {
    Policy::new(vec![Allowed {
        origin: Origin::parse(url).unwrap(),
        reach: Reach::Named,
    }])
}

pub(crate) fn post(url: impl Into<String>, body: &'static str) -> Request {
    Request {
        method: String::from("POST"),
        url: url.into(),
        headers: Vec::new(),
        body: Bytes::from_static(body.as_bytes()),
    }
}

/// Sends to a server and reads all of its answer.
pub(crate) async fn ask(client: &Client, mock: &Mock) -> Result<(u16, String), String> {
    ask_at(client, &mock.base_url()).await
}

pub(crate) async fn ask_at(client: &Client, url: &str) -> Result<(u16, String), String> {
    let told = |error: dsh_http::HttpError| format!("{}: {error}", error.code());
    let answer = client
        .send(post(url, "{}"), &named(url))
        .await
        .map_err(told)?;
    let status = answer.status;
    let body = answer.body.collect().await.map_err(told)?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

pub(crate) fn through(variables: &[(&str, String)]) -> Client {
    let proxies = Proxies::from_env(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    });
    Client::with(ClientConfig {
        proxies,
        ..ClientConfig::default()
    })
}

/// Runs a test in a process of its own, whose SSL_CERT_FILE is the certificate of the authority
/// that the test gets: what a process trusts is read once, from its environment.
pub(crate) fn trusting<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Authority) -> F) {
    trusting_by("SSL_CERT_FILE", name, test);
}

/// The same by `SSL_CERT_FILE`, or by `SSL_CERT_DIR` with the certificate in it.
pub(crate) fn trusting_by<F: Future<Output = ()>>(
    variable: &str,
    name: &str,
    test: impl FnOnce(Authority) -> F,
) {
    const MARK: &str = "DSH_TEST_TRUSTING";
    if let Some(file) = std::env::var_os(MARK) {
        let authority = Authority::new();
        std::fs::write(file, authority.pem()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        return runtime.block_on(test(authority));
    }
    let folder = std::env::temp_dir().join(format!("dsh-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("root.pem");
    let named = if variable == "SSL_CERT_DIR" {
        &folder
    } else {
        &file
    };
    let out = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env_remove("SSL_CERT_FILE")
        .env_remove("SSL_CERT_DIR")
        .env(variable, named)
        .env(MARK, &file)
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        out.status.success() && text(&out.stdout).contains("1 passed"),
        "{}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
}

/// Lets others work until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}
