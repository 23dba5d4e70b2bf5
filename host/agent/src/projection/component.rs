//! The bridge to rows that export `projection`.
//!
//! A component is called without a session, a time or chance of its own: what it
//! sees is the events, so that the same ones give the same state whenever and
//! however often they are folded.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::ProjectionSpec;
use dsh_plugin::port::{PortSet, Watch};
use dsh_plugin::{CallContext, CallError, Mounted, Projection};
use dsh_session::{Json, Kind, Seq};
use tokio_util::sync::CancellationToken;

use super::unit::{Fault, Stretch, Unit, accept};
use crate::ports::seed;

/// One key of a mounted row.
pub struct ComponentUnit {
    projection: Projection,
    spec: ProjectionSpec,
    /// None is all.
    kinds: Option<Vec<Kind>>,
    maker: String,
    context: CallContext,
}

impl ComponentUnit {
    /// All that a row folds; none of one that exports no `projection`. `config`
    /// is the row's configuration, and `watch` hears when the row is put out of
    /// use.
    #[must_use]
    pub fn all(
        mounted: &Mounted,
        config: &str,
        session_id: &str,
        watch: Option<Arc<dyn Watch>>,
    ) -> Vec<Self> {
        let Some(projection) = mounted.projection() else {
            return Vec::new();
        };
        let maker = maker(mounted.component().digest(), config);
        let ports = Arc::new(PortSet {
            watch,
            ..PortSet::default()
        });
        let unit = |spec: &ProjectionSpec| Self {
            projection: projection.clone(),
            spec: spec.clone(),
            kinds: (!spec.kinds.is_empty()).then(|| {
                spec.kinds
                    .iter()
                    .map(|kind| Kind::from_name(kind))
                    .collect()
            }),
            maker: maker.clone(),
            context: CallContext {
                ports: Arc::clone(&ports),
                session_id: Some(session_id.to_owned()),
                seed: seed(&[session_id, mounted.id(), &spec.key]),
                ..CallContext::default()
            },
        };
        projection.specs().iter().map(unit).collect()
    }

    fn context(&self, cancel: &CancellationToken) -> CallContext {
        CallContext {
            cancel: cancel.clone(),
            ..self.context.clone()
        }
    }
}

/// Names a component with a configuration. The configuration itself may hold what
/// is nobody's business, so it is not kept.
fn maker(digest: &str, config: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [digest, config] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

#[async_trait]
impl Unit for ComponentUnit {
    fn key(&self) -> &str {
        &self.spec.key
    }

    fn version(&self) -> u64 {
        u64::from(self.spec.version)
    }

    fn reads(&self, kind: &Kind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }

    fn maker(&self) -> Option<&str> {
        Some(&self.maker)
    }

    async fn fold(&self, stretch: Stretch<'_>) -> Result<Json, Fault> {
        let state = stretch.state.map(|state| state.as_str().to_owned());
        let lines = stretch.events.iter().map(|event| event.line()).collect();
        self.projection
            .fold(
                &self.context(stretch.cancel),
                &self.spec.key,
                state,
                lines,
                accept,
            )
            .await
            .map_err(fault)
    }

    async fn view(
        &self,
        state: &Json,
        _: Option<Seq>,
        cancel: &CancellationToken,
    ) -> Result<Json, Fault> {
        let state = state.as_str().to_owned();
        self.projection
            .view(&self.context(cancel), &self.spec.key, state, accept)
            .await
            .map_err(fault)
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "errors are handed over by map_err"
)]
fn fault(error: CallError) -> Fault {
    match error {
        CallError::Plugin(error) => Fault::NoValue(error.to_string()),
        CallError::Quarantined { .. } => Fault::Out(error.to_string()),
        CallError::Cancelled { .. } => Fault::Cancelled,
        other => Fault::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maker_is_a_component_with_a_configuration() {
        let one = maker("sha256:a", "{}");
        assert_eq!(one.len(), 32);
        assert_eq!(one, maker("sha256:a", "{}"));
        for (digest, config) in [
            ("sha256:b", "{}"),
            ("sha256:a", "{\"a\":1}"),
            ("sha256:a{", "}"),
        ] {
            assert_ne!(one, maker(digest, config), "{digest} {config}");
        }
    }
}
