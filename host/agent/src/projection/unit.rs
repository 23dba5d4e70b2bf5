//! What folds one value of the log, and what became of a try.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_session::{Event, Json, JsonError, Kind, Seq};
use tokio_util::sync::CancellationToken;

/// Bytes of a state, and of a view. A cache holds those of many sessions and is
/// written whole.
pub const LARGEST: usize = 256 << 10;

/// How deep a state or a view may be nested; the cache's file ends at 64.
pub const DEEPEST: usize = 32;

/// A piece of a log, as a fold gets it.
pub struct Stretch<'a> {
    /// The state before it; none before the first event.
    pub state: Option<&'a Json>,
    /// The last event in that state.
    pub as_of: Option<Seq>,
    /// What of the piece the unit reads, in order.
    pub events: &'a [Arc<Event>],
    /// The piece's last event, whoever reads it.
    pub end: Option<Seq>,
    /// Whoever waits has given up.
    pub cancel: &'a CancellationToken,
}

/// Why there is no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The log breaks a rule that the value rests on, and will go on to.
    NoValue(String),
    /// It failed. It may do better the next time.
    Failed(String),
    /// Nothing of the row is called any more.
    Out(String),
    /// Whoever asked has given up.
    Cancelled,
}

/// What folds one value: a pure function of state and events.
#[async_trait]
pub trait Unit: Send + Sync {
    /// Names the value, in the cache and for whoever asks.
    fn key(&self) -> &str;

    /// Changes with the shape or the meaning of the state.
    fn version(&self) -> u64;

    /// Whether it reads events of this kind.
    fn reads(&self, kind: &Kind) -> bool;

    /// Whether its state hangs on what came after the last event that it read, so
    /// that it is called for a piece without any.
    fn sees_all(&self) -> bool {
        false
    }

    /// Whose states it goes on from, where a version does not say it all: a
    /// component's digest and its configuration. None of the host's own.
    fn maker(&self) -> Option<&str>;

    /// The next state.
    ///
    /// # Errors
    /// [`Fault`].
    async fn fold(&self, stretch: Stretch<'_>) -> Result<Json, Fault>;

    /// What is shown of a state.
    ///
    /// # Errors
    /// [`Fault`].
    async fn view(
        &self,
        state: &Json,
        as_of: Option<Seq>,
        cancel: &CancellationToken,
    ) -> Result<Json, Fault>;
}

/// What a component answered, as a state or a view; the error says why it is none.
pub(super) fn accept(text: &str) -> Result<Json, String> {
    if text.len() > LARGEST {
        return Err(format!(
            "{} bytes, and {LARGEST} are allowed for a state or a view",
            text.len()
        ));
    }
    let deep = depth(text);
    if deep > DEEPEST {
        return Err(format!("{deep} levels deep, and {DEEPEST} are allowed"));
    }
    Json::normalise(text).map_err(|error: JsonError| error.to_string())
}

/// How deep a text is nested, if it is JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match byte {
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_json_of_some_size_and_depth() {
        let accepts = |text: &str| accept(text).is_ok();
        assert!(accepts("null") && accepts(r#"{"a":["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["]}"#));
        for (text, why) in [
            ("", "JSON"),
            ("{", "JSON"),
            ("NaN", "JSON"),
            (&"[".repeat(40), "40 levels deep"),
            (&format!("\"{}\"", "x".repeat(LARGEST)), "bytes, and 262144"),
        ] {
            let reason = accept(text).unwrap_err();
            assert!(reason.contains(why), "{text:.40}: {reason}");
        }
        let deep = format!("{}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
        assert!(accepts(&deep) && !accepts(&format!("[{deep}]")));
    }
}
