//! `dsh:plugin@0.1`: its bindings, and their types as those of `api`.
//!
//! The world below lists what this host links and calls. A component need not
//! fit it: imports are linked one capability at a time, and each export is
//! looked up on its own.

use wasmtime::component::{Instance, InstancePre};

use crate::api;
use crate::instance::{Export, State};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package dsh:host;
            world host {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/work@0.1.0;
                import dsh:plugin/clock@0.1.0;
                import dsh:plugin/random@0.1.0;
                import dsh:plugin/session@0.1.0;
                import dsh:plugin/journal@0.1.0;
                import dsh:plugin/workspace@0.1.0;
                import dsh:plugin/spill@0.1.0;
                import dsh:plugin/attachments@0.1.0;
                import dsh:plugin/pictures@0.1.0;
                import dsh:plugin/process@0.1.0;
                import dsh:plugin/inbox@0.1.0;
                import dsh:plugin/kv@0.1.0;
                import dsh:plugin/llm@0.1.0;
                export dsh:plugin/llm-adapter@0.1.0;
                export dsh:plugin/tool@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
                export dsh:plugin/compaction@0.1.0;
                export dsh:plugin/projection@0.1.0;
                export dsh:plugin/prompt@0.1.0;
                export dsh:plugin/title@0.1.0;
            }
        ",
        world: "dsh:host/host",
        imports: {
            "dsh:plugin/clock.wait": async | trappable,
            "dsh:plugin/session.projection": async | trappable,
            "dsh:plugin/journal": async | trappable,
            "dsh:plugin/workspace": async | trappable,
            "dsh:plugin/spill": async | trappable,
            "dsh:plugin/attachments": async | trappable,
            "dsh:plugin/pictures": async | trappable,
            "dsh:plugin/process": async | trappable,
            "dsh:plugin/kv": async | trappable,
            "dsh:plugin/llm": async | trappable,
            default: trappable,
        },
        exports: { default: async },
    });
}

pub(crate) use bindings::dsh::plugin::{
    attachments, clock, config, inbox, journal, kv, llm, log, pictures, process, random, session,
    spill, types, work, workspace,
};
pub(crate) use bindings::exports::dsh::plugin::{
    compaction, dispatch, llm_adapter, projection, prompt, title, tool,
};

pub(crate) use compaction::Guest as CompactionGuest;
pub(crate) use dispatch::Guest as DispatchGuest;
pub(crate) use llm_adapter::Guest as AdapterGuest;
pub(crate) use projection::Guest as ProjectionGuest;
pub(crate) use prompt::Guest as PromptGuest;
pub(crate) use title::Guest as TitleGuest;
pub(crate) use tool::Guest as ToolGuest;

/// Where a component's exports are, looked up once.
pub(crate) struct Exports {
    tool: Option<tool::GuestIndices>,
    adapter: Option<llm_adapter::GuestIndices>,
    dispatch: Option<dispatch::GuestIndices>,
    projection: Option<projection::GuestIndices>,
    compaction: Option<compaction::GuestIndices>,
    prompt: Option<prompt::GuestIndices>,
    title: Option<title::GuestIndices>,
}

impl Exports {
    /// Looks up the interfaces for which `has` says that they are there.
    pub(crate) fn find(
        pre: &InstancePre<State>,
        has: impl Fn(&str) -> bool,
    ) -> wasmtime::Result<Self> {
        Ok(Self {
            tool: has("tool")
                .then(|| tool::GuestIndices::new(pre))
                .transpose()?,
            adapter: has("llm-adapter")
                .then(|| llm_adapter::GuestIndices::new(pre))
                .transpose()?,
            dispatch: has("dispatch")
                .then(|| dispatch::GuestIndices::new(pre))
                .transpose()?,
            projection: has("projection")
                .then(|| projection::GuestIndices::new(pre))
                .transpose()?,
            compaction: has("compaction")
                .then(|| compaction::GuestIndices::new(pre))
                .transpose()?,
            prompt: has("prompt")
                .then(|| prompt::GuestIndices::new(pre))
                .transpose()?,
            title: has("title")
                .then(|| title::GuestIndices::new(pre))
                .transpose()?,
        })
    }
}

macro_rules! export {
    ($guest:ty, $field:ident, $name:literal) => {
        impl Export for $guest {
            const INTERFACE: &'static str = $name;

            fn load(
                exports: &Exports,
                store: &mut wasmtime::Store<State>,
                instance: &Instance,
            ) -> Option<wasmtime::Result<Self>> {
                Some(exports.$field.as_ref()?.load(store, instance))
            }
        }
    };
}

export!(ToolGuest, tool, "tool");
export!(AdapterGuest, adapter, "llm-adapter");
export!(DispatchGuest, dispatch, "dispatch");
export!(CompactionGuest, compaction, "compaction");
export!(ProjectionGuest, projection, "projection");
export!(PromptGuest, prompt, "prompt");
export!(TitleGuest, title, "title");

impl From<types::Error> for api::PluginError {
    fn from(error: types::Error) -> Self {
        Self {
            code: error.code,
            message: error.message,
            details: error.details,
        }
    }
}

impl From<api::PluginError> for types::Error {
    fn from(error: api::PluginError) -> Self {
        Self {
            code: error.code,
            message: error.message,
            details: error.details,
        }
    }
}

