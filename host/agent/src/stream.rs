//! Who makes an attempt's answer: the route's adapter, or a listener of
//! `llm/stream` that serves it in its place. Listeners see all that the model
//! would, and change none of it; what they serve is logged and read as any
//! provider's chunks are.

use dsh_model::{FinishReason, LlmFailure, PreparedCall, Request};
use dsh_session::{Json, Value};

use crate::dispatch::{DispatchError, Entered};
use crate::request::Built;
use crate::step::{Attempt, Step};
use crate::turn::Stop;

/// What a veto without a code fails with.
const REFUSED: &str = "REQUEST_REFUSED";

impl Step<'_> {
    /// Runs an attempt to its end, whoever serves it.
    pub(crate) async fn serve(&self, built: Built, attempt: &mut Attempt) -> Result<(), Stop> {
        let dispatch = &self.agent.dispatch;
        let provider = attempt.provider.clone();
        if !dispatch.listens("llm/stream", Some(&provider)) {
            return self.stream(built.call, &built.request, attempt).await;
        }
        let payload = self.payload(&built);
        let Built { call, request, .. } = built;
        let context = self.context();
        let core = |entered| async {
            match entered {
                Entered::Open(_) => self.stream(call, &request, attempt).await?,
                Entered::Settled(result) => self.settled(&result, attempt)?,
            }
            // What a retry is decided by, as the log has it.
            let finish = attempt.assembler.finish().to_chunk();
            Ok(Json::object(|outcome| {
                outcome.str("kind", "end");
                if let Some(reason) = finish.get("reason") {
                    outcome.value("finish", reason);
                }
            }))
        };
        let served =
            dispatch.waterfall_around("llm/stream", Some(&provider), payload, &context, core);
        match served.await {
            Ok(_) => Ok(()),
            Err(DispatchError::Core(stop)) => Err(stop),
            Err(_) if self.signal.aborted() => Err(Stop::Aborted),
            Err(DispatchError::Listener {
                listener, error, ..
            }) => {
                let message = format!("{listener} failed at llm/stream: {error}");
                Err(Stop::Failed(LlmFailure::new("LISTENER_FAILED", message)))
            }
        }
    }

    fn payload(&self, built: &Built) -> Json {
        let header = built.header().json();
        Json::object(|payload| {
            payload.u64("turn", self.turn).u64("step", self.step);
            for member in ["config", "system", "tools"] {
                if let Some(value) = header.get(member) {
                    payload.value(member, value);
                }
            }
            payload.json("messages", &built.messages().to_json());
        })
    }

    /// The adapter's way.
    async fn stream(
        &self,
        call: Result<PreparedCall, LlmFailure>,
        request: &Request,
        attempt: &mut Attempt,
    ) -> Result<(), Stop> {
        let call = match call {
            Ok(call) => call,
            Err(failure) => {
                return self.take_chunk(attempt, &FinishReason::Error(failure).to_chunk());
            }
        };
        let context = self.agent.adapter_context(&attempt.provider, self.signal);
        let mut stream = call.stream(context, request);
        let mut title = self.agent.titles.begin();
        // The stream ends itself when the turn is given up: its context carries the token.
        while let Some(chunk) = stream.next().await {
            if let Some(title) = title.take() {
                self.unless_aborted(title.logged()).await.ok();
            }
            self.take_chunk(attempt, &chunk)?;
        }
        self.check()
    }

    /// A listener's way: a refusal, or an answer of its own.
    fn settled(&self, result: &Json, attempt: &mut Attempt) -> Result<(), Stop> {
        let failed = |failure: LlmFailure| FinishReason::Error(failure).to_chunk();
        if let Some(failure) = result.get("failure") {
            let text = |key: &str| failure.get(key).and_then(Value::text);
            let code = text("code").unwrap_or(REFUSED.into());
            let message = text("message").unwrap_or_default();
            return self.take_chunk(attempt, &failed(LlmFailure::new(&code, &*message)));
        }
        let mut finished = false;
        for chunk in result.get("chunks").into_iter().flat_map(Value::items) {
            self.take_chunk(attempt, &chunk.to_json())?;
            finished = chunk.get("type").and_then(Value::text).as_deref() == Some("finish");
            if finished {
                break;
            }
        }
        if finished {
            return Ok(());
        }
        let message = "a listener of llm/stream served an answer without a finish at its end";
        self.take_chunk(
            attempt,
            &failed(LlmFailure::new("LISTENER_FAILED", message)),
        )
    }
}
