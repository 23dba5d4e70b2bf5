//! Where things stand in a document's text, so that one of them can be changed and everything else stay as a person
//! wrote it.

use granit_parser::{Event, Parser, Span};
use std::ops::Range;

/// A mapping, in bytes of the text that it was read from.
#[derive(Debug)]
pub(crate) struct Located {
    /// In `{}`; else by indentation.
    pub(crate) flow: bool,
    pub(crate) span: Range<usize>,
    /// Its members in order: name, where the name stands, where the value stands.
    pub(crate) members: Vec<Member>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
}

impl Located {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }
}

/// The mapping below `path` in the document; none where there is none, or where the text is no document.
pub(crate) fn locate(text: &str, path: &[&str]) -> Option<Located> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
    };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(..), _) => {}
            (Event::MappingStart(..), span) => return reader.below(text, &span, path),
            _ => return None,
        }
    }
}

struct Reader<'t> {
    parser: Parser<'t, granit_parser::StrInput<'t>>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        self.parser.next_event()?.ok()
    }

    fn below(&mut self, text: &str, start: &Span, path: &[&str]) -> Option<Located> {
        let Some((first, rest)) = path.split_first() else {
            return self.mapping(text, start);
        };
        loop {
            let (key, _) = self.next()?;
            let Event::Scalar(name, ..) = key else {
                return None;
            };
            let (value, span) = self.next()?;
            if name == *first {
                return match value {
                    Event::MappingStart(..) => self.below(text, &span, rest),
                    _ => None,
                };
            }
            self.pass(&value, &span)?;
        }
    }

    /// All of a mapping that has begun.
    fn mapping(&mut self, text: &str, start: &Span) -> Option<Located> {
        let from = start.byte_range()?.start;
        let mut members = Vec::new();
        loop {
            let (key, key_span) = self.next()?;
            match key {
                Event::MappingEnd => {
                    let flow = text[from..].starts_with('{');
                    let end = key_span.byte_range()?.end;
                    return Some(Located {
                        flow,
                        span: from..end,
                        members,
                    });
                }
                Event::Scalar(name, ..) => {
                    let (value, span) = self.next()?;
                    let start = span.byte_range()?.start;
                    // A block's text ends where the next line's does begin.
                    let end = self.pass(&value, &span)?;
                    let end = start + text.get(start..end)?.trim_end().len();
                    let key = key_span.byte_range()?;
                    let value = block_mark(text, key.end, start).unwrap_or(start)..end;
                    members.push(Member {
                        name: name.into_owned(),
                        key,
                        value,
                    });
                }
                _ => return None,
            }
        }
    }

    /// Reads the rest of a value that has begun, and says where it ends.
    fn pass(&mut self, value: &Event<'t>, span: &Span) -> Option<usize> {
        let mut end = span.byte_range()?.end;
        let mut depth = usize::from(matches!(
            value,
            Event::MappingStart(..) | Event::SequenceStart(..)
        ));
        while depth > 0 {
            let (event, span) = self.next()?;
            match event {
                Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
                Event::MappingEnd | Event::SequenceEnd => depth -= 1,
                _ => {}
            }
            end = end.max(span.byte_range()?.end);
        }
        Some(end)
    }
}

/// Where the mark of a block (`|`, `>`) stands between a name and its text, if one does.
fn block_mark(text: &str, from: usize, to: usize) -> Option<usize> {
    let between = text.get(from..to)?;
    let colon = between.find(':')? + 1;
    let rest = &between[colon..];
    let mark = rest.len() - rest.trim_start().len();
    let stands = rest[mark..].starts_with(['|', '>']);
    stands.then_some(from + colon + mark)
}
