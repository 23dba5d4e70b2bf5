//! The derived index: what full readings of logs found, in one file outside the root, so that listing need not read
//! them again.
//!
//! It is memory, never truth. An entry counts only while its log's revision is the very one that was read; a file that
//! is damaged, of another version or of another root is as good as none, and deleting it costs time alone. It is
//! written beside its place and renamed over it, so of two processes the last one wins and nobody sees a half. It is not
//! synced: what a power failure leaves of it fails its checksum.
//!
//! ```text
//! magic (8) | length of head (u32) | hash of head (16) | head | block | block | …
//! head  = judge (u32), root, compression, token of the root, [project name, token], [rows, length, hash of a block]
//! block = up to 256 rows, newest first over all blocks, so that a first page needs the first block alone
//! ```
//! Numbers are little-endian, texts have a u32 of their length before them.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dsh_session::{Header, Origin};

use crate::layout::Compression;
use crate::log_file::tmp_name;
use crate::overview::Overview;
use crate::storage::{self, ReadSeek, Revision, Storage};
use crate::walk::parallel;
use crate::{Damage, DamageClass, Stage};

/// The last byte is the version of the file's shape.
const MAGIC: [u8; 8] = *b"dshindx\x01";
/// Counts up whenever a log may be judged or summed up in another way than before: then entries are read anew.
const JUDGE: u32 = 1;
/// Rows in a block.
pub(crate) const BLOCK: usize = 256;
/// A file's head that claims more is none.
const MAX_HEAD: usize = 64 << 20;
/// A directory that changed so shortly before it was looked at may change again without its time telling.
const RACY_NS: i128 = 2_000_000_000;
/// A temporary file of this age was left by a process that died.
const STALE_MS: i64 = 3_600_000;

/// A row, and the state of its log that it is true of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) revision: Revision,
    pub(crate) view: Overview,
}

/// A directory's state by which a change of its names shows; `None` never matches.
pub(crate) type Token = Option<Revision>;

/// Everything but the rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Head {
    pub(crate) root: Token,
    /// By name, sorted.
    pub(crate) projects: Vec<(PathBuf, Token)>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    rows: usize,
    len: usize,
    hash: [u8; 16],
}

/// An index being read; rows are read when they are asked for.
pub(crate) struct Reader {
    file: Box<dyn ReadSeek>,
    root: PathBuf,
    pub(crate) head: Head,
    blocks: Vec<Block>,
    next: usize,
    /// Where the first block begins.
    body: u64,
    damaged: bool,
}

/// What an index is of.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) root: &'a Path,
    pub(crate) compression: Compression,
}

/// The token of a directory that was just looked at.
pub(crate) fn token(storage: &dyn Storage, dir: &Path) -> Token {
    let revision = storage.metadata(dir).ok()?.revision;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let age = i128::try_from(now.as_nanos()).ok()? - revision.3;
    (age > RACY_NS).then_some(revision)
}

impl Reader {
    /// Opens an index; `None` when there is none that fits.
    pub(crate) fn open(storage: &dyn Storage, path: &Path, of: Of<'_>) -> Option<Reader> {
        let mut file = storage.open_read(path).ok()?;
        let mut start = [0; 28];
        file.read_exact(&mut start).ok()?;
        let mut start = In(&start);
        let magic = start.array::<8>()?;
        let len = start.u32()? as usize;
        let hash = start.array()?;
        if magic != MAGIC || len > MAX_HEAD {
            return None;
        }
        let bytes = exactly(&mut *file, len)?;
        if hash_of(&bytes) != hash {
            return None;
        }
        let mut head = In(&bytes);
        let fits = head.u32()? == JUDGE
            && head.path()? == of.root
            && head.u8()? == compression_byte(of.compression);
        if !fits {
            return None;
        }
        let root = head.option(In::revision)?;
        let projects = head.list(|h| Some((h.path()?.to_owned(), h.option(In::revision)?)))?;
        let blocks = head.list(|h| {
            Some(Block {
                rows: h.u32()? as usize,
                len: h.u32()? as usize,
                hash: h.array()?,
            })
        })?;
        Some(Reader {
            file,
            root: of.root.to_owned(),
            head: Head { root, projects },
            blocks,
            next: 0,
            body: 28 + len as u64,
            damaged: false,
        })
    }

    /// Whether every block that was read so far was there as it was written.
    pub(crate) fn sound(&self) -> bool {
        !self.damaged
    }

    /// Whether all rows were read.
    pub(crate) fn at_end(&self) -> bool {
        self.next == self.blocks.len()
    }

