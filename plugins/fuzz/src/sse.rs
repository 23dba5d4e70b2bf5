//! The reader of event streams (spec/llm.md §6.4) against one that has all bytes at hand, and against itself in pieces.

use adapter_support::sse::Events;

use crate::random::Random;

/// Name and data.
type Owned = (Option<String>, String);

/// The first byte says how the others are cut.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&cut, stream)) = bytes.split_first() else {
        return;
    };
    let expected = reference(stream);
    let whole = read([stream].into_iter());
    assert_eq!(whole, expected, "in one piece");
    let mut random = Random::new(u64::from(cut));
    let pieces = random.pieces(stream);
    assert_eq!(read(pieces.into_iter()), expected, "in pieces");
    assert_eq!(read(stream.chunks(1)), expected, "byte by byte");
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Owned> {
    let mut events = Events::default();
    let mut found = Vec::new();
    for piece in pieces {
        events.push(piece, |event| {
            found.push((event.name.map(str::to_owned), event.data.to_owned()));
            true
        });
    }
    assert!(!events.is_too_long());
    found
}

/// By the letter of the rules: lines first, then fields.
fn reference(stream: &[u8]) -> Vec<Owned> {
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut at = 0;
    while at < stream.len() {
        match stream[at] {
            b'\r' | b'\n' => {
                at += usize::from(stream[at] == b'\r' && stream.get(at + 1) == Some(&b'\n'));
                lines.push(Vec::new());
            }
            byte => lines.last_mut().expect("there is one").push(byte),
        }
        at += 1;
    }
    // No line end, no line.
    lines.pop();
    let mut found = Vec::new();
    let (mut name, mut data) = (String::new(), String::new());
    for (number, line) in lines.iter().enumerate() {
        let bom: &[u8] = "\u{feff}".as_bytes();
        let line = match line.strip_prefix(bom) {
            Some(rest) if number == 0 => rest,
            _ => line,
        };
        if line.is_empty() {
            // Each `data` field left a line feed behind it.
            if let Some(text) = data.strip_suffix('\n')
                && !text.is_empty()
            {
                let name = Some(name.clone()).filter(|name| !name.is_empty());
                found.push((name, text.to_owned()));
            }
            name.clear();
            data.clear();
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = colon.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 1..]));
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"data" => data += &format!("{value}\n"),
            b"event" => name = value.into_owned(),
            _ => {}
        }
    }
    found
}
