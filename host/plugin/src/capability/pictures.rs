//! `pictures`: attachments as a model takes them. Granted by `pictures`.
//!
//! A translator may use it too: it names a variant in its request's body, and the
//! host puts the bytes there, so none of them passes through the component.

use std::time::Instant;

use super::Phase;
use crate::api::PluginError;
use crate::contract::v0_1::{pictures, types};
use crate::instance::State;

super::capability!(pictures, "pictures");

impl pictures::Host for State {
    async fn render(
        &mut self,
        attachment: String,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> wasmtime::Result<Result<pictures::Picture, types::Error>> {
        self.require(Phase::Translate, "pictures.render")?;
        self.takes(attachment.len())?;
        let Some(port) = self.ctx.ports.pictures.clone() else {
            let error = PluginError::unavailable("place for attachments");
            return Ok(Err(error.into()));
        };
        let begun = Instant::now();
        let rendered = self
            .answer(port.render(&attachment, max_pixels, max_bytes))
            .await;
        // A history with many pictures takes long once, when none is made yet.
        self.meter.waits(begun.elapsed());
        Ok(rendered
            .map(|picture| pictures::Picture {
                id: picture.id,
                media_type: picture.media_type,
                bytes: picture.bytes,
                width: picture.width,
                height: picture.height,
                alpha: picture.alpha,
            })
            .map_err(Into::into))
    }
}
