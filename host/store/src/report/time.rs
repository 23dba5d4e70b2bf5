//! Dates and ages, in UTC and without a library of time zones.

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// From here on an age is told in years.
const YEARS: i64 = 730 * DAY;

/// `2023-11-14 22:13 UTC`, of epoch milliseconds.
pub fn date(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(DAY), ms.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute) = (rest / HOUR, rest % HOUR / MINUTE);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The Gregorian date of a day counted from 1970-01-01, after Howard Hinnant's `civil_from_days`: years begin in March,
/// so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// How long ago, in one unit: `now`, `5 min`, `3 h`, `12 d`, `2 y`. The future counts as now.
pub fn age(then_ms: i64, now_ms: i64) -> String {
    let ago = now_ms.saturating_sub(then_ms);
    match ago {
        i64::MIN..MINUTE => "now".to_owned(),
        MINUTE..HOUR => format!("{} min", ago / MINUTE),
        HOUR..DAY => format!("{} h", ago / HOUR),
        DAY..YEARS => format!("{} d", ago / DAY),
        YEARS.. => format!("{} y", ago / (365 * DAY)),
    }
}
