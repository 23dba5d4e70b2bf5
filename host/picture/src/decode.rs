//! From a stranger's bytes to pixels, under bounds that are checked before
//! anything of the size that the file claims is allocated.
//!
//! Of an animation the first picture is taken. Colours are taken as they stand:
//! a colour profile is not applied. Samples of 16 bits become 8, as no provider
//! looks at more. What a decoder might panic at is its file's fault and told so.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};

use crate::attachment::Dimensions;
use crate::error::Error;
use crate::format::Format;

/// Pixels of a picture: those of the largest cameras, and of a screen's wall.
pub(crate) const MAX_PIXELS: u64 = 64 << 20;

/// Bytes of its pixels, and what a decoder may take beside them.
const MAX_PIXEL_BYTES: u64 = 256 << 20;
const MAX_WORK_BYTES: u64 = 64 << 20;

/// A decoded picture. Which way up it is meant is not applied yet: that costs
/// less once it is small.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// Of 8 bits, grey or colour, with alpha only where some of it is not opaque.
    pub(crate) image: DynamicImage,
    pub(crate) orientation: Orientation,
    pub(crate) format: Format,
    /// Its format had lost detail already, so that losing more is no harm.
    pub(crate) lossy: bool,
}

impl Decoded {
    /// Its size, as it is looked at.
    pub(crate) fn seen(&self) -> Dimensions {
        let (width, height) = (self.image.width(), self.image.height());
        if turns(self.orientation) {
            Dimensions {
                width: height,
                height: width,
            }
        } else {
            Dimensions { width, height }
        }
    }

    pub(crate) fn is_upright(&self) -> bool {
        self.orientation == Orientation::NoTransforms
    }
}

/// Whether width and height change places.
pub(crate) fn turns(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    let format = Format::of(bytes)?;
    let broken = |reason: String| Error::Broken {
        format: format.name(),
        reason,
    };
    if format == Format::Jpeg && !jpeg_has_an_end(bytes) {
        return Err(broken("it ends before its picture does".to_owned()));
    }
    let decoded = catch_unwind(AssertUnwindSafe(|| pixels(bytes, format)));
    let (image, orientation) =
        decoded.unwrap_or_else(|_| Err(broken("its decoder gave up".to_owned())))?;
    let lossy = match format {
        Format::Jpeg => true,
        Format::WebP => webp_is_lossy(bytes),
        Format::Png | Format::Gif => false,
    };
    Ok(Decoded {
        image: plain(image),
        orientation,
        format,
        lossy,
    })
}

fn pixels(bytes: &[u8], format: Format) -> Result<(DynamicImage, Orientation), Error> {
    let failed = |error: ImageError| failure(format, &error);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_WORK_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format.decoder());
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(failed)?;
    let (width, height) = decoder.dimensions();
    let number = u64::from(width) * u64::from(height);
    if number > MAX_PIXELS || decoder.total_bytes() > MAX_PIXEL_BYTES {
        return Err(Error::TooManyPixels {
            width,
            height,
            max: MAX_PIXELS,
        });
    }
    if number == 0 {
        return Err(Error::Broken {
            format: format.name(),
            reason: "it has no pixels".to_owned(),
        });
    }
    // What a picture's own frame takes is allowed for, and little beside it.
    limits.max_alloc = Some(decoder.total_bytes() * 2 + MAX_WORK_BYTES);
    decoder.set_limits(limits).map_err(failed)?;
    // Metadata that cannot be read says nothing of which way is up.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(failed)?;
    Ok((image, orientation))
}

fn failure(format: Format, error: &ImageError) -> Error {
    let reason = match error {
        ImageError::Decoding(error) => error.to_string(),
        ImageError::IoError(_) => "it ends before its picture does".to_owned(),
        ImageError::Limits(_) => "decoding it takes more memory than a picture may".to_owned(),
        other => other.to_string(),
    };
    // A decoder's words may quote the file; they are shown to people and models.
    let mut line: String = reason
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect();
    line.truncate(line.trim_end_matches(['.', ' ']).len());
    Error::Broken {
        format: format.name(),
        reason: line,
    }
}

/// 8 bits a sample, and no alpha that says nothing.
fn plain(image: DynamicImage) -> DynamicImage {
    use DynamicImage as I;
    let image = match image {
        I::ImageLuma8(_) | I::ImageLumaA8(_) | I::ImageRgb8(_) | I::ImageRgba8(_) => image,
        I::ImageLuma16(_) => I::ImageLuma8(image.into_luma8()),
        I::ImageLumaA16(_) => I::ImageLumaA8(image.into_luma_alpha8()),
        other if other.color().has_alpha() => I::ImageRgba8(other.into_rgba8()),
        other => I::ImageRgb8(other.into_rgb8()),
    };
    match image {
        I::ImageLumaA8(pixels) if pixels.pixels().all(|pixel| pixel.0[1] == u8::MAX) => {
            I::ImageLuma8(I::ImageLumaA8(pixels).into_luma8())
        }
        I::ImageRgba8(pixels) if pixels.pixels().all(|pixel| pixel.0[3] == u8::MAX) => {
            I::ImageRgb8(I::ImageRgba8(pixels).into_rgb8())
        }
        other => other,
    }
}

/// Whether the end mark is there, behind the first scan's head. The decoder fills
/// what is missing with grey, and a model would describe that.
fn jpeg_has_an_end(bytes: &[u8]) -> bool {
    let mut at = 2;
    loop {
        let (Some(0xff), Some(marker)) = (bytes.get(at), bytes.get(at + 1)) else {
            return false;
        };
        match marker {
            // Fill bytes and marks without a length.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xd9 => return true,
            0xda => break,
            _ => {
                let (Some(high), Some(low)) = (bytes.get(at + 2), bytes.get(at + 3)) else {
                    return false;
                };
                at += 2 + (usize::from(*high) << 8 | usize::from(*low));
            }
        }
    }
    bytes[at..].windows(2).any(|pair| pair == [0xff, 0xd9])
}

/// Whether its first picture is of the lossy kind.
fn webp_is_lossy(bytes: &[u8]) -> bool {
    let mut at = 12;
    while let Some(kind) = bytes.get(at..at + 4) {
        match kind {
            b"VP8 " => return true,
            b"VP8L" => return false,
            // A frame of an animation has its picture inside of it.
            b"ANMF" => at += 8 + 16,
            _ => {
                let Some(size) = bytes.get(at + 4..at + 8) else {
                    return false;
                };
                let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
                at = at.saturating_add(8 + size as usize + (size as usize & 1));
            }
        }
    }
    false
}
