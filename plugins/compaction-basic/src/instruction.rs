//! What the model is asked for, behind the messages that it is to summarise.

use guest_support::json::Object;
use guest_support::tool::text_block;

const INSTRUCTION: &str = "\
Write a summary of the whole conversation above. It will take the conversation's place: whoever goes on with the work \
will have nothing else of it, so what is not in the summary is lost.

Write it in English, as terse bullet points under exactly these eight headings, in this order and each exactly once:

## Primary Request and Intent
## Key Technical Concepts
## Files and Code
## Errors and Fixes
## Pending Jobs
## Current Work
## Next Step
## Critical Context

Under a heading with nothing to say, write `(none)`.

- Primary Request and Intent: what the person asked for, every constraint and every correction that they made.
- Files and Code: each file that was read, made or changed, what matters of it, and why.
- Errors and Fixes: what went wrong, what mended it, what was tried in vain.
- Pending Jobs: what was asked for or begun and is not finished.
- Current Work: what was being done when the conversation stops here.
- Next Step: the one thing to do next, if it follows from what was asked for.
- Critical Context: whatever else must not be lost: decisions and their reasons, values, environment, preferences.

Keep paths, commands, identifiers, numbers and error messages verbatim. Where the conversation already contains a \
<compacted-summary>, carry over all of it that still holds and merge it with what came after. Do not mention that \
anything is being summarised, do not address anybody, call no tool, and write nothing before the first heading or \
after the last bullet.";

/// The draft of the message that asks; with a person's own words, if there are any.
pub(crate) fn message(words: Option<&str>) -> String {
    let mut text = INSTRUCTION.to_owned();
    if let Some(words) = words.map(str::trim).filter(|words| !words.is_empty()) {
        text.push_str("\n\nThe person who asked for the summary also says:\n\n");
        text.push_str(words);
    }
    let source = Object::new()
        .string("kind", "plugin")
        .string("plugin", "dsh-compaction-basic");
    Object::new()
        .string("role", "user")
        .raw("content", &format!("[{}]", text_block(&text)))
        .raw("source", &source.build())
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_for_eight_sections_in_their_order() {
        let headings: Vec<_> = INSTRUCTION
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .collect();
        let expected = [
            "Primary Request and Intent",
            "Key Technical Concepts",
            "Files and Code",
            "Errors and Fixes",
            "Pending Jobs",
            "Current Work",
            "Next Step",
            "Critical Context",
        ];
        assert_eq!(headings, expected);
        for demand in [
            "(none)",
            "English",
            "verbatim",
            "<compacted-summary>",
            "call no tool",
            "terse",
        ] {
            assert!(INSTRUCTION.contains(demand), "{demand}");
        }
    }

    #[test]
    fn a_persons_words_are_passed_on() {
        assert!(message(Some("Keep \"names\".")).contains(r#"also says:\n\nKeep \"names\"."#));
        assert!(!message(Some(" \n")).contains("also says"));
        assert!(
            message(None).contains(r#""source":{"kind":"plugin","plugin":"dsh-compaction-basic"}"#)
        );
    }
}
