//! A survey is what the sequential scan and the session's rules say of the same bytes, or nothing.

use dsh_session::{Session, Stored, closers, interpret};

use super::*;
use crate::layout::Compression;
use crate::scan::scan;
use crate::testing::{cases, recorded_cases};

/// What a watch is given.
#[derive(Default)]
struct Seen(Vec<Arc<Event>>);

impl Watch for Seen {
    fn begin(&mut self, _: &Header) {
        self.0.clear();
    }
    fn event(&mut self, event: &Arc<Event>) {
        self.0.push(event.clone());
    }
}

/// Whether there is a survey; panics where it differs from the slow way.
fn agree(bytes: &[u8], threads: usize) -> bool {
    let mut seen = Seen::default();
    let Some(survey) = survey(bytes, threads, &mut seen) else {
        return false;
    };
    let scanned = scan(bytes, Compression::Zstd).expect("a survey has a header");
    assert_eq!((&scanned.damage, scanned.torn), (&None, None));
    assert_eq!(survey.header, scanned.header);
    let log = interpret(&scanned.header, &scanned.stored).expect("a survey is of sound events");
    assert_eq!(log.migrated.len(), 0);
    let events = log.events;
    let others = |event: &&Arc<Event>| event.kind != dsh_session::Kind::AssistantChunk;
    assert!(seen.0.iter().eq(events.iter().filter(others)));
    let (fold, length) = (&survey.fold, events.len() as u64);
    assert_eq!(
        (fold.next_seq().0, survey.index.end),
        (length, (bytes.len() as u64, length))
    );
    assert_eq!(fold.last(), events.last());
    let last = events
        .last()
        .map_or((Seq(0), 0), |last| (last.seq, last.time));
    let ours = fold
        .open_turn()
        .closers(last.0, last.1, dsh_session::REPAIR_TEXTS);
    assert_eq!(ours, closers(&events));
    // A header that no session can have is for the session to refuse.
    let mut bare = Header::new(scanned.header.id.clone(), 0);
    bare.seed_length = scanned.header.seed_length;
    let session = Session::restore(bare, events.clone(), 0).expect("a survey is of a sound log");
    assert_eq!(fold.surface().nodes(), session.surface().nodes());
    assert_eq!(
        fold.surface().replace_generation(),
        session.surface().replace_generation()
    );
    for event in &events {
        if event.kind != dsh_session::Kind::SessionEndSeed {
            assert_eq!(fold.last_of(&event.kind), session.last_of(&event.kind));
        }
    }
    let (ours, theirs) = (fold.inbox(), session.inbox());
    assert_eq!(ours.is_ok(), theirs.is_ok());
    let mut nodes: Vec<_> = survey.kept.keys().copied().collect();
    nodes.sort();
    let mut on_surface = fold.surface().nodes().to_vec();
    on_surface.sort();
    assert_eq!(nodes, on_surface);
    for (seq, event) in &survey.kept {
        assert_eq!(event, &events[seq.0 as usize]);
    }
    for event in &events {
        let (frame, first, count) = survey.index.find(event.seq.0).unwrap();
        assert!((first..first + count).contains(&event.seq.0) && frame.end <= bytes.len() as u64);
    }
    assert_eq!(survey.index.find(length), None);
    let lines = |stored: &Vec<Stored>| stored.len();
    assert_eq!(lines(&scanned.stored), events.len());
    true
}

/// Every Zstandard log of the conformance data, and every plain one as frames of a few lines.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    let dirs = [Some(cases()), recorded_cases()];
    for entry in dirs
        .iter()
        .flatten()
        .flat_map(|dir| std::fs::read_dir(dir).unwrap())
    {
        let dir = entry.unwrap().path();
        for name in ["input.jsonl.zstd", "frames.jsonl.zstd"] {
            corpus.extend(std::fs::read(dir.join(name)).ok());
        }
        let Ok(plain) = std::fs::read(dir.join("input.jsonl")) else {
            continue;
        };
        let lines: Vec<&[u8]> = plain.split_inclusive(|byte| *byte == b'\n').collect();
        if let Some((first, rest)) = lines.split_first() {
            let mut bytes = frame::encode(first).unwrap();
            for lines in rest.chunks(7) {
                bytes.extend(frame::encode(&lines.concat()).unwrap());
            }
            corpus.push(bytes);
        }
    }
    corpus.retain(|bytes| bytes.len() < 200_000);
    corpus
}

#[test]
fn every_log_is_surveyed_as_it_is_scanned_or_not_at_all() {
    let mut taken = 0;
    for bytes in corpus() {
        let alone = agree(&bytes, 1);
        assert_eq!(alone, agree(&bytes, 3));
        taken += usize::from(alone);
    }
    assert!(taken > 40, "{taken}");
}

#[test]
fn damaged_logs_are_surveyed_as_they_are_scanned_or_not_at_all() {
    let mut state = 0x0123_4567_89AB_CDEF_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    for bytes in corpus() {
        let frames = frame::scan(&bytes).complete;
        for _ in 0..12 {
            let mut damaged = bytes.clone();
            match below(4) {
                0 if !damaged.is_empty() => {
                    let at = below(damaged.len());
                    damaged[at] ^= 1 << below(8);
                }
                1 => damaged.truncate(below(bytes.len())),
                // A frame twice, or one left out: seqs repeat or have a gap.
                2 if !frames.is_empty() => {
                    let at = frames[below(frames.len())];
                    damaged.splice(at.end..at.end, bytes[at.start..at.end].to_vec());
                }
                3 if !frames.is_empty() => {
                    let at = frames[below(frames.len())];
                    damaged.drain(at.start..at.end);
                }
                _ => damaged.extend_from_slice(b"\n"),
            }
            let alone = agree(&damaged, 1);
            assert_eq!(alone, agree(&damaged, 2));
        }
    }
}
