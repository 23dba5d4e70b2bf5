use super::*;

fn event(line: &str) -> Arc<Event> {
    Arc::new(Event::parse(line).unwrap())
}

fn log(lines: &[&str]) -> Vec<Result<Arc<Event>, Error>> {
    let with_seq = |(seq, line): (usize, &&str)| {
        let head = format!("\"seq\":{seq},\"time\":0,\"data\"");
        Ok(event(&line.replacen("\"data\"", &head, 1)))
    };
    lines.iter().enumerate().map(with_seq).collect()
}

const START: &str = r#"{"type":"step/start","data":{"turn":1,"step":1}}"#;
const END: &str = r#"{"type":"step/end","data":{"turn":1,"step":1}}"#;
const CHUNK: &str = r#"{"type":"assistant/chunk","data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"abcd"}}}"#;
const HEADER: &str = r#"{"type":"request/header","data":{"header":{"config":{"provider":"p","model":"m"}},"reason":"initial"}}"#;
const OTHER_HEADER: &str = r#"{"type":"request/header","data":{"header":{"config":{"provider":"p","model":"n"},"system":"abcd"},"reason":"change"}}"#;

fn message(step: u64, input: u64, sources: &str) -> String {
    format!(
        r#"{{"type":"assistant/message","data":{{"turn":1,"step":{step},"message":{{"role":"assistant","content":[{{"type":"text","text":"abcd"}}],"source":{{"kind":"model","provider":"p","model":"m"}},"id":"a"}},"usage":{{"inputTokens":{input},"outputTokens":1}}}}{sources},"surfaceOp":"append"}}"#
    )
}

#[test]
fn a_log_whose_steps_do_not_fit_is_not_measured() {
    let in_step = message(1, 50, "");
    let other = message(2, 50, "");
    let cites = message(1, 50, r#","sourceEventSeqs":[0]"#);
    let cases: [(&[&str], u64); 6] = [
        (&[START, START], 1),
        (&[END], 0),
        (&[START, END, END], 2),
        (&[&in_step], 0),
        (&[START, &other], 1),
        (&[HEADER, START, &cites], 2),
    ];
    for (lines, seq) in cases {
        let error = measure(log(lines)).unwrap_err();
        assert_eq!(error.code(), "TOKEN_METER_REFUSED");
        assert!(
            error.to_string().contains(&format!("seq {seq} ")),
            "{error}"
        );
    }
    // Without a header nothing has to be compared, so what is cited does not matter.
    assert!(measure(log(&[START, &cites])).is_ok());
}

#[test]
fn a_count_below_the_heuristic_is_not_believed_and_a_changed_header_loses_the_anchor() {
    let cites = |input| message(1, input, r#","sourceEventSeqs":[2]"#);
    let (low, high) = (cites(7), cites(8));
    let total = |lines: &[&str]| {
        let measured = measure(log(lines)).unwrap();
        (measured.baseline, measured.total)
    };
    let (baseline, sum) = total(&[HEADER, START, CHUNK, &low]);
    assert_eq!((baseline, sum), (Baseline::Estimated { tokens: 9 }, 9.0));
    let (baseline, sum) = total(&[HEADER, START, CHUNK, &high]);
    assert!(matches!(baseline, Baseline::Usage { .. }));
    assert_eq!(sum, 9.0);
    let (baseline, sum) = total(&[HEADER, START, CHUNK, &high, OTHER_HEADER]);
    assert_eq!((baseline, sum), (Baseline::Estimated { tokens: 14 }, 14.0));
    assert_eq!(total(&[]), (Baseline::None, 0.0));
    assert_eq!(total(&[HEADER]), (Baseline::Estimated { tokens: 0 }, 0.0));
}

#[test]
fn blocks_weigh_what_the_assembler_makes_of_chunks() {
    let weigh = |chunks: &[&str]| {
        let mut blocks = Blocks::default();
        for chunk in chunks {
            blocks.push(Json::normalise(chunk).unwrap().value());
        }
        blocks.tokens()
    };
    let call =
        r#"{"type":"tool-call-delta","index":1,"id":"c","name":"grep","argumentsDelta":"{}"}"#;
    let unnamed = r#"{"type":"tool-call-delta","index":1,"id":"c","argumentsDelta":"{}3"}"#;
    let cut = r#"{"type":"finish","reason":{"kind":"max-tokens"}}"#;
    assert_eq!(weigh(&[]), 0);
    assert_eq!(
        weigh(&[r#"{"type":"block-start","index":0,"blockType":"image"}"#]),
        0
    );
    assert_eq!(
        weigh(&[r#"{"type":"block-start","index":0,"blockType":"text"}"#]),
        8
    );
    // 4 for the message, 4 for the block, 1 for the name, 2 for five units of arguments.
    assert_eq!(weigh(&[call, unnamed]), 11);
    assert_eq!(weigh(&[call, unnamed, cut]), 0);
    // A closed block is what it says, whatever its deltas were, and stays so.
    let end = r#"{"type":"block-end","index":1,"block":{"type":"text","text":"abcdefgh"}}"#;
    assert_eq!(weigh(&[call, end, unnamed, call, cut]), 10);
    // Halves of a pair in two deltas are one character of two units.
    let half = |half: &str| format!(r#"{{"type":"text-delta","index":0,"text":"abc{half}"}}"#);
    assert_eq!(weigh(&[&half("\\ud83d"), &half("\\ude00")]), 10);
}

#[test]
fn what_was_there_before_the_step_is_in_its_anchor_and_what_leaves_is_taken_off() {
    let prompt = r#"{"type":"user/message","data":{"content":[{"type":"text","text":"abcd"}],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":"append"}"#;
    let replacement = prompt.replacen(
        r#""surfaceOp":"append""#,
        r#""sourceEventSeqs":[1,4],"surfaceOp":{"op":"replace","start":1,"end":4}"#,
        1,
    );
    let answer = message(1, 99, r#","sourceEventSeqs":[3]"#);
    let lines = [HEADER, prompt, START, CHUNK, &answer, END, &replacement];
    let deltas = |count: usize| {
        let measured = measure(log(&lines[..count])).unwrap();
        (measured.surface, measured.surface_delta, measured.total)
    };
    assert_eq!(deltas(2), (9, 0.0, 9.0));
    assert_eq!(deltas(5), (18, 0.0, 100.0));
    assert_eq!(deltas(7), (9, -9.0, 91.0));
}
