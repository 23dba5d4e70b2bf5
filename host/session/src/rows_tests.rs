use super::*;

fn chunk(seq: u64, data: &str) -> Arc<Event> {
    let line = format!(r#"{{"type":"assistant/chunk","seq":{seq},"time":{seq},"data":{data}}}"#);
    Arc::new(Event::parse(&line).unwrap())
}

/// Chunks whose data differ in one thing each, members in several orders, payloads that look like what surrounds them.
fn data() -> Vec<String> {
    let payloads = [
        "",
        " ",
        "a",
        "é\u{1f600}",
        r#"\""#,
        r"\\",
        r"\n",
        r"\ud800",
        r#"a\"}}"#,
        "}}",
        "text",
        ",",
    ];
    let mut data = Vec::new();
    for text in payloads {
        for turn in ["1", "2", "1.5"] {
            data.push(format!(
                r#"{{"turn":{turn},"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#
            ));
        }
        data.push(format!(
            r#"{{"chunk":{{"text":"{text}","type":"reasoning-delta","index":0}},"step":1,"turn":1}}"#
        ));
        for id in ["c1", "c2"] {
            data.push(format!(
                r#"{{"turn":1,"step":1,"chunk":{{"type":"tool-call-delta","index":1,"id":"{id}","argumentsDelta":"{text}"}}}}"#
            ));
        }
        data.push(format!(
            r#"{{"turn":1,"step":1,"chunk":{{"type":"tool-call-delta","index":1,"id":"c1","name":"{text}","argumentsDelta":"{text}"}}}}"#
        ));
        data.push(format!(
            r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}","more":1}}}}"#
        ));
    }
    data
}

#[test]
fn a_chunk_that_is_taken_without_reading_is_what_reading_gives() {
    let data = data();
    let mut taken = 0;
    for one in &data {
        let first = chunk(0, one);
        let Some(head) = Chunk::of(&first) else {
            continue;
        };
        for other in &data {
            let event = chunk(1, other);
            if let Some(again) = head.again(&first, &event) {
                let read = Chunk::of(&event).expect("it may be packed");
                assert!(read.continues(&head), "{one} {other}");
                assert_eq!(again.payload, read.payload, "{one} {other}");
                taken += 1;
            }
        }
    }
    assert!(taken > 200, "{taken}");
}

#[test]
fn an_event_with_another_envelope_is_not_taken() {
    let text = r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"a"}}"#;
    let first = chunk(0, text);
    let head = Chunk::of(&first).unwrap();
    let marked =
        format!(r#"{{"type":"assistant/chunk","seq":1,"time":1,"data":{text},"ignorable":true}}"#);
    assert!(
        head.again(&first, &Event::parse(&marked).unwrap())
            .is_none()
    );
    let foreign = format!(r#"{{"type":"acme/chunk","seq":1,"time":1,"data":{text}}}"#);
    assert!(
        head.again(&first, &Event::parse(&foreign).unwrap())
            .is_none()
    );
}

#[test]
fn runs_of_any_payload_come_back_as_they_were() {
    let events: Vec<_> = (0..)
        .zip(["a", r#"\""#, "", r"\ud800", "b"])
        .map(|(seq, text)| {
            chunk(
                seq,
                &format!(
                    r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#
                ),
            )
        })
        .collect();
    let mut out = String::new();
    assert_eq!(write_batch(&events, true, &mut out), 1, "{out}");
    let back = decode_line(out.trim_end()).unwrap();
    let back: Vec<_> = back.iter().filter_map(Stored::event).cloned().collect();
    assert_eq!(back, events);
}
