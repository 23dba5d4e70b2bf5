use super::*;

type Seen = (Option<String>, String);

fn read(pieces: &[&[u8]]) -> Vec<Seen> {
    let mut events = Events::default();
    let mut found = Vec::new();
    for piece in pieces {
        events.push(piece, |event| {
            found.push((event.name.map(str::to_owned), event.data.to_owned()));
            true
        });
    }
    found
}

fn plain(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|(_, data)| data.as_str()).collect()
}

const STREAM: &[u8] =
    "\u{FEFF}data: a\r\n\r\n: note\ndata:b\rdata:  c\r\revent: x\nid: 1\nretry: 3\ndata\n\n\
    event: y\ndata: é🦀\ndatax: no\n\ndata\ndata: d\n\n\n\ndata: tail\n"
        .as_bytes();

#[test]
fn data_lines_join_and_a_blank_line_ends_an_event() {
    let seen = read(&[STREAM]);
    assert_eq!(plain(&seen), ["a", "b\n c", "é🦀", "\nd"]);
    let names: Vec<_> = seen.iter().map(|(name, _)| name.as_deref()).collect();
    assert_eq!(names, [None, None, Some("y"), None]);
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let whole = read(&[STREAM]);
    for first in 0..STREAM.len() {
        for second in first..STREAM.len() {
            let pieces = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
            assert_eq!(read(&pieces), whole, "{first} {second}");
        }
    }
}

#[test]
fn what_is_no_utf8_is_replaced_as_a_streaming_decoder_does_wherever_it_is_cut() {
    // A lone lead, a lead cut short by a line's end, a surrogate, an overlong form.
    let stream = b"data: a\xC3 b\xF0\x9F\ndata: \xED\xA0\x80\xC0\xAF\n\n";
    let whole = read(&[stream]);
    assert_eq!(
        plain(&whole),
        ["a\u{FFFD} b\u{FFFD}\n\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"]
    );
    for cut in 0..stream.len() {
        assert_eq!(read(&[&stream[..cut], &stream[cut..]]), whole, "{cut}");
    }
}

#[test]
fn a_tail_that_no_blank_line_ends_is_an_event_only_where_it_is_flushed() {
    for (stream, tail) in [
        (&b"event: x\ndata: a"[..], Some("a")),
        (b"data: a\n", Some("a")),
        (b"data: a\n\n", None),
        (b"event: x\n", None),
        (b"", None),
    ] {
        let mut events = Events::default();
        let mut seen = Vec::new();
        events.push(stream, |_| true);
        events.flush(|event| {
            seen.push(event.data.to_owned());
            true
        });
        assert_eq!(seen.first().map(String::as_str), tail, "{stream:?}");
    }
}

#[test]
fn stops_where_it_is_told_to() {
    let mut seen = 0;
    Events::default().push(b"data: 1\n\ndata: 2\n\n", |_| {
        seen += 1;
        false
    });
    assert_eq!(seen, 1);
}

#[test]
fn an_event_that_grows_over_the_bound_is_given_up() {
    let piece = vec![b'x'; 1024 * 1024];
    let lines = [b"data: ".to_vec(), piece.clone(), b"\n".to_vec()].concat();
    for (name, piece) in [("one line", &piece), ("many lines", &lines)] {
        let mut events = Events::default();
        let mut pushed = 0;
        while !events.is_too_long() {
            events.push(piece, |_| panic!("{name}: no event ends"));
            pushed += piece.len();
            assert!(pushed <= MAX_EVENT + 2 * piece.len(), "{name}");
        }
        events.push(b"\n\ndata: a\n\n", |_| {
            panic!("{name}: nothing is taken in")
        });
    }
}