    /// The next older rows; those of a damaged block are left out.
    pub(crate) fn block(&mut self) -> Option<Vec<Row>> {
        let block = *self.blocks.get(self.next)?;
        self.next += 1;
        let bytes = exactly(&mut *self.file, block.len);
        let rows = bytes.and_then(|bytes| rows(&bytes, block, &self.root));
        self.damaged |= rows.is_none();
        Some(rows.unwrap_or_default())
    }

    /// All rows that were not read yet.
    pub(crate) fn rest(&mut self) -> Vec<Row> {
        let mut raw = Vec::new();
        for block in &self.blocks[self.next..] {
            raw.push((exactly(&mut *self.file, block.len), *block));
        }
        self.next = self.blocks.len();
        let decoded = parallel(
            &raw,
            4,
            || (),
            |(), (bytes, block)| rows(bytes.as_ref()?, *block, &self.root),
        );
        self.damaged |= decoded.iter().any(Option::is_none);
        decoded.into_iter().flatten().flatten().collect()
    }

    /// Starts again with the newest rows.
    pub(crate) fn rewind(&mut self) -> io::Result<()> {
        self.next = 0;
        self.file.seek(SeekFrom::Start(self.body)).map(drop)
    }
}

/// Reads `len` bytes; nothing when there are fewer.
fn exactly(file: &mut dyn ReadSeek, len: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let got = file.take(len as u64).read_to_end(&mut bytes).ok()?;
    (got == len).then_some(bytes)
}

/// Writes an index in place of whatever is there. Rows come newest first.
pub(crate) fn save(
    storage: &dyn Storage,
    path: &Path,
    of: Of<'_>,
    head: &Head,
    rows: &[&Row],
) -> io::Result<()> {
    let bytes = encode(of, head, rows);
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    match storage.create_dir(parent) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => sweep(storage, parent, path),
    }
    storage::replace(storage, &tmp_name(path), path, &bytes)
}

/// Removes what processes that died while saving left behind.
fn sweep(storage: &dyn Storage, dir: &Path, path: &Path) {
    let Some(name) = path.file_name() else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
    for entry in storage.read_entries(dir).unwrap_or_default() {
        let ours = entry.name.as_bytes().strip_prefix(name.as_bytes());
        if ours.is_some_and(|rest| rest.starts_with(b".") && rest.ends_with(b".tmp")) {
            let path = dir.join(&entry.name);
            if storage
                .metadata(&path)
                .is_ok_and(|m| now - m.modified_ms > STALE_MS)
            {
                let _ = storage.remove_file(&path);
            }
        }
    }
}

fn encode(of: Of<'_>, head: &Head, rows: &[&Row]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut blocks = Vec::new();
    for chunk in rows.chunks(BLOCK) {
        let start = body.len();
        for row in chunk {
            put_row(&mut body, row, of.root);
        }
        blocks.push(Block {
            rows: chunk.len(),
            len: body.len() - start,
            hash: hash_of(&body[start..]),
        });
    }
    let mut out = Vec::with_capacity(body.len() + 4096);
    put_u32(&mut out, JUDGE);
    put_bytes(&mut out, of.root.as_os_str().as_bytes());
    out.push(compression_byte(of.compression));
    put_option(&mut out, head.root.as_ref(), put_revision);
    put_len(&mut out, head.projects.len());
    for (name, token) in &head.projects {
        put_bytes(&mut out, name.as_os_str().as_bytes());
        put_option(&mut out, token.as_ref(), put_revision);
    }
    put_len(&mut out, blocks.len());
    for block in blocks {
        put_len(&mut out, block.rows);
        put_len(&mut out, block.len);
        out.extend(block.hash);
    }
    let mut file = Vec::with_capacity(28 + out.len() + body.len());
    file.extend(MAGIC);
    put_len(&mut file, out.len());
    file.extend(hash_of(&out));
    file.extend(out);
    file.extend(body);
    file
}

fn hash_of(bytes: &[u8]) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    hash
}

