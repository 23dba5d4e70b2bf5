//! The ports of the plugin contract, as an agent's sandbox answers them. File
//! work runs where it may wait; a call that is dropped ends its search.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use dsh_plugin::api::PluginError;
use dsh_plugin::port::{
    Command, DirEntry, Guard, Matches, Metadata, Output, Paths, Process, Slice, Spill, Workspace,
};

use crate::error::Error;
use crate::files::Files;
use crate::observe::Operation;
use crate::search::{Bounds, Cancel};
use crate::session::SessionSandbox;
use crate::spill::MAX_SPILL;
use crate::write::{Allowed, operation};

/// Tells a search that nobody waits for it any more.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl SessionSandbox {
    /// Asks the session's policy about a change.
    async fn allowed(&self, operation: Operation, path: &str) -> Result<Allowed, PluginError> {
        let path = path.to_owned();
        let intent = self
            .blocking(move |files| files.intent(operation, &path))
            .await?;
        let expect = self.policy().intent(&intent).await;
        Ok(Allowed::new(intent, expect))
    }
}

#[async_trait]
impl Workspace for SessionSandbox {
    fn root(&self) -> String {
        self.fence().root.to_string_lossy().into_owned()
    }

    fn within(&self, roots: &[String]) -> Option<Arc<dyn Workspace>> {
        Some(Arc::new(self.narrowed(Some(roots), true)))
    }

    fn unobserved(&self) -> Option<Arc<dyn Workspace>> {
        Some(Arc::new(self.narrowed(None, false)))
    }

    async fn stat(&self, path: &str) -> Result<Metadata, PluginError> {
        let path = path.to_owned();
        self.blocking(move |files| files.stat(&path)).await
    }

    async fn read(&self, path: &str, offset: u64, limit: u32) -> Result<Slice, PluginError> {
        let path = path.to_owned();
        self.blocking(move |files| files.read(&path, offset, limit))
            .await
    }

    async fn read_for(
        &self,
        path: &str,
        guard: Guard,
        offset: u64,
        limit: u32,
    ) -> Result<Slice, PluginError> {
        let allowed = self.allowed(operation(&guard), path).await?;
        let path = path.to_owned();
        self.blocking(move |files| files.read_for(&path, &guard, (offset, limit), &allowed))
            .await
    }

    async fn list_dir(&self, path: &str) -> Result<Vec<DirEntry>, PluginError> {
        let path = path.to_owned();
        self.blocking(move |files| files.list_dir(&path)).await
    }

    async fn write(
        &self,
        path: &str,
        content: Vec<u8>,
        guard: Guard,
    ) -> Result<Metadata, PluginError> {
        let allowed = self.allowed(operation(&guard), path).await?;
        let path = path.to_owned();
        self.blocking(move |files| files.write(&path, &content, &guard, &allowed))
            .await
    }

    async fn remove(&self, path: &str) -> Result<(), PluginError> {
        let allowed = self.allowed(Operation::Remove, path).await?;
        let path = path.to_owned();
        self.blocking(move |files| files.remove(&path, &allowed))
            .await
    }

    async fn rename(&self, path: &str, to: &str) -> Result<(), PluginError> {
        let from = self.allowed(Operation::Rename, path).await?;
        let there = self.allowed(Operation::Rename, to).await?;
        let (path, to) = (path.to_owned(), to.to_owned());
        self.blocking(move |files| files.rename(&path, &to, (&from, &there)))
            .await
    }

    async fn glob(
        &self,
        pattern: &str,
        path: Option<&str>,
        limit: u32,
    ) -> Result<Paths, PluginError> {
        let (pattern, path) = (pattern.to_owned(), path.map(str::to_owned));
        let guard = CancelOnDrop(Cancel::default());
        let cancel = guard.0.clone();
        self.blocking(move |files| {
            files.glob(&pattern, path.as_deref(), limit, Bounds::SHIPPED, cancel)
        })
        .await
    }

    async fn grep(
        &self,
        pattern: &str,
        path: Option<&str>,
        files: Option<&str>,
        limit: u32,
    ) -> Result<Matches, PluginError> {
        let (pattern, path, only) = (
            pattern.to_owned(),
            path.map(str::to_owned),
            files.map(str::to_owned),
        );
        let guard = CancelOnDrop(Cancel::default());
        let cancel = guard.0.clone();
        let search = move |files: &Files| {
            files.grep(
                &pattern,
                path.as_deref(),
                only.as_deref(),
                limit,
                Bounds::SHIPPED,
                cancel,
            )
        };
        self.blocking(search).await
    }
}

#[async_trait]
impl Process for SessionSandbox {
    async fn run(&self, command: Command) -> Result<Output, PluginError> {
        let current = (self.0.config.mode)();
        let mode = match (&command.more, &self.0.config.escalation) {
            (None, _) => current,
            (Some(more), Some(escalation)) => escalation.decide(current, more).await?,
            (Some(_), None) => {
                return Err(
                    Error::NotGranted("nobody can be asked in this session".to_owned()).into(),
                );
            }
        };
        Ok(self.run_in(mode, command).await?)
    }
}

#[async_trait]
impl Spill for SessionSandbox {
    async fn store(&self, name: &str, content: Vec<u8>) -> Result<String, PluginError> {
        if content.len() > MAX_SPILL {
            let what = format!("{} bytes to keep, at most {MAX_SPILL}", content.len());
            return Err(Error::TooLarge {
                path: name.into(),
                what,
            }
            .into());
        }
        let name = name.to_owned();
        let agent = self.0.clone();
        let store = move || {
            agent
                .machine
                .spill
                .store(&agent.config.session_id, &name, &content)
        };
        let stored = tokio::task::spawn_blocking(store)
            .await
            .unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
        let path = stored.map_err(|error| Error::io(&self.0.machine.config.temp_dir, error))?;
        Ok(path.to_string_lossy().into_owned())
    }
}
