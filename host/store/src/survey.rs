//! Opening a long log: its frames are decoded, checked and read on several threads, and folded in order as they come.
//!
//! A survey takes only logs without a fault, in frames that are whole and hold whole lines: what our writers write. For
//! anything else there is none, and [`crate::scan`] reads the log again from its start, one line after the other; it is
//! the judge of torn tails and damage, and nothing here repeats its rules. Sound logs come out the same both ways.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use dsh_session::{Event, Fold, Header, Seq, Stretch, StretchScanner};

use crate::frame::{self, Frame, QuickDecoder};
use crate::scan::{header, header_frame};

/// A thread takes so many bytes of frames at a time.
const TASK: usize = 64 * 1024;
/// Logs below this size are read on the thread that asks: starting others takes longer.
const ALONE: usize = 256 * 1024;
/// More threads than this wait for memory.
const MOST_THREADS: usize = 8;

/// A log that was read as a whole, none of it kept but what its fold needs.
pub(crate) struct Survey {
    pub(crate) header: Header,
    pub(crate) fold: Fold,
    /// The events on the surface.
    pub(crate) kept: HashMap<Seq, Arc<Event>>,
    pub(crate) index: FrameIndex,
}

/// Where events lie: for each frame that has any, its first byte and the seq of its first event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrameIndex {
    pub(crate) frames: Vec<(u64, u64)>,
    /// The first byte and the first seq behind them.
    pub(crate) end: (u64, u64),
}

impl FrameIndex {
    /// Whether frames and seqs ascend, as those of a file do.
    pub(crate) fn is_sound(&self) -> bool {
        self.frames
            .iter()
            .chain([&self.end])
            .is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1)
    }

    /// The bytes of the frame that holds `seq`, the seq of its first event, and how many it has.
    pub(crate) fn find(&self, seq: u64) -> Option<(std::ops::Range<u64>, u64, u64)> {
        let at = self.frames.partition_point(|frame| frame.1 <= seq);
        let &(start, first) = self.frames.get(at.checked_sub(1)?)?;
        let &(end, next) = self.frames.get(at).unwrap_or(&self.end);
        (seq < next).then_some((start..end, first, next - first))
    }
}

/// Folds a log while it is opened, in one pass and without any of it being kept: [`crate::Store::fold`].
pub trait Watch {
    /// The log begins. It may begin again, from its start: what was seen so far does not count then.
    fn begin(&mut self, header: &Header);
    /// The next event that is no chunk, in order.
    fn event(&mut self, event: &Arc<Event>);
}

/// Watches nothing.
impl Watch for () {
    fn begin(&mut self, _: &Header) {}
    fn event(&mut self, _: &Arc<Event>) {}
}

/// How many threads a file of so many bytes is worth.
pub(crate) fn threads(bytes: usize) -> usize {
    if bytes < ALONE {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS))
}

/// Reads a file of frames with so many threads; `None` when that is for [`crate::scan`] to do.
pub(crate) fn survey(bytes: &[u8], threads: usize, watch: &mut dyn Watch) -> Option<Survey> {
    let structure = frame::scan(bytes);
    if structure.torn.is_some() || structure.invalid.is_some() {
        return None;
    }
    let (first, frames) = structure.complete.split_first()?;
    let header = header(&header_frame(&bytes[first.start..first.end]).ok()?).ok()?;
    watch.begin(&header);
    let mut survey = Survey {
        fold: Fold::new(header.seed_length.unwrap_or(0)),
        header,
        kept: HashMap::new(),
        index: FrameIndex::default(),
    };
    let tasks = tasks(frames);
    if threads < 2 {
        let mut reader = Reader::new(bytes, &survey.header)?;
        for task in &tasks {
            survey.take(reader.read(task)?, watch)?;
        }
    } else {
        survey.take_all(bytes, &tasks, threads, watch)?;
    }
    survey.index.end = (bytes.len() as u64, survey.fold.next_seq().0);
    Some(survey)
}

/// Groups frames into tasks.
fn tasks(frames: &[Frame]) -> Vec<&[Frame]> {
    let mut tasks = Vec::new();
    let mut rest = frames;
    while let Some(first) = rest.first() {
        let length = rest.partition_point(|frame| frame.start < first.start + TASK);
        let (task, more) = rest.split_at(length);
        tasks.push(task);
        rest = more;
    }
    tasks
}

/// The stretches of a task, each with the start of its frame.
type Read = Vec<(u64, Stretch)>;

impl Survey {
    fn take_all(
        &mut self,
        bytes: &[u8],
        tasks: &[&[Frame]],
        threads: usize,
        watch: &mut dyn Watch,
    ) -> Option<()> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let header = self.header.clone();
        let (to, results) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..threads.min(tasks.len()) {
                let (to, next, stop, header) = (to.clone(), &next, &stop, &header);
                scope.spawn(move || {
                    let mut reader = Reader::new(bytes, header);
                    while !stop.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(task) = tasks.get(at) else { return };
                        let read = reader.as_mut().and_then(|reader| reader.read(task));
                        if to.send((at, read)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(to);
            let taken = self.take_in_order(&results, tasks.len(), watch);
            // Who still reads has nobody to read for.
            stop.store(true, Ordering::Relaxed);
            taken
        })
    }

    /// Folds results in the order of the tasks, whatever order they come in.
    fn take_in_order(
        &mut self,
        results: &mpsc::Receiver<(usize, Option<Read>)>,
        count: usize,
        watch: &mut dyn Watch,
    ) -> Option<()> {
        let mut early = BTreeMap::new();
        let mut due = 0;
        while due < count {
            let (at, read) = results.recv().ok()?;
            early.insert(at, read?);
            while let Some(read) = early.remove(&due) {
                self.take(read, watch)?;
                due += 1;
            }
        }
        Some(())
    }

    fn take(&mut self, read: Read, watch: &mut dyn Watch) -> Option<()> {
        for (start, stretch) in read {
            self.index.frames.push((start, stretch.first.0));
            stretch.events.iter().for_each(|event| watch.event(event));
            if !self.fold.take(stretch, &mut self.kept) {
                return None;
            }
        }
        Some(())
    }
}

/// What one thread reads with.
struct Reader<'a> {
    bytes: &'a [u8],
    decoder: QuickDecoder,
    lines: StretchScanner,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], header: &Header) -> Option<Self> {
        Some(Self {
            bytes,
            decoder: QuickDecoder::new().ok()?,
            lines: StretchScanner::new(header.id.clone()),
        })
    }

    fn read(&mut self, frames: &[Frame]) -> Option<Read> {
        let mut read = Read::with_capacity(frames.len());
        let mut with_chunks = None;
        for frame in frames {
            let plaintext = self.decoder.decode(&self.bytes[frame.start..frame.end])?;
            if plaintext.is_empty() {
                continue;
            }
            let stretch = self.lines.read(plaintext, false)?;
            if stretch.count > stretch.events.len() as u64 {
                with_chunks = Some((read.len(), frame));
            }
            read.push((frame.start as u64, stretch));
        }
        // The newest chunk of a log is one that each task's last chunk is a candidate for.
        if let Some((at, frame)) = with_chunks {
            let plaintext = self.decoder.decode(&self.bytes[frame.start..frame.end])?;
            let again = self.lines.read(plaintext, true)?;
            read[at].1.last_chunk = again.last_chunk;
        }
        Some(read)
    }
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
