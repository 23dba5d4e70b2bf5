//! Event kinds: the 48 known ones and any foreign one. `spec/session.md` §1.3.
//!
//! A kind is a small enum so that folds compare integers; a foreign kind carries its own name. The order of the
//! variants is the order of the specification's tables and has no meaning.

use std::fmt;
use std::sync::Arc;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What happened. Known kinds are required reading: a reader that does not know one must refuse the log unless
        /// the event is marked ignorable.
        #[derive(Clone, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
            /// A kind that this version does not know, by its name.
            Foreign(Arc<str>),
        }

        impl Kind {
            /// Every known kind.
            pub const KNOWN: &'static [Kind] = &[$(Kind::$name,)*];

            /// The name in the log, such as `turn/start`.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Kind::$name => $text,)*
                    Kind::Foreign(name) => name,
                }
            }

            /// The position in [`Kind::KNOWN`].
            pub(crate) fn index(&self) -> Option<usize> {
                enum Tag {
                    $($name,)*
                }
                match self {
                    $(Kind::$name => Some(Tag::$name as usize),)*
                    Kind::Foreign(_) => None,
                }
            }

            fn known(name: &str) -> Option<Kind> {
                match name {
                    $($text => Some(Kind::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    TurnStart = "turn/start",
    TurnEnd = "turn/end",
    StepStart = "step/start",
    StepEnd = "step/end",
    UserMessage = "user/message",
    AssistantChunk = "assistant/chunk",
    AssistantMessage = "assistant/message",
    ToolCall = "tool/call",
    ToolResult = "tool/result",
    TodoWrite = "todo/write",
    RequestHeader = "request/header",
    RequestContext = "request/context",
    SessionEndSeed = "session/end-seed",
    InboxSpliced = "agent/inbox/spliced",
    AgentPresetSelected = "agent-preset/selected",
    ApprovalAsked = "approval/asked",
    ApprovalDecided = "approval/decided",
    ApprovalPolicy = "approval/policy",
    SandboxMode = "sandbox/mode",
    PermissionPreset = "permission/preset",
    PlanMode = "plan/mode",
    CommandRun = "command/run",
    CommandDone = "command/done",
    FeedbackRecord = "feedback/record",
    HookInvoked = "hook/invoked",
    HookResult = "hook/result",
    LlmRetry = "llm/retry",
    LlmRetryStarted = "llm/retry-started",
    GoalChange = "goal/change",
    ScheduleChange = "schedule/change",
    CompactionStart = "compaction/start",
    CompactionSummary = "compaction/summary",
    CompactionPrune = "compaction/prune",
    CompactionEnd = "compaction/end",
    SessionTitle = "session/title",
    SessionTitleLlmRequest = "session/title-llm-request",
    SubagentDescriptor = "subagent/descriptor",
    ToolCodeDispatchStart = "tool/code-dispatch-start",
    ToolCodeDispatch = "tool/code-dispatch",
    ToolWorkflowRunStart = "tool-workflow/run-start",
    ToolWorkflowAgentStart = "tool-workflow/agent-start",
    ToolWorkflowAgentEnd = "tool-workflow/agent-end",
    ToolWorkflowRunEnd = "tool-workflow/run-end",
    TeamMember = "team/member",
    TeamTask = "team/task",
    TeamMessageQueued = "team/message/queued",
    TeamMessageDelivered = "team/message/delivered",
    WebDeepseekSearchLlmRequest = "web/deepseek-search-llm-request",
}

impl Kind {
    /// The kind of that name, foreign when it is none of [`Kind::KNOWN`].
    pub fn from_name(name: &str) -> Kind {
        Kind::known(name).unwrap_or_else(|| Kind::Foreign(name.into()))
    }

    /// Whether the kind is one of [`Kind::KNOWN`].
    pub fn is_known(&self) -> bool {
        !matches!(self, Kind::Foreign(_))
    }

    /// Whether events of this kind are nodes of the surface and so need a surface operation (§3).
    pub fn is_surface(&self) -> bool {
        matches!(
            self,
            Kind::UserMessage | Kind::AssistantMessage | Kind::ToolResult
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        assert_eq!(Kind::KNOWN.len(), 48);
        for kind in Kind::KNOWN {
            assert_eq!(&Kind::KNOWN[kind.index().unwrap()], kind);
            assert_eq!(&Kind::from_name(kind.as_str()), kind);
        }
        assert_eq!(Kind::from_name("acme/note").as_str(), "acme/note");
        assert!(!Kind::from_name("session").is_known());
    }
}
