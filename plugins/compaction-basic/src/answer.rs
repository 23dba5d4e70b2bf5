//! What is taken of the model's answer: its text. Reasoning and calls are left
//! out; a picture, an answer that was cut off and one that says nothing are no
//! summaries.

use guest_support::json::{Json, Object, array, text};
use guest_support::tool::text_block;

use crate::decide::Fault;

/// The text blocks of an answer.
pub(crate) fn text_of(content: &[String], finish: &str) -> Result<Vec<String>, Fault> {
    let refuse = |code, message: &str| {
        Err(Fault {
            code,
            message: message.to_owned(),
        })
    };
    let kind = Json::parse(finish).and_then(|finish| text(finish, "kind"));
    if kind.as_deref() == Some("max-tokens") {
        return refuse(
            "MAX_TOKENS",
            "the summary was cut off at its cap; raise maxTokens",
        );
    }
    let mut blocks = Vec::new();
    let mut blank = true;
    for block in content {
        let Some(block) = Json::parse(block) else {
            continue;
        };
        match text(block, "type").as_deref() {
            Some("image") => {
                return refuse("IMAGE_IN_SUMMARY", "the model answered with an image in it");
            }
            Some("text") => {
                let said = text(block, "text").unwrap_or_default();
                blank &= said.trim().is_empty();
                blocks.push(text_block(&said));
            }
            _ => {}
        }
    }
    if blank {
        return refuse("EMPTY_SUMMARY", "the model answered without text");
    }
    Ok(blocks)
}

/// How it was made, for the log.
pub(crate) fn origin(config: &str, content: &[String], usage: Option<&str>) -> String {
    let config = Json::parse(config);
    let member = |name: &str| config.and_then(|config| config.some(name)).map(Json::raw);
    Object::new()
        .raw("provider", member("provider").unwrap_or("\"\""))
        .raw("model", member("model").unwrap_or("\"\""))
        .maybe("maxTokens", member("maxTokens"))
        .raw("rawOutput", &array(content))
        .maybe("usage", usage)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: &str = r#"{"kind":"stop"}"#;

    fn content(blocks: &[&str]) -> Vec<String> {
        blocks.iter().map(|block| (*block).to_owned()).collect()
    }

    #[test]
    fn only_text_is_kept() {
        let answer = content(&[
            r#"{"type":"reasoning","text":"hm"}"#,
            r#"{"type":"text","text":"One","replayState":1}"#,
            r#"{"type":"tool-call","id":"c","name":"n","arguments":"{}"}"#,
            r#"{"type":"text","text":"two"}"#,
        ]);
        let kept = [text_block("One"), text_block("two")];
        assert_eq!(text_of(&answer, STOP).unwrap(), kept);
        assert_eq!(text_of(&answer, r#"{"kind":"tool-calls"}"#).unwrap(), kept);
    }

    #[test]
    fn an_answer_that_is_no_summary_is_refused_with_its_code() {
        let text = r#"{"type":"text","text":"One"}"#;
        for (blocks, finish, code) in [
            (&[text][..], r#"{"kind":"max-tokens"}"#, "MAX_TOKENS"),
            (
                &[text, r#"{"type":"image","attachment":{}}"#],
                STOP,
                "IMAGE_IN_SUMMARY",
            ),
            (&[r#"{"type":"text","text":" \n"}"#], STOP, "EMPTY_SUMMARY"),
            (
                &[r#"{"type":"reasoning","text":"hm"}"#],
                STOP,
                "EMPTY_SUMMARY",
            ),
            (&[], STOP, "EMPTY_SUMMARY"),
        ] {
            assert_eq!(text_of(&content(blocks), finish).unwrap_err().code, code);
        }
    }

    #[test]
    fn an_origin_names_the_route_that_it_ran_with() {
        let config = r#"{"provider":"p","model":"m","reasoningEffort":"high","maxTokens":32}"#;
        assert_eq!(
            origin(config, &content(&["1", "2"]), Some(r#"{"inputTokens":1}"#)),
            r#"{"provider":"p","model":"m","maxTokens":32,"rawOutput":[1,2],"usage":{"inputTokens":1}}"#
        );
    }
}
