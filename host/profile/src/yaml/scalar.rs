//! What a plain scalar means in js-yaml's JSON schema.

use super::Kind;
use serde_json::Number;

/// Resolves an unquoted scalar. Not a number that JSON can hold (`.inf`, `.nan`):
/// an error.
pub(super) fn resolve(text: &str) -> Result<Kind, &'static str> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        _ => match number(text) {
            Some(Some(n)) => Kind::Number(n),
            Some(None) => return Err("not a number that JSON can hold"),
            None => Kind::String(text.to_owned()),
        },
    })
}

/// `None`: not a number. `Some(None)`: one that is not finite.
fn number(text: &str) -> Option<Option<Number>> {
    let (negative, body) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if matches!(body, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(None);
    }
    let first = *body.as_bytes().first()?;
    if !(first.is_ascii_digit() || first == b'.') || body.ends_with('_') {
        return None;
    }
    let digits: String = body.chars().filter(|c| *c != '_').collect();
    for (prefix, radix) in [("0b", 2), ("0o", 8), ("0x", 16)] {
        if let Some(rest) = digits.strip_prefix(prefix) {
            let value = u64::from_str_radix(rest, radix).ok()?;
            return Some(integer(negative, value));
        }
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return match digits.parse::<u64>() {
            Ok(value) => Some(integer(negative, value)),
            Err(_) => Some(float(&digits, negative)),
        };
    }
    is_float(&digits).then(|| float(&digits, negative))
}

fn integer(negative: bool, value: u64) -> Option<Number> {
    if !negative {
        return Some(value.into());
    }
    match i64::try_from(value) {
        Ok(value) => Some((-value).into()),
        #[allow(clippy::cast_precision_loss)] // As a JavaScript number would.
        Err(_) => Number::from_f64(-(value as f64)),
    }
}

/// Digits with a point, an exponent or both; at least one digit beside a point.
fn is_float(body: &str) -> bool {
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let exponent_ok = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && e.bytes().all(|b| b.is_ascii_digit())
    });
    let mut parts = mantissa.splitn(2, '.');
    let whole = parts.next().unwrap_or("");
    let fraction = parts.next().unwrap_or("");
    exponent_ok
        && !(whole.is_empty() && fraction.is_empty())
        && whole
            .bytes()
            .chain(fraction.bytes())
            .all(|b| b.is_ascii_digit())
}

fn float(digits: &str, negative: bool) -> Option<Number> {
    let value: f64 = digits.parse().ok()?;
    let value = if negative { -value } else { value };
    // A whole number is written as one, as JavaScript does.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation)] // Whole and below 2^53.
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}
