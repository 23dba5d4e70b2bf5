//! What a component offers, asked by somebody who has granted it nothing.
//!
//! Installing shows what a component would add and see before anybody decides, so
//! it has to be asked first. It is asked as a mounted row is (`offer`): on
//! instances of their own, under the default limits, and with every import but
//! `log`, `config` and `work` a trap. So a survey can compute for a while and
//! nothing else. Its types are held against the contract on the way: a component
//! of another world is refused here rather than at its first start.

use std::sync::Arc;

use crate::api::{JsonText, ProjectionSpec, Subscription, ToolSpec};
use crate::component::Component;
use crate::engine::Engine;
use crate::error::Error;
use crate::grants::Grants;
use crate::limits::Limits;
use crate::mount::{self, Row, Standing};
use crate::offer;

/// What a component says that it offers, with one configuration.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Offered {
    /// Tools for the model.
    pub tools: Vec<ToolSpec>,
    /// Routes to models: `{provider, baseURL, credential, …}`, a JSON text each.
    pub routes: Vec<JsonText>,
    /// Events that it listens to.
    pub subscriptions: Vec<Subscription>,
    /// Read models that it folds from the log.
    pub projections: Vec<ProjectionSpec>,
}

impl Engine {
    /// Asks a component what a row of it would offer, without granting anything.
    /// `config` is the row's configuration, a JSON text; `row` names it in errors.
    ///
    /// # Errors
    /// As [`Engine::mount`], but for what is about grants.
    pub async fn survey(
        &self,
        component: &Arc<Component>,
        row: &str,
        config: &str,
    ) -> Result<Offered, Error> {
        let row = Row {
            id: row.to_owned(),
            component: Arc::clone(component),
            config: config.to_owned(),
            grants: Grants::none(),
            limits: Limits::of(component, &serde_json::Value::Null)?,
        };
        let linked = mount::prepare(self.inner(), row, Standing::Surveyed)?;
        let offer = offer::read(&linked, component.description()).await?;
        Ok(Offered {
            tools: offer.tools,
            routes: offer.routes,
            subscriptions: offer.subscriptions,
            projections: offer.projections,
        })
    }
}
