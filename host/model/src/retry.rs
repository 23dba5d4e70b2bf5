//! How a route's failed calls are retried: `spec/llm.md` §5, as data and pure functions.
//!
//! A policy is read when its route is registered. Who retries is the agent,
//! which logs each attempt: the counter lives in the log and nowhere else.

use dsh_session::{Json, Value};

use crate::failure::LlmFailure;

/// Codes that are retried unless a route says otherwise.
const RETRYABLE: [&str; 5] = [
    "EMPTY_RESPONSE",
    "RATE_LIMIT",
    "SERVER",
    "TIMEOUT",
    "TRANSPORT",
];
/// What a timer takes.
const MAX_DELAY_MS: f64 = 2_147_483_647.0;

/// A route's policy.
#[derive(Debug, Clone, PartialEq)]
pub enum RetryPolicy {
    /// Some failures, some times.
    Normal {
        /// After the first attempt.
        max_retries: u64,
        /// Failure codes.
        retryable_codes: Vec<String>,
        /// Between attempts.
        backoff: Backoff,
    },
    /// Every failure, without end.
    Always {
        /// Between attempts.
        backoff: Backoff,
    },
}

/// Growing waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Before the first retry.
    pub initial_delay_ms: f64,
    /// It doubles up to here.
    pub max_delay_ms: f64,
    /// 0 to 1: by which share a wait may differ.
    pub jitter_ratio: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial_delay_ms: 500.0,
            max_delay_ms: 10_000.0,
            jitter_ratio: 0.1,
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::Normal {
            max_retries: 5,
            retryable_codes: RETRYABLE.map(String::from).to_vec(),
            backoff: Backoff::default(),
        }
    }
}

impl RetryPolicy {
    /// Reads a `retryPolicy`.
    ///
    /// # Errors
    /// What is wrong with it, in words that fit after "retryPolicy".
    pub fn parse(value: Value<'_>) -> Result<Self, String> {
        if !value.is_object() {
            return Err(String::from("is no object"));
        }
        let mode = value
            .get("mode")
            .map(|mode| mode.text().unwrap_or_default());
        for (key, _) in value.entries() {
            if !["mode", "maxRetries", "retryableCodes", "backoff"]
                .iter()
                .any(|known| key.is(known))
            {
                return Err(format!("has an unknown member {:?}", key.decode()));
            }
        }
        let backoff = value
            .get("backoff")
            .map_or_else(|| Ok(Backoff::default()), Backoff::parse)?;
        match mode.as_deref() {
            None | Some("normal") => {}
            Some("always") => return Ok(Self::Always { backoff }),
            Some(_) => return Err(String::from("has a mode that is neither normal nor always")),
        }
        let max_retries = match value.get("maxRetries") {
            None => 5,
            Some(number) => number
                .u64()
                .ok_or("has a maxRetries that is no whole number")?,
        };
        let retryable_codes = match value.get("retryableCodes") {
            None => RETRYABLE.map(String::from).to_vec(),
            Some(codes) => read_codes(codes)?,
        };
        Ok(Self::Normal {
            max_retries,
            retryable_codes,
            backoff,
        })
    }

    /// The waits of the policy.
    #[must_use]
    pub fn backoff(&self) -> &Backoff {
        match self {
            Self::Normal { backoff, .. } | Self::Always { backoff } => backoff,
        }
    }

    /// `normal` or `always`, as `llm/retry` names it.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self {
            Self::Normal { .. } => "normal",
            Self::Always { .. } => "always",
        }
    }

    /// What makes two policies the same chain of retries: a JSON text.
    #[must_use]
    pub fn key(&self) -> String {
        let number = |a: &mut dsh_session::ArrayWriter<'_>, value: f64| {
            a.json(&Json::normalise(&format!("{value}")).unwrap_or_else(|_| Json::null()));
        };
        let key = Json::array(|a| {
            a.str(self.mode());
            if let Self::Normal {
                max_retries,
                retryable_codes,
                ..
            } = self
            {
                let mut sorted: Vec<&String> = retryable_codes.iter().collect();
                // As upstream sorts: by UTF-16 units.
                sorted.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
                a.u64(*max_retries).array(|a| {
                    for code in sorted {
                        a.str(code);
                    }
                });
            }
            let backoff = self.backoff();
            number(a, backoff.initial_delay_ms);
            number(a, backoff.max_delay_ms);
            number(a, backoff.jitter_ratio);
        });
        key.as_str().to_owned()
    }

    /// How long to wait before retry number `retry` (from 1), in milliseconds;
    /// none where this failure is not retried. `random` is in `[0, 1)`.
    #[must_use]
    pub fn delay(&self, failure: &LlmFailure, retry: u64, random: f64) -> Option<f64> {
        if let Self::Normal {
            max_retries,
            retryable_codes,
            ..
        } = self
            && (retry > *max_retries || !retryable_codes.contains(&failure.code))
        {
            return None;
        }
        let backoff = self.backoff();
        match failure.provider_retry_after_ms {
            Some(asked) if asked <= backoff.max_delay_ms => Some(asked),
            Some(_) if matches!(self, Self::Normal { .. }) => None,
            _ => Some(backoff.delay(retry, random)),
        }
    }
}

impl Backoff {
    fn parse(value: Value<'_>) -> Result<Self, String> {
        if !value.is_object() {
            return Err(String::from("has a backoff that is no object"));
        }
        let plain = Self::default();
        let read = |key: &str, default| match value.get(key) {
            None => Ok(default),
            Some(number) => number
                .f64()
                .ok_or_else(|| format!("has a backoff.{key} that is no number")),
        };
        let backoff = Self {
            initial_delay_ms: read("initialDelayMs", plain.initial_delay_ms)?,
            max_delay_ms: read("maxDelayMs", plain.max_delay_ms)?,
            jitter_ratio: read("jitterRatio", plain.jitter_ratio)?,
        };
        let sound = |delay: f64| delay > 0.0 && delay <= MAX_DELAY_MS;
        if !sound(backoff.initial_delay_ms) || !sound(backoff.max_delay_ms) {
            return Err(format!("has a delay outside of 0 to {MAX_DELAY_MS} ms"));
        }
        if backoff.initial_delay_ms > backoff.max_delay_ms {
            return Err(String::from("has an initialDelayMs above its maxDelayMs"));
        }
        if !(0.0..=1.0).contains(&backoff.jitter_ratio) {
            return Err(String::from("has a jitterRatio outside of 0 to 1"));
        }
        Ok(backoff)
    }

    fn delay(&self, retry: u64, random: f64) -> f64 {
        let doublings = i32::try_from(retry.saturating_sub(1).min(1024)).unwrap_or(1024);
        let grown = (self.initial_delay_ms * 2f64.powi(doublings)).min(self.max_delay_ms);
        let spread = 1.0 - self.jitter_ratio + 2.0 * self.jitter_ratio * random;
        (grown * spread).min(self.max_delay_ms)
    }
}

fn read_codes(codes: Value<'_>) -> Result<Vec<String>, String> {
    let mut read: Vec<String> = Vec::new();
    for code in codes.items() {
        match code.text() {
            Some(code) if !code.is_empty() && !read.iter().any(|known| **known == *code) => {
                read.push(code.into_owned());
            }
            _ => {
                return Err(String::from(
                    "has retryableCodes that are not different texts",
                ));
            }
        }
    }
    if read.is_empty() {
        return Err(String::from("has an empty retryableCodes"));
    }
    Ok(read)
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
