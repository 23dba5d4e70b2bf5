//! The line scanner (`spec/session.md` §5.2, §7): what it accepts is dense, stays accepted, and is written as it was read.

use dsh_session::{Stored, rows, scan};

pub(crate) fn check(bytes: &[u8]) {
    let Ok(found) = scan::plain(bytes) else {
        return;
    };
    assert!(found.committed_bytes <= bytes.len());
    assert_eq!(bytes[found.committed_bytes - 1], b'\n', "a line ends there");
    for (expected, event) in (0..).zip(&found.events) {
        assert_eq!(event.seq().0, expected, "seq is dense");
    }
    let lines = lines(&found.events);
    let kept = &bytes[..found.committed_bytes];
    let again = scan::plain(kept).expect("the kept part is a log");
    assert!(again.issue.is_none() && again.committed_bytes == kept.len());
    assert_eq!(
        self::lines(&again.events),
        lines,
        "the kept part reads otherwise alone"
    );

    for (event, line) in found.events.iter().zip(&lines) {
        // Only the seq of a row's members is theirs; an event that looks like a row is none.
        let read = rows::decode_line(line).expect("a written event is read");
        assert_eq!(
            self::lines(&read),
            std::slice::from_ref(line),
            "seq {}",
            event.seq()
        );
    }
    let events: Option<Vec<_>> = found.events.iter().map(|e| e.event().cloned()).collect();
    let Some(events) = events else { return };
    for pack in [false, true] {
        let mut text = found.header.line();
        text.push('\n');
        rows::write_batch(&events, pack, &mut text);
        let read = scan::plain(text.as_bytes()).expect("what was written is a log");
        assert!(read.issue.is_none());
        let same = packed_alike(&self::lines(&read.events), &lines, pack);
        assert!(
            same,
            "writing with packing {pack} and reading gives other events"
        );
    }
}

fn lines(events: &[Stored]) -> Vec<String> {
    let line = |event: &Stored| {
        let mut line = String::new();
        event.write_line(&mut line);
        line
    };
    events.iter().map(line).collect()
}

/// Packing gives members of an event their usual order (§7), so there only the order may differ.
fn packed_alike(read: &[String], written: &[String], pack: bool) -> bool {
    read.len() == written.len()
        && read
            .iter()
            .zip(written)
            .all(|(read, written)| read == written || (pack && sorted(read) == sorted(written)))
}

fn sorted(line: &str) -> Vec<u8> {
    let mut bytes = line.as_bytes().to_vec();
    bytes.sort_unstable();
    bytes
}
