//! Bytes to decoded events: the longest prefix that holds, and what comes after it.
//!
//! A torn tail is what a crash leaves and is normal; damage is anything else. In a plain
//! file the two are told apart by what follows (a finished turn after the fault means
//! that it was no crash), in a file of frames by structure alone, so there every fault inside
//! complete frames is damage (spec/session.md §5.2, §5.3). Either way the events before
//! it are kept.

use dsh_session::scan::LineScanner;
use dsh_session::{Header, Stored};

use crate::frame::{self, Frame, MAX_FRAME_PLAINTEXT};
use crate::layout::Compression;
use crate::load::Torn;
use crate::{Damage, DamageClass, Stage, hole};

/// The most plaintext that all frames of one log may hold together.
const MAX_PLAINTEXT: u64 = 1 << 33;

/// A decoded log, not yet judged by the session's rules.
pub(crate) struct Scanned {
    pub(crate) header: Header,
    /// Accepted events, those recovered from a torn frame included.
    pub(crate) stored: Vec<Stored>,
    pub(crate) torn: Option<Torn>,
    pub(crate) damage: Option<Damage>,
}

/// Scans a whole file.
///
/// An error means that there is no header, so that nothing can be opened.
pub(crate) fn scan(bytes: &[u8], compression: Compression) -> Result<Scanned, Damage> {
    match compression {
        Compression::None => plain(bytes),
        Compression::Zstd => frames(bytes),
    }
}

pub(crate) fn corrupt(offset: u64, seq: Option<u64>, reason: impl Into<String>) -> Damage {
    Damage {
        class: DamageClass::Corrupt,
        stage: Stage::Scan,
        offset: Some(offset),
        seq,
        reason: reason.into(),
    }
}

/// Reads the header line (without its newline).
pub(crate) fn header(line: &[u8]) -> Result<Header, Damage> {
    Header::parse_line(&String::from_utf8_lossy(line)).map_err(|e| Damage {
        class: e.class().into(),
        stage: Stage::Scan,
        offset: Some(0),
        seq: None,
        reason: e.to_string(),
    })
}

pub(crate) const NO_HEADER: &str = "the file is empty or ends before its header is complete";

fn plain(bytes: &[u8]) -> Result<Scanned, Damage> {
    let Some(end) = bytes.iter().position(|&b| b == b'\n') else {
        return Err(corrupt(0, None, NO_HEADER));
    };
    let header = header(&bytes[..end])?;
    let mut lines = LineScanner::new(0);
    let mut committed = end + 1;
    let mut at = committed;
    let mut damage = None;
    for line in bytes[at..].split_inclusive(|&b| b == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            break;
        };
        at += line.len();
        match lines.line(text) {
            Ok(true) => committed = at,
            Ok(false) => {}
            Err(_) if unsynced_lines(bytes, committed) => break,
            Err(e) => {
                damage = Some(corrupt(
                    committed as u64,
                    Some(lines.next_seq()),
                    e.to_string(),
                ));
                break;
            }
        }
    }
    let torn = (damage.is_none() && committed < bytes.len()).then_some(Torn {
        truncate_to: committed as u64,
        recovered: 0,
    });
    Ok(Scanned {
        header,
        stored: lines.into_events(),
        torn,
        damage,
    })
}

/// So much behind the last accepted line may be one unsynced batch.
const UNSYNCED: usize = 4 << 20;

/// Whether the first line that was not accepted, at `start`, has a [`hole`] in it, so that it was never synced. Lines do
/// not show where batches end, so a hole far from the end counts as damage: what follows it may have been synced.
fn unsynced_lines(bytes: &[u8], start: usize) -> bool {
    let rest = &bytes[start..];
    let line = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    rest.len() <= UNSYNCED && hole::find(bytes, start).is_some_and(|at| at <= start + line)
}

/// What begins at `start` and is no sound frame was never synced when it has a [`hole`] in it and no later frame was
/// begun, since a batch is appended only when the one before it is synced. Else it is damage.
fn cut_or_damage(
    bytes: &[u8],
    start: usize,
    found: Damage,
    torn: &mut Option<Torn>,
    damage: &mut Option<Damage>,
) {
    if hole::find(bytes, start).is_some() && frame::find_magic(bytes, start + 1).is_none() {
        *torn = Some(Torn {
            truncate_to: start as u64,
            recovered: 0,
        });
    } else {
        *damage = Some(found);
    }
}

/// What is wrong with complete frames.
enum Fault {
    /// The frame at this byte does not decode, and every line before it is whole.
    Frame(usize, Damage),
    /// What they hold.
    Lines(Damage),
}

