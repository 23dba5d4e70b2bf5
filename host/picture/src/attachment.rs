//! What the log holds of a picture (spec/llm.md §1.2).

use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::Error;

/// `sha256:` and 64 hexadecimal digits: the digest of the stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttachmentId(String);

const PREFIX: &str = "sha256:";

impl AttachmentId {
    /// Reads one; lower case alone, so that a file has one name.
    ///
    /// # Errors
    /// [`Error::BadId`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.strip_prefix(PREFIX) {
            Some(hex) if hex.len() == 64 && hex.bytes().all(digit) => Ok(Self(text.to_owned())),
            _ => Err(Error::BadId(text.chars().take(100).collect())),
        }
    }

    pub(crate) fn of_digest(digest: &[u8]) -> Self {
        use fmt::Write;
        let mut id = PREFIX.to_owned();
        for byte in digest {
            // A string takes whatever is written.
            let _ = write!(id, "{byte:02x}");
        }
        Self(id)
    }

    /// As messages have it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits.
    pub(crate) fn hex(&self) -> &str {
        &self.0[PREFIX.len()..]
    }
}

impl fmt::Display for AttachmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for AttachmentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// In pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dimensions {
    /// Across.
    pub width: u32,
    /// Down.
    pub height: u32,
}

impl Dimensions {
    pub(crate) fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    pub(crate) fn times(self, scale: f64) -> Self {
        let one = |side: u32| (f64::from(side) * scale).floor().max(1.0) as u32;
        Self {
            width: one(self.width),
            height: one(self.height),
        }
    }
}

/// The `attachment` member of an `image` block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Of the stored bytes.
    pub attachment_id: AttachmentId,
    /// `image/png` or `image/jpeg`.
    pub media_type: &'static str,
    /// How many are stored.
    pub bytes: u64,
    /// Across, in pixels.
    pub width: u32,
    /// Down, in pixels.
    pub height: u32,
    /// What the file was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it was, where it was made smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_dimensions: Option<Dimensions>,
}

impl Attachment {
    /// As it stands in a message.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts and numbers alone: nothing that JSON has no place for.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Bytes of a name.
const NAME: usize = 255;

/// A file's own name: no folders, nothing that is not shown.
pub(crate) fn plain_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next()?;
    let mut plain: String = last.chars().filter(|c| !c.is_control()).collect();
    if plain.len() > NAME {
        plain.truncate(plain.floor_char_boundary(NAME));
    }
    (!plain.trim().is_empty()).then_some(plain)
}
