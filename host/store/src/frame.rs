//! Zstandard frames: one frame is one durable batch.
//!
//! Frames are walked by their structure first, without decoding, so that a torn end is
//! told from damage by shape alone: only a frame that the end of the file cuts off is
//! torn; anything else that is wrong is damage (spec/session.md §9.3). What is written
//! equals upstream's frames byte for byte: level 3, checksum, streamed so that the size is
//! unknown and the header is always `28 b5 2f fd 04 58`.

use std::cell::RefCell;
use std::io::{self, Read};

use zstd::stream::raw::{CParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::CCtx;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const LEVEL: i32 = 3;
/// How every frame begins that [`encode`] makes: magic, checksum but no size, a window of 2 MiB.
pub(crate) const HEAD: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58];

/// The most plaintext that one frame may hold. Far above any batch; a frame of a few
/// bytes can otherwise ask for all memory.
pub const MAX_FRAME_PLAINTEXT: usize = 1 << 31;

/// One complete frame, as byte offsets into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// The structure of a file of frames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frames {
    /// Complete frames, in order and without gaps from byte 0.
    pub complete: Vec<Frame>,
    /// Where a last frame starts that the end of the file cuts off.
    pub torn: Option<usize>,
    /// Where the structure stops making sense, and why. Frames before it stand.
    pub invalid: Option<Invalid>,
}

/// A place where bytes are no frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Start of the frame that is none.
    pub frame_start: usize,
    /// Byte that shows it.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

enum Walk {
    Complete { end: usize, blocks: usize },
    Torn,
    Invalid(usize, &'static str),
}

/// Walks the frames of a whole file.
pub fn scan(bytes: &[u8]) -> Frames {
    let mut frames = Frames::default();
    let mut start = 0;
    while start < bytes.len() {
        match walk(bytes, start) {
            Walk::Complete { end, .. } => {
                frames.complete.push(Frame { start, end });
                start = end;
            }
            Walk::Torn => {
                frames.torn = Some(start);
                break;
            }
            Walk::Invalid(offset, reason) => {
                frames.invalid = Some(Invalid {
                    frame_start: start,
                    offset,
                    reason,
                });
                break;
            }
        }
    }
    frames
}

/// Where the next frame may begin, at `from` or later.
pub(crate) fn find_magic(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let at = rest.windows(MAGIC.len()).position(|four| *four == MAGIC)?;
    Some(from + at)
}

/// The end of the first frame, as soon as `bytes` hold all of it.
///
/// # Errors
/// Where the bytes are no frame.
pub(crate) fn first(bytes: &[u8]) -> Result<Option<usize>, Invalid> {
    match walk(bytes, 0) {
        Walk::Complete { end, .. } => Ok(Some(end)),
        Walk::Torn => Ok(None),
        Walk::Invalid(offset, reason) => Err(Invalid {
            frame_start: 0,
            offset,
            reason,
        }),
    }
}

/// Walks one frame that starts at `start`.
fn walk(bytes: &[u8], start: usize) -> Walk {
    let Some(magic) = bytes.get(start..start + 4) else {
        return Walk::Torn;
    };
    if magic != MAGIC {
        return Walk::Invalid(start, "invalid frame magic");
    }
    let mut at = start + 4;
    let Some(&descriptor) = bytes.get(at) else {
        return Walk::Torn;
    };
    if descriptor & 0x18 != 0 {
        return Walk::Invalid(at, "reserved frame-header bit");
    }
    let single_segment = descriptor & 0x20 != 0;
    let window = usize::from(!single_segment);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = match descriptor >> 6 {
        0 => usize::from(single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    at += 1 + window + dictionary + content;
    let mut blocks = 0;
    loop {
        blocks += 1;
        let Some(head) = bytes.get(at..at + 3) else {
            return Walk::Torn;
        };
        let head = u32::from(head[0]) | u32::from(head[1]) << 8 | u32::from(head[2]) << 16;
        let size = (head >> 3) as usize;
        let stored = match (head >> 1) & 3 {
            0 | 2 => size,
            1 => 1,
            _ => return Walk::Invalid(at, "reserved block type"),
        };
        at += 3 + stored;
        if at > bytes.len() {
            return Walk::Torn;
        }
        if head & 1 == 1 {
            break;
        }
    }
    if descriptor & 4 != 0 {
        at += 4;
    }
    if at > bytes.len() {
        Walk::Torn
    } else {
        Walk::Complete { end: at, blocks }
    }
}

thread_local! {
    /// An encoder's tables are larger than most batches, so each thread that writes keeps its own.
    static ENCODER: RefCell<Option<Encoder<'static>>> = const { RefCell::new(None) };
}

/// Encodes one batch, which is never empty, as one frame. (Of an empty text libzstd knows the size, and says so.)
///
/// # Errors
/// Only when libzstd cannot allocate.
pub fn encode(plaintext: &[u8]) -> io::Result<Vec<u8>> {
    // Taken out, so that one that failed half-way is not used again.
    let mut encoder = match ENCODER.take() {
        Some(mut encoder) => {
            encoder.reinit()?;
            encoder
        }
        None => new_encoder()?,
    };
    let step = CCtx::out_size();
    let mut frame = Vec::with_capacity(plaintext.len() / 2 + 64);
    let mut input = InBuffer::around(plaintext);
    while input.pos() < plaintext.len() {
        frame.reserve(step);
        let at = frame.len();
        encoder.run(&mut input, &mut OutBuffer::around_pos(&mut frame, at))?;
    }
    loop {
        frame.reserve(step);
        let at = frame.len();
        if encoder.finish(&mut OutBuffer::around_pos(&mut frame, at), true)? == 0 {
            break;
        }
    }
    frame.shrink_to_fit();
    ENCODER.set(Some(encoder));
    Ok(frame)
}

fn new_encoder() -> io::Result<Encoder<'static>> {
    let mut encoder = Encoder::new(LEVEL)?;
    encoder.set_parameter(CParameter::ChecksumFlag(true))?;
    encoder.set_parameter(CParameter::ContentSizeFlag(false))?;
    Ok(encoder)
}

/// Decodes one complete frame and checks its checksum.
///
/// # Errors
/// `InvalidData` when the bytes are no sound frame, or hold more than `limit` bytes.
pub fn decode(frame: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut plaintext = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(frame)?.single_frame();
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(cap).read_to_end(&mut plaintext)?;
    if plaintext.len() > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("frame holds more than {limit} bytes"),
        ));
    }
    Ok(plaintext)
}

