//! From pixels to bytes within bounds.
//!
//! A picture keeps the kind that suits it: what was sharp stays lossless, what had
//! lost detail becomes a JPEG. Where that is too large, a JPEG is tried for what
//! can be one, coarser in steps, and then a smaller picture, until it fits.

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::imageops;
use image::metadata::Orientation;
use image::{DynamicImage, ImageResult};

use crate::attachment::Dimensions;
use crate::decode::{Decoded, turns};
use crate::error::Error;
use crate::format::Format;

/// Qualities of a JPEG, as they are tried.
const QUALITIES: [u8; 3] = [90, 80, 65];

/// What a picture has to fit into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) pixels: u64,
    pub(crate) side: u32,
    pub(crate) bytes: usize,
}

impl Fit {
    /// Whether these bytes of a picture of this size fit as they are.
    pub(crate) fn takes(&self, size: Dimensions, bytes: usize) -> bool {
        self.scaled(size) == size && bytes <= self.bytes
    }

    /// The largest size of the same shape that is within the bounds; never
    /// nothing in either direction.
    pub(crate) fn scaled(&self, size: Dimensions) -> Dimensions {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let pixels = (self.pixels as f64 / (width * height)).sqrt();
        let side = f64::from(self.side) / width.max(height);
        let scale = pixels.min(side);
        if scale >= 1.0 {
            return size;
        }
        let mut scaled = size.times(scale);
        // A side that cannot be shorter than one pixel leaves the other too long.
        let most = |other: u32| u32::try_from(self.pixels / u64::from(other)).unwrap_or(u32::MAX);
        if scaled.pixels() > self.pixels {
            scaled.width = scaled.width.min(most(scaled.height)).max(1);
            scaled.height = scaled.height.min(most(scaled.width)).max(1);
        }
        scaled
    }
}

/// A picture as it was written.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: Format,
    pub(crate) dimensions: Dimensions,
    pub(crate) alpha: bool,
}

/// Writes the picture upright, within the bounds.
pub(crate) fn fit(decoded: Decoded, fit: &Fit) -> Result<Encoded, Error> {
    let size = fit.scaled(decoded.seen());
    let mut image = upright(
        resized(decoded.image, size, decoded.orientation),
        decoded.orientation,
    );
    let alpha = image.color().has_alpha();
    let mut lossless = !decoded.lossy || alpha;
    loop {
        let dimensions = Dimensions {
            width: image.width(),
            height: image.height(),
        };
        let made = |bytes, format| Encoded {
            bytes,
            format,
            dimensions,
            alpha,
        };
        let mut smallest = usize::MAX;
        if lossless {
            for effort in [CompressionType::Fast, CompressionType::Default] {
                let bytes = written(|out| {
                    image.write_with_encoder(PngEncoder::new_with_quality(
                        out,
                        effort,
                        FilterType::Adaptive,
                    ))
                })?;
                if bytes.len() <= fit.bytes {
                    return Ok(made(bytes, Format::Png));
                }
                smallest = smallest.min(bytes.len());
                if bytes.len() / 3 * 2 > fit.bytes {
                    // More effort saves less than that, and takes ten times as long.
                    break;
                }
            }
        }
        if !alpha {
            for quality in QUALITIES {
                let bytes = written(|out| {
                    image.write_with_encoder(JpegEncoder::new_with_quality(out, quality))
                })?;
                if bytes.len() <= fit.bytes {
                    return Ok(made(bytes, Format::Jpeg));
                }
                smallest = smallest.min(bytes.len());
            }
            // Where that was not enough, a lossless one would be further off.
            lossless = false;
        }
        if dimensions.pixels() == 1 {
            return Err(Error::NoRoom { bytes: fit.bytes });
        }
        let scale = (fit.bytes as f64 / smallest as f64).sqrt() * 0.95;
        image = resized(
            image,
            dimensions.times(scale.clamp(0.1, 0.9)),
            Orientation::NoTransforms,
        );
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> ImageResult<()>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(|error| Error::Broken {
        format: "picture",
        reason: format!("it cannot be written again: {error}"),
    })?;
    Ok(bytes)
}

/// The picture at the size that it has once it is turned.
fn resized(image: DynamicImage, size: Dimensions, orientation: Orientation) -> DynamicImage {
    let (width, height) = if turns(orientation) {
        (size.height, size.width)
    } else {
        (size.width, size.height)
    };
    if (width, height) == (image.width(), image.height()) {
        return image;
    }
    // What is clear has a colour too, which must not run into what is not.
    let alpha = image.color().has_alpha();
    let image = if alpha { multiplied(image) } else { image };
    // By areas down to twice the size, which is quick, and by a good filter then.
    let near = |now: u32, then: u32| now.min(then.saturating_mul(2));
    let (w, h) = (near(image.width(), width), near(image.height(), height));
    let image = if (w, h) == (image.width(), image.height()) {
        image
    } else {
        image.thumbnail_exact(w, h)
    };
    let image = image.resize_exact(width, height, imageops::FilterType::CatmullRom);
    if alpha { divided(image) } else { image }
}

/// With each colour weighed by its alpha; back by [`divided`].
fn multiplied(image: DynamicImage) -> DynamicImage {
    let mut pixels = image.into_rgba8();
    for pixel in pixels.pixels_mut() {
        let alpha = u16::from(pixel.0[3]);
        for sample in &mut pixel.0[..3] {
            *sample = u8::try_from((u16::from(*sample) * alpha + 127) / 255).unwrap_or(u8::MAX);
        }
    }
    pixels.into()
}

fn divided(image: DynamicImage) -> DynamicImage {
    let mut pixels = image.into_rgba8();
    for pixel in pixels.pixels_mut() {
        let alpha = u16::from(pixel.0[3]).max(1);
        for sample in &mut pixel.0[..3] {
            let whole = (u16::from(*sample) * 255 + alpha / 2) / alpha;
            *sample = u8::try_from(whole).unwrap_or(u8::MAX);
        }
    }
    pixels.into()
}

fn upright(mut image: DynamicImage, orientation: Orientation) -> DynamicImage {
    image.apply_orientation(orientation);
    image
}
