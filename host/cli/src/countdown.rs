//! What a person sees while a failed request waits to be made again.
//!
//! On a terminal one line of stderr counts down and is gone when the attempt starts. Elsewhere nothing is said, since a
//! run that completes leaves stderr empty; `--verbose` gives a line for each wait. Programs have the event itself:
//! `llm/retry` of `--output stream-json` holds `delayMs`, `retry`, `maxRetries` and the failure.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use dsh_agent::Log;
use dsh_session::{Event, Kind, Value};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::report;

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;

/// Ends with what it shows when dropped.
pub(crate) struct Countdown {
    task: Option<JoinHandle<()>>,
    terminal: bool,
}

impl Countdown {
    /// Follows a run's log, where there is somebody to tell.
    pub(crate) fn start(log: &Log, verbose: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let events = (terminal || verbose).then(|| log.follow());
        let task = events.map(|events| tokio::spawn(follow(events, terminal)));
        Self { task, terminal }
    }
}

impl Drop for Countdown {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            if self.terminal {
                show("");
            }
        }
    }
}

async fn follow(mut events: UnboundedReceiver<Arc<Event>>, terminal: bool) {
    let mut waiting: Option<(Instant, Wait)> = None;
    loop {
        let tick = waiting
            .as_ref()
            .map(|(until, _)| next_tick(*until, Instant::now()));
        let event = tokio::select! {
            event = events.recv() => match event {
                Some(event) => Some(event),
                None => return,
            },
            () = sleep_until(tick.unwrap_or_else(Instant::now)), if tick.is_some() => None,
        };
        match event {
            Some(event) if event.kind == Kind::LlmRetry => {
                let Some(wait) = Wait::of(event.data.value()) else {
                    continue;
                };
                let until = Instant::now() + wait.delay;
                if !terminal {
                    report::line(wait.line(wait.delay));
                    continue;
                }
                show(&wait.line(wait.delay));
                waiting = Some((until, wait));
            }
            // The attempt, or the end of the turn.
            Some(event) if waiting.is_some() && ends(&event.kind) => {
                waiting = None;
                show("");
            }
            Some(_) => {}
            None => {
                if let Some((until, wait)) = &waiting {
                    show(&wait.line(until.saturating_duration_since(Instant::now())));
                }
            }
        }
    }
}

/// Whether nothing is waited for behind it. Titles and what components write come in between.
fn ends(kind: &Kind) -> bool {
    matches!(kind, Kind::LlmRetryStarted | Kind::StepEnd | Kind::TurnEnd)
}

/// When the number on the line changes; a while later where it does no more.
fn next_tick(until: Instant, now: Instant) -> Instant {
    let left = until.saturating_duration_since(now);
    let whole = Duration::from_secs(left.as_secs());
    match left.saturating_sub(whole) {
        Duration::ZERO => now + Duration::from_secs(1),
        part => now + part,
    }
}

/// A wait, as its event tells it.
#[derive(Debug, PartialEq)]
struct Wait {
    delay: Duration,
    provider: String,
    retry: u64,
    most: Option<u64>,
    why: String,
}

impl Wait {
    fn of(data: Value<'_>) -> Option<Self> {
        let text = |path: &[&str]| data.path(path).and_then(Value::text);
        let delay = data.get("delayMs").and_then(Value::f64)?;
        Some(Self {
            delay: Duration::try_from_secs_f64(delay / 1000.0).ok()?,
            provider: text(&["provider"])?.into_owned(),
            retry: data.get("retry").and_then(Value::u64)?,
            most: data.get("maxRetries").and_then(Value::u64),
            why: format!(
                "{}: {}",
                text(&["failure", "code"])?,
                text(&["failure", "message"])?
            ),
        })
    }

    /// `deepseek-official is asked again in 3 s (2 of 5): RATE_LIMIT: slow down`
    fn line(&self, left: Duration) -> String {
        // Up, so that it says 1 until it is over.
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        let of = self
            .most
            .map(|most| format!(" of {most}"))
            .unwrap_or_default();
        format!(
            "{} is asked again in {seconds} s ({}{of}): {}",
            self.provider, self.retry, self.why
        )
    }
}

/// Writes the line over; an empty one takes it away.
fn show(line: &str) {
    let mut stderr = std::io::stderr();
    let columns =
        rustix::termios::tcgetwinsize(&stderr).map_or(COLUMNS, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { COLUMNS } else { columns };
    // One that is as wide as the terminal would begin another.
    let line: String = report::plain(line).chars().take(columns - 1).collect();
    // Nothing can be said about a stderr that is gone.
    let _ = write!(stderr, "\r{line}\x1b[K").and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use dsh_session::Json;

    use super::*;

    #[test]
    fn a_wait_is_a_line_that_counts_whole_seconds_down_to_one() {
        let failure = r#""failure":{"code":"RATE_LIMIT","message":"slow down"}"#;
        let normal = format!(
            r#"{{"retryId":"r","turn":1,"step":1,"provider":"p","mode":"normal","policyKey":"k","retry":2,"maxRetries":5,"delayMs":2500,{failure}}}"#
        );
        let wait = Wait::of(Json::normalise(&normal).unwrap().value()).unwrap();
        let line = |ms| wait.line(Duration::from_millis(ms));
        assert_eq!(
            line(2500),
            "p is asked again in 3 s (2 of 5): RATE_LIMIT: slow down"
        );
        assert!(
            line(2000).contains("in 2 s")
                && line(1).contains("in 1 s")
                && line(0).contains("in 0 s")
        );
        let always = Wait { most: None, ..wait };
        assert!(always.line(Duration::ZERO).contains("(2):"));
    }

    #[test]
    fn the_line_is_written_when_its_number_changes() {
        let now = Instant::now();
        for (left, after) in [(2500, 500), (2000, 1000), (300, 300), (0, 1000)] {
            let tick = next_tick(now + Duration::from_millis(left), now);
            assert_eq!(tick - now, Duration::from_millis(after), "{left}");
        }
    }
}
