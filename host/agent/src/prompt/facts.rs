//! The host's own facts of the runtime context: what the sandbox allows and what
//! happens to an action that needs approval. They are read from the log, so a
//! change of mode is a changed snapshot at the next step (spec/cli.md §5).

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{Place, PluginError, PromptSection};
use dsh_session::{Json, Kind, Value};

use super::PromptSource;
use crate::log::Log;
use crate::tools::CallScope;

/// Sections `sandbox:policy` (110) and `approval:policy` (115).
pub struct HostFacts {
    log: Arc<Log>,
}

impl HostFacts {
    /// Of this session.
    #[must_use]
    pub fn new(log: Arc<Log>) -> Self {
        Self { log }
    }

    fn last(&self, kind: &Kind, member: &str) -> Option<String> {
        self.log.read(|session| {
            let text = session
                .last_of(kind)
                .and_then(|event| event.data.get(member))
                .and_then(Value::text);
            text.map(std::borrow::Cow::into_owned)
        })
    }
}

#[async_trait]
impl PromptSource for HostFacts {
    fn name(&self) -> &str {
        "host"
    }

    async fn sections(
        &self,
        variables: &Json,
        _scope: &CallScope,
    ) -> Result<Vec<PromptSection>, PluginError> {
        let cwd = variables.get("cwd").and_then(Value::text);
        let cwd = cwd.as_deref().unwrap_or("the working directory");
        let sandbox = self
            .last(&Kind::SandboxMode, "mode")
            .and_then(|mode| sandbox_text(&mode, cwd));
        let approval = self
            .last(&Kind::ApprovalPolicy, "policy")
            .and_then(|policy| approval_text(&policy));
        let section = |name: &str, order: f64, text: String| PromptSection {
            place: Place::Context,
            name: name.to_owned(),
            order,
            text,
            complete: false,
        };
        Ok([
            ("sandbox:policy", 110.0, sandbox),
            ("approval:policy", 115.0, approval),
        ]
        .into_iter()
        .filter_map(|(name, order, text)| Some(section(name, order, text?)))
        .collect())
    }
}

fn sandbox_text(mode: &str, cwd: &str) -> Option<String> {
    Some(match mode {
        "read-only" => "Sandbox: read-only. Commands and file tools can read everything and change nothing; \
             an attempt to write is denied."
            .to_owned(),
        "workspace-write" => format!(
            "Sandbox: workspace-write. Commands and file tools can read everything and can write only below {cwd} \
             and the system's temporary directory; an attempt to write elsewhere is denied."
        ),
        "danger-full-access" => {
            "Sandbox: off. Commands and file tools run with all the rights of the user who started this session, \
             but for dsh's own directory, which nothing changes."
                .to_owned()
        }
        _ => return None,
    })
}

fn approval_text(policy: &str) -> Option<String> {
    Some(match policy {
        "ask" => "Approvals: an action that needs approval is put before a person, where one is there to answer; \
             without an answer it is not carried out."
            .to_owned(),
        "never" => "Approvals: nobody is asked. An action that would need approval is refused at once, so do not \
             request one."
            .to_owned(),
        _ => return None,
    })
}
