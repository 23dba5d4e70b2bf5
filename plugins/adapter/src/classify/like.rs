//! Patterns of a few wildcards.

/// Whether `text` has what `pattern` describes: `#` is a number, `*` anything on
/// one line, `[x]` an `x` that may be missing; all else stands for itself.
pub(super) fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let first = pattern.first().copied();
    (0..=text.len()).any(|at| {
        let may_start = match first {
            Some(b'#' | b'*' | b'[') | None => true,
            Some(byte) => text.get(at) == Some(&byte),
        };
        may_start && starts(&text[at..], pattern)
    })
}

fn starts(text: &[u8], pattern: &[u8]) -> bool {
    let Some((&token, after)) = pattern.split_first() else {
        return true;
    };
    match token {
        b'#' => {
            let digits = text
                .iter()
                .take_while(|byte| byte.is_ascii_digit() || **byte == b',')
                .count();
            digits > 0 && starts(&text[digits..], after)
        }
        b'*' => (0..=text.len())
            .take_while(|at| *at == 0 || text[at - 1] != b'\n')
            .any(|at| starts(&text[at..], after)),
        b'[' => {
            let close = after.iter().position(|byte| *byte == b']');
            let (maybe, after) = close.map_or((after, &b""[..]), |close| {
                (&after[..close], &after[close + 1..])
            });
            let with = text
                .strip_prefix(maybe)
                .is_some_and(|rest| starts(rest, after));
            with || starts(text, after)
        }
        byte => text.first() == Some(&byte) && starts(&text[1..], after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_describes_a_text() {
        for (text, pattern, fits) in [
            ("it exceeds the limit of 1,024 now", "limit of # now", true),
            ("it exceeds the limit of none", "limit of #", false),
            ("a x b", "a[ x] b", true),
            ("a b", "a[ x] b", true),
            ("a y b", "a[ x] b", false),
            ("count 5 is over", "count*over", true),
            ("count\nover", "count*over", false),
            ("", "a", false),
            ("a", "", true),
            ("12", "#2", false),
        ] {
            assert_eq!(like(text, pattern), fits, "{text} {pattern}");
        }
    }
}
