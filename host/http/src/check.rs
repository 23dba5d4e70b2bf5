//! Whether the client can speak to providers from here.

use dsh_check::Finding;

use crate::address::Reach;
use crate::client::ClientConfig;
use crate::proxy::Proxies;

/// Reads the trust roots; sends nothing.
#[must_use]
pub fn check(proxies: &Proxies) -> Vec<Finding> {
    let mut found = Vec::new();
    found.push(
        match crate::client::make(true, Reach::Public, &ClientConfig::default(), None) {
            Ok(_) => Finding::ok("trust roots for https are there"),
            Err(error) => Finding::wrong(format_args!(
                "the trust roots for https cannot be read: {error}; install the system's \
                 ca-certificates, or point SSL_CERT_FILE at a PEM file"
            )),
        },
    );
    found.extend(proxies.told().into_iter().map(|told| match told {
        Ok(text) => Finding::ok(text),
        Err(text) => Finding::wrong(format_args!("{text}; until then nothing is sent")),
    }));
    found
}

#[cfg(test)]
mod tests {
    use dsh_check::Level;

    use super::*;

    #[test]
    fn proxies_are_told_and_one_that_cannot_be_used_is_wrong() {
        let told = |value: &'static str| {
            let proxies = Proxies::from_env(|name| (name == "https_proxy").then(|| value.into()));
            check(&proxies)
        };
        let fine = told("http://user:pass@p:1");
        let line = fine.iter().find(|one| one.what.contains("proxy")).unwrap();
        assert_eq!(line.level, Level::Ok);
        assert_eq!(
            line.what,
            "https:// is asked through the proxy http://p:1 (https_proxy)"
        );
        let broken = told("socks5://p");
        let line = broken
            .iter()
            .find(|one| one.what.contains("proxy"))
            .unwrap();
        assert_eq!(line.level, Level::Wrong);
        assert!(
            line.what.starts_with("https_proxy names a SOCKS proxy"),
            "{}",
            line.what
        );
        assert_eq!(check(&Proxies::default()).len(), 1);
    }
}
