//! When a failed request is made again (spec/llm.md §5), as a function of what
//! the event tells: the failure, the route's policy, and how often this step has
//! retried under it.

use guest_support::json::Json;

/// What becomes of a failed request.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// Others decide.
    Delegate,
    /// Another attempt after so many milliseconds.
    Retry(f64),
    /// The same, unless others already want one.
    Unless(f64),
}

/// `random` is in `[0, 1)`; `cap` is the row's own bound on waits.
pub(crate) fn answer(payload: &str, cap: Option<f64>, random: f64) -> Answer {
    decide(Json::of_host(payload), cap, random).unwrap_or(Answer::Delegate)
}

/// None where a part of the payload is not there: nobody to speak for.
fn decide(payload: Json<'_>, cap: Option<f64>, random: f64) -> Option<Answer> {
    let policy = payload.get("retryPolicy")?;
    let failure = payload.get("failure")?;
    let mode = policy.get("mode")?.string()?;
    let retry = payload.get("retries")?.whole()?.saturating_add(1);
    let backoff = policy.get("backoff")?;
    let longest = backoff.get("maxDelayMs")?.number()?;
    let always = mode == "always";
    if !always {
        let code = failure.get("code")?.string()?;
        let mut codes = policy.get("retryableCodes")?.items();
        let listed = codes.any(|known| known.string().is_some_and(|known| known == code));
        let retryable = listed || is_overload(&code, failure) || is_cut(&code, payload);
        if !retryable || retry > policy.get("maxRetries")?.whole()? {
            return None;
        }
    }
    let asked = failure
        .get("providerRetryAfterMs")
        .and_then(Json::number)
        .filter(|ms| ms.is_finite() && *ms > 0.0);
    let delay = match asked {
        Some(ms) if ms <= longest => ms,
        // To wait for less than it asks for is to be refused again.
        Some(_) if !always => return None,
        _ => {
            let initial = backoff.get("initialDelayMs")?.number()?;
            let jitter = backoff.get("jitterRatio")?.number()?;
            grown(initial, longest, jitter, retry, random)
        }
    };
    let delay = cap.map_or(delay, |cap| delay.min(cap));
    Some(if always {
        Answer::Unless(delay)
    } else {
        Answer::Retry(delay)
    })
}

/// The provider has no room just now: by the code that DeepSeek's stream ends
/// with, or by the statuses that others answer with. Retryable on every route.
fn is_overload(code: &str, failure: Json<'_>) -> bool {
    let status = failure.get("status").and_then(Json::whole);
    code == "INSUFFICIENT_SYSTEM_RESOURCE" || matches!(status, Some(503 | 529))
}

/// The answer ended before its end and before anything of it was said, so that
/// nobody would read it twice.
fn is_cut(code: &str, payload: Json<'_>) -> bool {
    code == "STREAM_CLOSED" && payload.get("spoke").and_then(Json::bool) == Some(false)
}

/// Twice as long each time, up to `longest`, and off by a share of `jitter`.
fn grown(initial: f64, longest: f64, jitter: f64, retry: u64, random: f64) -> f64 {
    let doublings = i32::try_from((retry - 1).min(1024)).unwrap_or(1024);
    let grown = (initial * 2f64.powi(doublings)).min(longest);
    (grown * (1.0 - jitter + 2.0 * jitter * random)).min(longest)
}
