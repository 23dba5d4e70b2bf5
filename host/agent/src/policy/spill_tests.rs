use super::shortened;

#[test]
fn head_and_tail_share_what_the_notice_leaves() {
    let text: String = (0..200).map(|n| format!("{n:03} ")).collect();
    let short = shortened(&text, 400, "/tmp/x").unwrap();
    assert!(short.len() <= 400);
    assert!(short.starts_with("000 001 "));
    assert!(short.contains("199 \n\n("), "{short}");
    let shown = short.split("\n\n(").next().unwrap().len();
    assert!(short.contains(&format!("({} bytes are left out", text.len() - shown)));
}

#[test]
fn cuts_fall_between_characters() {
    for cap in 200..260 {
        let text = "€".repeat(400);
        let short = shortened(&text, cap, "/x").unwrap();
        assert!(short.len() <= cap);
        assert!(
            short
                .split('(')
                .next()
                .unwrap()
                .chars()
                .all(|c| c == '€' || c == '\n')
        );
    }
}

#[test]
fn a_cap_that_only_the_notice_fits_shows_only_the_notice() {
    let text = "x".repeat(1000);
    let bare = (0..400)
        .find_map(|cap| shortened(&text, cap, "/x"))
        .unwrap();
    assert!(bare.starts_with("(1000 bytes are left out"), "{bare}");
    assert!(shortened(&text, 10, "/x").is_none());
}
