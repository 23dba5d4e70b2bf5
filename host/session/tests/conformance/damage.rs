//! Whatever a file holds, reading it ends with a session or an error.

use dsh_session::{Session, closers, interpret, interpret_prefix, scan};

use crate::cases::root;

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn read(bytes: &[u8]) {
    let Ok(scan) = scan::plain(bytes) else { return };
    // What was kept is what a file cut there holds.
    let again = scan::plain(&bytes[..scan.committed_bytes]).expect("the kept prefix is sound");
    assert_eq!(again.events.len(), scan.events.len());
    assert_eq!(again.issue, None);
    let (prefix, fault) = interpret_prefix(&scan.header, &scan.events);
    assert_eq!(
        interpret(&scan.header, &scan.events).is_ok(),
        fault.is_none()
    );
    let mut events = prefix.events;
    events.extend(closers(&events));
    if let Ok((mut session, _)) = Session::salvage(scan.header, events, 0) {
        let messages = session.messages().unwrap();
        assert_eq!(messages.digest(), session.digest().unwrap());
        let _ = (
            session.request_header(),
            session.request_context(),
            session.agent_preset(),
        );
    }
}

#[test]
fn damaged_files_give_a_session_or_an_error() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let pieces: [&[u8]; 8] = [
        b"\"",
        b"{",
        b"]",
        b"\\u",
        b"null",
        b"-0",
        b"\n",
        b"{\"type\":\"text-chunks\",\"seq0\":1}",
    ];
    let mut inputs = 0;
    for entry in std::fs::read_dir(root()).unwrap() {
        let Ok(bytes) = std::fs::read(entry.unwrap().path().join("input.jsonl")) else {
            continue;
        };
        if bytes.is_empty() || bytes.len() > 20_000 {
            continue;
        }
        inputs += 1;
        read(&bytes);
        for _ in 0..60 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(damaged.len());
                match random.below(4) {
                    0 => damaged[at] = random.below(256) as u8,
                    1 => drop(
                        damaged.drain(at..(at + random.below(12)).min(bytes.len() / 2).max(at)),
                    ),
                    2 => {
                        let piece = pieces[random.below(pieces.len())];
                        drop(damaged.splice(at..at, piece.iter().copied()));
                    }
                    _ => {
                        // A line again, or in another place.
                        let from = random.below(damaged.len());
                        let end = damaged[from..].iter().position(|byte| *byte == b'\n');
                        let line = damaged[from..end.map_or(from, |end| from + end + 1)].to_vec();
                        drop(damaged.splice(at..at, line));
                    }
                }
            }
            read(&damaged);
        }
    }
    assert!(inputs > 50);
}