fn compression_byte(compression: Compression) -> u8 {
    match compression {
        Compression::None => 0,
        Compression::Zstd => 1,
    }
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

/// Lengths of what lies in memory here: a count of sessions, a title, a path.
fn put_len(out: &mut Vec<u8>, len: usize) {
    put_u32(out, u32::try_from(len).unwrap_or(u32::MAX));
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend(bytes);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn put_option<T: ?Sized>(out: &mut Vec<u8>, value: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

fn put_revision(out: &mut Vec<u8>, revision: &Revision) {
    let Revision(device, inode, size, modified, changed) = revision;
    [device, inode, size]
        .into_iter()
        .for_each(|n| put_u64(out, *n));
    out.extend(modified.to_le_bytes());
    out.extend(changed.to_le_bytes());
}

fn put_number(out: &mut Vec<u8>, number: &u64) {
    put_u64(out, *number);
}

fn put_row(out: &mut Vec<u8>, row: &Row, root: &Path) {
    let Row { revision, view } = row;
    let path = view.path.strip_prefix(root).unwrap_or(&view.path);
    put_bytes(out, path.as_os_str().as_bytes());
    put_revision(out, revision);
    out.extend(view.modified_ms.to_le_bytes());
    out.extend(view.updated_at.to_le_bytes());
    put_u64(out, view.events);
    put_u64(out, view.turns);
    out.push(u8::from(view.torn));
    put_option(out, view.title.as_deref(), put_text);
    put_option(out, view.header.as_ref(), |out, header| {
        put_text(out, &header.id);
        put_u64(out, header.created_at);
        put_option(out, header.cwd.as_deref(), put_text);
        put_option(out, header.parent_session.as_deref(), put_text);
        put_option(out, header.seed_length.as_ref(), put_number);
        out.push(u8::from(header.origin == Some(Origin::Subagent)));
        put_option(out, header.delegation_depth.as_ref(), put_number);
        put_option(out, header.agent_preset.as_deref(), put_text);
    });
    put_option(out, view.damage.as_ref(), |out, damage| {
        out.push(CLASSES.iter().position(|c| *c == damage.class).unwrap_or(0) as u8);
        out.push(STAGES.iter().position(|s| *s == damage.stage).unwrap_or(0) as u8);
        put_option(out, damage.offset.as_ref(), put_number);
        put_option(out, damage.seq.as_ref(), put_number);
        put_text(out, &damage.reason);
    });
}

const CLASSES: [DamageClass; 5] = [
    DamageClass::Corrupt,
    DamageClass::Unsupported,
    DamageClass::Identity,
    DamageClass::Layout,
    DamageClass::Unreadable,
];
const STAGES: [Stage; 4] = [Stage::Open, Stage::Scan, Stage::Identity, Stage::Interpret];

fn rows(bytes: &[u8], block: Block, root: &Path) -> Option<Vec<Row>> {
    if hash_of(bytes) != block.hash || block.rows > BLOCK {
        return None;
    }
    let mut bytes = In(bytes);
    (0..block.rows).map(|_| bytes.row(root)).collect()
}

/// Bytes being read; `None` wherever they are not what was written.
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn i128(&mut self) -> Option<i128> {
        self.array().map(i128::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    fn path(&mut self) -> Option<&'a Path> {
        Some(Path::new(OsStr::from_bytes(self.bytes()?)))
    }

    fn text(&mut self) -> Option<Arc<str>> {
        std::str::from_utf8(self.bytes()?).ok().map(Arc::from)
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? {
            read(self).map(Some)
        } else {
            Some(None)
        }
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        (0..count).map(|_| read(self)).collect()
    }

    fn revision(&mut self) -> Option<Revision> {
        let (device, inode, size) = (self.u64()?, self.u64()?, self.u64()?);
        Some(Revision(device, inode, size, self.i128()?, self.i128()?))
    }

    fn header(&mut self) -> Option<Header> {
        let id = self.text()?;
        let mut header = Header::new(id, self.u64()?);
        header.cwd = self.option(In::text)?;
        header.parent_session = self.option(In::text)?;
        header.seed_length = self.option(In::u64)?;
        header.origin = self.flag()?.then_some(Origin::Subagent);
        header.delegation_depth = self.option(In::u64)?;
        header.agent_preset = self.option(In::text)?;
        Some(header)
    }

    fn damage(&mut self) -> Option<Damage> {
        Some(Damage {
            class: *CLASSES.get(usize::from(self.u8()?))?,
            stage: *STAGES.get(usize::from(self.u8()?))?,
            offset: self.option(In::u64)?,
            seq: self.option(In::u64)?,
            reason: self.text()?.to_string(),
        })
    }

    fn row(&mut self, root: &Path) -> Option<Row> {
        let path = root.join(self.path()?);
        let revision = self.revision()?;
        let (modified_ms, updated_at) = (self.i64()?, self.i64()?);
        let (events, turns) = (self.u64()?, self.u64()?);
        let torn = self.flag()?;
        let title = self.option(In::text)?;
        let header = self.option(In::header)?;
        let damage = self.option(In::damage)?;
        let id = Overview::id_of(header.as_ref(), &path);
        let view = Overview {
            bytes: revision.2,
            path,
            modified_ms,
            id,
            header,
            title,
            updated_at,
            events,
            turns,
            torn,
            damage,
        };
        Some(Row { revision, view })
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
