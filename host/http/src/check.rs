//! Whether the client can speak to providers from here.

use std::time::Duration;

use dsh_check::Finding;

use crate::address::Reach;

/// Variables that other programs take a proxy from.
const PROXIES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];

/// Reads the trust roots; sends nothing. `has` tells whether a variable is set.
pub fn check(has: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    found.push(
        match crate::client::make(true, Reach::Public, Duration::from_secs(1)) {
            Ok(_) => Finding::ok("trust roots for https are there"),
            Err(error) => Finding::wrong(format_args!(
                "the trust roots for https cannot be read: {error}; install the system's \
                 ca-certificates, or point SSL_CERT_FILE at a PEM file"
            )),
        },
    );
    let set = PROXIES
        .into_iter()
        .find(|name| has(name) || has(&name.to_ascii_lowercase()));
    if let Some(name) = set {
        found.push(Finding::warning(format_args!(
            "{name} is set, and dsh uses no proxy: providers are asked directly"
        )));
    }
    found
}

#[cfg(test)]
mod tests {
    use dsh_check::Level;

    use super::*;

    #[test]
    fn a_proxy_that_is_not_used_is_told_by_its_name() {
        let proxy = check(|name| name == "http_proxy");
        let told = proxy
            .iter()
            .find(|one| one.level == Level::Warning)
            .unwrap();
        assert!(told.what.starts_with("HTTP_PROXY is set"), "{told:?}");
        assert!(
            check(|_| false)
                .iter()
                .all(|one| one.level != Level::Warning)
        );
    }
}
