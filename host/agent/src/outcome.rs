//! What came of a run, folded from the part of the log that is its own
//! (spec/cli.md §4 steps 11 and 12).

use dsh_session::{Event, Json, Kind, Seq, Session, Value};

/// The result of the events from some point on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOutcome {
    /// The text blocks of the last assistant message that says something.
    pub answer: String,
    /// The last `turn/end`'s reason, whole; none if no turn ended.
    pub reason: Option<Json>,
    /// How many turns were opened.
    pub turns: u64,
    /// How many steps were opened.
    pub steps: u64,
}

/// A failed turn's error, as stderr shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// Stable.
    pub code: String,
    /// For people.
    pub message: String,
}

impl RunOutcome {
    /// Folds the events from `first` on that belong to a turn opened there. Only what this process appended counts:
    /// `first` is a seq that it has seen as the next one.
    #[must_use]
    pub fn of(session: &Session, first: Seq) -> Self {
        let mut outcome = Self::default();
        let events = session.live_from(first).iter();
        for event in events.skip_while(|event| event.kind != Kind::TurnStart) {
            outcome.take(event);
        }
        outcome
    }

    /// The reason's kind: `completed`, `error`, …
    #[must_use]
    pub fn kind(&self) -> Option<String> {
        let kind = self.reason.as_ref()?.get("kind").and_then(Value::text)?;
        Some(kind.into_owned())
    }

    /// Whether the run came to its own end.
    #[must_use]
    pub fn completed(&self) -> bool {
        self.kind().as_deref() == Some("completed")
    }

    /// The error of a reason of kind `error`.
    #[must_use]
    pub fn error(&self) -> Option<RunError> {
        let error = self.reason.as_ref()?.get("error")?;
        let text = |key: &str| {
            error
                .get(key)
                .and_then(Value::text)
                .map(std::borrow::Cow::into_owned)
        };
        Some(RunError {
            code: text("code")?,
            message: text("message")?,
        })
    }

    fn take(&mut self, event: &Event) {
        match event.kind {
            Kind::TurnStart => self.turns += 1,
            Kind::StepStart => self.steps += 1,
            Kind::TurnEnd => self.reason = event.data.get("reason").map(Value::to_json),
            Kind::AssistantMessage => {
                let text = event
                    .data
                    .get("message")
                    .map(joined_text)
                    .unwrap_or_default();
                if !text.is_empty() {
                    self.answer = text;
                }
            }
            _ => {}
        }
    }
}

/// The text blocks of a message, joined.
fn joined_text(message: Value<'_>) -> String {
    let blocks = message.get("content").into_iter().flat_map(Value::items);
    let texts = blocks.filter(|block| {
        block
            .get("type")
            .and_then(Value::string)
            .is_some_and(|kind| kind.is("text"))
    });
    texts
        .filter_map(|block| block.get("text").and_then(Value::text))
        .collect()
}