impl From<api::ToolCall> for tool::Call {
    fn from(call: api::ToolCall) -> Self {
        Self {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
            turn: call.turn,
            step: call.step,
            more: call.more,
        }
    }
}

impl From<tool::Outcome> for api::ToolOutcome {
    fn from(outcome: tool::Outcome) -> Self {
        Self {
            content: outcome.content,
            more: outcome.more,
        }
    }
}

impl From<api::CallConfig> for types::CallConfig {
    fn from(config: api::CallConfig) -> Self {
        Self {
            provider: config.provider,
            model: config.model,
            reasoning_effort: config.reasoning_effort,
            temperature: config.temperature,
            max_tokens: config.max_tokens,
            stop: config.stop,
            more: config.more,
        }
    }
}

impl From<types::CallConfig> for api::CallConfig {
    fn from(config: types::CallConfig) -> Self {
        Self {
            provider: config.provider,
            model: config.model,
            reasoning_effort: config.reasoning_effort,
            temperature: config.temperature,
            max_tokens: config.max_tokens,
            stop: config.stop,
            more: config.more,
        }
    }
}

impl From<api::GenerateRequest> for types::GenerateRequest {
    fn from(request: api::GenerateRequest) -> Self {
        Self {
            config: request.config.into(),
            purpose: request.purpose,
            system: request.system,
            messages: request.messages,
            tools: request.tools,
            session_id: request.session_id,
            more: request.more,
        }
    }
}

impl From<types::HttpRequest> for api::HttpRequest {
    fn from(request: types::HttpRequest) -> Self {
        let part = |part| match part {
            types::Part::Bytes(bytes) => api::Part::Bytes(bytes),
            types::Part::Picture(id) => api::Part::Picture(id),
            types::Part::PictureBase64(id) => api::Part::PictureBase64(id),
        };
        Self {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body.into_iter().map(part).collect(),
            timeout_ms: request.timeout_ms,
        }
    }
}

impl From<llm_adapter::Prepared> for api::Prepared {
    fn from(prepared: llm_adapter::Prepared) -> Self {
        Self {
            config: prepared.config.into(),
            defaulted: prepared.defaulted,
            model: prepared.model,
        }
    }
}

impl From<llm_adapter::Action> for api::Action {
    fn from(action: llm_adapter::Action) -> Self {
        match action {
            llm_adapter::Action::Send(request) => Self::Send(request.into()),
            llm_adapter::Action::Emit(emission) => Self::Emit(api::Emission {
                after_ms: emission.after_ms,
                chunks: emission.chunks,
            }),
            llm_adapter::Action::Done => Self::Done,
        }
    }
}

impl From<api::EndCause> for llm_adapter::EndCause {
    fn from(cause: api::EndCause) -> Self {
        match cause {
            api::EndCause::Complete => Self::Complete,
            api::EndCause::Failed(error) => Self::Failed(error.into()),
            api::EndCause::Aborted => Self::Aborted,
        }
    }
}

impl From<prompt::Section> for api::PromptSection {
    fn from(section: prompt::Section) -> Self {
        Self {
            place: match section.place {
                prompt::Place::System => api::Place::System,
                prompt::Place::Context => api::Place::Context,
            },
            name: section.name,
            order: section.order,
            text: section.text,
            complete: section.complete,
        }
    }
}

impl From<dispatch::Subscription> for api::Subscription {
    fn from(subscription: dispatch::Subscription) -> Self {
        Self {
            event: subscription.event,
            only: subscription.only,
            beside: subscription.beside,
        }
    }
}

impl From<dispatch::Entry> for api::Entry {
    fn from(entry: dispatch::Entry) -> Self {
        Self {
            verdict: match entry.verdict {
                dispatch::Verdict::Proceed => api::Verdict::Proceed,
                dispatch::Verdict::Rewrite(payload) => api::Verdict::Rewrite(payload),
                dispatch::Verdict::Settle(result) => api::Verdict::Settle(result),
            },
            carry: entry.carry,
        }
    }
}

impl From<api::Situation> for compaction::Situation {
    fn from(situation: api::Situation) -> Self {
        Self {
            trigger: match situation.trigger {
                api::Trigger::Pressure => compaction::Trigger::Pressure,
                api::Trigger::Overflow => compaction::Trigger::Overflow,
                api::Trigger::Manual => compaction::Trigger::Manual,
            },
            tokens: situation.tokens,
            context_window: situation.context_window,
            round: situation.round,
            recoveries: situation.recoveries,
            more: situation.more,
        }
    }
}

impl From<compaction::Plan> for api::Plan {
    fn from(plan: compaction::Plan) -> Self {
        let trim = |trim: compaction::Trim| api::Trim {
            node: trim.node,
            content: trim.content,
        };
        match plan {
            compaction::Plan::Nothing => Self::Nothing,
            compaction::Plan::Trim(trims) => Self::Trim(trims.into_iter().map(trim).collect()),
            compaction::Plan::Summarise(nodes) => Self::Summarise(nodes),
        }
    }
}

impl From<compaction::Summary> for api::Summary {
    fn from(summary: compaction::Summary) -> Self {
        Self {
            content: summary.content,
            origin: summary.origin,
        }
    }
}
