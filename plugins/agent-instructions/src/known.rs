//! What the model was told of which file, folded from the component's own
//! messages on the surface.

use guest_support::json::{Json, Object, array, text};

/// The message source that marks them.
pub(crate) const SOURCE: &str = "agent-instructions";

/// What a message says happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Set,
    Replace,
    Remove,
}

/// One file of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) action: Action,
    /// The directory, as seen from the working directory, a NUL, and the file's name.
    pub(crate) scope: String,
    /// As the message shows it.
    pub(crate) path: String,
    /// Of its content; none of a file that is gone.
    pub(crate) digest: Option<String>,
}

/// The standing of every file that the model sees.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Known {
    /// What the baseline on the surface depended on.
    pub(crate) baseline: Option<String>,
    /// Scopes and digests, in the order in which they were told.
    pub(crate) files: Vec<(String, String)>,
}

impl Known {
    /// Takes a message in, if it is one of the component's own.
    pub(crate) fn take(&mut self, message: Json<'_>) -> bool {
        let Some(source) = message.get("source") else {
            return false;
        };
        if text(source, "kind").as_deref() != Some(SOURCE) {
            return false;
        }
        if let Some(identity) = text(source, "baselineIdentity") {
            // Another baseline is the whole: nothing told before it counts any more.
            if self.baseline.replace(identity).is_some() {
                self.files.clear();
            }
        }
        for change in source.get("changes").into_iter().flat_map(Json::items) {
            let Some(scope) = text(change, "scope") else {
                continue;
            };
            self.files.retain(|(known, _)| *known != scope);
            let removed = text(change, "action").as_deref() == Some("remove");
            if let (false, Some(digest)) = (removed, text(change, "digest")) {
                self.files.push((scope, digest));
            }
        }
        true
    }

    pub(crate) fn digest(&self, scope: &str) -> Option<&str> {
        let file = self.files.iter().find(|(known, _)| known == scope);
        file.map(|(_, digest)| digest.as_str())
    }
}

/// The source of a message that tells these changes; `baseline` is its identity.
pub(crate) fn source(baseline: Option<&str>, changes: &[Change]) -> String {
    let changes = changes.iter().map(|change| {
        let action = match change.action {
            Action::Set => "set",
            Action::Replace => "replace",
            Action::Remove => "remove",
        };
        let object = Object::new()
            .string("action", action)
            .string("scope", &change.scope)
            .string("path", &change.path);
        match &change.digest {
            Some(digest) => object.string("digest", digest),
            None => object,
        }
        .build()
    });
    let mut source = Object::new()
        .string("kind", SOURCE)
        .string("form", "instructions");
    if let Some(identity) = baseline {
        source = source
            .raw("baseline", "true")
            .string("baselineIdentity", identity);
    }
    source.raw("changes", &array(changes)).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(action: Action, scope: &str, digest: Option<&str>) -> Change {
        Change {
            action,
            scope: scope.to_owned(),
            path: "p".to_owned(),
            digest: digest.map(str::to_owned),
        }
    }

    fn told(known: &mut Known, baseline: Option<&str>, changes: &[Change]) -> bool {
        let message = Object::new()
            .raw("source", &source(baseline, changes))
            .build();
        known.take(Json::parse(&message).unwrap())
    }

    #[test]
    fn what_was_told_is_read_back() {
        let mut known = Known::default();
        let set = |scope, digest| change(Action::Set, scope, Some(digest));
        assert!(told(
            &mut known,
            Some("i"),
            &[set(".\0A", "1"), set("n\0A", "2")]
        ));
        assert_eq!(known.baseline.as_deref(), Some("i"));
        assert!(told(
            &mut known,
            None,
            &[change(Action::Replace, ".\0A", Some("3"))]
        ));
        assert!(told(
            &mut known,
            None,
            &[change(Action::Remove, "n\0A", None)]
        ));
        assert_eq!(known.files, [(".\0A".to_owned(), "3".to_owned())]);
        // A new baseline is the whole of it.
        assert!(told(&mut known, Some("j"), &[set("n\0A", "4")]));
        assert_eq!(
            (known.digest(".\0A"), known.digest("n\0A")),
            (None, Some("4"))
        );
    }

    #[test]
    fn messages_of_others_say_nothing() {
        let mut known = Known::default();
        for message in [
            r#"{"source":{"kind":"user","baselineIdentity":"x"}}"#,
            r#"{"source":{"kind":"plugin"}}"#,
            "{}",
            "[]",
        ] {
            assert!(!known.take(Json::parse(message).unwrap()));
        }
        assert_eq!(known, Known::default());
    }

    #[test]
    fn a_source_has_the_members_that_upstream_writes_in_their_order() {
        assert_eq!(
            source(Some("i"), &[change(Action::Set, ".\0AGENTS.md", Some("d"))]),
            r#"{"kind":"agent-instructions","form":"instructions","baseline":true,"baselineIdentity":"i","changes":[{"action":"set","scope":".\u0000AGENTS.md","path":"p","digest":"d"}]}"#
        );
        assert_eq!(
            source(None, &[change(Action::Remove, "n\0X", None)]),
            r#"{"kind":"agent-instructions","form":"instructions","changes":[{"action":"remove","scope":"n\u0000X","path":"p"}]}"#
        );
    }
}
