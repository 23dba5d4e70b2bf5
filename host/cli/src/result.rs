//! The result of a run as one JSON object: `--output json` (spec/cli.md §4).

use std::time::Duration;

use dsh_agent::{RunError, RunOutcome};
use dsh_model::TokenUsage;
use dsh_session::{Json, Kind, Seq, Session};

/// What a run cost, over all of its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage(TokenUsage);

impl Usage {
    /// Sums the answers that this process appended from `first` on.
    pub(crate) fn of(session: &Session, first: Seq) -> Self {
        let answers = session.live_from(first).iter();
        let answers = answers.filter(|event| event.kind == Kind::AssistantMessage);
        let usages = answers.filter_map(|event| TokenUsage::from_value(event.data.get("usage")?));
        Self(usages.fold(TokenUsage::default(), |sum, usage| TokenUsage {
            input: sum.input.saturating_add(usage.input),
            output: sum.output.saturating_add(usage.output),
            cache_read: add(sum.cache_read, usage.cache_read),
            cache_write: add(sum.cache_write, usage.cache_write),
            reasoning: add(sum.reasoning, usage.reasoning),
        }))
    }
}

/// A count that no answer has is no count, rather than 0.
fn add(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (sum, more) {
        (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
        (sum, more) => sum.or(more),
    }
}

/// The object, as a line.
pub(crate) fn line(
    session_id: &str,
    outcome: &RunOutcome,
    usage: Usage,
    took: Duration,
    error: Option<&RunError>,
) -> String {
    let Usage(usage) = usage;
    let result = Json::object(|result| {
        result.str("session_id", session_id);
        match outcome.kind() {
            Some(kind) => result.str("reason", &kind),
            None => result.null("reason"),
        };
        result.str("text", &outcome.answer);
        result.object("usage", |counts| {
            counts.u64("inputTokens", usage.input);
            counts.u64("outputTokens", usage.output);
            let rest = [
                ("cacheReadTokens", usage.cache_read),
                ("cacheWriteTokens", usage.cache_write),
                ("reasoningTokens", usage.reasoning),
            ];
            for (name, count) in rest {
                if let Some(count) = count {
                    counts.u64(name, count);
                }
            }
        });
        result.u64("turns", outcome.turns);
        result.u64("steps", outcome.steps);
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        result.u64("duration_ms", took);
        if let Some(error) = error {
            result.object("error", |member| {
                member.str("code", &error.code);
                member.str("message", &error.message);
            });
        }
    });
    format!("{}\n", result.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_session::{Draft, Header};

    fn session(usages: &[&str]) -> Session {
        let mut session = Session::new(Header::new("s", 0)).unwrap();
        for usage in usages {
            let data = format!(r#"{{"turn":1,"step":1,"message":{{}},"usage":{usage}}}"#);
            let draft = Draft::new(Kind::AssistantMessage, Json::normalise(&data).unwrap());
            session.append(draft.append(), 0).unwrap();
        }
        session
    }

    #[test]
    fn counts_of_all_answers_add_up_and_what_none_has_stays_out() {
        let session = session(&[
            r#"{"inputTokens":1,"outputTokens":2}"#,
            r#"{"inputTokens":10,"outputTokens":20,"cacheReadTokens":0,"reasoningTokens":3}"#,
        ]);
        let usage = Usage::of(&session, Seq(0));
        let line = line("s", &RunOutcome::default(), usage, Duration::ZERO, None);
        assert_eq!(
            line,
            "{\"session_id\":\"s\",\"reason\":null,\"text\":\"\",\"usage\":{\"inputTokens\":11,\
             \"outputTokens\":22,\"cacheReadTokens\":0,\"reasoningTokens\":3},\"turns\":0,\"steps\":0,\
             \"duration_ms\":0}\n"
        );
        assert_eq!(Usage::of(&session, Seq(2)), Usage::default());
    }

    #[test]
    fn an_error_stands_last() {
        let outcome = RunOutcome {
            answer: "so \"far\"".to_owned(),
            reason: Some(Json::normalise(r#"{"kind":"aborted"}"#).unwrap()),
            turns: 1,
            steps: 2,
        };
        let error = RunError {
            code: "TIMEOUT".to_owned(),
            message: "too long".to_owned(),
        };
        let line = line(
            "s",
            &outcome,
            Usage::default(),
            Duration::from_millis(1500),
            Some(&error),
        );
        assert_eq!(
            line,
            "{\"session_id\":\"s\",\"reason\":\"aborted\",\"text\":\"so \\\"far\\\"\",\
             \"usage\":{\"inputTokens\":0,\"outputTokens\":0},\"turns\":1,\"steps\":2,\
             \"duration_ms\":1500,\"error\":{\"code\":\"TIMEOUT\",\"message\":\"too long\"}}\n"
        );
    }
}
