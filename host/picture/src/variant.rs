//! A picture as a model takes it, and its id: `sha256:<digest>`, then `.p<pixels>`
//! and `.b<bytes>` for the bounds that there are. The id alone is enough to make
//! the variant again, and has no character that JSON or a file's name minds.

use bytes::Bytes;
use image::ImageReader;
use std::io::Cursor;

use crate::attachment::AttachmentId;
use crate::decode::Decoded;
use crate::encode::{Encoded, Fit};
use crate::error::Error;
use crate::format::Format;

/// What a model takes; none where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Width times height.
    pub max_pixels: Option<u32>,
    /// Of the file, before it is written as text.
    pub max_bytes: Option<u32>,
}

impl Bounds {
    pub(crate) fn fit(self) -> Fit {
        Fit {
            pixels: self
                .max_pixels
                .map_or(u64::MAX, |pixels| u64::from(pixels.max(1))),
            side: u32::MAX,
            bytes: self.max_bytes.map_or(usize::MAX, |bytes| bytes as usize),
        }
    }
}

/// A variant of an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// As requests name it.
    pub id: String,
    /// `image/…`.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Bytes,
    /// Across, in pixels.
    pub width: u32,
    /// Down, in pixels.
    pub height: u32,
    /// Whether any part may be seen through.
    pub alpha: bool,
}

impl Variant {
    /// The attachment itself.
    pub(crate) fn whole(id: String, decoded: &Decoded, bytes: Vec<u8>) -> Self {
        let size = decoded.seen();
        Self {
            id,
            media_type: decoded.format.media_type(),
            bytes: bytes.into(),
            width: size.width,
            height: size.height,
            alpha: decoded.image.color().has_alpha(),
        }
    }

    pub(crate) fn made(id: String, made: Encoded) -> Self {
        Self {
            id,
            media_type: made.format.media_type(),
            bytes: made.bytes.into(),
            width: made.dimensions.width,
            height: made.dimensions.height,
            alpha: made.alpha,
        }
    }

    /// One that was written before, by its head.
    pub(crate) fn of(id: String, bytes: Vec<u8>) -> Result<Self, Error> {
        let format = Format::of(&bytes)?;
        let broken = |reason: String| Error::Broken {
            format: format.name(),
            reason,
        };
        let reader = ImageReader::with_format(Cursor::new(&bytes[..]), format.decoder());
        let decoder = reader
            .into_decoder()
            .map_err(|error| broken(error.to_string()))?;
        let (width, height) = image::ImageDecoder::dimensions(&decoder);
        let alpha = image::ImageDecoder::color_type(&decoder).has_alpha();
        drop(decoder);
        Ok(Self {
            id,
            media_type: format.media_type(),
            bytes: bytes.into(),
            width,
            height,
            alpha,
        })
    }
}

pub(crate) fn name(id: &AttachmentId, bounds: Bounds) -> String {
    use std::fmt::Write;
    let mut name = id.as_str().to_owned();
    if let Some(pixels) = bounds.max_pixels {
        let _ = write!(name, ".p{pixels}");
    }
    if let Some(bytes) = bounds.max_bytes {
        let _ = write!(name, ".b{bytes}");
    }
    name
}

/// What a variant's id says; only the one spelling that [`name`] has.
pub(crate) fn parse(text: &str) -> Result<(AttachmentId, Bounds), Error> {
    let bad = || Error::BadVariant(text.chars().take(120).collect());
    let mut parts = text.split('.');
    let id = AttachmentId::parse(parts.next().unwrap_or_default()).map_err(|_| bad())?;
    let mut bounds = Bounds::default();
    for part in parts {
        if let Some(pixels) = part.strip_prefix('p') {
            bounds.max_pixels = pixels.parse().ok();
        } else if let Some(bytes) = part.strip_prefix('b') {
            bounds.max_bytes = bytes.parse().ok();
        }
    }
    if name(&id, bounds) == text {
        Ok((id, bounds))
    } else {
        Err(bad())
    }
}
