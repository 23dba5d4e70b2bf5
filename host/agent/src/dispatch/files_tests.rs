use std::path::PathBuf;
use std::sync::Mutex;

use super::super::{Entry, Listener, ListenerError, Subscription};
use super::*;

/// A policy of observations, as a component would be one: knows what it was
/// told, and answers by that.
#[derive(Default)]
struct Observing(Mutex<Vec<String>>);

#[async_trait]
impl Listener for Observing {
    fn name(&self) -> &str {
        "observing"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        ["fs/observed", "fs/write-intent", "fs/edit-intent"]
            .map(Subscription::all)
            .to_vec()
    }

    async fn notify(&self, _: &str, payloads: &[Json]) -> Result<(), ListenerError> {
        let mut seen = self.0.lock().unwrap();
        seen.extend(payloads.iter().map(ToString::to_string));
        Ok(())
    }

    async fn enter(
        &self,
        event: &str,
        payload: &Json,
        _: &EventContext,
    ) -> Result<Entry, ListenerError> {
        let seen = self.0.lock().unwrap();
        let path = payload.get("path").unwrap().text().unwrap();
        let version = |line: &String| {
            let line = Json::normalise(line).unwrap();
            let own = line.get("path").unwrap().text().unwrap() == path;
            own.then(|| line.get("version").unwrap().to_json())
        };
        let text = match (seen.iter().rev().find_map(version), event) {
            (Some(version), _) if !version.value().is_null() => {
                format!(r#"{{"kind":"replace-if-version","version":{version}}}"#)
            }
            (_, "fs/edit-intent") => r#"{"kind":"deny","code":"FS_NOT_OBSERVED"}"#.to_owned(),
            (None, _) => r#"{"kind":"create-if-absent","code":"FS_NOT_OBSERVED"}"#.to_owned(),
            (Some(_), _) => r#"{"kind":"create-if-absent"}"#.to_owned(),
        };
        match &*path {
            "/fails" => Err(ListenerError::new("PLUGIN_TRAP", "it crashed")),
            "/denied" => Ok(Entry::settle(
                Json::normalise(r#"{"kind":"deny","reason":"keep out"}"#).unwrap(),
            )),
            "/odd" => Ok(Entry::settle(Json::string("yes"))),
            _ => Ok(Entry::settle(Json::normalise(&text).unwrap())),
        }
    }
}

fn intent(operation: Operation, path: &str) -> Intent {
    Intent {
        operation,
        path: PathBuf::from(path),
        version: Some("v0".to_owned()),
    }
}

#[tokio::test]
async fn what_was_observed_is_known_when_an_intent_is_asked() {
    let files = FileEvents::default();
    let write = intent(Operation::Write, "/a");
    let edit = intent(Operation::Edit, "/a");
    assert_eq!(files.intent(&write).await, Expect::Any);

    let dispatch = Dispatch::new(vec![Arc::new(Observing::default())]).unwrap();
    let dispatch = Arc::new(dispatch);
    files.serve(&dispatch);
    assert_eq!(files.intent(&write).await, Expect::Unobserved);
    assert_eq!(files.intent(&edit).await, Expect::Refused);
    files.observed(Path::new("/a"), None);
    assert_eq!(files.intent(&write).await, Expect::Absent);
    assert_eq!(files.intent(&edit).await, Expect::Refused);
    for version in ["v1", "v2"] {
        files.observed(Path::new("/a"), Some(version));
    }
    assert_eq!(files.intent(&edit).await, Expect::Version("v2".to_owned()));
}

#[tokio::test]
async fn an_intent_that_a_listener_fails_at_or_denies_is_refused() {
    let files = FileEvents::default();
    let dispatch = Dispatch::new(vec![Arc::new(Observing::default())]).unwrap();
    let dispatch = Arc::new(dispatch);
    files.serve(&dispatch);
    for (path, expected) in [
        ("/fails", "observing failed at fs/write-intent: it crashed"),
        ("/odd", "its result is not of the event's shape"),
        ("/denied", "keep out"),
    ] {
        let Expect::Denied(reason) = files.intent(&intent(Operation::Remove, path)).await else {
            panic!("{path} was allowed");
        };
        assert!(reason.contains(expected), "{reason}");
    }
}
