//! The row's configuration.

use guest_support::json::Json;

/// What the row says, or the defaults.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) target_words: u64,
    pub(crate) target_cjk_characters: u64,
    pub(crate) max_input_bytes: u64,
    pub(crate) max_output_tokens: u64,
    pub(crate) timeout_ms: u32,
    /// A provider and its model, where the session's own is not to be asked.
    pub(crate) route: Option<(String, String)>,
}

impl Settings {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Which member is wrong, and by which rule.
    pub(crate) fn read(config: &str) -> Result<Self, String> {
        let config = Json::parse(config).ok_or("it is no JSON")?;
        let number = |name: &str, usual: u64| match config.some(name) {
            None => Ok(usual),
            Some(number) => number
                .whole()
                .filter(|number| *number > 0)
                .ok_or_else(|| format!("{name:?} must be a whole number above 0")),
        };
        let text = |name: &str| match config.some(name) {
            None => Ok(None),
            Some(text) => {
                let text = text.string().filter(|text| !text.is_empty());
                let text = text.ok_or_else(|| format!("{name:?} must be a text"))?;
                Ok::<_, String>(Some(text.into_owned()))
            }
        };
        let route = match (text("provider")?, text("model")?) {
            (Some(provider), Some(model)) => Some((provider, model)),
            (None, None) => None,
            _ => return Err("\"provider\" and \"model\" go together".to_owned()),
        };
        Ok(Self {
            target_words: number("targetWords", 5)?,
            target_cjk_characters: number("targetCjkCharacters", 10)?,
            max_input_bytes: number("maxInputBytes", 4096)?,
            max_output_tokens: number("maxOutputTokens", 64)?,
            timeout_ms: u32::try_from(number("timeoutMs", 60_000)?).unwrap_or(u32::MAX),
            route,
        })
    }
}
