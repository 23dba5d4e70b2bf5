//! Whether the client can speak to providers from here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use dsh_check::Finding;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

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
    found.extend(unread_roots(|name| std::env::var_os(name)));
    found.extend(proxies.told().into_iter().map(|told| match told {
        Ok(text) => Finding::ok(text),
        Err(text) => Finding::wrong(format_args!("{text}; until then nothing is sent")),
    }));
    let (past, unread) = proxies.past();
    if let Some(past) = past {
        found.push(Finding::ok(format_args!(
            "asked directly, past the proxy: {past} (NO_PROXY)"
        )));
    }
    for entry in unread {
        found.push(Finding::warning(format_args!(
            "NO_PROXY has {entry:?}, which is no name, address or net, and so keeps nothing from the proxy; write a.example, 10.0.0.7 or 10.0.0.0/8"
        )));
    }
    found
}

/// What the variables name that no certificate can come from. TLS reads what there is, and what
/// one of them names in vain is missed only when a server is not trusted.
fn unread_roots(get: impl Fn(&str) -> Option<OsString>) -> Vec<Finding> {
    let file = get("SSL_CERT_FILE").map(PathBuf::from);
    let folders = get("SSL_CERT_DIR").unwrap_or_default();
    let file = file.into_iter().map(|path| {
        let problem = no_certificates(&path);
        ("SSL_CERT_FILE", path, problem, "a PEM file of certificates")
    });
    let folders = std::env::split_paths(&folders)
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| {
            let problem = std::fs::read_dir(&path).err();
            let problem = problem.map(|error| format!("cannot be read ({error})"));
            ("SSL_CERT_DIR", path, problem, "folders of PEM files")
        });
    file.chain(folders)
        .filter_map(|(name, path, problem, wanted)| {
            Some(Finding::warning(format_args!(
                "{name} names {path:?}, which {}, so it makes nobody trusted; let it name {wanted}, or unset it",
                problem?
            )))
        })
        .collect()
}

/// Why no certificate comes from this file.
fn no_certificates(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Err(error) => return Some(format!("cannot be read ({error})")),
        // A pipe would be waited for.
        Ok(what) if !what.is_file() => return Some("is not a file".to_owned()),
        Ok(_) => {}
    }
    match CertificateDer::pem_file_iter(path) {
        Err(error) => Some(format!("cannot be read ({error})")),
        Ok(mut certificates) => {
            (!certificates.any(|one| one.is_ok())).then(|| "has no certificate in PEM".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use dsh_check::Level;

    use super::*;

    #[test]
    fn what_the_variables_name_in_vain_is_told() {
        let told = |name: &'static str, value: OsString| {
            unread_roots(|asked| (asked == name).then(|| value.clone()))
        };
        let folder = std::env::temp_dir().join(format!("dsh-roots-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("root.pem");
        std::fs::write(&file, mock_provider::Authority::new().pem()).unwrap();
        let (text, absent) = (folder.join("text"), folder.join("absent"));
        std::fs::write(&text, "words").unwrap();
        for (name, value, says) in [
            ("SSL_CERT_FILE", file.clone(), None),
            ("SSL_CERT_DIR", folder.clone(), None),
            ("SSL_CERT_FILE", "".into(), Some("cannot be read")),
            ("SSL_CERT_FILE", absent.clone(), Some("cannot be read")),
            ("SSL_CERT_FILE", text, Some("has no certificate in PEM")),
            ("SSL_CERT_FILE", folder.clone(), Some("is not a file")),
            ("SSL_CERT_DIR", absent.clone(), Some("cannot be read")),
            ("SSL_CERT_DIR", file, Some("cannot be read")),
        ] {
            let found = told(name, value.clone().into_os_string());
            let Some(says) = says else {
                assert_eq!(found, [], "{name} {value:?}");
                continue;
            };
            let [one] = &found[..] else {
                panic!("{name} {value:?}: {found:?}")
            };
            assert_eq!(one.level, Level::Warning);
            assert!(
                one.what
                    .starts_with(&format!("{name} names {value:?}, which {says}")),
                "{}",
                one.what
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(unread_roots(|_| None), []);
    }

    #[test]
    fn what_goes_past_a_proxy_is_told_and_what_is_no_exception_too() {
        let told = |list: &'static str, proxy: bool| -> Vec<(Level, String)> {
            let proxies = Proxies::from_env(|name| match name {
                "HTTP_PROXY" => proxy.then(|| "http://p:1".to_owned()),
                "NO_PROXY" => Some(list.to_owned()),
                _ => None,
            });
            let found = check(&proxies).into_iter();
            let found = found.filter(|one| one.what.contains("PROXY"));
            found.map(|one| (one.level, one.what)).collect()
        };
        let all = told("*, a.example", true);
        assert_eq!(
            all,
            [(
                Level::Ok,
                "http:// is asked directly, past its proxy: NO_PROXY has *".to_owned()
            )]
        );
        let some = told(
            " A.example,,*.b.example:80, 10.0.0.0/8, ::1,10.0.0.0/99,[::1,",
            true,
        );
        assert_eq!(
            some[1],
            (
                Level::Ok,
                "asked directly, past the proxy: a.example, .b.example:80, 10.0.0.0/8, ::1, ::1 (NO_PROXY)"
                    .to_owned()
            )
        );
        assert_eq!(some[2].0, Level::Warning);
        assert!(
            some[2].1.starts_with("NO_PROXY has \"10.0.0.0/99\""),
            "{some:?}"
        );
        assert_eq!(told("10.0.0.0/99", false), []);
    }

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
