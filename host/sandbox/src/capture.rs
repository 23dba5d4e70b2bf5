//! An output stream as it is kept: its end in memory, and once it is longer
//! than that, all of it in a spill file.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::spill::MAX_SPILL;

/// Bytes of a stream that are kept in memory, however many were asked for.
const MAX_KEPT: usize = 16 << 20;

/// Makes the spill file, when it comes to that.
pub(crate) type MakeSpill<'a> = &'a dyn Fn() -> io::Result<(File, PathBuf)>;

enum Spill {
    NotNeeded,
    Open {
        file: File,
        path: PathBuf,
        written: usize,
    },
    Failed,
}

/// One stream.
pub(crate) struct Capture<'a> {
    max: usize,
    kept: Vec<u8>,
    total: u64,
    spill: Spill,
    make: MakeSpill<'a>,
}

impl<'a> Capture<'a> {
    pub(crate) fn new(max: u32, make: MakeSpill<'a>) -> Self {
        Capture {
            max: (max as usize).min(MAX_KEPT),
            kept: Vec::new(),
            total: 0,
            spill: Spill::NotNeeded,
            make,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if matches!(self.spill, Spill::NotNeeded) && self.total > self.max as u64 {
            // Until now everything was kept.
            self.spill = match (self.make)() {
                Ok((file, path)) => Spill::Open {
                    file,
                    path,
                    written: 0,
                },
                Err(_) => Spill::Failed,
            };
            let kept = std::mem::take(&mut self.kept);
            self.write(&kept);
            self.kept = kept;
        }
        self.write(bytes);
        self.kept.extend_from_slice(bytes);
        // Cut now and then rather than at each push.
        if self.kept.len() > self.max * 2 + (64 << 10) {
            self.kept.drain(..self.kept.len() - self.max);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Spill::Open { file, written, .. } = &mut self.spill {
            let bytes = &bytes[..bytes.len().min(MAX_SPILL - *written)];
            match file.write_all(bytes) {
                Ok(()) => *written += bytes.len(),
                Err(_) => self.spill = Spill::Failed,
            }
        }
    }

    /// The end of the stream, from a whole character on, and where all of it is:
    /// none where this is all, an empty path where the rest could not be kept.
    pub(crate) fn finish(mut self) -> (Vec<u8>, Option<PathBuf>) {
        if self.total > self.max as u64 {
            let cut = self.kept.len().saturating_sub(self.max);
            let broken = self.kept[cut..]
                .iter()
                .take(3)
                .take_while(|byte| **byte & 0xc0 == 0x80)
                .count();
            self.kept.drain(..cut + broken);
        }
        match self.spill {
            Spill::Open { path, .. } => (self.kept, Some(path)),
            // Cut, and not to be had whole: an empty path says so.
            Spill::Failed => (self.kept, Some(PathBuf::new())),
            Spill::NotNeeded => (self.kept, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> io::Result<(File, PathBuf)> {
        Err(io::Error::other("no spill"))
    }

    #[test]
    fn what_fits_is_kept_without_a_file() {
        let mut capture = Capture::new(5, &none);
        capture.push(b"123");
        capture.push(b"45");
        assert_eq!(capture.finish(), (b"12345".to_vec(), None));
    }

    #[test]
    fn of_what_does_not_fit_the_end_is_kept_and_all_of_it_spilled() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("spill");
        let make = || Ok((File::create(&path)?, path.clone()));
        let mut capture = Capture::new(1000, &make);
        let mut whole = Vec::new();
        for number in 0..50_000 {
            let line = format!("{number}\n");
            capture.push(line.as_bytes());
            whole.extend_from_slice(line.as_bytes());
        }
        let (kept, spilled) = capture.finish();
        assert_eq!(kept, whole[whole.len() - 1000..]);
        assert_eq!(std::fs::read(spilled.unwrap()).unwrap(), whole);
    }

    #[test]
    fn the_kept_end_starts_with_a_whole_character() {
        let mut capture = Capture::new(5, &none);
        capture.push("aääää".as_bytes());
        assert_eq!(capture.finish().0, "ää".as_bytes());
    }

    #[test]
    fn a_cut_that_could_not_be_spilled_is_told_from_a_stream_that_is_whole() {
        let mut capture = Capture::new(5, &none);
        capture.push(b"1234567");
        assert_eq!(capture.finish(), (b"34567".to_vec(), Some(PathBuf::new())));
    }
}
