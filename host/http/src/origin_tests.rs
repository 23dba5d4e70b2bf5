use super::*;

fn origin(url: &str) -> Result<String, HttpError> {
    Origin::parse(url).map(|origin| origin.to_string())
}

#[test]
fn an_origin_has_one_form_however_it_was_written() {
    let table = [
        ("https://api.example.com", "https://api.example.com"),
        (
            "https://API.Example.com:443/v1?q=1#f",
            "https://api.example.com",
        ),
        ("http://api.example.com:80", "http://api.example.com"),
        (
            "http://api.example.com:8080/",
            "http://api.example.com:8080",
        ),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://127.0.0.1:1/x", "http://127.0.0.1:1"),
        ("http://2130706433/", "http://127.0.0.1"),
        ("http://0x7f000001/", "http://127.0.0.1"),
        ("http://0177.0.0.1/", "http://127.0.0.1"),
        ("http://127.1/", "http://127.0.0.1"),
        ("http://127.0.0.1./", "http://127.0.0.1"),
        ("http://%31%32%37.0.0.1/", "http://127.0.0.1"),
        ("http://①②⑦.0.0.1/", "http://127.0.0.1"),
        ("http://[0:0:0:0:0:0:0:1]:9/", "http://[::1]:9"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]"),
    ];
    for (url, expected) in table {
        assert_eq!(origin(url).as_deref(), Ok(expected), "{url}");
    }
}

#[test]
fn an_address_in_any_spelling_is_known_as_one() {
    for url in [
        "http://2130706433",
        "http://0x7f.1",
        "http://[::ffff:7f00:1]",
        "http://[::1]",
    ] {
        let address = Origin::parse(url).unwrap().address().expect(url);
        assert_eq!(crate::scope(address), crate::Scope::Loopback, "{url}");
    }
    assert_eq!(Origin::parse("http://localhost").unwrap().address(), None);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let table = [
        "",
        "api.example.com",
        "//api.example.com",
        "https:",
        "https:api.example.com",
        "https:/api.example.com",
        "https://",
        "https:///api.example.com",
        "ftp://api.example.com",
        "file:///etc/passwd",
        "https://user@evil.example",
        "https://user:pw@evil.example",
        "https://@evil.example",
        "https://api.example.com\\@evil.example",
        "https://api.example.com.",
        "https://api.example.com\r\nx: y",
        "https://api.exa\tmple.com",
        " https://api.example.com",
        "https://api.example.com:99999",
        "http://256.256.256.256",
        "http://[::1",
        "http://exa mple.com",
    ];
    for url in table {
        assert_eq!(
            origin(url).map_err(|error| error.code()),
            Err("INVALID"),
            "{url}"
        );
    }
}

#[test]
fn origins_match_by_scheme_host_and_port() {
    let granted = Origin::parse("https://api.example.com/v1").unwrap();
    for (url, same) in [
        ("https://api.example.com/v2/chat?x", true),
        ("https://api.example.com:443", true),
        ("http://api.example.com", false),
        ("https://api.example.com:444", false),
        ("https://api.example.com.evil.example", false),
        ("https://evil.example/api.example.com", false),
        ("https://xapi.example.com", false),
    ] {
        assert_eq!(Origin::parse(url).unwrap() == granted, same, "{url}");
    }
}
