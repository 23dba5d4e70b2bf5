//! `compat`: switches for servers that speak a protocol with an accent. Each
//! protocol names its own; what nobody wrote, the protocol decides from the
//! base URL.

use std::borrow::Cow;

use guest_support::json::Json;

/// A switch of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Its key.
    pub name: &'static str,
    /// What may stand there.
    pub takes: Takes,
}

/// What a switch may be set to.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// True or false.
    Flag,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A text that is not empty.
    Text,
    /// An object, which the protocol reads.
    Object,
}

impl Switch {
    /// A switch that is on or off.
    pub const fn flag(name: &'static str) -> Self {
        Self {
            name,
            takes: Takes::Flag,
        }
    }
}

/// What was written, the model's over the route's over the catalogue's.
#[derive(Clone, Debug, Default)]
pub struct Compat(Vec<(&'static str, String)>);

impl Compat {
    /// Whether a switch is on; none where nothing was written.
    pub fn flag(&self, name: &str) -> Option<bool> {
        Json::of_host(self.raw(name)?).bool()
    }

    /// The text of a switch.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        Json::of_host(self.raw(name)?).string()
    }

    /// A switch's JSON text, as it was written.
    pub fn raw(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| *key == name)?;
        Some(&found.1)
    }

    /// Lays `over` over it, which stands under `key`.
    pub(super) fn lay(
        &mut self,
        over: Option<Json<'_>>,
        switches: &'static [Switch],
        api: &str,
        key: &str,
    ) -> Result<(), String> {
        let Some(over) = over else { return Ok(()) };
        if !over.is_object() {
            return Err(format!("{key} must be an object"));
        }
        for (name, value) in over.members() {
            let switch = switches.iter().find(|switch| switch.name == name);
            let switch = switch.ok_or_else(|| {
                let known: Vec<_> = switches.iter().map(|switch| switch.name).collect();
                format!(
                    "{key}.{name} is no switch of {api}, which has {}",
                    known.join(", ")
                )
            })?;
            switch
                .takes
                .check(value)
                .map_err(|must| format!("{key}.{name} must be {must}"))?;
            self.0.retain(|(key, _)| *key != switch.name);
            self.0.push((switch.name, value.raw().to_owned()));
        }
        Ok(())
    }
}

impl Takes {
    fn check(self, value: Json<'_>) -> Result<(), String> {
        match self {
            Takes::Flag => value.bool().map(|_| ()).ok_or("true or false".to_owned()),
            Takes::Object => value
                .is_object()
                .then_some(())
                .ok_or("an object".to_owned()),
            Takes::Text => value
                .string()
                .filter(|text| !text.is_empty())
                .map(|_| ())
                .ok_or("a text".to_owned()),
            Takes::OneOf(texts) => value
                .string()
                .filter(|text| texts.contains(&&**text))
                .map(|_| ())
                .ok_or_else(|| format!("one of {}", texts.join(", "))),
        }
    }
}
