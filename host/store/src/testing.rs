//! What the tests of this crate share.

use std::path::PathBuf;

/// The crafted conformance cases of the session format.
pub(crate) fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/session")
}

/// A case's file as JSON. Half surrogate pairs, which serde_json refuses, come out as U+FFFD.
pub(crate) fn json(case: &str, file: &str) -> serde_json::Value {
    let path = cases().join(case).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&whole_pairs(&text)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Replaces the escapes of half surrogate pairs.
pub(crate) fn whole_pairs(text: &str) -> String {
    let unit = |at: usize| {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let high = unit(at).is_some_and(|u| (0xd800..0xdc00).contains(&u));
        let low = unit(at).is_some_and(|u| (0xdc00..0xe000).contains(&u));
        let followed = unit(at + 6).is_some_and(|u| (0xdc00..0xe000).contains(&u));
        let len = match (c, high, low) {
            ('\\', true, _) if followed => 12,
            ('\\', true, _) | ('\\', _, true) => {
                out.push_str("\\ufffd");
                at += 6;
                continue;
            }
            ('\\', ..) => 2,
            _ => c.len_utf8(),
        };
        out.push_str(&text[at..at + len]);
        at += len;
    }
    out
}
