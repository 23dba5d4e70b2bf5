//! What is left of a long result: its head, its tail, and a word in between.
//! Lengths are in code points, as they are in the configuration.

use guest_support::json::{Json, text};
use guest_support::tool::text_block;

const MARKER: &str = "\n\n[... tool result middle pruned ...]\n\n";

/// Code points that must go for the token measure to notice: it counts by fours.
const LEAST: usize = 4;

/// How much stays of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) threshold: usize,
    head: usize,
    tail: usize,
}

impl Sizes {
    /// Reads the row's configuration; or what is wrong with it.
    pub(crate) fn read(config: &str) -> Result<Self, String> {
        let config = Json::parse(config).ok_or("the configuration is not JSON")?;
        let number = |name: &str, default: usize| match config.some(name) {
            None => Ok(default),
            Some(value) => value
                .whole()
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| format!("{name} must be a whole number")),
        };
        let sizes = Self {
            threshold: number("thresholdChars", 8192)?,
            head: number("headChars", 4096)?,
            tail: number("tailChars", 1024)?,
        };
        let marker = MARKER.chars().count();
        let kept = sizes.head.saturating_add(sizes.tail).saturating_add(marker);
        if kept > sizes.threshold {
            return Err(format!(
                "headChars, tailChars and the {marker} of the marker must be at most thresholdChars ({})",
                sizes.threshold
            ));
        }
        Ok(sizes)
    }

    /// The fewest tokens that the measure charges for a message with more text than the threshold.
    pub(crate) fn least_tokens(self) -> u32 {
        u32::try_from(self.threshold / 4).unwrap_or(u32::MAX)
    }

    /// The content of a `tool/result` message, shortened; none where its text is
    /// not longer than the threshold. What is no text stays where it was.
    pub(crate) fn prune(self, message: &str) -> Option<Vec<String>> {
        let message = Json::parse(message)?;
        let result = message.get("content")?.items().next()?;
        let blocks: Vec<Json<'_>> = result.get("content")?.items().collect();
        let texts: Vec<Option<String>> = blocks.iter().map(|block| text_of(*block)).collect();
        let length = |text: &String| text.chars().count();
        let total: usize = texts.iter().flatten().map(length).sum();
        // What is left must weigh less also where the sizes leave hardly any middle.
        let kept = self.head + self.tail + MARKER.chars().count();
        if total <= self.threshold || total < kept + LEAST {
            return None;
        }
        let mut content = Vec::new();
        // Code points of the whole text that stand before the block at hand.
        let mut before = 0;
        let tail_from = total - self.tail;
        let mut marked = false;
        for (block, text) in blocks.iter().zip(&texts) {
            let Some(text) = text else {
                content.push(block.raw().to_owned());
                continue;
            };
            let mut kept = String::new();
            for (at, c) in (before..).zip(text.chars()) {
                if at < self.head || at >= tail_from {
                    kept.push(c);
                } else if !marked {
                    marked = true;
                    kept.push_str(MARKER);
                }
            }
            before += length(text);
            if !kept.is_empty() {
                content.push(text_block(&kept));
            }
        }
        Some(content)
    }
}

fn text_of(block: Json<'_>) -> Option<String> {
    (text(block, "type")? == "text").then(|| text(block, "text"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(blocks: &[&str]) -> String {
        let blocks = blocks.join(",");
        format!(
            r#"{{"content":[{{"type":"tool-result","toolCallId":"c","content":[{blocks}],"isError":false}}],"role":"user","id":"r"}}"#
        )
    }

    fn small() -> Sizes {
        Sizes::read(r#"{"thresholdChars":60,"headChars":4,"tailChars":2}"#).unwrap()
    }

    #[test]
    fn a_result_at_the_threshold_stays_and_one_above_it_loses_its_middle() {
        let sizes = Sizes::read("{}").unwrap();
        let at = "x".repeat(8192);
        assert_eq!(sizes.prune(&message(&[&text_block(&at)])), None);
        let above = format!("{at}y");
        let pruned = sizes.prune(&message(&[&text_block(&above)])).unwrap();
        let expected = format!("{}{MARKER}{}y", "x".repeat(4096), "x".repeat(1023));
        assert_eq!(pruned, [text_block(&expected)]);
    }

    #[test]
    fn code_points_count_and_not_bytes() {
        let text = "ä€😀".repeat(20);
        assert_eq!(small().prune(&message(&[&text_block(&text)])), None);
        let pruned = small()
            .prune(&message(&[&text_block(&format!("{text}!"))]))
            .unwrap();
        assert_eq!(pruned, [text_block(&format!("ä€😀ä{MARKER}😀!"))]);
    }

    #[test]
    fn what_is_no_text_stays_in_its_place() {
        let image = r#"{"type":"image","attachment":{"id":"a"}}"#;
        let (long, end) = (text_block(&"x".repeat(70)), text_block("end"));
        let pruned = small()
            .prune(&message(&[image, &long, image, &end]))
            .unwrap();
        let middle = text_block(&format!("xxxx{MARKER}"));
        assert_eq!(pruned, [image, &middle, image, &text_block("nd")]);
    }

    /// A pruned result is below the threshold.
    #[test]
    fn pruning_is_idempotent() {
        for text in ["x".repeat(61), "word ".repeat(10_000)] {
            let pruned = small().prune(&message(&[&text_block(&text)])).unwrap();
            let blocks: Vec<&str> = pruned.iter().map(String::as_str).collect();
            assert_eq!(small().prune(&message(&blocks)), None);
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (config, why) in [
            (
                r#"{"thresholdChars":5000}"#,
                "at most thresholdChars (5000)",
            ),
            (r#"{"headChars":-1}"#, "headChars must be"),
            (r#"{"tailChars":"x"}"#, "tailChars must be"),
            ("[", "not JSON"),
        ] {
            let error = Sizes::read(config).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        // The defaults leave room.
        assert!(Sizes::read(r#"{"thresholdChars":5159}"#).is_ok());
    }
}
