//! Attachments, and what models see of them.
//!
//! A message names a picture by the digest of its bytes; the bytes are in
//! `$DSH_HOME/attachments` (`store.rs`). Whatever comes in is a stranger's, so
//! nothing of it is kept as it came: it is recognised by its first bytes, decoded
//! under bounds on size and memory (`decode.rs`), turned the way it is to be
//! looked at, and written anew by an encoder of ours (`encode.rs`), within what
//! providers take. Names, places, profiles, comments and whatever hung behind the
//! picture stay behind.
//!
//! A model has bounds of its own: [`Pictures::render`] makes a variant within
//! them. A variant's id says what it is a variant of and within which bounds, so
//! it can be made again whenever its file is gone (`variant.rs`).
//!
//! No network, no Wasm, no async: whoever calls this from a task does so on a
//! thread that may block. One picture is decoded at a time, which bounds the
//! memory that it takes.
#![forbid(unsafe_code)]

mod attachment;
mod decode;
mod encode;
mod error;
mod format;
mod store;
mod variant;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use attachment::{Attachment, AttachmentId, Dimensions};
pub use error::Error;
pub use format::Format;
pub use variant::{Bounds, Variant};

use encode::Fit;
use store::{Cache, Store};

/// Bytes of a file that is taken in.
pub const MAX_FILE: u64 = 32 << 20;

/// What an attachment is made to fit: less than any provider refuses, and more
/// than any looks at.
const KEPT: Fit = Fit {
    pixels: 16 << 20,
    side: 8000,
    bytes: 8 << 20,
};

/// Bytes of variants that are held in memory: a request's, as the next step sends
/// the same ones again.
const HELD: usize = 32 << 20;

/// The attachments of one `$DSH_HOME`.
pub struct Pictures {
    store: Store,
    cache: Cache,
    held: Mutex<Held>,
    decoding: Mutex<()>,
}

/// Variants by age of their last use, the newest last.
#[derive(Default)]
struct Held {
    variants: Vec<Arc<Variant>>,
    bytes: usize,
}

impl Pictures {
    /// Those below `attachments`, which is made when the first one is put in.
    #[must_use]
    pub fn at(attachments: &Path) -> Self {
        let root = attachments.join("v1");
        Self {
            store: Store::at(&root),
            cache: Cache::at(&root),
            held: Mutex::default(),
            decoding: Mutex::default(),
        }
    }

    /// Takes a picture in: decoded, written anew and stored. `name` is for people;
    /// what it says of a folder is left out. The same content put in twice is one
    /// attachment.
    ///
    /// # Errors
    /// What is no picture, is too large or broken, or cannot be stored.
    pub fn put(&self, content: &[u8], name: Option<&str>) -> Result<Attachment, Error> {
        if content.len() as u64 > MAX_FILE {
            return Err(Error::TooLarge {
                bytes: content.len() as u64,
                max: MAX_FILE,
            });
        }
        let made = {
            let _one = lock(&self.decoding);
            let decoded = decode::decode(content)?;
            let before = decoded.seen();
            let made = encode::fit(decoded, &KEPT)?;
            let changed = before != made.dimensions;
            (made, changed.then_some(before))
        };
        let (made, before) = made;
        let id = self.store.put(&made.bytes)?;
        Ok(Attachment {
            attachment_id: id,
            media_type: made.format.media_type(),
            bytes: made.bytes.len() as u64,
            width: made.dimensions.width,
            height: made.dimensions.height,
            name: name.and_then(attachment::plain_name),
            original_dimensions: before,
        })
    }

    /// The bytes of an attachment, as they are stored.
    ///
    /// # Errors
    /// There is none of this id, or its file is not what it was.
    pub fn read(&self, id: &AttachmentId) -> Result<Vec<u8>, Error> {
        self.store.read(id)
    }

    /// The variant within these bounds; the attachment itself where it is.
    ///
    /// # Errors
    /// As [`Pictures::read`]; bounds that no picture fits.
    pub fn render(&self, id: &AttachmentId, bounds: Bounds) -> Result<Arc<Variant>, Error> {
        let name = variant::name(id, bounds);
        if let Some(variant) = self.recall(&name) {
            return Ok(variant);
        }
        let variant = Arc::new(self.make(id, bounds, name)?);
        self.hold(&variant);
        Ok(variant)
    }

    /// The variant of this id, as [`Pictures::render`] named it.
    ///
    /// # Errors
    /// An id that was never one; else as [`Pictures::render`].
    pub fn variant(&self, name: &str) -> Result<Arc<Variant>, Error> {
        let (id, bounds) = variant::parse(name)?;
        self.render(&id, bounds)
    }

    fn make(&self, id: &AttachmentId, bounds: Bounds, name: String) -> Result<Variant, Error> {
        if let Some(bytes) = self.cache.get(&name)
            && let Ok(variant) = Variant::of(name.clone(), bytes)
        {
            return Ok(variant);
        }
        let stored = self.store.read(id)?;
        let _one = lock(&self.decoding);
        let decoded = decode::decode(&stored)?;
        let fit = bounds.fit();
        if decoded.is_upright() && fit.takes(decoded.seen(), stored.len()) {
            return Ok(Variant::whole(name, &decoded, stored));
        }
        let made = encode::fit(decoded, &fit)?;
        // It can be made again, so that it cannot be kept is no failure.
        self.cache.put(&name, &made.bytes);
        Ok(Variant::made(name, made))
    }

    fn recall(&self, name: &str) -> Option<Arc<Variant>> {
        let mut held = lock(&self.held);
        let at = held.variants.iter().position(|one| one.id == name)?;
        let variant = held.variants.remove(at);
        held.variants.push(Arc::clone(&variant));
        Some(variant)
    }

    fn hold(&self, variant: &Arc<Variant>) {
        let mut held = lock(&self.held);
        if held.variants.iter().any(|one| one.id == variant.id) {
            return;
        }
        held.bytes += variant.bytes.len();
        held.variants.push(Arc::clone(variant));
        while held.bytes > HELD && held.variants.len() > 1 {
            let oldest = held.variants.remove(0);
            held.bytes -= oldest.bytes.len();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
