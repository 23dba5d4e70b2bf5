//! The row's configuration, and what it makes of a count.

use guest_support::json::Json;
use guest_support::pattern::matches;

/// `{thresholds?, include?, exclude?, argumentsPreviewChars?}`, read.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Ascending.
    thresholds: Vec<u64>,
    include: Vec<String>,
    exclude: Vec<String>,
    /// UTF-16 units.
    preview: usize,
}

impl Settings {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Which member is wrong, and by which rule.
    pub(crate) fn read(config: &str) -> Result<Self, String> {
        let config = Json::parse(config).ok_or("it is no JSON")?;
        let mut thresholds = match config.some("thresholds") {
            None => vec![3, 5, 8],
            Some(list) if list.is_array() => {
                let from_two = |item: Json<'_>| item.whole().filter(|count| *count >= 2);
                let counts: Option<Vec<_>> = list.items().map(from_two).collect();
                counts.ok_or("\"thresholds\" must be whole numbers from 2 on")?
            }
            Some(_) => return Err("\"thresholds\" must be an array".to_owned()),
        };
        thresholds.sort_unstable();
        if thresholds.is_empty() {
            return Err("\"thresholds\" must have an item".to_owned());
        }
        if thresholds.windows(2).any(|two| two[0] == two[1]) {
            return Err("\"thresholds\" must not have an item twice".to_owned());
        }
        let patterns = |name: &str| match config.some(name) {
            None => Ok(None),
            Some(list) if list.is_array() => {
                let texts = list.items().map(|item| Some(item.string()?.into_owned()));
                let texts: Option<Vec<_>> = texts.collect();
                texts.map(Some).ok_or(format!("{name:?} must be strings"))
            }
            Some(_) => Err(format!("{name:?} must be an array")),
        };
        let preview = match config.some("argumentsPreviewChars") {
            None => 500,
            Some(units) => {
                let units = units.whole().and_then(|units| usize::try_from(units).ok());
                units.ok_or("\"argumentsPreviewChars\" must be a whole number from 0 on")?
            }
        };
        Ok(Self {
            thresholds,
            include: patterns("include")?.unwrap_or_else(|| vec!["*".to_owned()]),
            exclude: patterns("exclude")?.unwrap_or_default(),
            preview,
        })
    }

    /// Whether calls of this tool are counted.
    pub(crate) fn tracks(&self, tool: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        any(&self.include) && !any(&self.exclude)
    }

    /// Tools to be told of, as a subscription has them: empty is all, and none is
    /// that nothing is counted.
    pub(crate) fn only(&self) -> Option<Vec<String>> {
        if self.include.iter().any(|pattern| pattern.contains('*')) {
            return Some(Vec::new());
        }
        let tracked = self.include.iter().filter(|tool| self.tracks(tool));
        let tracked: Vec<_> = tracked.cloned().collect();
        (!tracked.is_empty()).then_some(tracked)
    }

    /// What the model reads when the same call came this often; none between the
    /// thresholds and after the last.
    pub(crate) fn text(&self, count: u64, tool: &str, arguments: &str) -> Option<String> {
        let at = self.thresholds.binary_search(&count).ok()?;
        if at == 0 {
            return Some(format!(
                "You have called `{tool}` {count} times in a row with the same arguments. Look again at what it \
                 returned: if the task is not done yet, other arguments or another tool may bring it further."
            ));
        }
        Some(format!(
            "The same call again and again:\n- tool: {tool}\n- consecutive_calls: {count}\n- arguments: {}\n\
             More calls like it will return nothing new. Do not repeat it: work with what you have from it, try \
             something else, or say what is missing and end here.",
            preview(arguments, self.preview)
        ))
    }
}

/// The first `units` UTF-16 units of a text, and how many there are more.
fn preview(text: &str, units: usize) -> String {
    let mut taken = 0;
    let mut rest = text.char_indices();
    let cut = rest.find(|(_, c)| {
        taken += c.len_utf16();
        taken > units
    });
    match cut {
        None => text.to_owned(),
        Some((at, _)) => {
            let more = text[at..].encode_utf16().count();
            format!("{}… (+{more} more chars)", &text[..at])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_member() {
        let table = [
            (r#"{"thresholds":[]}"#, "must have an item"),
            (r#"{"thresholds":[3,3]}"#, "twice"),
            (r#"{"thresholds":[1]}"#, "from 2 on"),
            (r#"{"thresholds":[2.5]}"#, "from 2 on"),
            (r#"{"thresholds":3}"#, "\"thresholds\" must be an array"),
            (r#"{"include":"x"}"#, "\"include\" must be an array"),
            (r#"{"exclude":[1]}"#, "\"exclude\" must be strings"),
            (r#"{"argumentsPreviewChars":-1}"#, "argumentsPreviewChars"),
            ("{", "no JSON"),
        ];
        for (config, says) in table {
            let fault = Settings::read(config).unwrap_err();
            assert!(fault.contains(says), "{config}: {fault}");
        }
    }

    #[test]
    fn a_list_of_plain_names_is_all_that_it_is_told_of() {
        let only = |config| Settings::read(config).unwrap().only();
        assert_eq!(only("{}"), Some(vec![]));
        assert_eq!(only(r#"{"include":["a","mcp_*"]}"#), Some(vec![]));
        let some = r#"{"include":["a","b"],"exclude":["b*"]}"#;
        assert_eq!(only(some), Some(vec!["a".to_owned()]));
        assert_eq!(only(r#"{"include":["b"],"exclude":["b"]}"#), None);
        assert_eq!(only(r#"{"include":[]}"#), None);
    }

    #[test]
    fn a_preview_counts_utf16_units_and_cuts_between_characters() {
        assert_eq!(preview("abc", 3), "abc");
        assert_eq!(preview("abcd", 3), "abc… (+1 more chars)");
        assert_eq!(preview("a🦀bc", 2), "a… (+4 more chars)");
        assert_eq!(preview("a🦀bc", 3), "a🦀… (+2 more chars)");
        assert_eq!(preview("ab", 0), "… (+2 more chars)");
    }
}
