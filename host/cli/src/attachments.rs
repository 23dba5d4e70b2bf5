//! `$DSH_HOME/attachments`, as components, adapters and requests see it.
//!
//! Decoding and reading block, so they run on threads that may. One at a time: a
//! picture may take hundreds of megabytes while it is decoded. A caller that gives
//! up while it waits for its turn is out of the queue; what has begun ends by
//! itself, as it leaves nothing but a file that may be there.

mod check;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use dsh_model::LlmFailure;
use dsh_picture::{Attachment, AttachmentId, Bounds, Error, Pictures};
use dsh_plugin::api::PluginError;
use dsh_plugin::port::{self, Picture};
use dsh_profile::Home;
use tokio::sync::Semaphore;

use crate::regular;

pub(crate) use check::check;

/// The attachments of a home. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Attachments {
    pictures: Arc<Pictures>,
    turn: Arc<Semaphore>,
}

impl Attachments {
    pub(crate) fn of(home: &Home) -> Self {
        Self {
            pictures: Arc::new(Pictures::at(&home.path().join("attachments"))),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Takes the content of a file in.
    pub(crate) async fn attach(
        &self,
        content: Vec<u8>,
        name: Option<String>,
    ) -> Result<Attachment, PluginError> {
        self.work(move |pictures| pictures.put(&content, name.as_deref()))
            .await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Pictures) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, PluginError> {
        let failed = |message: &dyn std::fmt::Display| {
            PluginError::new(
                "UNAVAILABLE",
                format!("cannot look at a picture: {message}"),
            )
        };
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        let turn = turn.map_err(|error| failed(&error))?;
        let pictures = Arc::clone(&self.pictures);
        let worked = tokio::task::spawn_blocking(move || {
            // Held until the work ends, whoever still waits for it.
            let _turn = turn;
            work(&pictures)
        });
        worked
            .await
            .map_err(|error| failed(&error))?
            .map_err(|error| PluginError::new(error.code(), error.to_string()))
    }
}

#[async_trait]
impl port::Attachments for Attachments {
    async fn put(
        &self,
        content: Vec<u8>,
        _: &str,
        name: Option<&str>,
    ) -> Result<String, PluginError> {
        // What the caller takes it for is not asked: the content says what it is.
        let put = self.attach(content, name.map(str::to_owned)).await?;
        Ok(put.to_json())
    }

    async fn read(&self, attachment: &str) -> Result<Vec<u8>, PluginError> {
        let id = attachment.to_owned();
        self.work(move |pictures| pictures.read(&AttachmentId::parse(&id)?))
            .await
    }
}

#[async_trait]
impl port::Pictures for Attachments {
    async fn render(
        &self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<Picture, PluginError> {
        let id = attachment.to_owned();
        let bounds = Bounds {
            max_pixels,
            max_bytes,
        };
        let variant = self
            .work(move |pictures| pictures.render(&AttachmentId::parse(&id)?, bounds))
            .await?;
        Ok(Picture {
            id: variant.id.clone(),
            media_type: variant.media_type.to_owned(),
            bytes: u32::try_from(variant.bytes.len()).unwrap_or(u32::MAX),
            width: variant.width,
            height: variant.height,
            alpha: variant.alpha,
        })
    }
}

#[async_trait]
impl dsh_model::Pictures for Attachments {
    async fn bytes(&self, variant: &str) -> Result<Bytes, LlmFailure> {
        let name = variant.to_owned();
        let variant = self.work(move |pictures| pictures.variant(&name)).await;
        variant
            .map(|variant| variant.bytes.clone())
            .map_err(|error| LlmFailure::new("UNSUPPORTED_CONTENT", error.message))
    }
}

/// The content of a file that is to be attached.
pub(crate) fn content(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let file = regular::open(path).map_err(|error| format!("cannot open it: {error}"))?;
    let mut content = Vec::new();
    // One byte more than is taken shows what is too large.
    file.take(dsh_picture::MAX_FILE + 1)
        .read_to_end(&mut content)
        .map_err(|error| format!("cannot read it: {error}"))?;
    Ok(content)
}
