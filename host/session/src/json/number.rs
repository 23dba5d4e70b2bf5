//! Numbers in ECMAScript's shortest form. `spec/session.md` §0.

use std::fmt::Write as _;

/// The double that a JSON number denotes; infinite when it is too large. `text` is a valid JSON number.
pub(crate) fn parse(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Whether a double comes back from the log as it was.
pub(crate) fn is_lossless(number: f64) -> bool {
    number.is_finite() && !(number == 0.0 && number.is_sign_negative())
}

/// Whether a JSON number is written as [`write`] would write it, and lossless.
pub(crate) fn is_shortest(text: &str) -> bool {
    let number = parse(text);
    if !is_lossless(number) {
        return false;
    }
    let mut out = String::with_capacity(24);
    write(number, &mut out);
    out == text
}

/// Appends a double as `JSON.stringify` does: `null` when it is not finite, `0` for negative zero.
pub(crate) fn write(number: f64, out: &mut String) {
    if !number.is_finite() {
        out.push_str("null");
        return;
    }
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        let _ = write!(out, "{}", number as i64);
        return;
    }
    if number < 0.0 {
        out.push('-');
    }
    // Rust gives the same shortest digits, as `d.ddde±x`; only the layout differs.
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let count = digits.len() as i32;
    // The decimal point stands after `point` digits.
    let point = exponent + 1;
    if (count..=21).contains(&point) {
        out.push_str(&digits);
        out.extend(std::iter::repeat_n('0', (point - count) as usize));
    } else if (1..=21).contains(&point) {
        let (whole, rest) = digits.split_at(point as usize);
        let _ = write!(out, "{whole}.{rest}");
    } else if (-5..=0).contains(&point) {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', -point as usize));
        out.push_str(&digits);
    } else {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{}", exponent.abs());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_take_the_shortest_ecmascript_form() {
        for (text, want) in [
            ("1.0", "1"),
            ("1.50", "1.5"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("1e-7", "1e-7"),
            ("0.000001", "0.000001"),
            ("12345678901234567890", "12345678901234567000"),
            ("-0", "0"),
            ("1e400", "null"),
            ("123.456", "123.456"),
            ("-1.5e300", "-1.5e+300"),
            ("5e-324", "5e-324"),
            ("9007199254740993", "9007199254740992"),
        ] {
            let mut out = String::new();
            super::write(super::parse(text), &mut out);
            assert_eq!(out, want, "{text}");
        }
    }
}
