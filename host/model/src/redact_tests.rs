use super::*;

fn clean(text: &str, key: &str) -> String {
    redact(text, &Secret::new(key))
}

#[test]
fn a_key_is_found_as_it_is_and_in_the_encodings_that_gateways_use() {
    let key = "sk-a/b+c=\"12\\34";
    for (text, rest) in [
        (format!("bad key {key}."), "bad key [credential]."),
        (format!("{key}{key}"), "[credential][credential]"),
        (
            r#"{"key":"sk-a/b+c=\"12\\34"}"#.to_owned(),
            r#"{"key":"[credential]"}"#,
        ),
        (
            "?key=sk-a%2Fb%2Bc%3D%2212%5C34&x".to_owned(),
            "?key=[credential]&x",
        ),
        (
            "?key=sk-a%2fb%2bc%3d%2212%5c34&x".to_owned(),
            "?key=[credential]&x",
        ),
    ] {
        assert_eq!(clean(&text, key), rest);
    }
    for before in ["", "u", "us", "use", "Bearer"] {
        for after in ["", "x", "xy", "xyz"] {
            let whole = format!("{before}{key}{after}");
            for encoded in [
                STANDARD_NO_PAD.encode(&whole),
                URL_SAFE_NO_PAD.encode(&whole),
                base64::engine::general_purpose::STANDARD.encode(&whole),
            ] {
                let clean = clean(&format!("got Basic {encoded} here"), key);
                assert!(clean.contains(MARK), "{before}|{after}: {clean}");
                assert!(
                    clean.starts_with("got Basic ") && clean.ends_with(" here"),
                    "{clean}"
                );
                // What is left is no key: a few characters at either side.
                assert!(clean.len() < 48, "{before}|{after}: {clean}");
            }
        }
    }
}

#[test]
fn a_key_is_found_in_any_case_as_hosts_and_codes_have_it() {
    let key = "sk-nc-SECRETKEY-0123456789abcdef";
    for (text, rest) in [
        (
            format!("to https://{}.example/{key}", key.to_lowercase()),
            "to https://[credential].example/[credential]",
        ),
        (
            format!("{}: ended", key.to_uppercase()),
            "[credential]: ended",
        ),
    ] {
        assert_eq!(clean(&text, key), rest);
    }
    let failure = LlmFailure::new(&"a1b2c3d4e5f6g7h8".to_uppercase(), "x");
    let failure = failure.without(&Secret::new("a1b2c3d4e5f6g7h8"));
    assert_eq!(failure.code, "[credential]");
    // Letters of a short one are words.
    assert_eq!(
        clean("None, NONE, none", "none"),
        "None, NONE, [credential]"
    );
}

#[test]
fn a_key_that_a_cut_goes_through_is_found_as_well() {
    let key = "sk-nc-SECRETKEY-0123456789abcdef";
    for (text, rest) in [
        // Where the text ends, or says that it was cut.
        ("bad key sk-nc-SE", "bad key [credential]"),
        ("bad key SK-NC-SECRETKEY-01…", "bad key [credential]…"),
        (
            "\"bad key sk-nc-SECR...\" it said",
            "\"bad key [credential]...\" it said",
        ),
        // Anywhere, when it is too long to be chance.
        (
            "to https://h/sk-nc-secret, which",
            "to https://h/[credential], which",
        ),
        (
            "a page: sk-nc-SECRETKEY-0123, no stream",
            "a page: [credential], no stream",
        ),
        // What may be chance.
        ("bad key sk-nc-S", "bad key sk-nc-S"),
        (
            "keys begin with sk-nc-SECRE, it said",
            "keys begin with sk-nc-SECRE, it said",
        ),
        ("käsk-nc-é…", "käsk-nc-é…"),
    ] {
        assert_eq!(clean(text, key), rest);
    }
    for end in 12..key.len() {
        let page = STANDARD_NO_PAD.encode(key);
        let text = format!("a page: {}", &page[..end]);
        assert_eq!(clean(&text, key), "a page: [credential]", "{end}");
    }
    // A short one has no beginnings.
    assert_eq!(clean("ollama-", "ollama-1"), "ollama-");
}

#[test]
fn a_short_key_is_taken_out_as_a_word_and_the_shortest_not_at_all() {
    for (key, text, rest) in [
        ("x", "x marks the x", "x marks the x"),
        ("key", "bad key key", "bad key key"),
        (
            "none",
            "none of it: \"none\"",
            "[credential] of it: \"[credential]\"",
        ),
        (
            "none",
            "nonesuch and non-none, none_",
            "nonesuch and non-none, none_",
        ),
        ("test", "test", "[credential]"),
        ("tété", "tété été", "[credential] été"),
        ("aaaa", "aaaaa aaaa", "aaaaa [credential]"),
        ("ollama1", "ollama11 ollama1!", "ollama11 [credential]!"),
        ("12345678", "x12345678y", "x[credential]y"),
    ] {
        assert_eq!(clean(text, key), rest, "{key}");
    }
}

#[test]
fn a_text_without_the_key_stays_as_it_is() {
    for key in ["sk-test-1", "abcd", "a", "", "%%%%%%%%"] {
        for text in ["", "rate limit reached", "käse \u{1f980}", "%25%25"] {
            assert_eq!(clean(text, key), text, "{key}");
        }
    }
}

#[test]
fn a_failure_keeps_its_code_and_its_facts() {
    let failure = LlmFailure {
        status: Some(401),
        request_id: Some(String::from("req-sk-test-0001-7")),
        ..LlmFailure::new("AUTH", "no such key: sk-test-0001")
    };
    let clean = failure.without(&Secret::new("sk-test-0001"));
    assert_eq!((&*clean.code, clean.status), ("AUTH", Some(401)));
    assert_eq!(clean.message, "no such key: [credential]");
    assert_eq!(clean.request_id.as_deref(), Some("req-[credential]-7"));
    // Whoever calls a key TRANSPORT gets to see how calls end.
    let named = LlmFailure::new("TRANSPORT", "TRANSPORT").without(&Secret::new("TRANSPORT"));
    assert_eq!(
        (&*named.code, &*named.message),
        ("TRANSPORT", "[credential]")
    );
    let quoted = LlmFailure::new("SK-0123456789ABCDEF", "x");
    let quoted = quoted.without(&Secret::new("SK-0123456789ABCDEF"));
    assert_eq!(quoted.code, "[credential]");
}
