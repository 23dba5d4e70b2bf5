//! Where a session's log lies below the root (spec/session.md §9.1):
//! `<root>/<project>/<session>/session.jsonl.zstd`, or `.jsonl` without compression.
//!
//! The path is a pure function of the header's id and cwd. It loses information (two
//! directories may share a project), so identity is always the header's. Both names
//! are walked in UTF-16 units, as upstream does.

use std::path::{Path, PathBuf};

use dsh_session::Header;

use crate::StoreError;

/// The project directory of sessions without a working directory.
pub const NO_CWD: &str = "_no-cwd";

/// A project key is cut to this many characters; with its dashes it fits a file name.
const MAX_PROJECT_KEY: usize = 251;

/// How logs are encoded; one encoding a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// `session.jsonl`, plain lines.
    None,
    /// `session.jsonl.zstd`, a frame a batch.
    #[default]
    Zstd,
}

impl Compression {
    /// The log's name inside the session's directory.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::None => "session.jsonl",
            Self::Zstd => "session.jsonl.zstd",
        }
    }

    /// The encoding that this one excludes.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::None => Self::Zstd,
            Self::Zstd => Self::None,
        }
    }

    /// The encoding that a file's name says.
    pub fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|e| e == "zstd" || e == "zst") {
            Self::Zstd
        } else {
            Self::None
        }
    }
}

fn escape(unit: u16, out: &mut String) {
    match u8::try_from(unit) {
        Ok(b) if b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-') => {
            out.push(char::from(b));
        }
        _ => out.push_str(&format!("~{unit:04X}")),
    }
}

/// The project directory's name.
///
/// # Errors
/// [`StoreError::EmptyName`] for an empty cwd.
pub fn project_key(cwd: Option<&str>) -> Result<String, StoreError> {
    let Some(cwd) = cwd else {
        return Ok(NO_CWD.to_owned());
    };
    if cwd.is_empty() {
        return Err(StoreError::EmptyName {
            what: "a session's working directory",
        });
    }
    let mut key = String::new();
    let mut in_separators = false;
    for unit in cwd.encode_utf16() {
        let separator = matches!(u8::try_from(unit), Ok(b'/' | b'\\' | b':'));
        if !separator {
            escape(unit, &mut key);
        } else if !in_separators {
            key.push('-');
        }
        in_separators = separator;
    }
    let key = key.trim_start_matches('-');
    let key = if key.is_empty() {
        "root"
    } else {
        &key[..key.len().min(MAX_PROJECT_KEY)]
    };
    Ok(format!("--{key}--"))
}

/// The session directory's name.
///
/// # Errors
/// [`StoreError::EmptyName`] for an empty id.
pub fn encode_segment(id: &str) -> Result<String, StoreError> {
    match id {
        "" => Err(StoreError::EmptyName {
            what: "a session id",
        }),
        "." => Ok("~002E".to_owned()),
        ".." => Ok("~002E~002E".to_owned()),
        _ => {
            let mut segment = String::new();
            id.encode_utf16()
                .for_each(|unit| escape(unit, &mut segment));
            Ok(segment)
        }
    }
}

/// The id that a session directory's name stands for, when it is one that [`encode_segment`] makes.
pub fn decode_segment(segment: &str) -> Option<String> {
    let mut units = Vec::new();
    let mut rest = segment;
    while let Some(c) = rest.chars().next() {
        if c == '~' {
            units.push(u16::from_str_radix(rest.get(1..5)?, 16).ok()?);
            rest = &rest[5..];
        } else {
            units.extend(c.encode_utf16(&mut [0; 2]).iter());
            rest = &rest[c.len_utf8()..];
        }
    }
    let id = String::from_utf16(&units).ok()?;
    (encode_segment(&id).ok()? == segment).then_some(id)
}

/// The id that the place of a log stands for; `None` for a file that is in no session's directory.
pub(crate) fn id_of(log: &Path) -> Option<String> {
    let name = log.file_name()?;
    let is_log = [Compression::None, Compression::Zstd]
        .iter()
        .any(|c| c.file_name() == name);
    let segment = log.parent()?.file_name()?.to_str()?;
    is_log.then(|| decode_segment(segment))?
}

/// [`id_of`], also for a log of an older layout, whose own name says it.
pub(crate) fn id_of_path(log: &Path) -> Option<String> {
    let flat = || {
        let name = log.file_name()?.to_str()?;
        let name = name.strip_suffix(".zstd").unwrap_or(name);
        decode_segment(name.strip_suffix(".jsonl")?)
    };
    let is_log = |name| {
        [Compression::None, Compression::Zstd]
            .iter()
            .any(|c| name == c.file_name())
    };
    if log.file_name().is_some_and(is_log) {
        id_of(log)
    } else {
        flat()
    }
}

/// The directory of a session.
///
/// # Errors
/// [`StoreError::EmptyName`].
pub fn session_dir(root: &Path, header: &Header) -> Result<PathBuf, StoreError> {
    Ok(root
        .join(project_key(header.cwd.as_deref())?)
        .join(encode_segment(&header.id)?))
}

/// The log of a session.
///
/// # Errors
/// [`StoreError::EmptyName`].
pub fn log_path(
    root: &Path,
    header: &Header,
    compression: Compression,
) -> Result<PathBuf, StoreError> {
    Ok(session_dir(root, header)?.join(compression.file_name()))
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
