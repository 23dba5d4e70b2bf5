//! The script: its entries, and which of them answers.

use guest_support::json::{Json, text};
use regex_lite::Regex;

/// What the model reports as its window where the script does not say.
const CONTEXT_WINDOW: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Script {
    entries: Vec<Entry>,
    answered: usize,
    pub(crate) context_window: u64,
}

/// One answer, as docs/schema/script.schema.json has it.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pattern: Option<Regex>,
    purpose: Option<String>,
    /// How often it may still answer; none for always.
    left: Option<u64>,
    pub(crate) delay_ms: u32,
    pub(crate) pace_ms: u32,
    pub(crate) reasoning: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<String>,
    pub(crate) error: Option<Failure>,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    /// As the model writes them: maybe no valid JSON.
    pub(crate) arguments: String,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) status: Option<u64>,
}

impl Script {
    /// Reads the row's configuration, `{script, contextWindow?}`.
    pub(crate) fn read(config: &str) -> Result<Self, String> {
        let config = Json::parse(config).ok_or("the configuration is not JSON")?;
        let mut script = Self {
            context_window: CONTEXT_WINDOW,
            ..Self::default()
        };
        if let Some(window) = config.some("contextWindow") {
            script.context_window = window
                .whole()
                .filter(|window| *window > 0)
                .ok_or("contextWindow must be a whole number above 0")?;
        }
        let Some(entries) = config.some("script") else {
            return Ok(script);
        };
        if !entries.is_array() {
            return Err("script must be a list of answers".to_owned());
        }
        for (at, entry) in entries.items().enumerate() {
            script
                .entries
                .push(Entry::read(entry).map_err(|why| format!("script[{at}]{why}"))?);
        }
        Ok(script)
    }

    /// The entry that answers, counted as spent; or why none does. A call with a
    /// purpose (a title, a summary) is answered by an entry of that purpose, and,
    /// where the script has none, by the purpose's name, or with nothing where that
    /// would name the session: it costs no answer of the loop's.
    pub(crate) fn answer(&mut self, input: &str, purpose: Option<&str>) -> Result<&Entry, String> {
        if let Some(purpose) = purpose
            && !self
                .entries
                .iter()
                .any(|entry| entry.purpose.as_deref() == Some(purpose))
        {
            let entry = Entry {
                purpose: Some(purpose.to_owned()),
                text: (purpose != "session-title").then(|| purpose.to_owned()),
                ..Entry::default()
            };
            self.entries.push(entry);
        }
        let found = self.entries.iter().position(|entry| {
            entry.left != Some(0)
                && entry.purpose.as_deref() == purpose
                && entry
                    .pattern
                    .as_ref()
                    .is_none_or(|pattern| pattern.is_match(input))
        });
        let spent = || {
            self.entries
                .iter()
                .filter(|entry| entry.left == Some(0))
                .count()
        };
        let Some(found) = found else {
            return Err(format!(
                "the script has no answer for this input: {} were given, {} of {} entries are \
                 spent, and no other matches; the input was {}",
                self.answered,
                spent(),
                self.entries.len(),
                shortened(input),
            ));
        };
        self.answered += 1;
        let entry = &mut self.entries[found];
        entry.left = entry.left.map(|left| left - 1);
        Ok(entry)
    }
}

/// What an answer may have (docs/schema/script.schema.json).
const MEMBERS: [&str; 11] = [
    "match",
    "purpose",
    "times",
    "delayMs",
    "paceMs",
    "reasoning",
    "text",
    "calls",
    "finish",
    "usage",
    "error",
];

impl Entry {
    /// An error starts with the path below the entry.
    fn read(json: Json<'_>) -> Result<Self, String> {
        if !json.is_object() {
            return Err(" must be an object".to_owned());
        }
        // A misspelt member would leave an answer out without a word.
        if let Some((name, _)) = json.members().find(|(name, _)| !MEMBERS.contains(name)) {
            return Err(format!(
                ".{name} is no member of an answer; it may have {}",
                MEMBERS.join(", ")
            ));
        }
        let string = |name: &str| match json.some(name) {
            Some(value) => value
                .string()
                .map(|text| Some(text.into_owned()))
                .ok_or(format!(".{name} must be a text")),
            None => Ok(None),
        };
        let whole = |name: &str| match json.some(name) {
            Some(value) => value
                .whole()
                .and_then(|n| u32::try_from(n).ok())
                .ok_or(format!(".{name} must be a whole number of milliseconds")),
            None => Ok(0),
        };
        let pattern = match string("match")? {
            Some(pattern) => Some(
                Regex::new(&pattern)
                    .map_err(|why| format!(".match is no regular expression: {why}"))?,
            ),
            None => None,
        };
        let left = match json.some("times") {
            None => Some(1),
            Some(times) if times.raw() == "\"always\"" => None,
            Some(times) => Some(
                times
                    .whole()
                    .filter(|times| *times > 0)
                    .ok_or(".times must be a whole number above 0, or \"always\"")?,
            ),
        };
        let calls = json.some("calls").into_iter().flat_map(Json::items);
        let calls = calls
            .enumerate()
            .map(|(at, call)| Call::read(call).map_err(|why| format!(".calls[{at}]{why}")));
        Ok(Self {
            pattern,
            purpose: string("purpose")?,
            left,
            delay_ms: whole("delayMs")?,
            pace_ms: whole("paceMs")?,
            reasoning: string("reasoning")?,
            text: string("text")?,
            calls: calls.collect::<Result<_, _>>()?,
            finish: string("finish")?,
            usage: json.some("usage").map(|usage| usage.raw().to_owned()),
            error: json.some("error").map(Failure::read).transpose()?,
        })
    }
}

impl Call {
    fn read(json: Json<'_>) -> Result<Self, String> {
        let arguments = match json.some("arguments") {
            None => "{}".to_owned(),
            Some(value) => value
                .string()
                .map_or_else(|| value.raw().to_owned(), std::borrow::Cow::into_owned),
        };
        Ok(Self {
            id: text(json, "id"),
            name: text(json, "name").ok_or(".name must be a text")?,
            arguments,
        })
    }
}

impl Failure {
    fn read(json: Json<'_>) -> Result<Self, String> {
        let filled = |name: &str| text(json, name).filter(|text| !text.is_empty());
        let status = match json.some("status") {
            None => None,
            Some(value) => Some(
                value
                    .whole()
                    .filter(|status| (100..600).contains(status))
                    .ok_or(".error.status must be from 100 to 599")?,
            ),
        };
        Ok(Self {
            code: filled("code").ok_or(".error.code must be a text")?,
            message: filled("message").ok_or(".error.message must be a text")?,
            status,
        })
    }
}

/// `text` in quotes, cut to what fits a line.
fn shortened(text: &str) -> String {
    const KEPT: usize = 160;
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let mut kept: String = text.chars().take(KEPT).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    format!("{kept:?}")
}
