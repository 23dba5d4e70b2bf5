//! Which model is asked, and with which effort.
//!
//! A flag comes first, then what the session's last request had, then the row
//! `agent-default-model`. The row's effort is meant for the row's model.

use dsh_profile::Composition;
use dsh_session::{Session, Value};

use crate::arguments::{Model, Request};
use crate::exit::Failure;
use crate::run::text;

pub(crate) struct Route {
    pub(crate) model: Model,
    /// None leaves it to the session, while its model stays, or to the adapter.
    pub(crate) effort: Option<String>,
}

impl Route {
    pub(crate) fn choose(
        rows: &Composition,
        session: &Session,
        request: &Request,
    ) -> Result<Self, Failure> {
        let row = rows.host("agent-default-model");
        let default = text(row, "provider").zip(text(row, "model"));
        let default = default.map(|(provider, model)| Model {
            provider: provider.to_owned(),
            model: model.to_owned(),
        });
        let before = last(session);
        let goes_on = request.model.is_none() && before.is_some();
        let Some(model) = request.model.clone().or(before).or_else(|| default.clone()) else {
            return Err(Failure::of(
                "row agent-default-model: `provider` and `model` are needed; set both in its \
                 config or in settings.yaml, or take --model provider/model",
            ));
        };
        let of_row = text(row, "reasoningEffort")
            .filter(|_| !goes_on && default.as_ref() == Some(&model))
            .map(str::to_owned);
        let effort = request.effort.clone().or(of_row);
        Ok(Self { model, effort })
    }
}

/// The model of a session's last request.
fn last(session: &Session) -> Option<Model> {
    let header = dsh_agent::last_request(session)?;
    let config = header.config()?;
    let part = |key| {
        let text = config.get(key).and_then(Value::text)?;
        (!text.is_empty()).then(|| text.into_owned())
    };
    Some(Model {
        provider: part("provider")?,
        model: part("model")?,
    })
}
