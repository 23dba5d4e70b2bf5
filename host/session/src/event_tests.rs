use super::*;

const LINES: [&str; 5] = [
    r#"{"type":"turn/start","seq":0,"time":1700000000000,"data":{"turn":1}}"#,
    r#"{"type":"user/message","seq":2,"time":-5,"data":{"content":[],"id":"u1"},"surfaceOp":"append"}"#,
    r#"{"type":"assistant/message","seq":10,"time":0,"data":null,"sourceEventSeqs":[3,4],"surfaceOp":{"op":"replace","start":3,"end":4}}"#,
    r#"{"type":"acme/note","seq":13,"time":1,"data":{"k":1},"ignorable":true}"#,
    r#"{"type":"tool/result","seq":5,"time":1,"data":{},"surfaceOp":"append","sourceEventSeqs":[4]}"#,
];

#[test]
fn lines_come_out_as_they_went_in() {
    for line in LINES {
        assert_eq!(Event::parse(line).unwrap().line(), line);
    }
}

#[test]
fn other_orders_of_members_are_kept() {
    for line in [
        r#"{"seq":0,"type":"turn/start","data":1,"time":2}"#,
        r#"{"type":"user/message","seq":4,"time":0,"data":0,"sourceEventSeqs":[1],"surfaceOp":{"op":"replace","end":1,"start":1}}"#,
    ] {
        let event = Event::parse(line).unwrap();
        assert_eq!(event.line(), line);
        // An upgraded event is written anew.
        let new = event.upgraded(event.kind.clone(), Json::null());
        assert!(new.line().starts_with("{\"type\":") && new.line().contains("\"data\":null"));
    }
}

#[test]
fn unsound_envelopes_are_refused() {
    for line in [
        "[]",
        "null",
        "{}",
        r#"{"type":"turn/start","seq":0,"time":0}"#,
        r#"{"type":1,"seq":0,"time":0,"data":0}"#,
        r#"{"type":"turn/start","seq":-1,"time":0,"data":0}"#,
        r#"{"type":"turn/start","seq":0.5,"time":0,"data":0}"#,
        r#"{"type":"turn/start","seq":9007199254740992,"time":0,"data":0}"#,
        r#"{"type":"turn/start","seq":0,"time":1.5,"data":0}"#,
        r#"{"type":"turn/start","seq":0,"time":0,"data":0,"x":1}"#,
        r#"{"type":"turn/start","seq":0,"time":0,"data":0,"ignorable":false}"#,
    ] {
        assert_eq!(
            Event::parse(line).unwrap_err().code(),
            "EVENT_ENVELOPE_INVALID",
            "{line}"
        );
    }
    assert_eq!(Event::parse("{").unwrap_err().code(), "JSON_INVALID");
}

#[test]
fn surface_members_that_cannot_be_read_are_surface_faults() {
    let line = |op: &str| format!(r#"{{"type":"user/message","seq":1,"time":0,"data":0,{op}}}"#);
    for (op, want) in [
        (r#""surfaceOp":null"#, SurfaceFault::InvalidOp),
        (r#""surfaceOp":"replace""#, SurfaceFault::InvalidOp),
        (r#""surfaceOp":["append"]"#, SurfaceFault::InvalidOp),
        (
            r#""surfaceOp":{"op":"replace","start":0,"end":-1}"#,
            SurfaceFault::InvalidOp,
        ),
        (
            r#""surfaceOp":{"op":"replace","start":0,"end":0,"x":0}"#,
            SurfaceFault::InvalidOp,
        ),
        (
            r#""surfaceOp":"append","sourceEventSeqs":null"#,
            SurfaceFault::SourcesNotList,
        ),
        (
            r#""surfaceOp":"append","sourceEventSeqs":["0"]"#,
            SurfaceFault::SourcesItem,
        ),
    ] {
        match Event::parse(&line(op)).unwrap_err() {
            Error::Surface { fault, .. } => assert_eq!(fault, want, "{op}"),
            other => panic!("{op}: {other}"),
        }
    }
}

#[test]
fn drafts_of_foreign_kinds_are_ignorable_unless_told_otherwise() {
    assert!(Draft::new(Kind::from_name("acme/x"), Json::null()).ignorable);
    assert!(
        !Draft::new(Kind::from_name("acme/x"), Json::null())
            .ignorable(false)
            .ignorable
    );
    assert!(!Draft::new(Kind::TodoWrite, Json::null()).ignorable);
}
