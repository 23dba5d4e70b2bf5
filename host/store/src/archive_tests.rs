use std::fs;

use super::*;
use crate::storage::Disk;
use crate::testing::{quick_dir, todo_event};

/// A file of two frames, three events each.
fn two_frames(path: &Path) -> (FrameIndex, (u64, u64)) {
    let mut bytes = Vec::new();
    let mut index = FrameIndex::default();
    for first in [0, 3] {
        let lines: String = (first..first + 3)
            .map(|seq| todo_event(seq).line() + "\n")
            .collect();
        index.frames.push((bytes.len() as u64, first));
        bytes.extend(frame::encode(lines.as_bytes()).unwrap());
    }
    index.end = (bytes.len() as u64, 6);
    fs::write(path, bytes).unwrap();
    let revision = Disk.metadata(path).unwrap().revision;
    (index, (revision.0, revision.1))
}

fn archive(path: &Path, file: (u64, u64), index: FrameIndex) -> FrameArchive {
    FrameArchive::new(Arc::new(Disk), path, file, index)
}

#[test]
fn a_frame_gives_its_events_and_what_is_no_longer_there_an_error() {
    let dir = quick_dir();
    let path = dir.path().join("log");
    let (index, file) = two_frames(&path);
    let sound = archive(&path, file, index.clone());
    let piece = sound.piece(Seq(4)).unwrap();
    assert_eq!((piece.first, piece.events.len()), (Seq(3), 3));
    assert!(sound.piece(Seq(6)).is_err());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    let cut = archive(&path, file, index.clone());
    assert_eq!(cut.piece(Seq(1)).unwrap().first, Seq(0));
    assert_eq!(cut.piece(Seq(5)).unwrap_err().code(), "SESSION_READ_FAILED");
}

#[test]
fn a_frame_with_other_events_than_it_had_is_an_error() {
    let dir = quick_dir();
    let path = dir.path().join("log");
    let (index, file) = two_frames(&path);
    let mut more = index.clone();
    more.end.1 = 7;
    assert!(
        archive(&path, file, more).piece(Seq(4)).is_err(),
        "one event is gone"
    );
    let mut other = index.clone();
    other.frames[1].1 = 2;
    assert!(
        archive(&path, file, other).piece(Seq(3)).is_err(),
        "it begins with another"
    );
    let (dev, ino) = file;
    let replaced = archive(&path, (dev, ino + 1), index);
    assert!(replaced.piece(Seq(0)).is_err(), "another file");
}
