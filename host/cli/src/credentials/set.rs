//! `dsh credentials set` and `unset`.

use std::io::{self, IsTerminal, Read};

use dsh_profile::{CredentialStore, Secret};

use super::{file, place_of, typed};
use crate::boot::Place;
use crate::exit::Failure;
use crate::report;

/// Bytes of a value on standard input; more is no key.
const MOST: u64 = 64 << 10;

pub(super) fn run(place: &Place, name: &str) -> Result<u8, Failure> {
    let (file, env) = file(place)?;
    // Before anybody types anything.
    file.writable(name).map_err(Failure::of)?;
    let stdin = io::stdin();
    let line = if stdin.is_terminal() {
        match typed::line(&format!("{name} (what you type is not shown): "))? {
            typed::Typed::Line(line) => line,
            typed::Typed::Given(code) => return Ok(code),
        }
    } else {
        let mut bytes = Vec::new();
        stdin
            .lock()
            .take(MOST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::of(format_args!("cannot read standard input: {error}")))?;
        one_line(bytes, name)?
    };
    // The rule of every request, so that what is kept can be used.
    let key = dsh_model::check_key(name, &dsh_model::Secret::new(line))
        .map_err(|failure| Failure::of(failure.message))?;
    let changed = file
        .set(name, &Secret::new(key.expose()))
        .map_err(Failure::of)?;
    let at = place_of(dsh_profile::Source::File, place);
    if changed.moved {
        report::line(format_args!(
            "{at} was of an early layout; its keys are below `refs:` now"
        ));
    }
    let done = if changed.had {
        "is changed in"
    } else {
        "is kept in"
    };
    // A store that cannot be opened would have been refused above.
    let wins = CredentialStore::open(&place.home, env)
        .ok()
        .and_then(|store| store.layers(name).ok());
    let others = wins
        .unwrap_or_default()
        .into_iter()
        .filter(|source| *source != dsh_profile::Source::File);
    let others: Vec<String> = others.map(|source| place_of(source, place)).collect();
    let over = match others.is_empty() {
        true => String::new(),
        false => format!(", and counts before the one in {}", others.join(" and ")),
    };
    report::product(&format!("{name} {done} {at}{over}\n"))
}

pub(super) fn unset(place: &Place, name: &str) -> Result<u8, Failure> {
    let (file, env) = file(place)?;
    let changed = file.unset(name).map_err(Failure::of)?;
    let at = place_of(dsh_profile::Source::File, place);
    let layers = CredentialStore::open(&place.home, env)
        .and_then(|store| store.layers(name))
        .map_err(Failure::of)?;
    let left = layers.first().map(|source| place_of(*source, place));
    match (changed.had, left) {
        (true, None) => report::product(&format!("{name} is taken out of {at}\n")),
        (true, Some(left)) => report::product(&format!(
            "{name} is taken out of {at}; it still has a value in {left}\n"
        )),
        (false, None) => Err(Failure::of(format_args!(
            "{name} is not in {at}, and nowhere else; dsh credentials list shows what is"
        ))),
        (false, Some(left)) => Err(Failure::of(format_args!(
            "{name} is not in {at}; it has its value in {left}"
        ))),
    }
}

/// The one line of what came on standard input; the break at its end is none of the value.
fn one_line(bytes: Vec<u8>, name: &str) -> Result<String, Failure> {
    let wrong =
        |what: &str| Failure::of(format_args!("the value of {name} on standard input {what}"));
    if bytes.len() as u64 > MOST {
        return Err(wrong("is longer than any key"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        return Err(wrong("is empty; give one line"));
    }
    if line.contains(['\n', '\r']) {
        return Err(wrong("has several lines; give one"));
    }
    Ok(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_gives_one_line_without_its_break() {
        let line = |text: &str| one_line(text.as_bytes().to_vec(), "X_KEY");
        for text in ["sk-1", "sk-1\n", "sk-1\r\n"] {
            assert_eq!(line(text).unwrap(), "sk-1");
        }
        for (text, says) in [
            ("", "empty"),
            ("\n", "empty"),
            ("\r\n", "empty"),
            ("sk-1\nsk-2\n", "several"),
            ("sk-1\n\n", "several"),
            ("a\rb", "several"),
        ] {
            let told = line(text).unwrap_err().to_string();
            assert!(
                told.contains(says) && told.contains("X_KEY") && !told.contains("sk-"),
                "{told}"
            );
        }
        assert!(
            one_line(vec![0xff], "X")
                .unwrap_err()
                .to_string()
                .contains("UTF-8")
        );
        assert!(
            line(&"x".repeat(70_000))
                .unwrap_err()
                .to_string()
                .contains("longer")
        );
    }
}
