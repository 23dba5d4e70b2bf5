//! Server-sent events, as far as a completion stream needs them: the `data` of
//! each event. Bytes come as they arrived, so a line, a character or a CR LF may
//! be cut anywhere; a line is decoded when it is whole (spec/llm.md §6.4).

/// Bytes in, payloads out.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte was a CR, so a LF that follows ends no line.
    after_cr: bool,
    /// A line has been read, so a byte order mark is no longer expected.
    begun: bool,
}

impl Events {
    /// Takes in `bytes` and calls `payload` with each event that they complete,
    /// until it returns false. What no blank line ends is never an event.
    pub(crate) fn push(&mut self, bytes: &[u8], mut payload: impl FnMut(&str) -> bool) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let line = std::mem::take(&mut self.line);
            if let Some(data) = self.end_of_line(&line)
                && !payload(&data)
            {
                return;
            }
        }
        self.line.extend_from_slice(rest);
    }

    /// The event's data, where this line ends one.
    fn end_of_line(&mut self, line: &[u8]) -> Option<String> {
        let mut line = line;
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.data.take().filter(|data| !data.is_empty());
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        // A comment is a field without a name.
        if field == b"data" {
            let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                None => self.data = Some(value.into_owned()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut found = Vec::new();
        for piece in pieces {
            events.push(piece, |payload| {
                found.push(payload.to_owned());
                true
            });
        }
        found
    }

    const STREAM: &[u8] =
        "\u{FEFF}data: a\r\n\r\n: note\ndata:b\rdata:  c\r\revent: x\nid: 1\nretry: 3\ndata\n\n\
        data: é🦀\ndatax: no\n\ndata\ndata: d\n\n\n\ndata: tail\n"
            .as_bytes();

    #[test]
    fn data_lines_join_and_a_blank_line_ends_an_event() {
        assert_eq!(read(&[STREAM]), ["a", "b\n c", "é🦀", "\nd"]);
    }

    #[test]
    fn a_cut_anywhere_changes_nothing() {
        let whole = read(&[STREAM]);
        for first in 0..STREAM.len() {
            for second in first..STREAM.len() {
                let pieces = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
                assert_eq!(read(&pieces), whole, "{first} {second}");
            }
        }
    }

    #[test]
    fn stops_where_it_is_told_to() {
        let mut seen = 0;
        Events::default().push(b"data: 1\n\ndata: 2\n\n", |_| {
            seen += 1;
            false
        });
        assert_eq!(seen, 1);
    }
}
