use super::*;

fn read_in(
    content: &[u8],
    offset: u64,
    limit: u64,
    slice: usize,
) -> Result<(String, String), Error> {
    let mut window = Window::new(offset, limit);
    for slice in content.chunks(slice) {
        if !window.push(slice) {
            break;
        }
    }
    window.finish("/f")
}

/// What stands between the envelope's tags.
fn read(content: &str, offset: u64, limit: u64) -> String {
    let whole = read_in(content.as_bytes(), offset, limit, usize::MAX).unwrap();
    for slice in [1, 2, 3, 7, 4096] {
        assert_eq!(
            read_in(content.as_bytes(), offset, limit, slice).unwrap(),
            whole,
            "slices of {slice}"
        );
    }
    let text = whole.0;
    let inner = text
        .strip_prefix("<path>/f</path>\n<type>file</type>\n<content>\n")
        .unwrap();
    inner.strip_suffix("\n</content>").unwrap().to_owned()
}

#[test]
fn lines_are_numbered_and_the_end_is_told() {
    assert_eq!(
        read("a\nb\n", 1, 2000),
        "1: a\n2: b\n\n(End of file - total 2 lines)"
    );
    assert_eq!(
        read("a\r\nb\r\r\n\nc", 1, 2000),
        "1: a\n2: b\r\n3: \n4: c\n\n(End of file - total 4 lines)"
    );
    assert_eq!(
        read("\u{FEFF}é🦀\n", 1, 2000),
        "1: é🦀\n\n(End of file - total 1 lines)"
    );
}

#[test]
fn an_empty_file_has_no_lines_and_may_be_read_from_the_first() {
    assert_eq!(read("", 1, 2000), "(End of file - total 0 lines)");
    assert_eq!(read_in(b"", 2, 9, 1).unwrap_err().code, "FS_NOT_FOUND");
}

#[test]
fn a_window_says_where_it_goes_on() {
    assert_eq!(
        read("a\nb\nc\nd\n", 2, 2),
        "2: b\n3: c\n\n(Showing lines 2-3 of 4. Use offset=4 to continue.)"
    );
    assert_eq!(
        read("a\nb\nc\nd\n", 3, 2),
        "3: c\n4: d\n\n(End of file - total 4 lines)"
    );
    let error = read_in(b"a\nb\n", 3, 2, 9).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("FS_NOT_FOUND", "/f has 2 lines; there is no line 3")
    );
}

#[test]
fn no_more_than_two_thousand_lines() {
    let text = read(&"x\n".repeat(2001), 1, 100_0000);
    assert!(
        text.ends_with("2000: x\n\n(Showing lines 1-2000 of 2001. Use offset=2001 to continue.)")
    );
}

#[test]
fn a_long_line_is_cut_by_utf_16_units() {
    let cut = |line: &str| read(&format!("{line}\nend"), 1, 1);
    let whole = "é".repeat(2000);
    assert!(cut(&whole).starts_with(&format!("1: {whole}\n\n")));
    let marker = "... (line truncated to 2000 chars)\n";
    assert!(cut(&format!("{whole}é")).starts_with(&format!("1: {whole}{marker}")));
    // A pair that does not fit is left out whole.
    let odd = format!("{}🦀", "a".repeat(1999));
    assert!(cut(&odd).starts_with(&format!("1: {}{marker}", "a".repeat(1999))));
    assert!(cut(&"好".repeat(100_000)).starts_with(&format!("1: {}{marker}", "好".repeat(2000))));
}

#[test]
fn the_byte_cap_counts_line_ends_and_goes_on_counting_lines() {
    // 512 lines of 99 bytes and 511 line ends are 51 199 bytes.
    let line = format!("{}\n", "y".repeat(99));
    let fits = read(&line.repeat(512), 1, 2000);
    assert!(
        fits.ends_with("(End of file - total 512 lines)"),
        "{}",
        &fits[fits.len() - 80..]
    );
    let capped = read(&line.repeat(600), 1, 2000);
    assert!(capped.ends_with("(Output capped. Showing lines 1-512. Use offset=513 to continue.)"));
    let (_, facts) = read_in(line.repeat(600).as_bytes(), 1, 2000, 1000).unwrap();
    assert!(facts.ends_with("\"totalLines\":600}"));
}

#[test]
fn what_is_not_text_is_refused() {
    assert_eq!(
        read_in(b"PNG\0...", 1, 10, 2).unwrap_err().code,
        "FS_NOT_TEXT"
    );
    assert!(read("caf\u{FFFD}", 1, 1).contains("caf"));
    assert!(
        read_in(b"caf\xE9\n", 1, 1, 9)
            .unwrap()
            .0
            .contains("caf\u{FFFD}")
    );
}

#[test]
fn the_facts_hold_what_was_shown() {
    let (_, facts) = read_in(b"a\nb\n", 2, 1, 9).unwrap();
    assert_eq!(
        facts,
        r#"{"path":"/f","offset":2,"lines":[{"number":2,"text":"b"}],"totalLines":2}"#
    );
}
