//! Which title a session has and which is due. `spec/session.md` §10.4 "Rules".
//!
//! Decisions only: the caller appends the drafts, after the event that made them due and not inside its append, and
//! asks again when the log has grown. A person's title pins the session: nothing automatic replaces it until somebody
//! asks for a [`Titles::refresh`].

use std::sync::Arc;

use super::{Limits, eligible_prompt, fallback, normalise};
use crate::{Draft, Error, Event, Json, Kind, Seq, Value};

/// The titles of one log, as a fold.
#[derive(Clone, Debug, Default)]
pub struct Titles {
    limits: Limits,
    current: Option<Current>,
    prompts: Vec<Prompt>,
    /// How often a person has named the session.
    renames: u64,
}

#[derive(Clone, Debug)]
struct Current {
    data: Json,
    seq: Seq,
    time: i64,
}

/// A message that may give a title.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Its event.
    pub seq: Seq,
    /// Its text blocks, joined by line feeds.
    pub text: Arc<str>,
}

/// For which prompts a provider is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generation {
    /// The first one of a session that is no fork and has no title.
    FirstPrompt,
    /// Every one.
    AllPrompts,
}

/// What a provider is asked to name. It stays good until a person names the session.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The prompts, in order.
    pub prompts: Vec<Prompt>,
    renames: u64,
}

/// What a provider came up with.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    /// The title; any value, since providers answer anything.
    pub title: Value<'a>,
    /// The events that it is made of.
    pub message_seqs: &'a [Seq],
    /// Who proposes.
    pub provider: &'a str,
    /// The model that was asked, if one was: its provider and its name.
    pub model: Option<(&'a str, &'a str)>,
}

impl Titles {
    /// Nothing folded yet, and titles of these lengths.
    pub fn with_limits(limits: Limits) -> Titles {
        Titles {
            limits,
            ..Titles::default()
        }
    }

    /// Folds one event.
    pub fn fold(&mut self, event: &Event) {
        match event.kind {
            Kind::SessionTitle => {
                let current = Current {
                    data: event.data.clone(),
                    seq: event.seq,
                    time: event.time,
                };
                self.renames += u64::from(current.is_by("user"));
                self.current = Some(current);
            }
            Kind::UserMessage => {
                if let Some(text) = eligible_prompt(event) {
                    let seq = event.seq;
                    self.prompts.push(Prompt {
                        seq,
                        text: text.into(),
                    });
                }
            }
            _ => {}
        }
    }

    /// The title; lone surrogates come out as U+FFFD.
    pub fn title(&self) -> Option<Arc<str>> {
        let title = self.current.as_ref()?.data.get("title")?;
        title.text().map(Arc::from)
    }

    /// `{title, messageSeqs, source, eventSeq, updatedAt}`, or null.
    pub fn snapshot(&self) -> Json {
        let Some(current) = &self.current else {
            return Json::null();
        };
        Json::object(|o| {
            for key in ["title", "messageSeqs", "source"] {
                if let Some(value) = current.data.get(key) {
                    o.value(key, value);
                }
            }
            o.u64("eventSeq", current.seq.0)
                .i64("updatedAt", current.time);
        })
    }

    /// The messages that may give a title, in order.
    pub fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// Whether a person named the session and nobody asked for another title since.
    pub fn is_pinned(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.is_by("user"))
    }

    /// The title to append because there is a prompt and no title yet.
    pub fn fallback_due(&self) -> Option<Draft> {
        match self.current {
            None => self.refresh(),
            Some(_) => None,
        }
    }

    /// The title to append when somebody asks for an automatic one again, pinned or not.
    pub fn refresh(&self) -> Option<Draft> {
        let first = self.prompts.first()?;
        let title = fallback(
            &first.text,
            self.limits.fallback_words,
            self.limits.fallback_bytes,
        );
        Some(draft(&title, &[first.seq], |o| {
            o.str("kind", "fallback");
        }))
    }

    /// What a provider is to be asked because of the prompt at `seq`, which is the newest one; `is_fork` when the
    /// session has a parent. Asking waits until the route of requests is known.
    pub fn generation_due(&self, when: Generation, seq: Seq, is_fork: bool) -> Option<Request> {
        if self.is_pinned() || self.prompts.last()?.seq != seq {
            return None;
        }
        // The fallback that the same prompt brought is no title to keep.
        let named = self
            .current
            .as_ref()
            .is_some_and(|current| current.seq < seq);
        let due = match when {
            Generation::FirstPrompt => !is_fork && !named && self.prompts.len() == 1,
            Generation::AllPrompts => true,
        };
        due.then(|| self.request())
    }

    /// What a provider is to be asked when somebody wants another title.
    pub fn request(&self) -> Request {
        Request {
            prompts: self.prompts.clone(),
            renames: self.renames,
        }
    }

    /// The title to append for a proposal; `None` when a person named the session since it was asked for.
    ///
    /// # Errors
    /// [`Error::Title`] when it is no text, has nothing visible, or does not say which of the request's messages it is
    /// made of, each once and in order.
    pub fn accept(
        &self,
        request: &Request,
        proposal: Proposal<'_>,
    ) -> Result<Option<Draft>, Error> {
        if self.renames != request.renames {
            return Ok(None);
        }
        let what = "a provider's title must be text";
        let title = proposal.title.text().ok_or(Error::Title { what })?;
        let title = visible(&title, self.limits.max_bytes)?;
        let seqs = proposal.message_seqs;
        let asked = |seq: &Seq| request.prompts.iter().any(|prompt| prompt.seq == *seq);
        if seqs.is_empty() || !seqs.is_sorted_by(|a, b| a < b) || !seqs.iter().all(asked) {
            let what = "a provider's messageSeqs must be unique, ordered seqs from the request";
            return Err(Error::Title { what });
        }
        Ok(Some(draft(&title, seqs, |o| {
            o.str("kind", "provider").str("provider", proposal.provider);
            if let Some((provider, model)) = proposal.model {
                o.object("model", |o| {
                    o.str("provider", provider).str("model", model);
                });
            }
        })))
    }
}

impl Current {
    fn is_by(&self, kind: &str) -> bool {
        let source = self.data.value().path(&["source", "kind"]);
        source.is_some_and(|source| source.is(kind))
    }
}

/// The title to append when a person names the session, of at most `max_bytes`.
///
/// # Errors
/// [`Error::Title`] when nothing visible is left of it.
pub fn rename(text: &str, max_bytes: usize) -> Result<Draft, Error> {
    let title = visible(text, max_bytes)?;
    Ok(draft(&title, &[], |o| {
        o.str("kind", "user");
    }))
}

/// A text as a title has it.
fn visible(text: &str, max_bytes: usize) -> Result<String, Error> {
    let title = normalise(text, max_bytes);
    let what = "it must contain visible characters";
    if title.is_empty() {
        return Err(Error::Title { what });
    }
    Ok(title)
}

fn draft(title: &str, seqs: &[Seq], source: impl FnOnce(&mut crate::ObjectWriter<'_>)) -> Draft {
    let data = Json::object(|o| {
        o.str("title", title);
        o.array("messageSeqs", |a| {
            for seq in seqs {
                a.u64(seq.0);
            }
        });
        o.object("source", source);
    });
    Draft::new(Kind::SessionTitle, data)
}
