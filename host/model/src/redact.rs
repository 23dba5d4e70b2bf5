//! Keeps a credential out of what is said of a failed call.
//!
//! A provider that refuses a key may quote it, as it came or encoded on its way through a gateway.
//! Whatever text of the provider becomes a failure of ours goes through here before it reaches
//! the log. What the model says is content and is never touched: a text that the harness changed
//! is a text that the model did not write.
//!
//! Local servers are given keys like `x` or `none`. To take each of them out of a message would
//! leave nothing to read, so short ones count as whole words only, and the shortest not at all:
//! what has three characters keeps nobody out.
//!
//! Case is not looked at in a key of some length: hosts come in lower case, codes in upper case.
//! Nor need it be whole, since messages are cut, by providers and by adapters: a beginning that
//! stands where a text ends, or is too long to be chance, is taken for the key. A provider that
//! wants to show a key can always turn it around; this keeps what happens by itself out of logs.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::credential::Secret;
use crate::failure::LlmFailure;

/// What stands in the place of a credential.
const MARK: &str = "[credential]";
/// Shorter keys are no secrets.
const SHORTEST: usize = 4;
/// From here on a key counts wherever it stands, in any encoding.
const LONG: usize = 8;
/// From here on no code of a failure can hold a key by chance.
const REAL: usize = 16;
/// From here on a beginning of a key counts wherever it stands. The names that keys of some
/// providers begin with are about as long, and none of them is a word.
const BEGINNING: usize = 12;

impl LlmFailure {
    /// The same without the credential.
    #[must_use]
    pub(crate) fn without(mut self, secret: &Secret) -> Self {
        self.message = redact(&self.message, secret);
        self.request_id = self.request_id.map(|id| redact(&id, secret));
        if secret.expose().len() >= REAL {
            self.code = redact(&self.code, secret);
        }
        self
    }
}

/// The text with each form of the credential replaced.
pub(crate) fn redact(text: &str, secret: &Secret) -> String {
    let key = secret.expose();
    if key.len() < SHORTEST {
        return text.to_owned();
    }
    if key.len() < LONG {
        return replace_word(text, key);
    }
    let mut clean = replace(text, key);
    for form in forms(key) {
        clean = replace(&clean, &form);
    }
    clean
}

/// Replaces a form of the key, in any case, whole or cut.
fn replace(text: &str, form: &str) -> String {
    let (bytes, form) = (text.as_bytes(), form.as_bytes());
    let mut clean = String::with_capacity(text.len());
    let mut kept = 0;
    let mut at = 0;
    while at < text.len() {
        if !text.is_char_boundary(at) {
            at += 1;
            continue;
        }
        let rest = &bytes[at..];
        let pairs = rest.iter().zip(form);
        let mut found = pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
        // A key is ASCII; should one not be, no character is cut in two.
        while !text.is_char_boundary(at + found) {
            found -= 1;
        }
        let least = if ends(&rest[found..]) {
            LONG
        } else {
            BEGINNING
        };
        if found < least.min(form.len()) {
            at += 1;
            continue;
        }
        clean.push_str(&text[kept..at]);
        clean.push_str(MARK);
        at += found;
        kept = at;
    }
    clean.push_str(&text[kept..]);
    clean
}

/// Whether a text may have been cut before this: nothing follows, or what marks a cut.
fn ends(rest: &[u8]) -> bool {
    rest.is_empty() || rest.starts_with("…".as_bytes()) || rest.starts_with(b"...")
}

/// How a key of some length looks behind an encoding.
fn forms(key: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
    let percent = key
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    for form in [escaped, percent] {
        if form != key {
            forms.push(form);
        }
    }
    // In base64 a byte's place counts: the key may stand behind a name and a colon.
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(key.as_bytes());
        for encoded in [
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            // Characters that also carry bits of what stands before and behind.
            let end = encoded.len() - usize::from(bytes.len() % 3 != 0);
            let form = encoded[[0, 2, 3][before]..end].to_owned();
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// Replaces a word where no other letter, number, `-` or `_` touches it.
fn replace_word(text: &str, word: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = &from[word.len()..];
        clean.push_str(before);
        let touched = clean.chars().next_back().is_some_and(part) || after.starts_with(part);
        clean.push_str(if touched { word } else { MARK });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
