use std::collections::HashMap;

use super::*;

fn proxies(set: &[(&str, &str)]) -> Proxies {
    let set: HashMap<&str, &str> = set.iter().copied().collect();
    Proxies::from_env(|name| set.get(name).map(ToString::to_string))
}

fn through(proxies: &Proxies, url: &str) -> String {
    match proxies.of(&Origin::parse(url).unwrap()) {
        Ok(None) => String::from("directly"),
        Ok(Some(proxy)) => proxy.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_scheme_has_its_variable_and_all_proxy_stands_in() {
    for (set, http, https) in [
        (&[][..], "directly", "directly"),
        (
            &[("HTTPS_PROXY", "http://p:1"), ("http_proxy", "q:2")],
            "http://q:2 (http_proxy)",
            "http://p:1 (HTTPS_PROXY)",
        ),
        (
            &[("ALL_PROXY", "https://p"), ("HTTP_PROXY", "q")],
            "http://q (HTTP_PROXY)",
            "https://p (ALL_PROXY)",
        ),
        (
            &[("HTTPS_PROXY", " "), ("https_proxy", "p")],
            "directly",
            "http://p (https_proxy)",
        ),
        (
            &[("HTTPS_PROXY", "p"), ("https_proxy", "q")],
            "directly",
            "http://p (HTTPS_PROXY)",
        ),
        (
            &[("HTTP_PROXY", "q"), ("REQUEST_METHOD", "GET")],
            "directly",
            "directly",
        ),
    ] {
        let found = proxies(set);
        assert_eq!(through(&found, "http://a.example"), http, "{set:?}");
        assert_eq!(through(&found, "https://a.example"), https, "{set:?}");
    }
}

#[test]
fn this_machine_is_never_asked_through_a_proxy() {
    let all = proxies(&[("ALL_PROXY", "p:1")]);
    for url in [
        "http://localhost:8080",
        "http://LOCALHOST",
        "http://127.0.0.1:11434",
        "https://127.8.8.8",
        "http://[::1]",
        "http://[::ffff:127.0.0.1]",
        "http://2130706433",
    ] {
        assert_eq!(through(&all, url), "directly", "{url}");
    }
    for url in [
        "http://10.0.0.1",
        "http://localhost.example",
        "https://a.example",
    ] {
        assert_eq!(through(&all, url), "http://p:1 (ALL_PROXY)", "{url}");
    }
}

#[test]
fn no_proxy_names_domains_addresses_networks_and_ports() {
    for (list, covered, others) in [
        ("*", &["https://a.example", "http://1.2.3.4"][..], &[][..]),
        (
            "a.example",
            &[
                "https://a.example",
                "https://x.a.example:99",
                "https://A.EXAMPLE",
            ],
            &[
                "https://aa.example",
                "https://example",
                "https://a.example.org",
            ],
        ),
        (
            ".a.example",
            &["https://x.a.example"],
            &["https://a.example", "https://xa.example"],
        ),
        (
            "*.a.example",
            &["https://x.y.a.example"],
            &["https://a.example"],
        ),
        (
            "a.example:8443",
            &["https://a.example:8443"],
            &["https://a.example", "https://b.example:8443"],
        ),
        (
            " x , 10.0.0.0/8,,fd00::/8 ",
            &[
                "http://10.255.1.2",
                "http://[fd12::1]",
                "http://[::ffff:10.1.1.1]",
                "https://x",
            ],
            &["http://11.0.0.1", "http://[fe80::1]", "https://10.example"],
        ),
        (
            "0.0.0.0/0",
            &["http://9.9.9.9"],
            &["http://[2001:4860::1]", "https://a.example"],
        ),
        ("::/0", &["http://[2001:4860::1]"], &["http://9.9.9.9"]),
        (
            "192.168.1.7,[2001:db8::1]:443",
            &["http://192.168.1.7:8080", "https://[2001:db8::1]"],
            &[
                "http://192.168.1.8",
                "https://[2001:db8::1]:444",
                "https://[2001:db8::2]",
            ],
        ),
        // What cannot be read covers nothing and hides nothing behind it.
        (
            "10.0.0.0/33,a:b,.,b.example",
            &["https://b.example"],
            &["https://a", "http://10.0.0.1"],
        ),
    ] {
        let found = proxies(&[("ALL_PROXY", "p"), ("no_proxy", list)]);
        for url in covered {
            assert_eq!(through(&found, url), "directly", "{list}: {url}");
        }
        for url in others {
            assert_eq!(
                through(&found, url),
                "http://p (ALL_PROXY)",
                "{list}: {url}"
            );
        }
    }
}

#[test]
fn a_value_that_is_no_proxy_is_named_and_not_shown_and_nothing_goes_around_it() {
    for value in [
        "socks5://user:s3cret@p:1080",
        "socks5h://s3cret",
        "ftp://s3cret",
        "http://",
        "http://s3cret:99999",
        "http://s3cret\\x",
        "http://[s3cret]",
        "://s3cret",
        "http://user:s3cret@",
    ] {
        let found = proxies(&[("HTTPS_PROXY", value)]);
        let text = through(&found, "https://a.example");
        assert!(text.starts_with("HTTPS_PROXY "), "{value}: {text}");
        assert!(!text.contains("s3cret"), "{text}");
        assert_eq!(through(&found, "http://a.example"), "directly");
        assert_eq!(through(&found, "https://localhost"), "directly");
    }
    // What another variable makes superfluous is not looked at.
    let both = proxies(&[("ALL_PROXY", "socks5://x"), ("HTTPS_PROXY", "p")]);
    assert_eq!(
        through(&both, "https://a.example"),
        "http://p (HTTPS_PROXY)"
    );
}

#[test]
fn a_proxys_user_and_password_are_shown_nowhere() {
    let found = proxies(&[(
        "ALL_PROXY",
        "http://us3r:s3cr%40t@p.example:8080/p4th?qu3ry",
    )]);
    let proxy = found
        .of(&Origin::parse("https://a.example").unwrap())
        .unwrap();
    assert_eq!(proxy.unwrap().url.password(), Some("s3cr%40t"));
    let text = format!("{found:?} {}", through(&found, "https://a.example"));
    for hidden in ["us3r", "s3cr", "p4th", "qu3ry"] {
        assert!(!text.contains(hidden), "{text}");
    }
}
