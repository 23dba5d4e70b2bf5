//! The two classifiers that match sequences of words (spec/llm.md §4.1, §4.2).

/// A word of a text: letters, digits and apostrophes.
struct Word<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

/// What may stand at one place of a phrase.
enum Slot {
    One(&'static [&'static str]),
    Maybe(&'static [&'static str]),
}

use Slot::{Maybe, One};

/// What may stand between two words of a phrase.
#[derive(Clone, Copy)]
enum Gap {
    /// One space, `_` or `-`.
    Joint,
    /// Any number of these.
    Joints,
    /// White space.
    Space,
}

impl Gap {
    fn fits(self, between: &str) -> bool {
        let joint = |c: char| c.is_ascii_whitespace() || c == '_' || c == '-';
        match self {
            Gap::Joint => between.chars().count() == 1 && between.chars().all(joint),
            Gap::Joints => !between.is_empty() && between.chars().all(joint),
            Gap::Space => !between.is_empty() && between.chars().all(|c| c.is_ascii_whitespace()),
        }
    }
}

const SUBJECT: &[&str] = &["request", "prompt", "input", "message", "messages"];
const EXCEED: &[&str] = &["exceed", "exceeds", "exceeded"];
const LENGTH: &[&str] = &["length", "window"];
const CREDIT: &[&str] = &["credit", "credits"];
const MODEL: &[&str] = &["model", "model's"];

/// How far apart the parts of a loose overflow phrase may be, in characters.
const NEAR: usize = 40;

/// Whether it says that the request does not fit the model's window.
pub fn is_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words = words(&text);
    let has = |gap, slots: &[Slot]| contains(&text, &words, gap, slots);
    has(
        Gap::Joint,
        &[
            One(&["context"]),
            One(LENGTH),
            One(&["exceed", "exceeds", "exceeded", "overflow", "overflowed"]),
        ],
    ) || has(
        Gap::Joint,
        &[
            One(&["context"]),
            One(LENGTH),
            One(&["limit"]),
            One(&["exceeded"]),
        ],
    ) || has(
        Gap::Space,
        &[
            One(&["maximum", "max"]),
            Maybe(&["allowed", "supported"]),
            One(&["context"]),
            One(LENGTH),
        ],
    ) || has(
        Gap::Space,
        &[
            One(SUBJECT),
            Maybe(&["is", "are"]),
            One(&["too"]),
            One(&["large", "long"]),
            One(&["for"]),
            Maybe(&["this", "the"]),
            Maybe(MODEL),
            One(&["context"]),
        ],
    ) || has(
        Gap::Space,
        &[
            One(&["input", "prompt", "request"]),
            Maybe(&["is"]),
            One(&["too"]),
            One(&["long", "large"]),
            One(&["for"]),
            One(&["this", "the"]),
            One(&["model"]),
        ],
    ) || exceeds_context(&text, &words)
}

/// Whether it says that a quota or a balance is used up.
pub fn is_quota(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words = words(&text);
    let has = |slots: &[Slot]| contains(&text, &words, Gap::Joints, slots);
    const USED: &[&str] = &["exceeded", "exhausted", "reached"];
    has(&[
        One(&["insufficient"]),
        One(&["quota", "balance", "credit", "credits"]),
    ]) || has(&[One(&["quota"]), One(USED)])
        || has(&[One(&["usage"]), One(&["limit"]), One(USED)])
        || has(&[
            One(EXCEED),
            Maybe(&["your", "the"]),
            Maybe(&["current"]),
            One(&["quota"]),
        ])
        || has(&[
            One(&["balance", "credit", "credits"]),
            One(&["exhausted", "depleted"]),
        ])
        || has(&[One(&["out"]), One(&["of"]), One(&["budget"])])
        || has(&[One(&["out"]), One(&["of"]), One(CREDIT)])
}

/// A subject, a verb of excess near it, and the context near that.
fn exceeds_context(text: &str, words: &[Word<'_>]) -> bool {
    let near = |from: usize, to: usize| text[from..to].chars().count() <= NEAR;
    let verb = |at: usize| match words[at].text {
        "exceed" | "exceeds" | "exceeded" | "overflow" | "overflows" => Some(at),
        "is" => {
            let rest = [One(&["is"]), One(&["larger"]), One(&["than"])];
            matches_at(text, words, Gap::Space, &rest, at).then_some(at + 2)
        }
        _ => None,
    };
    // What may stand before `context` does not count as distance.
    let start = |at: usize| {
        let mut first = at;
        for allowed in [MODEL, &["the"]] {
            if first > 0 && allowed.contains(&words[first - 1].text) {
                first -= 1;
            }
        }
        words[first].start
    };
    words
        .iter()
        .enumerate()
        .filter(|(_, word)| SUBJECT.contains(&word.text))
        .any(|(subject, word)| {
            (subject + 1..words.len())
                .take_while(|at| near(word.end, words[*at].start))
                .filter_map(verb)
                .any(|verb| {
                    (verb + 1..words.len())
                        .filter(|at| words[*at].text == "context")
                        .any(|at| near(words[verb].end, start(at).max(words[verb].end)))
                })
        })
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if c.is_ascii_alphanumeric() || c == '\'' || c == '’' {
            start.get_or_insert(at);
        } else if let Some(start) = start.take() {
            found.push(Word {
                text: &text[start..at],
                start,
                end: at,
            });
        }
    }
    found
}

fn contains(text: &str, words: &[Word<'_>], gap: Gap, slots: &[Slot]) -> bool {
    (0..words.len()).any(|at| matches_at(text, words, gap, slots, at))
}

/// Whether the phrase starts at this word.
fn matches_at(text: &str, words: &[Word<'_>], gap: Gap, slots: &[Slot], from: usize) -> bool {
    let mut at = from;
    for slot in slots {
        let joined =
            at == from || (at < words.len() && gap.fits(&text[words[at - 1].end..words[at].start]));
        let here = words.get(at).filter(|_| joined).map(|word| word.text);
        match slot {
            One(any) => match here {
                Some(word) if any.contains(&word) => at += 1,
                _ => return false,
            },
            Maybe(any) => at += usize::from(here.is_some_and(|word| any.contains(&word))),
        }
    }
    true
}
