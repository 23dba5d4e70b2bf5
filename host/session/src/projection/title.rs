//! `title`: the text of the last title, or null. `spec/session.md` §10.4.

use super::{Look, State, Unit};
use crate::{Error, Json, Kind, Seq, Value};

/// The unit.
pub struct Title;

struct Fold(Json);

impl Unit for Title {
    fn key(&self) -> &str {
        "title"
    }

    fn version(&self) -> u64 {
        1
    }

    fn reads(&self) -> &[Kind] {
        &[Kind::SessionTitle]
    }

    fn init(&self) -> Box<dyn State> {
        Box::new(Fold(Json::null()))
    }

    fn parse(&self, state: Value<'_>, _: Option<Seq>) -> Option<Box<dyn State>> {
        let sound = state.is_null() || state.string().is_some();
        sound.then(|| Box::new(Fold(state.to_json())) as Box<dyn State>)
    }
}

impl State for Fold {
    fn apply(&mut self, event: &Look<'_>) -> Result<bool, Error> {
        let title = event.data.get("title");
        let Some(title) = title.filter(|title| title.string().is_some()) else {
            return Ok(false);
        };
        let changed = title != self.0.value();
        self.0 = title.to_json();
        Ok(changed)
    }

    fn json(&self, _: Option<Seq>) -> Json {
        self.0.clone()
    }

    fn view(&self) -> Json {
        self.0.clone()
    }
}
