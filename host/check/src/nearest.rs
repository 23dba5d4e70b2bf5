//! Which of the names that there are somebody may have meant.

/// How many are named at most: a list is there to be read.
const MOST: usize = 3;

/// The known names that are likely to be meant by `word`, the likeliest first;
/// none where none is near.
///
/// Near is a third of the word's letters changed, added, left out or swapped, at
/// least one, whatever their case; a name that begins or ends as the word does is
/// near too, so that a family finds its members.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.trim().to_lowercase();
    if word.is_empty() {
        return Vec::new();
    }
    let letters = word.chars().count();
    let reach = (letters / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let away = strsim::osa_distance(&word, &lower);
            // Of a single letter nothing is left when it is changed.
            if away <= reach && away < letters {
                return Some((away, name));
            }
            let (short, long) = if word.len() < lower.len() {
                (&word, &lower)
            } else {
                (&lower, &word)
            };
            let part = short.chars().count() >= 4
                && (long.starts_with(short.as_str()) || long.ends_with(short.as_str()));
            // After all that are near by their letters, the closest in length first.
            part.then(|| (reach + (long.len() - short.len()), name))
        })
        .collect();
    // Equal ones stay in the order that they came in.
    near.sort_by_key(|(away, _)| *away);
    near.dedup_by(|a, b| a.1 == b.1);
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// `; did you mean a or b?`, nothing where nothing is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known).as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = [
        "openai",
        "openrouter",
        "anthropic",
        "deepseek-official",
        "xai",
    ];

    #[test]
    fn a_misspelt_name_finds_the_one_that_was_meant() {
        let cases: [(&str, &[&str]); 8] = [
            ("opnai", &["openai"]),
            ("OpenAI ", &["openai"]),
            ("antrhopic", &["anthropic"]),
            ("open-router", &["openrouter"]),
            ("deepseek", &["deepseek-official"]),
            ("xia", &["xai"]),
            ("mistral", &[]),
            ("", &[]),
        ];
        for (word, wanted) in cases {
            assert_eq!(nearest(word, KNOWN), wanted, "{word:?}");
        }
        assert_eq!(nearest("q", ["p"]), <[&str; 0]>::default());
    }

    #[test]
    fn the_likeliest_comes_first_and_no_more_than_three_come() {
        let known = ["gpt-4", "gpt-5.1", "gpt-5", "gpt-5.2", "gpt-5.3"];
        assert_eq!(nearest("gpt-5", known)[0], "gpt-5");
        assert_eq!(nearest("gpt-5", known).len(), 3);
        assert_eq!(did_you_mean("gtp-5", ["gpt-5"]), "; did you mean gpt-5?");
        assert_eq!(did_you_mean("q", ["gpt-5"]), "");
    }
}
