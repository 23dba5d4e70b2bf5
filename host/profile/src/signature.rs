//! Minisign signatures, verified in this process.
//!
//! A signature is over the bytes that a source gave. A key is compared whole: its
//! id is a hint in the clear that anyone can copy, so it names keys for people and
//! picks the one to try, and decides nothing.

use crate::Error;
use minisign_verify::{PublicKey, Signature};
use std::fmt;

pub use crate::lock::Signed;

/// A minisign public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    text: String,
    id: KeyId,
}

/// What names a key, as minisign prints it: 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId([u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", u64::from_le_bytes(self.0))
    }
}

impl Key {
    /// A key from the text of a `.pub` file, or its base64 alone.
    ///
    /// # Errors
    /// [`Error::Key`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refused = |reason| Error::Key { reason };
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("untrusted comment:"))
            .collect();
        let [text] = lines[..] else {
            return Err(refused(
                "it has one line of base64, beside its comment, like RWQf6LRC…",
            ));
        };
        if let Err(error) = PublicKey::from_base64(text) {
            return Err(refused(match error {
                minisign_verify::Error::UnsupportedAlgorithm => {
                    "its algorithm is not Ed25519; a secret key or a signature is no public key"
                }
                _ => "it is not 42 bytes in base64, like RWQf6LRC…",
            }));
        }
        let id = key_id(text).ok_or_else(|| refused("it is not base64"))?;
        Ok(Self {
            text: text.to_owned(),
            id,
        })
    }

    /// Its base64.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }
}

/// The id of the key that a signature says it was made with.
///
/// # Errors
/// [`Error::Signature`]: this is no signature.
pub fn key_of(minisig: &str) -> Result<KeyId, Error> {
    decode(minisig)?;
    let second = minisig.lines().nth(1).unwrap_or_default();
    key_id(second).ok_or(Error::Signature {
        reason: "its second line is not base64".to_owned(),
    })
}

/// Verifies the text of a `.minisig` over bytes: of the prehashed kind, or of the
/// older one. The trusted comment is covered.
///
/// # Errors
/// [`Error::Signature`]: no signature, by another key, or not of these bytes.
pub fn verify(bytes: &[u8], minisig: &str, key: &Key) -> Result<Signed, Error> {
    let signature = decode(minisig)?;
    let refused = |reason: String| Error::Signature { reason };
    let by = key_of(minisig)?;
    if by != key.id {
        return Err(refused(format!(
            "it was made with key {by}, and key {} is expected",
            key.id
        )));
    }
    let public = PublicKey::from_base64(&key.text).map_err(|error| refused(error.to_string()))?;
    public.verify(bytes, &signature, true).map_err(|_| {
        refused(format!(
            "key {by} did not sign these bytes (or its comment was changed)"
        ))
    })?;
    Ok(Signed {
        key: key.text.clone(),
        comment: signature.trusted_comment().to_owned(),
    })
}

fn decode(minisig: &str) -> Result<Signature, Error> {
    Signature::decode(minisig).map_err(|error| Error::Signature {
        reason: match error {
            minisign_verify::Error::UnsupportedAlgorithm => {
                "its algorithm is not Ed25519".to_owned()
            }
            _ => "it is not a minisign signature of four lines".to_owned(),
        },
    })
}

/// Bytes 2 to 10 of what a key and a signature are in base64.
fn key_id(base64: &str) -> Option<KeyId> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let head = base64.as_bytes().get(..16)?;
    let mut bytes = Vec::with_capacity(12);
    for four in head.chunks(4) {
        let mut bits = 0u32;
        for byte in four {
            let value = ALPHABET.iter().position(|letter| letter == byte)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    Some(KeyId(bytes.get(2..10)?.try_into().ok()?))
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
