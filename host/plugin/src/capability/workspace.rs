//! `workspace`: files behind the session's write fence. Granted by `workspace`,
//! which says below which directories, and whether files may be changed.
//!
//! Whether a path may be touched is the port's to decide: it sees the world, and
//! so what a path really leads to.

use std::sync::Arc;

use super::{Missing, Phase};
use crate::api::{PluginError, code};
use crate::contract::v0_1::{types, workspace};
use crate::instance::State;
use crate::port::{DirEntry, FileKind, Guard, Metadata, Slice, Workspace};

super::capability!(workspace, "workspace");

/// The largest whole number that the contract has.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

type Answer<T> = wasmtime::Result<Result<T, types::Error>>;

impl State {
    fn files(
        &self,
        function: &'static str,
    ) -> wasmtime::Result<Result<Arc<dyn Workspace>, PluginError>> {
        self.require(Phase::Work, function)?;
        let Some(files) = self.ctx.ports.workspace.clone() else {
            return Ok(Err(PluginError::unavailable("workspace")));
        };
        // What a listener reads, the model has not read.
        let files = match self.phase {
            Phase::Run => files,
            _ => files.unobserved().unwrap_or(files),
        };
        let Some(roots) = &self.row.grants.workspace.roots else {
            return Ok(Ok(files));
        };
        let within = files.within(roots);
        Ok(within.ok_or_else(|| PluginError::unavailable("workspace that can be narrowed")))
    }

    fn files_to_change(
        &self,
        function: &'static str,
    ) -> wasmtime::Result<Result<Arc<dyn Workspace>, PluginError>> {
        let files = self.files(function)?;
        if self.row.grants.workspace.write {
            return Ok(files);
        }
        let message = format!(
            "row {} may not change files: its grant `workspace` must say `write: true`",
            self.row.id
        );
        Ok(Err(PluginError::new(code::DENIED, message)))
    }
}

/// Ends the import with the port's own answer where there is no port.
macro_rules! port {
    ($port:expr) => {
        match $port? {
            Ok(port) => port,
            Err(error) => return Ok(Err(error.into())),
        }
    };
}

impl workspace::Host for State {
    async fn root(&mut self) -> wasmtime::Result<String> {
        match self.files("workspace.root")? {
            Ok(port) => Ok(port.root()),
            Err(_) => Err(Missing {
                interface: "workspace.root",
            }
            .into()),
        }
    }

    async fn stat(&mut self, path: String) -> Answer<workspace::Metadata> {
        let port = port!(self.files("workspace.stat"));
        Ok(self
            .answer(port.stat(&path))
            .await
            .map(Into::into)
            .map_err(Into::into))
    }

    async fn read(&mut self, path: String, offset: f64, limit: u32) -> Answer<workspace::Slice> {
        let port = port!(self.files("workspace.read"));
        let offset = port!(Ok::<_, wasmtime::Error>(whole(offset)));
        Ok(self
            .answer(port.read(&path, offset, limit))
            .await
            .map(Into::into)
            .map_err(Into::into))
    }

    async fn read_for(
        &mut self,
        path: String,
        guard: workspace::Guard,
        offset: f64,
        limit: u32,
    ) -> Answer<workspace::Slice> {
        let port = port!(self.files("workspace.read-for"));
        let offset = port!(Ok::<_, wasmtime::Error>(whole(offset)));
        Ok(self
            .answer(port.read_for(&path, guard.into(), offset, limit))
            .await
            .map(Into::into)
            .map_err(Into::into))
    }

    async fn list_dir(&mut self, path: String) -> Answer<Vec<workspace::Entry>> {
        let port = port!(self.files("workspace.list-dir"));
        let entries = self.answer(port.list_dir(&path)).await;
        Ok(entries
            .map(|entries| entries.into_iter().map(Into::into).collect())
            .map_err(Into::into))
    }

    async fn write(
        &mut self,
        path: String,
        content: Vec<u8>,
        guard: workspace::Guard,
    ) -> Answer<workspace::Metadata> {
        self.takes(content.len())?;
        let port = port!(self.files_to_change("workspace.write"));
        Ok(self
            .answer(port.write(&path, content, guard.into()))
            .await
            .map(Into::into)
            .map_err(Into::into))
    }

    async fn remove(&mut self, path: String) -> Answer<()> {
        let port = port!(self.files_to_change("workspace.remove"));
        Ok(self.answer(port.remove(&path)).await.map_err(Into::into))
    }

    async fn rename(&mut self, path: String, to: String) -> Answer<()> {
        let port = port!(self.files_to_change("workspace.rename"));
        Ok(self
            .answer(port.rename(&path, &to))
            .await
            .map_err(Into::into))
    }

    async fn glob(
        &mut self,
        pattern: String,
        path: Option<String>,
        limit: u32,
    ) -> Answer<workspace::Paths> {
        let port = port!(self.files("workspace.glob"));
        let found = self
            .answer(port.glob(&pattern, path.as_deref(), limit))
            .await;
        Ok(found
            .map(|found| workspace::Paths {
                paths: found.paths,
                total: found.total,
            })
            .map_err(Into::into))
    }

    async fn grep(
        &mut self,
        pattern: String,
        path: Option<String>,
        files: Option<String>,
        limit: u32,
    ) -> Answer<workspace::Matches> {
        let port = port!(self.files("workspace.grep"));
        let found = self
            .answer(port.grep(&pattern, path.as_deref(), files.as_deref(), limit))
            .await;
        let line = |line: crate::port::Found| workspace::Found {
            path: line.path,
            line: line.line,
            text: line.text,
        };
        Ok(found
            .map(|found| workspace::Matches {
                matches: found.matches.into_iter().map(line).collect(),
                total: found.total,
            })
            .map_err(Into::into))
    }
}

/// A whole number of the contract's as one of ours.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> Result<u64, PluginError> {
    if (0.0..=MAX_WHOLE).contains(&number) && number.fract() == 0.0 {
        return Ok(number as u64);
    }
    Err(PluginError::new(
        code::INVALID,
        format!("{number} is not a whole number up to 2^53"),
    ))
}

impl From<workspace::Guard> for Guard {
    fn from(guard: workspace::Guard) -> Self {
        match guard {
            workspace::Guard::Overwrite => Self::Overwrite,
            workspace::Guard::Edit => Self::Edit,
            workspace::Guard::Absent => Self::Absent,
            workspace::Guard::Version(version) => Self::Version(version),
        }
    }
}

impl From<FileKind> for workspace::Kind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::File => Self::File,
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            FileKind::Other => Self::Other,
        }
    }
}

impl From<Metadata> for workspace::Metadata {
    #[allow(clippy::cast_precision_loss)]
    fn from(metadata: Metadata) -> Self {
        Self {
            kind: metadata.kind.into(),
            size: metadata.size as f64,
            version: metadata.version,
        }
    }
}

impl From<Slice> for workspace::Slice {
    fn from(slice: Slice) -> Self {
        Self {
            content: slice.content,
            metadata: slice.metadata.into(),
        }
    }
}

impl From<DirEntry> for workspace::Entry {
    fn from(entry: DirEntry) -> Self {
        Self {
            name: entry.name,
            kind: entry.kind.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn only_whole_numbers_up_to_2_53_are_offsets() {
        assert_eq!(whole(0.0), Ok(0));
        assert_eq!(whole(9_007_199_254_740_992.0), Ok(1 << 53));
        for number in [-1.0, 0.5, f64::NAN, f64::INFINITY, 1e300] {
            assert!(whole(number).is_err(), "{number}");
        }
    }
}
