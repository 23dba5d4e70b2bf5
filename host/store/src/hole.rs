//! Holes: what a crash leaves where data was not synced and the file's size arrived before it.
//!
//! A file system writes an unsynced append sector by sector, in any order, and the new size on its own. After a crash,
//! what did not make it reads as zeros up to the end of its sector. Such a tail has a frame in it that does not decode, or a
//! line that is no JSON, with whole things after it; told by those alone it would be damage. But no writer ever writes a
//! run of zeros (JSON has none, a Zstandard block of it neither), so zeros up to the end of a sector, behind
//! the last whole batch, are proof that the batch there was never synced, as long as nothing shows that a
//! later batch was begun.
//!
//! This is our own rule. Upstream refuses such files; its recorded cases (`z-garbage-4`, `z-body-bitflip`,
//! `line-gap-turn-end` …) have no such zeros and stay damage. Left ambiguous, and damage, is a batch of which less than
//! [`FEWEST`] bytes are missing in a sector whose beginning is there: that takes a short write, too.

/// What a disk writes whole.
const SECTOR: usize = 512;

/// Compressed data has so many zeros by chance once in 2^64 times.
const FEWEST: usize = 8;

/// Finds zeros that end with a sector or with the file, behind `from`, where the last whole batch ends; gives where that
/// sector begins (or `from`, if that is in it). Fewer than [`FEWEST`] count when there is nothing else between.
pub(crate) fn find(bytes: &[u8], from: usize) -> Option<usize> {
    sectors(from, bytes.len()).find(|&start| ends_empty(bytes, start))
}

/// [`find`] that leaves a last, incomplete sector out, for a tail that is known to be cut off: its end proves nothing.
pub(crate) fn find_inside(bytes: &[u8], from: usize) -> Option<usize> {
    sectors(from, bytes.len())
        .filter(|start| end(*start) <= bytes.len())
        .find(|&start| ends_empty(bytes, start))
}

fn sectors(from: usize, len: usize) -> impl Iterator<Item = usize> {
    let first = (from < len).then_some(from);
    first.into_iter().chain((end(from)..len).step_by(SECTOR))
}

/// Where the sector that holds a byte ends.
fn end(at: usize) -> usize {
    (at / SECTOR + 1) * SECTOR
}

fn ends_empty(bytes: &[u8], start: usize) -> bool {
    let sector = &bytes[start..end(start).min(bytes.len())];
    let zeros = sector.iter().rev().take_while(|byte| **byte == 0).count();
    zeros == sector.len() || zeros >= FEWEST
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(len: usize, zeros: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes = vec![b'x'; len];
        bytes[zeros].fill(0);
        bytes
    }

    #[test]
    fn a_hole_is_zeros_up_to_the_end_of_a_sector_behind_what_was_synced() {
        assert_eq!(find(&file(2000, 512..1024), 100), Some(512));
        assert_eq!(find(&file(2000, 1016..1024), 100), Some(512));
        assert_eq!(find(&file(2000, 1017..1024), 100), None);
        assert_eq!(find(&file(2000, 512..1023), 100), None);
        // The rest of the sector in which the synced part ends, however little, and what there is of the last one.
        assert_eq!(find(&file(2000, 509..512), 509), Some(509));
        assert_eq!(find(&file(2000, 509..512), 508), None);
        assert_eq!(find(&file(1537, 1536..1537), 100), Some(1536));
        assert_eq!(find_inside(&file(1537, 1536..1537), 100), None);
        assert_eq!(find_inside(&file(2048, 1536..2048), 100), Some(1536));
        assert_eq!(find(&file(2000, 0..0), 2000), None);
        assert_eq!(find(&[], 0), None);
    }
}
