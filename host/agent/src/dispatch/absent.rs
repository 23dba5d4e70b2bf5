//! Events of upstream's bus that no run of this host has, and why. A component
//! that subscribes to one is left out with a line, as it would wait for ever.

/// Name, upstream's mode, reason.
pub(super) const ABSENT: &[(&str, &str, &str)] = &[
    (
        "agent-loop/config-start-failed",
        "emit",
        "an agent that cannot start ends the command with its reason, before a listener is there",
    ),
    (
        "agent-preset/selected",
        "emit",
        "there are no presets: a profile has one set of rows",
    ),
    ("commands/change", "emit", "there are no slash commands yet"),
    ("cordis/dispose", "emit", CORDIS),
    ("cordis/error", "emit", CORDIS),
    ("cordis/plugin", "emit", CORDIS),
    ("cordis/ready", "emit", CORDIS),
    ("cordis/service", "emit", CORDIS),
    ("cordis/update", "emit", CORDIS),
    ("credentials/record-updated", "emit", CREDENTIALS),
    ("credentials/reference-updated", "emit", CREDENTIALS),
    (
        "domain/changed",
        "emit",
        "it is about what a server of upstream's shares between its parts",
    ),
    (
        "goal/changed",
        "emit",
        "there are no goals yet; a component that keeps one tells by `session/event`, kind `goal/change`",
    ),
    (
        "session-telemetry/record",
        "waterfall",
        "there is no telemetry",
    ),
    ("settings/document-updated", "emit", SETTINGS),
    ("settings/updated", "emit", SETTINGS),
    (
        "skills/change",
        "emit",
        "skills are a component's own, and the host does not know them",
    ),
    ("subagent/end", "emit", SUBAGENTS),
    ("subagent/provider-added", "emit", SUBAGENTS),
    ("subagent/provider-removed", "emit", SUBAGENTS),
    ("subagent/start", "emit", SUBAGENTS),
    (
        "tools/code-dispatch-log",
        "waterfall",
        "no tool runs code that calls tools",
    ),
    ("webserver/index-inject", "emit", "there is no web server"),
    ("workflow/agent-end", "emit", WORKFLOWS),
    ("workflow/agent-start", "emit", WORKFLOWS),
    ("workflow/end", "emit", WORKFLOWS),
    ("workflow/log", "emit", WORKFLOWS),
    ("workflow/phase", "emit", WORKFLOWS),
    ("workflow/start", "emit", WORKFLOWS),
];

const CORDIS: &str =
    "it is of upstream's plugin runtime: here rows are mounted once, before a run, by the host";
const CREDENTIALS: &str = "no run changes a credential; each request reads what is there";
const SETTINGS: &str = "settings are read when a run starts, and hold for it";
const SUBAGENTS: &str = "there are no subagents yet";
const WORKFLOWS: &str = "there are no workflows yet";
