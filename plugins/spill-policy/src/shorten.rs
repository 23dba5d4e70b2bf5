//! Beginning, end, and a notice of what is missing.

/// Beginning and end of a text with a notice of what is missing, at most `cap`
/// bytes; none if that is not possible. The notice is priced as if everything
/// were missing, so that its own length does not depend on where the cut falls.
pub(crate) fn shortened(text: &str, cap: usize, locator: &str) -> Option<String> {
    let notice = |omitted: usize, after: usize| {
        format!(
            "({omitted} bytes are left out after the first {after}. Full formatted result stored at: {locator}. \
             Use read with offset and limit, or grep, to see the rest.)"
        )
    };
    let worst = notice(text.len(), text.len()).len();
    let budget = cap.saturating_sub(worst + 2);
    let head = &text[..floor_boundary(text, budget.div_ceil(2))];
    let tail = &text[ceil_boundary(text, text.len() - budget / 2)..];
    let shown = head.len() + tail.len();
    let preview = if shown == 0 {
        String::new()
    } else {
        format!("{head}{tail}\n\n")
    };
    let short = format!("{preview}{}", notice(text.len() - shown, head.len()));
    (short.len() <= cap).then_some(short)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}

/// A call's id as a file name: it is the model's text and may hold anything.
pub(crate) fn file_name(call_id: &str) -> String {
    let clean = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    let name: String = call_id.chars().take(80).map(clean).collect();
    if name.is_empty() {
        "result".to_owned()
    } else {
        name
    }
}
