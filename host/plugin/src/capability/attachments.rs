//! `attachments`: what messages refer to by content. Granted by `attachments`,
//! with its quota of bytes handed over while the row is mounted.
//!
//! An attachment is named by the digest of its content, so reading one needs no
//! list of whose it is: who can name it has its content, or a message with it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Phase;
use crate::api::{PluginError, code};
use crate::contract::v0_1::{attachments, types};
use crate::instance::State;
use crate::port::Attachments;

super::capability!(attachments, "attachments");

impl State {
    fn attachments(&self) -> Result<Arc<dyn Attachments>, PluginError> {
        let port = self.ctx.ports.attachments.clone();
        port.ok_or_else(|| PluginError::unavailable("place for attachments"))
    }

    /// Counts bytes against the quota, unless they are too many.
    fn charge(&self, bytes: u64) -> Result<(), PluginError> {
        let Some(quota) = self.row.grants.attachments_quota else {
            return Ok(());
        };
        let before = self.row.attached.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= quota {
            return Ok(());
        }
        self.row.attached.fetch_sub(bytes, Ordering::Relaxed);
        let message = format!(
            "row {} may attach {quota} bytes in all: its grant `attachments` says so",
            self.row.id
        );
        Err(PluginError::new(code::LIMIT, message))
    }
}

impl attachments::Host for State {
    async fn put(
        &mut self,
        content: Vec<u8>,
        media_type: String,
        name: Option<String>,
    ) -> wasmtime::Result<Result<String, types::Error>> {
        self.require(Phase::Work, "attachments.put")?;
        self.takes(content.len() + media_type.len() + name.as_ref().map_or(0, String::len))?;
        let port = match self.attachments() {
            Ok(port) => port,
            Err(error) => return Ok(Err(error.into())),
        };
        if let Err(error) = self.charge(content.len() as u64) {
            return Ok(Err(error.into()));
        }
        let put = port.put(content, &media_type, name.as_deref());
        Ok(self.answer(put).await.map_err(Into::into))
    }

    async fn read(
        &mut self,
        attachment: String,
    ) -> wasmtime::Result<Result<Vec<u8>, types::Error>> {
        self.require(Phase::Work, "attachments.read")?;
        self.takes(attachment.len())?;
        let port = match self.attachments() {
            Ok(port) => port,
            Err(error) => return Ok(Err(error.into())),
        };
        Ok(self
            .answer(port.read(&attachment))
            .await
            .map_err(Into::into))
    }
}
