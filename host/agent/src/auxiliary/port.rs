//! `llm` as components have it: asked, logged and charged.
//!
//! A question of a row's own stands in the log as two events of this host, both
//! ignorable, so that whoever does not know them still opens the log:
//! [`LLM_REQUEST`] before the call and [`LLM_RESPONSE`] after it. The second
//! carries what every row has spent in the session so far, so that a budget
//! holds over a resume without a look at the whole log. Titles and summaries
//! have events of their own in the log's vocabulary, without a count; their
//! tokens are charged too, as long as the process lives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_model::Models;
use dsh_plugin::api::{JsonText, PluginError};
use dsh_plugin::port::{Answer, Llm, Question};
use dsh_session::{Draft, Json, Kind};
use tokio_util::sync::CancellationToken;

use super::call::{Called, Line};
use super::question::Prompt;
use crate::config;
use crate::log::Log;
use crate::message::fresh_id;
use crate::ports::CallIdentity;

/// `{callId, row, purpose, config, prefix?, system?, messages}`: what a row asks.
pub const LLM_REQUEST: &str = "dsh/llm-request";

/// `{callId, row, content?, finish?, failure?, usage?, tokens, spent}`: what came
/// of it; `spent` has the tokens of each row so far.
pub const LLM_RESPONSE: &str = "dsh/llm-response";

/// The port. Cheap to clone; clones count together.
#[derive(Clone)]
pub struct LlmPort {
    line: Line,
    /// Where a session without a request yet is asked.
    route: Arc<(String, String)>,
    spent: Arc<Mutex<BTreeMap<String, u64>>>,
    logged: bool,
}

impl LlmPort {
    /// Over a session's log. `models` are to be its own, not those of the loop;
    /// `provider` and `model` are asked while the session has made no request.
    #[must_use]
    pub fn new(
        log: Arc<Log>,
        models: Arc<Models>,
        identity: Arc<CallIdentity>,
        provider: &str,
        model: &str,
    ) -> Self {
        let spent = log.read(|session| {
            let newest = session.last_of(&Kind::from_name(LLM_RESPONSE))?;
            let spent = newest.data.get("spent")?.entries();
            Some(
                spent
                    .filter_map(|(row, tokens)| Some((row.decode().into_owned(), tokens.u64()?)))
                    .collect(),
            )
        });
        Self {
            line: Line {
                log,
                models,
                identity,
            },
            route: Arc::new((provider.to_owned(), model.to_owned())),
            spent: Arc::new(Mutex::new(spent.unwrap_or_default())),
            logged: true,
        }
    }

    fn spent_by_row(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A question as what will be asked; `source` is whom its messages are
    /// marked with.
    pub(crate) fn prompt(&self, question: Question, source: &str) -> Result<Prompt, PluginError> {
        Prompt::new(question, &self.line.log, &self.route, source)
    }

    /// Asks, charges the row, and logs nothing.
    pub(crate) async fn call(&self, row: &str, prompt: Prompt) -> Result<Answer, PluginError> {
        self.run(row, prompt, |_, _| {}).await
    }

    /// Runs a call in a task of its own, and there, when it is over, hands what
    /// it came to and what each row has spent to `after`: also a call that was
    /// given up has cost something. Dropping the future gives it up.
    async fn run(
        &self,
        row: &str,
        prompt: Prompt,
        after: impl FnOnce(&Called, &BTreeMap<String, u64>) + Send + 'static,
    ) -> Result<Answer, PluginError> {
        let cancel = CancellationToken::new();
        let _given_up = cancel.clone().drop_guard();
        let (port, row) = (self.clone(), row.to_owned());
        let task = tokio::spawn(async move {
            let called = port.line.call(&prompt, &cancel).await;
            let mut spent = port.spent_by_row();
            let own = spent.entry(row).or_default();
            *own = own.saturating_add(called.tokens);
            after(&called, &spent);
            called.result
        });
        let message = "the call crashed inside of the host; this is a defect of dsh";
        let crashed = |_| Err(PluginError::new("UNKNOWN", message));
        task.await.unwrap_or_else(crashed)
    }

    fn record(&self, kind: &str, data: Json) -> Result<(), PluginError> {
        let draft = Draft::new(Kind::from_name(kind), data).ignorable(true);
        let appended = self.line.log.append(draft);
        appended
            .map(drop)
            .map_err(|error| PluginError::new(error.code(), error.to_string()))
    }
}

#[async_trait]
impl Llm for LlmPort {
    async fn ask(&self, row: &str, question: Question) -> Result<Answer, PluginError> {
        let prefix = question.prefix;
        let prompt = self.prompt(question, row)?;
        if !self.logged {
            return self.call(row, prompt).await;
        }
        let id = fresh_id();
        self.record(LLM_REQUEST, request(&id, row, &prompt, prefix))?;
        let (port, by) = (self.clone(), row.to_owned());
        let log = move |called: &Called, spent: &BTreeMap<String, u64>| {
            // A log that takes no event any more has said so itself.
            let _ = port.record(LLM_RESPONSE, response(&id, &by, called, spent));
        };
        self.run(row, prompt, log).await
    }

    fn spent(&self, row: &str) -> u64 {
        self.spent_by_row().get(row).copied().unwrap_or(0)
    }

    fn unlogged(&self) -> Option<Arc<dyn Llm>> {
        Some(Arc::new(Self {
            logged: false,
            ..self.clone()
        }))
    }
}

fn request(id: &str, row: &str, prompt: &Prompt, prefix: Option<(u32, u32)>) -> Json {
    Json::object(|data| {
        data.str("callId", id)
            .str("row", row)
            .str("purpose", &prompt.purpose);
        data.json("config", &config::write(&prompt.config));
        match prefix {
            Some((first, last)) => {
                data.array("prefix", |nodes| {
                    nodes.u64(u64::from(first)).u64(u64::from(last));
                });
            }
            // With a prefix it is the header's.
            None => {
                data.opt_str("system", prompt.system.as_deref());
            }
        }
        data.array("messages", |list| {
            for message in &prompt.messages {
                list.json(message);
            }
        });
    })
}

fn response(id: &str, row: &str, called: &Called, spent: &BTreeMap<String, u64>) -> Json {
    let json = |text: &JsonText| Json::normalise(text).unwrap_or_else(|_| Json::null());
    Json::object(|data| {
        data.str("callId", id).str("row", row);
        match &called.result {
            Ok(answer) => {
                data.array("content", |blocks| {
                    for block in &answer.content {
                        blocks.json(&json(block));
                    }
                });
                data.json("finish", &json(&answer.finish));
            }
            Err(error) => {
                data.object("failure", |failure| {
                    failure
                        .str("code", &error.code)
                        .str("message", &error.message);
                    let details = error.details.as_ref().map(json);
                    let facts = details.iter().flat_map(|facts| facts.value().entries());
                    for (key, value) in facts {
                        failure.value(&key.decode(), value);
                    }
                });
            }
        }
        data.opt_json("usage", called.usage.as_ref());
        data.u64("tokens", called.tokens);
        data.object("spent", |rows| {
            for (row, tokens) in spent {
                rows.u64(row, *tokens);
            }
        });
    })
}
