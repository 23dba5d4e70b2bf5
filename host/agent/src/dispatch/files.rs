//! The events of files. The sandbox tells of reads and changes, and asks before
//! each change, through [`WritePolicy`]; here that becomes `fs/observed`,
//! `fs/write-intent` and `fs/edit-intent`. A listener that fails at an intent
//! has not allowed it, so the file stays as it is.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use dsh_sandbox::{Expect, Intent, Operation, WritePolicy};
use dsh_session::{Json, Value};

use super::chain::Dispatch;
use super::listener::EventContext;
use crate::cancel::Signal;
use crate::error::AgentError;

/// Asks an agent's listeners about its files. It is made before its agent is,
/// and allows everything until it serves one: nothing runs then.
#[derive(Default)]
pub struct FileEvents(OnceLock<Weak<Dispatch>>);

impl FileEvents {
    /// The first one stays.
    pub fn serve(&self, dispatch: &Arc<Dispatch>) {
        let _ = self.0.set(Arc::downgrade(dispatch));
    }

    fn dispatch(&self) -> Option<Arc<Dispatch>> {
        self.0.get()?.upgrade()
    }
}

fn place(object: &mut dsh_session::ObjectWriter<'_>, path: &Path, version: Option<&str>) {
    object.str("path", &path.to_string_lossy());
    match version {
        Some(version) => object.str("version", version),
        None => object.json("version", &Json::null()),
    };
}

#[async_trait]
impl WritePolicy for FileEvents {
    fn observed(&self, path: &Path, version: Option<&str>) {
        if let Some(dispatch) = self.dispatch() {
            dispatch.notify("fs/observed", None, || {
                Json::object(|payload| place(payload, path, version))
            });
        }
    }

    async fn intent(&self, intent: &Intent) -> Expect {
        let name = match intent.operation {
            Operation::Edit => "fs/edit-intent",
            Operation::Write | Operation::Remove | Operation::Rename => "fs/write-intent",
        };
        let Some(dispatch) = self.dispatch() else {
            return Expect::Any;
        };
        if !dispatch.listens(name, None) {
            return Expect::Any;
        }
        let payload = Json::object(|payload| {
            payload.str("operation", intent.operation.as_str());
            place(payload, &intent.path, intent.version.as_deref());
        });
        // Whoever gives up the change drops this, and with it the calls.
        let context = EventContext {
            signal: Signal::new(),
        };
        let overwrite = Json::object(|result| {
            result.str("kind", "overwrite");
        });
        let outcome = dispatch.waterfall(name, None, payload, &context, |_| async {
            Ok::<_, AgentError>(overwrite)
        });
        match outcome.await {
            Ok(outcome) => expect(&outcome),
            Err(error) => Expect::Denied(error.to_string()),
        }
    }
}

/// What a result of an intent wants; its shape was checked.
fn expect(outcome: &Json) -> Expect {
    let text = |key: &str| outcome.get(key).and_then(Value::text);
    let unread = text("code").as_deref() == Some("FS_NOT_OBSERVED");
    match (text("kind").as_deref(), unread) {
        (Some("overwrite"), _) => Expect::Any,
        (Some("create-if-absent"), false) => Expect::Absent,
        (Some("create-if-absent"), true) => Expect::Unobserved,
        (Some("replace-if-version"), _) => {
            Expect::Version(text("version").unwrap_or_default().into_owned())
        }
        (_, true) => Expect::Refused,
        (_, false) => {
            let reason = text("reason").unwrap_or("no reason was given".into());
            Expect::Denied(reason.into_owned())
        }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
