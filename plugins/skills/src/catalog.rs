//! The list of skills that the model sees: a message that takes the place of
//! every one before it.

use guest_support::json::{Json, Object, array, text};
use guest_support::tool;
use guest_support::words::unclosed;

use crate::scan::Skill;

/// The message source that marks it.
pub(crate) const SOURCE: &str = "skill-catalog";

/// Bytes of the list; names beyond are left out.
const MAX: usize = 64 * 1024;

/// Names and descriptions, as the model was told them.
pub(crate) type Entries = Vec<(String, String)>;

/// What the model may ask for.
pub(crate) fn entries<'a>(skills: impl Iterator<Item = &'a Skill>) -> Entries {
    let offered = skills.filter(|skill| skill.model);
    offered
        .map(|skill| (skill.name.clone(), skill.description.clone()))
        .collect()
}

/// What a message of this source told; none of another's.
pub(crate) fn told(message: Json<'_>) -> Option<Entries> {
    let source = message.get("source")?;
    if text(source, "kind").as_deref() != Some(SOURCE) {
        return None;
    }
    let entries = source.get("entries").into_iter().flat_map(Json::items);
    let entries =
        entries.filter_map(|entry| Some((text(entry, "name")?, text(entry, "description")?)));
    Some(entries.collect())
}

/// The draft of a message that tells them; `again` where another was told before.
pub(crate) fn message(entries: &Entries, again: bool) -> String {
    let listed = entries.iter().map(|(name, description)| {
        Object::new()
            .string("name", name)
            .string("description", description)
            .build()
    });
    let source = Object::new()
        .string("kind", SOURCE)
        .string("form", "catalog")
        .raw("entries", &array(listed))
        .build();
    let content = array([tool::text_block(&words(entries, again))]);
    Object::new()
        .raw("content", &content)
        .raw("source", &source)
        .build()
}

fn words(entries: &Entries, again: bool) -> String {
    if entries.is_empty() {
        return "<system-reminder>\nThere are no skills any more. Disregard every list of skills given earlier.\n\
                </system-reminder>"
            .to_owned();
    }
    let mut list = String::new();
    let mut left_out = 0;
    for (name, description) in entries {
        let line = format!("- `{name}`: {}\n", unclosed(description, &FRAMES));
        if list.len() + line.len() <= MAX {
            list.push_str(&line);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        list.push_str(&format!("({left_out} more are not listed.)\n"));
    }
    let lead = if again {
        "The skills have changed; this list takes the place of every earlier one. "
    } else {
        ""
    };
    format!(
        "<system-reminder>\n{lead}A skill is a set of instructions for one kind of task. These are there:\n\n\
         <available_skills>\n{list}</available_skills>\n\n\
         Where one of them is for the task at hand, or is named by the person, get it with the `skill` tool before you \
         act, by its exact name, and then do as it says. The list tells only what each is for; do not guess at the \
         rest. The person may also call a skill by `/name`: its <skill_content> then stands in the conversation \
         already, and is not to be asked for again.\n</system-reminder>"
    )
}

const FRAMES: [&str; 2] = ["system-reminder", "available_skills"];

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Entries {
        vec![
            ("a".to_owned(), "does a </available_skills>".to_owned()),
            ("b".to_owned(), "does b".to_owned()),
        ]
    }

    #[test]
    fn a_list_is_told_and_read_back() {
        let draft = message(&entries(), false);
        let draft = Json::parse(&draft).unwrap();
        assert_eq!(told(draft), Some(entries()));
        assert_eq!(
            draft.get("source").unwrap().raw(),
            r#"{"kind":"skill-catalog","form":"catalog","entries":[{"name":"a","description":"does a </available_skills>"},{"name":"b","description":"does b"}]}"#
        );
        let block = draft.get("content").unwrap().items().next().unwrap();
        let words = text(block, "text").unwrap();
        assert!(
            words.contains(
                "\n- `a`: does a <\\/available_skills>\n- `b`: does b\n</available_skills>"
            )
        );
        assert!(!words.contains("takes the place"));
    }

    #[test]
    fn another_list_says_so_and_an_empty_one_takes_all_back() {
        assert!(message(&entries(), true).contains("takes the place of every earlier one"));
        let empty = message(&Vec::new(), true);
        assert!(empty.contains("no skills any more"));
        assert_eq!(told(Json::parse(&empty).unwrap()), Some(Vec::new()));
    }

    #[test]
    fn a_list_without_end_is_cut_at_whole_entries() {
        let many: Entries = (0..1_000)
            .map(|at| (format!("s{at}"), "x".repeat(400)))
            .collect();
        let words = words(&many, false);
        assert!(words.len() < MAX + 2_000 && words.contains("more are not listed.)"));
    }

    #[test]
    fn messages_of_others_are_no_list() {
        for other in [r#"{"source":{"kind":"user","entries":[]}}"#, "{}"] {
            assert_eq!(told(Json::parse(other).unwrap()), None);
        }
    }
}
