//! A component's own messages that the model sees, followed along the log.
//!
//! What a component has told is not remembered beside the log: a message that a
//! step did not take in was not told, one that a compaction put away is told no
//! more, and a resumed session knows what the one before it said. So the surface
//! is read once, then only what came since; where something was replaced, the
//! surface is read anew.

use crate::json::Json;

/// What is needed of the `session` import.
pub trait Session {
    /// The number of events.
    fn length(&self) -> u32;
    /// Events of these kinds from `first` on, a page.
    fn events(&self, first: u32, limit: u32, kinds: &[String]) -> Vec<String>;
    /// Messages of the surface from `first` on, a page.
    fn messages(&self, first: u32, limit: u32) -> Vec<String>;
}

/// What is found out.
#[derive(Debug)]
pub enum Seen<'a> {
    /// All that was seen before is void; what the model sees follows.
    Anew,
    /// A message that holds the mark.
    Message(Json<'a>),
}

/// How far the log was followed.
#[derive(Debug, Default)]
pub struct Follow(Option<u32>);

/// Entries of a page that is asked for.
const PAGE: u32 = 256;

impl Follow {
    /// Goes on to the end of the log. `mark` is a text that a message has to
    /// hold to be shown; the caller looks closer.
    pub fn on(&mut self, session: &impl Session, mark: &str, mut seen: impl FnMut(Seen<'_>)) {
        let length = session.length();
        let whole = match self.0 {
            Some(from) if from >= length => return,
            Some(from) => !Self::appended(session, from, length, mark, &mut seen),
            None => true,
        };
        if whole {
            seen(Seen::Anew);
            Self::surface(session, mark, &mut seen);
        }
        self.0 = Some(length);
    }

    /// Shows what was appended; false where something was replaced.
    fn appended(
        session: &impl Session,
        from: u32,
        length: u32,
        mark: &str,
        seen: &mut impl FnMut(Seen<'_>),
    ) -> bool {
        let kinds = ["user/message".to_owned()];
        let mut first = from;
        while first < length {
            let page = session.events(first, PAGE, &kinds);
            let lines: Vec<_> = page.iter().filter_map(|line| Json::parse(line)).collect();
            let replaces = |line: &Json<'_>| line.get("surfaceOp").is_some_and(Json::is_object);
            if lines.iter().any(replaces) {
                return false;
            }
            let Some(last) = lines.last().and_then(|line| line.get("seq")?.whole()) else {
                break;
            };
            first = u32::try_from(last).unwrap_or(length).saturating_add(1);
            for line in lines.iter().filter(|line| line.raw().contains(mark)) {
                if let Some(data) = line.get("data") {
                    seen(Seen::Message(data));
                }
            }
        }
        true
    }

    fn surface(session: &impl Session, mark: &str, seen: &mut impl FnMut(Seen<'_>)) {
        let mut first = 0;
        loop {
            let page = session.messages(first, PAGE);
            let Some(count) = u32::try_from(page.len()).ok().filter(|count| *count > 0) else {
                return;
            };
            first += count;
            for message in page.iter().filter(|message| message.contains(mark)) {
                if let Some(message) = Json::parse(message) {
                    seen(Seen::Message(message));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log {
        events: Vec<String>,
        surface: Vec<String>,
    }

    impl Log {
        fn append(&mut self, kind: &str, data: &str, op: &str) {
            let seq = self.events.len();
            self.events.push(format!(
                r#"{{"type":"{kind}","seq":{seq},"data":{data},"surfaceOp":{op}}}"#
            ));
            if op == r#""append""# {
                self.surface.push(data.to_owned());
            }
        }
    }

    impl Session for Log {
        fn length(&self) -> u32 {
            self.events.len() as u32
        }

        // Two a page, so that pages matter.
        fn events(&self, first: u32, _: u32, kinds: &[String]) -> Vec<String> {
            let of_kind = |line: &&String| kinds.iter().any(|kind| line.contains(kind.as_str()));
            let events = self.events[first as usize..].iter().filter(of_kind);
            events.take(2).cloned().collect()
        }

        fn messages(&self, first: u32, _: u32) -> Vec<String> {
            let messages = self.surface.iter().skip(first as usize);
            messages.take(2).cloned().collect()
        }
    }

    fn followed(follow: &mut Follow, log: &Log) -> Vec<String> {
        let mut all = Vec::new();
        follow.on(log, "\"mine\"", |seen| {
            all.push(match seen {
                Seen::Anew => "anew".to_owned(),
                Seen::Message(message) => message.raw().to_owned(),
            });
        });
        all
    }

    #[test]
    fn the_surface_is_read_once_and_then_what_came_since() {
        let mut log = Log::default();
        for message in ["[\"mine\"]", "1", "2", "[\"mine\",3]"] {
            log.append("user/message", message, "\"append\"");
        }
        let mut follow = Follow::default();
        assert_eq!(
            followed(&mut follow, &log),
            ["anew", "[\"mine\"]", "[\"mine\",3]"]
        );
        assert!(followed(&mut follow, &log).is_empty());
        log.append("assistant/chunk", "[\"mine\"]", "null");
        assert!(followed(&mut follow, &log).is_empty());
        for message in ["4", "[\"mine\",5]", "6", "[\"mine\",7]"] {
            log.append("user/message", message, "\"append\"");
        }
        assert_eq!(
            followed(&mut follow, &log),
            ["[\"mine\",5]", "[\"mine\",7]"]
        );
    }

    #[test]
    fn where_something_was_replaced_the_surface_is_read_anew() {
        let mut log = Log::default();
        log.append("user/message", "[\"mine\"]", "\"append\"");
        let mut follow = Follow::default();
        followed(&mut follow, &log);
        log.append("user/message", "[\"mine\",1]", "\"append\"");
        log.append("user/message", "2", r#"{"op":"replace","start":0,"end":0}"#);
        log.surface.remove(0);
        assert_eq!(followed(&mut follow, &log), ["anew", "[\"mine\",1]"]);
        assert!(followed(&mut follow, &log).is_empty());
    }
}
