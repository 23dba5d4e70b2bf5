//! What listeners hear when an agent comes and when it goes.
//!
//! Its start is told at once and heard before the first turn claims its input, so
//! that what a listener puts in front of the agent then (context from its own
//! store) reaches the first request. Its end is told last, and heard before the
//! process may go. Neither waits for ever: a listener that hangs costs seconds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dsh_session::Json;

use crate::agent::{Inner, StartSource};
use crate::cancel::Signal;
use crate::error::AgentError;

/// How long the first turn waits for listeners of `agent/session-start`.
const START: Duration = Duration::from_secs(5);

/// How long an end waits for all that listeners were not told yet.
const END: Duration = Duration::from_secs(10);

/// Tells that there is an agent, and what it has.
pub(crate) fn tell(inner: &Arc<Inner>, source: StartSource) {
    let dispatch = &inner.dispatch;
    let identity = &inner.identity;
    if source == StartSource::Startup {
        dispatch.notify("session/created", None, || {
            Json::object(|payload| {
                payload
                    .str("sessionId", &identity.session_id)
                    .str("cwd", &inner.config.cwd);
            })
        });
    }
    dispatch.notify("agent/created", None, || {
        Json::object(|payload| {
            payload
                .str("sessionId", &identity.session_id)
                .str("agentId", &identity.agent_id)
                .str("cwd", &inner.config.cwd);
        })
    });
    dispatch.notify("llm/adapters-updated", None, || {
        Json::object(|payload| {
            payload.array("providers", |list| {
                for provider in inner.models.providers() {
                    list.str(&provider.id);
                }
            });
        })
    });
    let weak = Arc::downgrade(dispatch);
    inner.tools.tell(move |names| {
        if let Some(dispatch) = weak.upgrade() {
            dispatch.notify("tools/change", None, || {
                Json::object(|payload| {
                    payload.array("tools", |list| {
                        for name in names {
                            list.str(name);
                        }
                    });
                })
            });
        }
    });
    dispatch.notify("agent/session-start", None, || {
        Json::object(|payload| {
            payload.str("source", source.as_str());
        })
    });
}

/// Waits, once, until the start was heard.
pub(crate) async fn heard(inner: &Inner, signal: &Signal) {
    if inner.greeted.swap(true, Ordering::Relaxed) {
        return;
    }
    tokio::select! {
        biased;
        () = signal.cancelled() => {}
        () = inner.dispatch.told("agent/session-start") => {}
        () = tokio::time::sleep(START) => {}
    }
}

/// Tells that the agent is gone, makes the log durable, and waits until all
/// was heard.
pub(crate) async fn farewell(inner: &Inner) -> Result<(), AgentError> {
    let dispatch = &inner.dispatch;
    let identity = &inner.identity;
    dispatch.notify("agent/disposed", None, || {
        Json::object(|payload| {
            payload
                .str("sessionId", &identity.session_id)
                .str("agentId", &identity.agent_id);
        })
    });
    let heard = async {
        let flushed = dispatch.flush(&inner.log).await;
        dispatch.notify("session/disposed", None, || {
            Json::object(|payload| {
                payload.str("sessionId", &identity.session_id);
            })
        });
        dispatch.settle().await;
        flushed
    };
    match tokio::time::timeout(END, heard).await {
        Ok(flushed) => flushed,
        // A listener that hangs keeps nothing from the disk.
        Err(_) => inner.log.barrier().await,
    }
}
