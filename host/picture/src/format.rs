//! What a file is, by its first bytes: a name's ending is a wish.

use image::ImageFormat;

use crate::error::Error;

/// The formats that providers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lossless.
    Png,
    /// Without transparency.
    Jpeg,
    /// Read; its first picture alone.
    Gif,
    /// Read; its first picture alone.
    WebP,
}

impl Format {
    /// What these bytes begin as.
    ///
    /// # Errors
    /// None of the formats, and which other one, where that can be told.
    pub fn of(bytes: &[u8]) -> Result<Self, Error> {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        let holds = |at: usize, magic: &[u8]| bytes.get(at..at + magic.len()) == Some(magic);
        if starts(b"\x89PNG\r\n\x1a\n") {
            return Ok(Self::Png);
        }
        if starts(b"\xff\xd8\xff") {
            return Ok(Self::Jpeg);
        }
        if starts(b"GIF87a") || starts(b"GIF89a") {
            return Ok(Self::Gif);
        }
        if starts(b"RIFF") && holds(8, b"WEBP") {
            return Ok(Self::WebP);
        }
        let other = if bytes.is_empty() {
            "it is empty"
        } else if starts(b"BM") {
            "it looks like a BMP"
        } else if starts(b"II*\0") || starts(b"MM\0*") {
            "it looks like a TIFF"
        } else if starts(b"%PDF") {
            "it looks like a PDF"
        } else if holds(4, b"ftypavif") || holds(4, b"ftypavis") {
            "it looks like an AVIF"
        } else if holds(4, b"ftyphei") || holds(4, b"ftypmif1") || holds(4, b"ftyphev") {
            "it looks like a HEIC"
        } else if is_svg(bytes) {
            "it looks like an SVG"
        } else if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() {
            "it is text"
        } else {
            ""
        };
        let what = match other {
            "" => String::new(),
            other => format!(" ({other})"),
        };
        Err(Error::NotAPicture { what })
    }

    /// `image/…`.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
        }
    }

    pub(crate) fn decoder(self) -> ImageFormat {
        match self {
            Self::Png => ImageFormat::Png,
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Gif => ImageFormat::Gif,
            Self::WebP => ImageFormat::WebP,
        }
    }
}

fn is_svg(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(512)];
    let head = String::from_utf8_lossy(head);
    let head = head.trim_start_matches('\u{feff}').trim_start();
    head.starts_with("<svg") || (head.starts_with("<?xml") && head.contains("<svg"))
}
