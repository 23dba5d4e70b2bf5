//! The table of events. One place, from which everything else follows: who is
//! asked in which way, what a failure means, `docs/events/`, and the checks of
//! payloads and results. The schemas are of the subset that tools have
//! (`tools/schema.rs`); objects are open, as a reader ignores what it does not know.

use super::events::{EventSpec, Mode, OnFailure};

macro_rules! object {
    ([$($required:literal),*] $(, $name:literal: $schema:expr)* $(,)?) => {
        concat!(
            r#"{"type":"object","required":["#, object!(@list $($required),*),
            r#"],"properties":{"#, object!(@members $($name: $schema),*), "}}"
        )
    };
    (@list) => { "" };
    (@list $first:literal $(, $rest:literal)*) => { concat!("\"", $first, "\"" $(, ",\"", $rest, "\"")*) };
    (@members) => { "" };
    (@members $first:literal: $schema:expr $(, $rest:literal: $more:expr)*) => {
        concat!("\"", $first, "\":", $schema $(, ",\"", $rest, "\":", $more)*)
    };
}
macro_rules! one_of {
    ($first:expr $(, $rest:expr)+ $(,)?) => { concat!(r#"{"oneOf":["#, $first $(, ",", $rest)+, "]}") };
}
macro_rules! list {
    ($item:expr) => {
        concat!(r#"{"type":"array","items":"#, $item, "}")
    };
}
macro_rules! constant {
    ($text:literal) => {
        concat!(r#"{"const":""#, $text, "\"}")
    };
}
macro_rules! any {
    () => {
        "{}"
    };
}
macro_rules! string {
    () => {
        r#"{"type":"string"}"#
    };
}
macro_rules! integer {
    () => {
        r#"{"type":"integer"}"#
    };
}
macro_rules! number {
    () => {
        r#"{"type":"number"}"#
    };
}
macro_rules! boolean {
    () => {
        r#"{"type":"boolean"}"#
    };
}
macro_rules! open {
    () => {
        r#"{"type":"object"}"#
    };
}
macro_rules! string_or_null {
    () => {
        r#"{"oneOf":[{"type":"string"},{"type":"null"}]}"#
    };
}
macro_rules! block {
    () => {
        object!(["type"], "type": string!())
    };
}
macro_rules! message {
    () => {
        object!(["content"], "id": string!(), "role": string!(),
            "content": list!(block!()), "source": open!())
    };
}
macro_rules! failure {
    () => {
        object!(["message"], "message": string!(), "code": string!(), "status": integer!(),
            "providerRetryAfterMs": number!(), "requestId": string!())
    };
}
macro_rules! config {
    () => {
        object!(["provider", "model"], "provider": string!(), "model": string!(),
            "reasoningEffort": string!(), "temperature": number!(), "maxTokens": integer!(),
            "stop": list!(string!()))
    };
}
macro_rules! sections {
    () => {
        list!(object!(["name", "order", "text"],
            "name": string!(), "order": number!(), "text": string!()))
    };
}
macro_rules! assembly {
    () => {
        object!(["sections", "contexts"], "sections": sections!(), "contexts": sections!())
    };
}
macro_rules! call {
    ([$($required:literal),*] $(, $name:literal: $schema:expr)*) => {
        object!(["turn", "step", "callId", "name", "arguments", "raw" $(, $required)*],
            "turn": integer!(), "step": integer!(), "callId": any!(), "name": string!(),
            "arguments": any!(), "raw": any!() $(, $name: $schema)*)
    };
}
macro_rules! outcome {
    () => {
        object!([], "content": list!(object!(["type"], "type": r#"{"enum":["text","image"]}"#)),
            "isError": boolean!(), "error": open!(), "value": any!(), "meta": open!())
    };
}
macro_rules! intent {
    ($operations:literal) => {
        object!(["operation", "path", "version"],
            "operation": concat!(r#"{"enum":["#, $operations, "]}"),
            "path": string!(), "version": string_or_null!())
    };
}
macro_rules! allowance {
    () => {
        one_of!(
            object!(["kind"], "kind": constant!("overwrite")),
            object!(["kind"], "kind": constant!("create-if-absent"),
                "code": r#"{"enum":["FS_STALE_VERSION","FS_NOT_OBSERVED"]}"#),
            object!(["kind", "version"], "kind": constant!("replace-if-version"),
                "version": string!()),
            object!(["kind"], "kind": constant!("deny"), "reason": string!(),
                "code": r#"{"enum":["FS_PERMISSION_DENIED","FS_NOT_OBSERVED"]}"#),
        )
    };
}

/// What is only told.
const fn told(
    name: &'static str,
    mode: Mode,
    when: &'static str,
    payload: &'static str,
) -> EventSpec {
    EventSpec {
        name,
        mode,
        on_failure: OnFailure::LeaveOut,
        rewrites: &[],
        leaves: false,
        messages: None,
        when,
        payload,
        result: None,
    }
}

const fn emit(name: &'static str, when: &'static str, payload: &'static str) -> EventSpec {
    told(name, Mode::Emit, when, payload)
}

/// A policy: who fails there refuses.
const fn policy(
    name: &'static str,
    when: &'static str,
    payload: &'static str,
    result: &'static str,
) -> EventSpec {
    EventSpec {
        name,
        mode: Mode::Waterfall,
        on_failure: OnFailure::Refuse,
        rewrites: &[],
        leaves: true,
        messages: None,
        when,
        payload,
        result: Some(result),
    }
}

pub(super) const EVENTS: &[EventSpec] = &[
    EventSpec {
        rewrites: &["messages"],
        messages: Some("messages"),
        ..policy(
            "agent/pre-step",
            "Before each step: which of the claimed messages come before the model. By default \
             all do, and what the model should know of its surroundings is added.",
            object!(["turn", "step", "messages"],
                "turn": integer!(), "step": integer!(), "messages": list!(open!())),
            one_of!(
                object!(["kind", "messages"],
                    "kind": constant!("enter"), "messages": list!(message!())),
                object!(["kind"], "kind": constant!("reject")),
            ),
        )
    },
    EventSpec {
        rewrites: &["config"],
        ..policy(
            "agent/request",
            "Before each request of a step: which model is asked, and how. The result is the \
             configuration.",
            object!(["turn", "step", "config"],
                "turn": integer!(), "step": integer!(), "config": config!()),
            config!(),
        )
    },
    EventSpec {
        on_failure: OnFailure::LeaveOut,
        ..policy(
            "agent/request-error",
            "When a request of a step failed: whether it is made again. By default it is not. \
             Without `delayMs` it is made again at once and not counted as a retry. `retries` is \
             how often this step was retried under this policy, by the log; `spoke` whether the \
             failed attempt had said something by then.",
            object!(["turn", "step", "provider", "failure", "retryPolicy", "retries", "spoke"],
                "turn": integer!(), "step": integer!(), "provider": string!(),
                "failure": failure!(),
                "retryPolicy": object!(["mode"], "mode": string!(), "key": string!(),
                    "maxRetries": integer!(), "retryableCodes": list!(string!()),
                    "backoff": object!([], "initialDelayMs": number!(), "maxDelayMs": number!(),
                        "jitterRatio": number!())),
                "retries": integer!(), "spoke": boolean!()),
            one_of!(
                r#"{"type":"null"}"#,
                object!(["kind"], "kind": constant!("retry"), "delayMs": number!()),
            ),
        )
    },
    policy(
        "approval/request",
        "When a person is to be asked about a call: the first listener that settles answers in \
         their place. By default nobody is there. `only` are names of tools.",
        object!(["id", "toolName"], "id": string!(), "toolName": string!(), "callId": any!(),
            "reason": string!(), "arguments": any!()),
        object!(["outcome"],
            "outcome": r#"{"enum":["allowed-once","rejected","cancelled","unavailable"]}"#),
    ),
    policy(
        "fs/edit-intent",
        "Before a file's content is changed, and before it is read for that: what the file must \
         be. By default anything. `path` is canonical; `version` is what is there, null where \
         nothing is. A tool that reads for a change asks again when it makes it.",
        intent!(r#""edit""#),
        allowance!(),
    ),
    policy(
        "fs/write-intent",
        "Before a file is written whole, removed or renamed: what must be there. Of a rename, \
         which is asked of both its paths, `deny` alone counts.",
        intent!(r#""write","remove","rename""#),
        allowance!(),
    ),
    EventSpec {
        leaves: false,
        ..policy(
            "llm/stream",
            "Around each attempt of a step at a model, with all that the model sees (`system` and \
             `tools` where there are any). By default \
             the route's adapter makes it. A listener may refuse it, which is a failed request, \
             or serve the answer itself, also where no adapter serves the provider: `chunks` as \
             the log has them, a `finish` last. What the model sees cannot be rewritten. \
             `leave` is told how it ended. `only` are providers.",
            object!(["turn", "step", "config", "messages"],
                "turn": integer!(), "step": integer!(), "config": config!(), "system": string!(),
                "messages": list!(open!()), "tools": list!(open!())),
            one_of!(
                object!(["kind", "finish"], "kind": constant!("end"),
                    "finish": object!(["kind"], "kind": string!(), "failure": failure!())),
                object!(["kind", "failure"], "kind": constant!("refuse"), "failure": failure!()),
                object!(["kind", "chunks"], "kind": constant!("answer"),
                    "chunks": list!(object!(["type"], "type": string!()))),
            ),
        )
    },
    EventSpec {
        rewrites: &["sections", "contexts"],
        ..policy(
            "system-prompt/assemble",
            "Before each step: the sections of the system prompt and the facts of the context, \
             in order. A section that is the only one of its place stays as it was.",
            assembly!(),
            assembly!(),
        )
    },
    EventSpec {
        rewrites: &["deadlineMs"],
        ..policy(
            "tools/execute",
            "Around a call's body. `deadlineMs` ends it; a settled result takes its place. \
             `only` are names of tools.",
            call!([], "timeoutMs": integer!(), "deadlineMs": integer!()),
            outcome!(),
        )
    },
    EventSpec {
        messages: Some("additionalContexts"),
        ..policy(
            "tools/post-execute",
            "After a call's body, or what kept it from running: whether the model gets the \
             result, another content or value, or feedback instead. `only` are names of tools.",
            call!(["result"], "result": outcome!()),
            one_of!(
                object!(["kind"], "kind": constant!("accept"),
                    "content": list!(object!(["type"], "type": r#"{"enum":["text","image"]}"#)),
                    "value": any!(), "additionalContexts": list!(message!())),
                object!(["kind"], "kind": constant!("block"), "feedback": string!(),
                    "additionalContexts": list!(message!())),
            ),
        )
    },
    policy(
        "tools/pre-execute",
        "Before a call's body, with arguments that fit the tool's schema: whether it runs. By \
         default it does. A settled `allow` only proceeds, as no listener speaks for the others. \
         `only` are names of tools.",
        call!([]),
        one_of!(
            object!(["kind"], "kind": constant!("allow")),
            object!(["kind"], "kind": constant!("deny"), "reason": string!()),
            object!(["kind"], "kind": constant!("ask"), "reason": string!()),
        ),
    ),
    EventSpec {
        name: "agent/turn-stopping",
        mode: Mode::Serial,
        on_failure: OnFailure::LeaveOut,
        rewrites: &[],
        leaves: false,
        messages: Some("messages"),
        when: "When a turn has nothing left to do: messages give it one more step.",
        payload: object!(["turn"], "turn": integer!()),
        result: Some(object!(["messages"], "messages": list!(message!()))),
    },
    told(
        "session/flush",
        Mode::Parallel,
        "Before the host waits until the log is on disk: before each step, request and tool \
         body, and at the end. `length` is the number of events.",
        object!(["length"], "length": integer!()),
    ),
    emit(
        "agent/created",
        "When the agent of a session is there.",
        object!(["sessionId", "agentId", "cwd"],
            "sessionId": string!(), "agentId": string!(), "cwd": string!()),
    ),
    emit(
        "agent/disposed",
        "When it is gone; the last thing that listeners are told, but for `session/disposed`.",
        object!(["sessionId", "agentId"], "sessionId": string!(), "agentId": string!()),
    ),
    emit(
        "agent/error",
        "When a turn fails, before its `turn/end`.",
        object!(["turn", "step", "error"],
            "turn": integer!(), "step": integer!(), "error": failure!()),
    ),
    emit(
        "agent/inbox/claimed",
        "When a step takes what waits.",
        object!(["target", "messages"], "target": string!(), "messages": list!(open!())),
    ),
    emit(
        "agent/inbox/discarded",
        "When input that waits is taken out unread.",
        object!(["target", "messages"], "target": string!(), "messages": list!(open!())),
    ),
    emit(
        "agent/inbox/inserted",
        "When input is put in front of the agent, or put back.",
        object!(["target", "messages"], "target": string!(), "messages": list!(open!())),
    ),
    emit(
        "agent/session-start",
        "When an agent starts. Delivered before the first turn claims its input, so that what a \
         listener puts into the inbox reaches the first request; a listener that takes longer \
         than 5 s is not waited for.",
        object!(["source"], "source": r#"{"enum":["startup","resume"]}"#),
    ),
    emit(
        "agent/status",
        "When the agent begins or stops to work.",
        object!(["status"], "status": r#"{"enum":["idle","running"]}"#),
    ),
    emit(
        "authorization/settled",
        "When a question of approval has its answer, whoever gave it. `only` are names of tools.",
        object!(["id", "toolName", "outcome"], "id": string!(), "toolName": string!(),
            "callId": any!(), "outcome": string!()),
    ),
    emit(
        "fs/observed",
        "When a file was read or changed, by canonical path; `version` is null where nothing is. \
         A listener is told before it is asked an intent.",
        object!(["path", "version"], "path": string!(), "version": string_or_null!()),
    ),
    emit(
        "llm/adapters-updated",
        "When an agent starts: the providers that are served.",
        object!(["providers"], "providers": list!(string!())),
    ),
    emit(
        "session/created",
        "When a new session starts; not when one is resumed.",
        object!(["sessionId", "cwd"], "sessionId": string!(), "cwd": string!()),
    ),
    emit(
        "session/disposed",
        "When a session is closed.",
        object!(["sessionId"], "sessionId": string!()),
    ),
    emit(
        "session/event",
        "Every event of the log, as it is appended. `only` are kinds of events.",
        object!(["type", "seq", "time", "data"], "type": string!(), "seq": integer!(),
            "time": integer!(), "data": any!(), "surfaceOp": any!(),
            "sourceEventSeqs": any!(), "ignorable": boolean!()),
    ),
    emit(
        "system-prompt/change",
        "When a request goes out with another system prompt than the one before it.",
        object!(["turn", "step"], "turn": integer!(), "step": integer!()),
    ),
    emit(
        "tools/change",
        "When an agent starts, and when a tool comes or goes: all there are.",
        object!(["tools"], "tools": list!(string!())),
    ),
    emit(
        "tools/result",
        "After a call, with the result that the log keeps. `only` are names of tools.",
        call!(["result"], "result": outcome!()),
    ),
];
