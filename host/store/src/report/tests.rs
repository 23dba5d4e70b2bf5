use super::*;

#[test]
fn dates_are_of_the_gregorian_calendar_in_utc() {
    for (ms, text) in [
        (0, "1970-01-01 00:00 UTC"),
        (1_700_000_000_000, "2023-11-14 22:13 UTC"),
        (951_782_400_000, "2000-02-29 00:00 UTC"),
        (951_868_799_999, "2000-02-29 23:59 UTC"),
        (4_107_542_400_000, "2100-03-01 00:00 UTC"),
        (-1, "1969-12-31 23:59 UTC"),
    ] {
        assert_eq!(date(ms), text);
    }
    // Whatever a log says, it is only a text.
    date(i64::MAX);
    date(i64::MIN);
}

#[test]
fn ages_are_in_one_unit_and_never_negative() {
    for (seconds, text) in [
        (-5, "now"),
        (59, "now"),
        (60, "1 min"),
        (3 * 3600 + 5, "3 h"),
        (86_400 * 40, "40 d"),
        (86_400 * 800, "2 y"),
    ] {
        assert_eq!(age(1_000_000, 1_000_000 + seconds * 1000), text);
    }
    assert_eq!(age(i64::MAX, i64::MIN), "now");
}

#[test]
fn sizes_have_one_digit_after_the_point() {
    for (bytes, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1024 * 1024 - 1, "1.0 MiB"),
        (5 << 30, "5.0 GiB"),
    ] {
        assert_eq!(size(bytes), text);
    }
}

#[test]
fn a_line_is_one_line_and_says_that_it_was_cut() {
    assert_eq!(line("a\nb\u{1b}[31mc", 10), "a bc");
    assert_eq!(line("abcdef", 6), "abcdef");
    assert_eq!(line("abcdefg", 6), "abcde…");
}
