//! What the model sees in place of what was summarised. The text comes from a
//! row; the frame around it says what it is, so that no summary can pass for
//! something that a person wrote.

use dsh_plugin::api::JsonText;
use dsh_session::{Json, Value};

use crate::message::{Message, text_block};

/// The source that marks summaries; upstream's, so that both read each other's logs.
const PLUGIN: &str = "compact";

const LEAD: &str = "The conversation up to this point was replaced by the summary below to save room. \
    Take what it says as known, and go on with the work from where it ends; do not answer the summary itself, \
    and do not mention that there was one.\n\n<compacted-summary>";
const TAIL: &str = "</compacted-summary>";

/// A row's text blocks, or why they are no summary.
pub(super) fn blocks(content: &[JsonText]) -> Result<Vec<Json>, String> {
    let mut blocks = Vec::new();
    let mut blank = true;
    for text in content {
        let block = Json::normalise(text)
            .map_err(|error| format!("has a block that is no JSON: {error}"))?;
        match block.get("type").and_then(Value::text).as_deref() {
            Some("text") => {}
            Some("image") => return Err("has an image in it".to_owned()),
            kind => {
                return Err(format!(
                    "has a block of type {} in it, where only text may be",
                    kind.unwrap_or("none")
                ));
            }
        }
        let text = block.get("text").and_then(Value::text);
        let text = text.ok_or_else(|| "has a text block without text".to_owned())?;
        blank &= text.trim().is_empty();
        // Nothing but the text: what else a block holds was not made for a person's message.
        blocks.push(text_block(&text));
    }
    if blank {
        return Err("is empty".to_owned());
    }
    Ok(blocks)
}

/// The message that stands for what was summarised.
pub(super) fn message(summary: &[Json], id: &str, command: Option<&str>) -> Message {
    let mut content = vec![text_block(LEAD)];
    content.extend_from_slice(summary);
    content.push(text_block(TAIL));
    let source = Json::object(|source| {
        source
            .str("kind", "plugin")
            .str("plugin", PLUGIN)
            .str("compactionId", id);
        source.opt_str("sourceCommandId", command);
    });
    Message::mint(&content, &source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_text_and_says_something() {
        let text = r#"{"type":"text","text":"It says this."}"#.to_owned();
        let cases: [(&[&str], &str); 6] = [
            (&[], "is empty"),
            (&[r#"{"type":"text","text":" \n"}"#], "is empty"),
            (&["{"], "no JSON"),
            (&[r#"{"type":"image","attachment":{}}"#], "an image"),
            (&[r#"{"type":"tool-call","id":"x"}"#], "type tool-call"),
            (&[r#"{"type":"text"}"#], "without text"),
        ];
        for (content, why) in cases {
            let mut content: Vec<_> = content.iter().map(|text| (*text).to_owned()).collect();
            let error = blocks(&content).unwrap_err();
            assert!(error.contains(why), "{error}");
            if why != "is empty" {
                content.push(text.clone());
                assert!(blocks(&content).is_err());
            }
        }
        assert_eq!(blocks(&[text]).unwrap(), [text_block("It says this.")]);
    }

    #[test]
    fn a_summary_is_framed_and_says_whose_it_is() {
        let made = message(&[text_block("S")], "c1", Some("k1"));
        let source = made.json().get("source").unwrap();
        assert_eq!(
            source.as_str(),
            r#"{"kind":"plugin","plugin":"compact","compactionId":"c1","sourceCommandId":"k1"}"#
        );
        let content: Vec<_> = made.json().get("content").unwrap().items().collect();
        let text = |at: usize| {
            content[at]
                .get("text")
                .unwrap()
                .text()
                .unwrap()
                .into_owned()
        };
        assert!(text(0).ends_with("\n\n<compacted-summary>"));
        assert_eq!(
            (text(1), text(2)),
            ("S".into(), "</compacted-summary>".into())
        );
    }
}
