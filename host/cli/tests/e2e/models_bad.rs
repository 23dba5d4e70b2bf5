//! What goes wrong between `dsh` and a provider, on each protocol: its code, its message for a person, and its place in
//! the log. A message says what was asked of whom and what came of it; no message holds a key.

use mock_provider::{Answer, End};
use serde_json::json;

use crate::support::{Ended, Scratch};

mod rig;

use rig::{
    ALL, Api, Completions, DeepSeek, KEY, Messages, Ran, Responses, always, base, begun,
    error_body, nothing_said, sse,
};

/// By one code at DeepSeek, by another elsewhere, as upstream's two adapters have it.
fn either(api: Api, deepseek: &'static str, others: &'static str) -> &'static str {
    if api == DeepSeek { deepseek } else { others }
}

/// An answer, the code that it comes to, how often it is asked for again, and words of the message.
type Bad = (Answer, &'static str, usize, &'static [&'static str]);

#[test]
fn an_answer_that_is_none_has_its_code_its_message_and_its_place_in_the_log() {
    let html = "<html><body>Please log in</body></html>";
    for api in ALL {
        let page = |status| Answer::new(status, html).header("content-type", "text/html");
        let error = |status, message, kind| Answer::new(status, error_body(message, kind));
        let garbage = b"data: \xff\xfe\n\n".to_vec();
        let long = format!("data: {}", "x".repeat(20 << 20));
        // Messages end by an event of their own only once they have begun.
        let empty = match api {
            DeepSeek | Messages => "EMPTY_RESPONSE",
            Completions | Responses => "TRANSPORT",
        };
        let cases: [Bad; 18] = [
            (
                page(200),
                "MALFORMED_RESPONSE",
                0,
                &["page of HTML", "base URL", "Please log in"],
            ),
            (page(502), "SERVER", 2, &["502"]),
            (sse(""), empty, 2, &["asked again 2 times"]),
            (
                sse(&nothing_said(api)),
                "EMPTY_RESPONSE",
                2,
                &["without saying anything"],
            ),
            (
                sse(&begun(api)).piece(garbage),
                either(api, "MALFORMED_RESPONSE", "PI_AI_ERROR"),
                0,
                &["not JSON"],
            ),
            (
                sse(&long),
                "MALFORMED_RESPONSE",
                0,
                &["more than 16777216 bytes"],
            ),
            (
                sse(&begun(api)),
                either(api, "STREAM_CLOSED", "TRANSPORT"),
                if api == DeepSeek { 0 } else { 2 },
                &["ended before"],
            ),
            (
                sse(&begun(api)).ending(End::Cut),
                "TRANSPORT",
                2,
                &["the other side closed it"],
            ),
            (
                error(401, "bad key", "authentication_error"),
                "AUTH",
                0,
                &["bad key", "; it was given E2E_KEY of the environment"],
            ),
            (
                error(403, "not yours", "permission_error"),
                "AUTH",
                0,
                &["not yours"],
            ),
            (
                error(402, "Insufficient Balance", "x"),
                "QUOTA",
                0,
                &["Insufficient Balance"],
            ),
            (
                error(429, "You exceeded your current quota", "insufficient_quota"),
                "QUOTA",
                0,
                &["your current quota"],
            ),
            (
                error(429, "slow down", "rate_limit"),
                "RATE_LIMIT",
                2,
                &["slow down", "asked again 2 times"],
            ),
            (error(500, "oh no", "api_error"), "SERVER", 2, &["oh no"]),
            (
                error(503, "overloaded", "overloaded_error"),
                "SERVER",
                2,
                &["overloaded"],
            ),
            (
                error(529, "overloaded", "overloaded_error"),
                "SERVER",
                2,
                &["overloaded"],
            ),
            (
                error(400, "no such field", "invalid_request_error"),
                "INVALID_REQUEST",
                0,
                &["no such field"],
            ),
            (
                Answer::new(302, "").header("location", "https://login.example/?token=x"),
                "HTTP_302",
                0,
                &[
                    "a redirect to https://login.example/, which is not followed",
                    "baseURL",
                ],
            ),
        ];
        for (answer, code, retries, says) in cases {
            let ran = Ran::of(api, &always(&answer));
            ran.failed(code, says);
            assert_eq!(
                ran.retries().len(),
                retries,
                "{api:?} {code}: {:?}",
                ran.ended
            );
            assert!(!ran.ended.stderr.contains("token"), "{:?}", ran.ended);
        }
    }
}

#[test]
fn a_finish_that_never_comes_is_waited_for_as_long_as_the_route_says() {
    for api in ALL {
        let mock = always(&sse(&begun(api)).ending(End::Stall));
        let ran = Ran::with(
            api,
            &base(api, &mock),
            &json!({"streamIdleTimeoutMs": 100}),
            |dsh| dsh,
        );
        ran.failed(
            "TIMEOUT",
            &["sent nothing for 100 ms", "asked again 2 times"],
        );
        assert_eq!(ran.retries().len(), 2);
    }
}

#[test]
fn bytes_that_are_no_utf_8_inside_of_a_text_are_replaced_and_the_answer_stands() {
    for api in [DeepSeek, Completions] {
        let mut bytes = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a".to_vec();
        bytes.extend_from_slice(b"\xff\xfeb\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        let mock = always(&sse("").piece(bytes).split(&[1]));
        let ran = Ran::of(api, &mock);
        ran.ended.answered("a\u{fffd}\u{fffd}b");
    }
}

#[test]
fn an_address_that_leads_nowhere_is_said_with_what_to_look_at() {
    for api in ALL {
        // A port that nobody has: bound and let go.
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        for (url, says) in [
            (format!("http://{free}"), "nothing listens there"),
            ("http://nowhere.invalid".to_owned(), "check its spelling"),
        ] {
            let ran = Ran::with(api, &url, &json!({}), |dsh| dsh);
            ran.failed(
                "TRANSPORT",
                &["could not connect to", says, "asked again 2 times"],
            );
        }
    }
}

/// It did not come to a session.
#[track_caller]
fn refused(ended: &Ended, scratch: &Scratch, says: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for word in says {
        assert!(
            ended.stderr.contains(word),
            "{word:?} is not in {:?}",
            ended.stderr
        );
    }
    assert!(
        scratch.listed().is_empty(),
        "nothing is stored of what did not start"
    );
}

#[test]
fn a_base_url_that_is_none_is_refused_at_the_start_with_its_place_and_without_its_password() {
    for api in ALL {
        let section = if api == DeepSeek {
            "llm-deepseek.baseURL"
        } else {
            "llm-pi-ai.providers.acme.baseURL"
        };
        for (url, says) in [
            ("not a url", "a space"),
            ("ftp://127.0.0.1/x", "must begin with https:// or http://"),
            ("http://", "names no host"),
            ("https://u:pass-word@127.0.0.1/", "a user or a password"),
        ] {
            let scratch = Scratch::new();
            scratch.write_home("settings.yaml", &api.settings(url, &json!({})).to_string());
            let dsh = scratch.dsh().env("E2E_KEY", KEY).headless();
            let ended = dsh.args(["--model", &api.model(), "Go"]).run();
            refused(&ended, &scratch, &["settings.yaml:1: ", section, says]);
            assert!(!ended.stderr.contains("pass-word"), "{ended:?}");
        }
    }
}

#[test]
fn a_key_that_is_missing_or_no_key_is_said_with_its_name_and_where_it_was_looked_for() {
    for api in ALL {
        let mock = always(&sse(&begun(api)));
        let url = base(api, &mock);
        let missing = Ran::with(api, &url, &json!({}), |dsh| dsh.without("E2E_KEY"));
        let places = [
            "E2E_KEY",
            "the environment",
            ".credentials.yaml",
            ".env",
            "dsh credentials set E2E_KEY",
        ];
        missing.failed("MISSING_CREDENTIAL", &places);
        let bad = Ran::with(api, &url, &json!({}), |dsh| {
            dsh.env("E2E_KEY", "sk with spaces")
        });
        bad.failed("INVALID_CREDENTIAL", &["E2E_KEY", "no API key has"]);
        assert!(!bad.ended.stderr.contains("sk with"));
        assert!(mock.requests().is_empty(), "nothing is sent without a key");
    }
}

#[test]
fn a_name_that_nobody_has_is_said_with_the_nearest() {
    for api in ALL {
        let scratch = Scratch::new();
        let nowhere = api.settings("http://127.0.0.1:1", &json!({}));
        scratch.write_home("settings.yaml", &nowhere.to_string());
        let asked = |model: &str| {
            scratch
                .dsh()
                .env("E2E_KEY", KEY)
                .headless()
                .args(["--model", model, "Go"])
                .run()
        };
        let says = |ended: &Ended, says: &[&str]| {
            assert_eq!(
                (ended.code, ended.stderr.lines().count()),
                (Some(1), 1),
                "{ended:?}"
            );
            for word in says {
                assert!(
                    ended.stderr.contains(word),
                    "{word:?} is not in {:?}",
                    ended.stderr
                );
            }
        };
        says(
            &asked("deepseek-oficial/m1"),
            &[
                "NO_ADAPTER",
                "did you mean deepseek-official?",
                "dsh models",
            ],
        );
        if api != DeepSeek {
            says(
                &asked("acmee/m1"),
                &["NO_ADAPTER", "did you mean acme?", "dsh models"],
            );
            // DeepSeek's own route serves what its catalogue does not know.
            says(
                &asked("acme/m1-lrge"),
                &["UNKNOWN_MODEL", "did you mean m1-large?", "dsh models"],
            );
        }
    }
}
