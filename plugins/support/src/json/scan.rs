//! Where values begin and end: over a text that may be anything ([`check`]), and
//! over one that was checked ([`length`]).

/// Bytes of the value that a checked text starts with.
pub(super) fn length(text: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => {
                while at < text.len() && !b",:{}[] \n\r\t\"".contains(&text[at]) {
                    at += 1;
                }
            }
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(text: &[u8], open: usize) -> usize {
    let mut at = plain(text, open + 1);
    while text[at] != b'"' {
        at = plain(text, at + if text[at] == b'\\' { 2 } else { 1 });
    }
    at + 1
}

/// Where a quote, a backslash or a control character comes, from `at` on. Strings
/// are most of what is read, so this takes eight bytes at a time.
fn plain(text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    // Sets the high bit of the lowest byte that is below `bound`, and maybe of
    // some above it.
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGH;
    let is = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    while let Some(Ok(word)) = text.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_le_bytes(word);
        let found = below(word, 0x20) | is(word, b'"') | is(word, b'\\');
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text
        .get(at)
        .is_some_and(|byte| *byte >= 0x20 && !matches!(byte, b'"' | b'\\'))
    {
        at += 1;
    }
    at
}

/// Checks one value against the grammar; returns where it ends.
pub(super) fn check(text: &[u8]) -> Option<usize> {
    let space = |mut at: usize| {
        while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            at += 1;
        }
        at
    };
    let name = |at: usize| {
        let at = space(check_string(text, at)?);
        (text.get(at) == Some(&b':')).then(|| space(at + 1))
    };
    let mut open: Vec<u8> = Vec::new();
    let mut at = 0;
    'value: loop {
        match *text.get(at)? {
            b'"' => at = check_string(text, at)?,
            bracket @ (b'{' | b'[') => {
                let close = bracket + 2;
                at = space(at + 1);
                if text.get(at) == Some(&close) {
                    at += 1;
                } else {
                    open.push(close);
                    if close == b'}' {
                        at = name(at)?;
                    }
                    continue 'value;
                }
            }
            b't' => at = word(text, at, b"true")?,
            b'f' => at = word(text, at, b"false")?,
            b'n' => at = word(text, at, b"null")?,
            _ => at = check_number(text, at)?,
        }
        while let Some(&close) = open.last() {
            at = space(at);
            match *text.get(at)? {
                b',' => {
                    at = space(at + 1);
                    if close == b'}' {
                        at = name(at)?;
                    }
                    continue 'value;
                }
                byte if byte == close => {
                    open.pop();
                    at += 1;
                }
                _ => return None,
            }
        }
        return Some(at);
    }
}

fn word(text: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    text[at..].starts_with(word).then_some(at + word.len())
}

fn check_string(text: &[u8], open: usize) -> Option<usize> {
    if text.get(open) != Some(&b'"') {
        return None;
    }
    let mut at = open + 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match *text.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' => {
                    let hex = text.get(at + 2..at + 6)?;
                    hex.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                    at += 6;
                }
                _ => return None,
            },
            0..0x20 => return None,
            _ => at = plain(text, at + 1),
        }
    }
}

fn check_number(text: &[u8], mut at: usize) -> Option<usize> {
    let digits = |from: usize| {
        let count = text[from.min(text.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        (count > 0).then_some(from + count)
    };
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if text.get(at) == Some(&b'0') {
        at + 1
    } else {
        digits(at)?
    };
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(text.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(at)?;
    }
    Some(at)
}
