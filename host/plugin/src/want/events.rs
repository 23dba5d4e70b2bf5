//! What each event tells who listens, and what it lets one decide.
//!
//! All events of upstream's bus are here (spec/cli.md §8.6), so that one which a
//! later host raises is not granted as if it were nothing; the agent has a test
//! that none of its own is missing, and decides where this table says so.

/// What an event means to a person who may grant it.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// As subscriptions name it.
    pub name: &'static str,
    /// What who listens is told: `sees …`.
    pub tells: &'static str,
    /// What who decides it may do: `may …`; none where it is only told.
    pub lets: Option<&'static str>,
}

/// What is known of an event.
#[must_use]
pub fn event(name: &str) -> Option<&'static Event> {
    EVENTS.iter().find(|event| event.name == name)
}

const fn told(name: &'static str, tells: &'static str) -> Event {
    Event {
        name,
        tells,
        lets: None,
    }
}

const fn asked(name: &'static str, tells: &'static str, lets: &'static str) -> Event {
    Event {
        name,
        tells,
        lets: Some(lets),
    }
}

pub(super) static EVENTS: &[Event] = &[
    asked(
        "agent/pre-step",
        "what you wrote, before each step",
        "add to, change or refuse what you wrote, before the model sees it",
    ),
    asked(
        "agent/request",
        "which model is asked, before each request",
        "choose another model, and change how it is asked",
    ),
    asked(
        "agent/request-error",
        "why a request to a model failed",
        "have failed requests sent again",
    ),
    asked(
        "agent/turn-stopping",
        "when the model wants to stop",
        "keep the model working, with messages of its own",
    ),
    asked(
        "approval/request",
        "what you are asked to approve",
        "answer approvals in your place",
    ),
    asked(
        "fs/edit-intent",
        "which file is about to be edited",
        "stop edits of files",
    ),
    asked(
        "fs/write-intent",
        "which file is about to be written, removed or renamed",
        "stop writes and removals of files",
    ),
    asked(
        "llm/stream",
        "the whole conversation, before each request to a model",
        "stop requests to a model, and answer in its place",
    ),
    asked(
        "session-telemetry/record",
        "what is measured of your sessions",
        "change what is recorded of your sessions",
    ),
    asked(
        "system-prompt/assemble",
        "the system prompt",
        "rewrite the system prompt",
    ),
    asked(
        "tools/code-dispatch-log",
        "calls of tools that code makes",
        "change what is logged of calls that code makes",
    ),
    asked(
        "tools/execute",
        "every tool call and its result",
        "answer tool calls itself, and change or replace their results",
    ),
    asked(
        "tools/post-execute",
        "every tool call and its result",
        "change or withhold tool results before the model sees them, and add messages",
    ),
    asked(
        "tools/pre-execute",
        "every tool call before it runs: commands, files, arguments",
        "stop a tool call or have you asked first, before it runs",
    ),
    told("session/flush", "when a session is written to disk"),
    told(
        "agent-loop/config-start-failed",
        "why an agent did not start",
    ),
    told("agent-preset/selected", "which preset an agent uses"),
    told("agent/created", "when an agent starts"),
    told("agent/disposed", "when an agent ends"),
    told("agent/error", "errors of a turn"),
    told("agent/session-start", "when a session starts or resumes"),
    told("agent/status", "whether the agent works or waits"),
    told("agent/inbox/claimed", "when the agent takes up what waits"),
    told("agent/inbox/discarded", "when waiting input is dropped"),
    told("agent/inbox/inserted", "what is put in front of the agent"),
    told("authorization/settled", "what you approved or refused"),
    told("commands/change", "which commands there are"),
    told("cordis/ready", "when the host is ready"),
    told("cordis/dispose", "when the host ends"),
    told("cordis/plugin", "which plugins are loaded"),
    told("cordis/service", "which services there are"),
    told("cordis/update", "when a plugin's configuration changes"),
    told("cordis/error", "errors of plugins"),
    told(
        "credentials/record-updated",
        "that a credential changed, not the credential",
    ),
    told(
        "credentials/reference-updated",
        "that another credential is used, not the credential",
    ),
    told("domain/changed", "that something of the host changed"),
    told("fs/observed", "which files are read and changed"),
    told("goal/changed", "the goal that is worked on"),
    told("llm/adapters-updated", "which models there are"),
    told("session/created", "when a session is made"),
    told("session/disposed", "when a session ends"),
    told(
        "session/event",
        "everything in your sessions: prompts, answers, tool calls and their results",
    ),
    told(
        "settings/document-updated",
        "your settings when they change",
    ),
    told("settings/updated", "your settings when they change"),
    told("skills/change", "which skills there are"),
    told(
        "subagent/start",
        "when an agent starts another, and for what",
    ),
    told("subagent/end", "what another agent reported"),
    told("subagent/provider-added", "who may start agents"),
    told("subagent/provider-removed", "who may start agents no more"),
    told("system-prompt/change", "that the system prompt changed"),
    told("tools/change", "which tools there are"),
    told("tools/result", "every tool call and its result"),
    told(
        "webserver/index-inject",
        "that a page of the server is shown",
    ),
    told("workflow/start", "when a workflow starts, and with what"),
    told("workflow/end", "how a workflow ended"),
    told("workflow/phase", "how far a workflow is"),
    told("workflow/log", "what a workflow logs"),
    told("workflow/agent-start", "when a workflow starts an agent"),
    told("workflow/agent-end", "what an agent of a workflow reported"),
];