fn frames(bytes: &[u8]) -> Result<Scanned, Damage> {
    let structure = frame::scan(bytes);
    let Some((first, rest)) = structure.complete.split_first() else {
        return Err(match structure.invalid {
            Some(at) => corrupt(at.offset as u64, None, at.reason),
            None => corrupt(0, None, NO_HEADER),
        });
    };
    let header = header(&header_frame(&bytes[first.start..first.end])?)?;
    let mut lines = LineScanner::new(0);
    let mut damage = None;
    let mut torn = None;
    match complete_frames(bytes, rest, &mut lines) {
        Err(Fault::Frame(start, found)) => {
            cut_or_damage(bytes, start, found, &mut torn, &mut damage);
        }
        Err(Fault::Lines(found)) => damage = Some(found),
        Ok(()) => {
            if let Some(at) = structure.invalid {
                let reason = format!("{} at byte {}", at.reason, at.offset);
                let found = corrupt(at.frame_start as u64, Some(lines.next_seq()), reason);
                cut_or_damage(bytes, at.frame_start, found, &mut torn, &mut damage);
            } else if let Some(start) = structure.torn {
                let before = lines.next_seq();
                // Around a hole the decoder may yield what nobody wrote, and there is no checksum to tell.
                if hole::find_inside(bytes, start).is_none() {
                    torn_frame(&bytes[start..], &mut lines);
                }
                let recovered = usize::try_from(lines.next_seq() - before).unwrap_or(usize::MAX);
                torn = Some(Torn {
                    truncate_to: start as u64,
                    recovered,
                });
            }
        }
    }
    Ok(Scanned {
        header,
        stored: lines.into_events(),
        torn,
        damage,
    })
}

/// The header line of a first frame, which holds exactly that.
pub(crate) fn header_frame(frame: &[u8]) -> Result<Vec<u8>, Damage> {
    let mut plaintext = frame::decode(frame, MAX_FRAME_PLAINTEXT)
        .map_err(|e| corrupt(0, None, format!("header frame: {e}")))?;
    match plaintext.iter().position(|&b| b == b'\n') {
        Some(end) if end + 1 == plaintext.len() => {
            plaintext.pop();
            Ok(plaintext)
        }
        _ => Err(corrupt(
            0,
            None,
            "the first frame does not hold exactly one header line",
        )),
    }
}

/// Feeds the frames after the header. Their text together must be accepted lines and nothing else; a line may go over
/// the edge of a frame.
fn complete_frames(bytes: &[u8], frames: &[Frame], lines: &mut LineScanner) -> Result<(), Fault> {
    let mut open = Vec::new();
    let mut open_since = 0;
    let mut total = 0;
    for frame in frames {
        let damage = |lines: &LineScanner, reason: String| {
            corrupt(frame.start as u64, Some(lines.next_seq()), reason)
        };
        let left = usize::try_from(MAX_PLAINTEXT - total).unwrap_or(usize::MAX);
        let limit = MAX_FRAME_PLAINTEXT.min(left);
        let plaintext = frame::decode(&bytes[frame.start..frame.end], limit).map_err(|e| {
            let found = damage(lines, format!("frame: {e}"));
            if open.is_empty() {
                Fault::Frame(frame.start, found)
            } else {
                Fault::Lines(found)
            }
        })?;
        total += plaintext.len() as u64;
        for part in plaintext.split_inclusive(|&b| b == b'\n') {
            let Some(text) = part.strip_suffix(b"\n") else {
                if open.is_empty() {
                    open_since = frame.start;
                }
                open.extend_from_slice(part);
                break;
            };
            let accepted = if open.is_empty() {
                lines.line(text)
            } else {
                open.extend_from_slice(text);
                let accepted = lines.line(&open);
                open.clear();
                accepted
            };
            match accepted {
                Ok(true) => {}
                Ok(false) => {
                    let reason = lines.issue().map_or_else(
                        || "a line was not accepted".to_owned(),
                        |issue| issue.to_string(),
                    );
                    return Err(Fault::Lines(damage(lines, reason)));
                }
                Err(e) => return Err(Fault::Lines(damage(lines, e.to_string()))),
            }
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(Fault::Lines(corrupt(
            open_since as u64,
            Some(lines.next_seq()),
            "the last line has no end",
        )))
    }
}

/// Feeds the whole lines that a cut-off frame still gives.
fn torn_frame(frame: &[u8], lines: &mut LineScanner) {
    let plaintext = frame::decode_torn(frame);
    for line in plaintext.split_inclusive(|&b| b == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            return;
        };
        if !matches!(lines.line(text), Ok(true)) {
            return;
        }
    }
}
