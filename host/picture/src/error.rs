use std::io;
use std::path::PathBuf;

/// What keeps a picture from being taken in, or shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are none of the formats.
    #[error("this is no picture that models take{what}; use a PNG, JPEG, GIF or WebP file")]
    NotAPicture {
        /// ` (it looks like …)`, where that can be told.
        what: String,
    },
    /// The file is too large to be looked at.
    #[error("the picture has {bytes} bytes, and {max} are taken; make it smaller first")]
    TooLarge {
        /// What it has.
        bytes: u64,
        /// What is taken.
        max: u64,
    },
    /// It would take too much memory once it is decoded.
    #[error(
        "the picture is {width}x{height} pixels, which takes more than is decoded ({max} pixels, \
         or half as many of 16 bits); make it smaller first"
    )]
    TooManyPixels {
        /// Across.
        width: u32,
        /// Down.
        height: u32,
        /// What is taken.
        max: u64,
    },
    /// It begins as a picture and is none.
    #[error("the {format} is broken: {reason}; open it in a viewer and save it anew")]
    Broken {
        /// What it begins as.
        format: &'static str,
        /// The decoder's words.
        reason: String,
    },
    /// No picture is as small as that.
    #[error("no picture fits into {bytes} bytes; raise the bound")]
    NoRoom {
        /// The bound.
        bytes: usize,
    },
    /// It is no attachment's id.
    #[error("{0:?} is no attachment: an id is sha256: and 64 hexadecimal digits")]
    BadId(String),
    /// It is no variant's id.
    #[error("{0:?} is no picture that was rendered")]
    BadVariant(String),
    /// There is nothing of this id.
    #[error("the attachment {id} is gone: there is no {}", path.display())]
    Missing {
        /// The attachment.
        id: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// The file is not what its name says.
    #[error(
        "{} is damaged: its content is not that of its name; put the file back from a copy, or \
         remove it and attach the picture again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// For components and models.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAPicture { .. }
            | Self::Broken { .. }
            | Self::BadId(_)
            | Self::BadVariant(_) => "INVALID",
            Self::TooLarge { .. } | Self::TooManyPixels { .. } | Self::NoRoom { .. } => "LIMIT",
            Self::Missing { .. } => "NOT_FOUND",
            Self::Damaged { .. } | Self::Io { .. } => "UNAVAILABLE",
        }
    }
}