/// The most plaintext of one block.
const MAX_BLOCK: usize = 128 * 1024;
/// A frame that may hold more is left to [`decode`].
const MAX_QUICK: usize = 64 << 20;
/// The largest window that [`decode`] takes, as libzstd's streams do: 2^27 bytes.
const MAX_WINDOW_LOG: u8 = 27;

/// Decodes many frames with one context and one buffer. Gives what [`decode`] would give, or nothing.
pub(crate) struct QuickDecoder {
    context: zstd::bulk::Decompressor<'static>,
    plaintext: Vec<u8>,
}

impl QuickDecoder {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            context: zstd::bulk::Decompressor::new()?,
            plaintext: Vec::new(),
        })
    }

    /// The plaintext of one complete frame whose checksum holds. `None` when it is unsound, or larger than usual.
    pub(crate) fn decode(&mut self, frame: &[u8]) -> Option<&[u8]> {
        let Walk::Complete { end, blocks } = walk(frame, 0) else {
            return None;
        };
        let (single_segment, window) = (frame.get(4)? & 0x20 != 0, frame.get(5)?);
        let most = blocks.checked_mul(MAX_BLOCK)?;
        let wide = !single_segment && 10 + (window >> 3) > MAX_WINDOW_LOG;
        if end != frame.len() || most > MAX_QUICK || wide {
            return None;
        }
        self.plaintext.clear();
        self.plaintext.reserve(most);
        self.context
            .decompress_to_buffer(frame, &mut self.plaintext)
            .ok()?;
        Some(&self.plaintext)
    }
}

/// Decodes what a cut-off frame still gives: whole blocks, needing neither the end nor
/// the checksum. Nothing at all when the decoder objects (spec/session.md §5.3).
pub fn decode_torn(frame: &[u8]) -> Vec<u8> {
    let mut plaintext = Vec::new();
    let Ok(mut decoder) = Decoder::new() else {
        return plaintext;
    };
    let mut chunk = vec![0; zstd::zstd_safe::DCtx::out_size()];
    let mut input = InBuffer::around(frame);
    loop {
        let mut output = OutBuffer::around(chunk.as_mut_slice());
        let before = input.pos();
        if decoder.run(&mut input, &mut output).is_err() {
            return Vec::new();
        }
        let written = output.pos();
        plaintext.extend_from_slice(&chunk[..written]);
        if plaintext.len() > MAX_FRAME_PLAINTEXT {
            return Vec::new();
        }
        if written == 0 && input.pos() == before {
            return plaintext;
        }
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
