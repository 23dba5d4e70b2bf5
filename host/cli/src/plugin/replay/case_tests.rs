use super::*;

const CALL: &str = r#""generate":{"provider":"p","model":"m","messages":[]}"#;

fn with(member: &str) -> String {
    format!("{{{CALL},{member}}}")
}

fn generate(member: &str) -> String {
    format!(r#"{{"generate":{{"provider":"p","model":"m","messages":[],{member}}}}}"#)
}

#[test]
fn what_is_wrong_is_told_with_the_member_that_it_is_wrong_in() {
    for (text, says) in [
        ("", "not JSON at byte 0"),
        ("[]", "a case is an object with `generate`"),
        ("{}", "`generate` is missing"),
        (r#"{"generate":[]}"#, "`generate` is no object"),
        (r#"{"generate":{}}"#, "`generate.provider`"),
        (
            r#"{"generate":{"provider":"p","model":" ","messages":[]}}"#,
            "`generate.model`",
        ),
        (
            r#"{"generate":{"provider":7,"model":"m","messages":[]}}"#,
            "`generate.provider` is no text",
        ),
        (
            r#"{"generate":{"provider":"p","model":"m"}}"#,
            "`generate.messages` is missing",
        ),
        (
            r#"{"generate":{"provider":"p","model":"m","messages":{}}}"#,
            "`generate.messages` is no list",
        ),
        (
            r#"{"generate":{"provider":"p","model":"m","messages":["a"]}}"#,
            "`generate.messages[0]`",
        ),
        (&generate(r#""tools":[{},1]"#), "`generate.tools[1]`"),
        (&generate(r#""stop":["a",1]"#), "`generate.stop[1]`"),
        (&generate(r#""stop":"a""#), "`generate.stop` is no list"),
        (
            &generate(r#""temperature":"hot""#),
            "`generate.temperature`",
        ),
        (&generate(r#""maxTokens":-1"#), "`generate.maxTokens`"),
        (
            &generate(r#""maxTokens":5000000000"#),
            "`generate.maxTokens`",
        ),
        (&generate(r#""system":1"#), "`generate.system` is no text"),
        (
            &generate(r#""reasoningEffort":1"#),
            "`generate.reasoningEffort`",
        ),
        (&generate(r#""purpose":[]"#), "`generate.purpose`"),
        (&generate(r#""sessionId":{}"#), "`generate.sessionId`"),
        (&with(r#""provider":"q""#), "`provider` is \"q\""),
        (&with(r#""provider":1"#), "`provider` is no text"),
        (&with(r#""protocol":1"#), "`protocol`"),
        (&with(r#""baseURL":1"#), "`baseURL`"),
        (&with(r#""config":[]"#), "`config` is no object"),
        (&with(r#""apiKey":1"#), "`apiKey` is no text"),
        (&with(r#""anonymousUserId":1"#), "`anonymousUserId`"),
        (&with(r#""http":1"#), "`http` is no object"),
        (&with(r#""response":1"#), "`response` is no object"),
        (
            &with(r#""response":{"status":99}"#),
            "`response.status`: 99",
        ),
        (&with(r#""response":{"status":"200"}"#), "`response.status`"),
        (
            &with(r#""response":{"headers":[]}"#),
            "`response.headers` is no object",
        ),
        (
            &with(r#""response":{"headers":{"a":1}}"#),
            "`response.headers.a` is no text",
        ),
        (
            &with(r#""response":{"pieceBytes":3}"#),
            "`response.pieceBytes` is no list",
        ),
        (
            &with(r#""response":{"pieceBytes":[3,0]}"#),
            "`response.pieceBytes[1]`",
        ),
        (&with(r#""response":{"end":"sometimes"}"#), "`response.end`"),
        (&with(r#""response":{"body":1}"#), "`response.body`"),
        (
            &with(r#""response":{"callerAbortsAfterChunk":0}"#),
            "`response.callerAbortsAfterChunk`",
        ),
    ] {
        let why = Case::read(text).expect_err(text);
        assert!(why.contains(says), "{text}: {why}");
    }
}

#[test]
fn members_that_nobody_knows_are_named() {
    let case = Case::read(&with(
        r#""respnse":{},"http":{"bdy":1},"response":{"stat":1}"#,
    ))
    .unwrap();
    assert_eq!(case.unknown, ["`respnse`", "`http.bdy`", "`response.stat`"]);
    let case = Case::read(&generate(r#""effort":"low""#)).unwrap();
    assert_eq!(case.unknown, ["`generate.effort`"]);
}

#[test]
fn a_profile_is_put_below_its_provider_and_the_base_url_in_its_place() {
    let config = |protocol: &str| {
        let case = with(&format!(
            r#""protocol":"{protocol}","config":{{"baseURL":"{{baseURL}}/x","api":"a"}}"#
        ));
        Case::read(&case).unwrap().config
    };
    let own = |base: &str| serde_json::json!({"baseURL": base, "api": "a"});
    let below = |base: &str| serde_json::json!({"providers": {"p": own(base)}});
    assert_eq!(config("deepseek"), own("https://case.invalid/x"));
    assert_eq!(config("acme"), own("https://case.invalid/x"));
    assert_eq!(
        config("openai-completions"),
        below("https://case.invalid/v1/x")
    );
    assert_eq!(
        config("openai-responses"),
        below("https://case.invalid/v1/x")
    );
    assert_eq!(
        config("anthropic-messages"),
        below("https://case.invalid/x")
    );
    let case = with(r#""baseURL":"http://a\"b","config":{"baseURL":"{baseURL}"}"#);
    assert_eq!(Case::read(&case).unwrap().config["baseURL"], "http://a\"b");
}

#[test]
fn an_answer_is_cut_as_the_case_says_over_and_over() {
    let recording = |response: &str, bytes: &[u8]| {
        let case = Case::read(&with(&format!(r#""response":{response}"#))).unwrap();
        let recording = case.response.unwrap().with(bytes);
        let pieces: Vec<usize> = recording.pieces.iter().map(Bytes::len).collect();
        (recording, pieces)
    };
    assert_eq!(recording("{}", b"abcdef").1, [6]);
    assert_eq!(recording("{}", b"").1, [0; 0]);
    assert_eq!(
        recording(r#"{"pieceBytes":[1,3]}"#, b"abcdef").1,
        [1, 3, 1, 1]
    );
    let (recording, _) = recording(
        r#"{"status":503,"headers":{"Retry-After":"3"},"end":"destroy"}"#,
        b"",
    );
    assert_eq!((recording.status, recording.ending), (503, Ending::Cut));
    assert_eq!(
        recording.headers,
        [("retry-after".to_owned(), "3".to_owned())]
    );
}

#[test]
fn half_of_a_surrogate_pair_in_a_conversation_is_kept() {
    let case = r#"{"generate":{"provider":"p","model":"m","messages":[{"a":"\ud83d"}]}}"#;
    let case = Case::read(case).unwrap();
    assert_eq!(case.list("messages")[0].as_str(), r#"{"a":"\ud83d"}"#);
}
