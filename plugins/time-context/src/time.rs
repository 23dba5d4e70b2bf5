//! Times as people write them.

/// `2026-01-31 09:05:00 UTC`, of milliseconds since 1970.
pub(crate) fn utc(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The date of a day since 1970, in the Gregorian calendar: years are counted
/// from March on, so that the leap day is a year's last (H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// `3 h 5 min`, `5 min` or `40 s`.
pub(crate) fn duration(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_its_date() {
        for (ms, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_999, "2000-02-28 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (4_107_542_399_000, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
            (1_764_489_845_000, "2025-11-30 08:04:05 UTC"),
        ] {
            assert_eq!(utc(ms), expected);
        }
    }

    #[test]
    fn a_duration_is_as_exact_as_it_is_short() {
        for (ms, expected) in [
            (999, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (11_100_000, "3 h 5 min"),
        ] {
            assert_eq!(duration(ms), expected);
        }
    }
}
