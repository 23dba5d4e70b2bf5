//! Drives one attempt to its `finish`.
//!
//! A stream is an object that does its work while the next chunk is asked for:
//! no task runs behind it, so a reader that waits makes the provider wait, and
//! dropping it closes the connection. The caller gives up through the token of
//! its context, which every wait watches.
//!
//! Which end wins, when several come together (`spec/llm.md` §6.6): a `finish`
//! that is already made; the idle watchdog; the caller; the adapter's own; what
//! the host makes of how the transport ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dsh_http::{Body, HttpError};
use dsh_plugin::CallContext;
use dsh_plugin::api::{Action, EndCause, GenerateRequest, HttpRequest, JsonText, PluginError};
use dsh_session::{Json, Value};
use tokio_util::sync::CancellationToken;

use crate::adapter::Attempt;
use crate::credential::Secret;
use crate::failure::{LlmFailure, code};
use crate::finish::FinishReason;
use crate::models::Entry;
use crate::outgoing::{Gateway, refusal};
use crate::redact::redact;

/// Steps of an attempt that bring no chunk; an adapter that needs more is broken.
const MAX_IDLE_STEPS: u32 = 4096;

/// The chunks of one attempt. The last one is a `finish`, and there is always one.
pub struct LlmStream {
    entry: Arc<Entry>,
    gateway: Arc<Gateway>,
    ctx: CallContext,
    attempt: Option<Box<dyn Attempt>>,
    state: State,
    ready: VecDeque<Json>,
    /// How the newest response ended.
    cause: Option<EndCause>,
    secrets: Vec<Secret>,
    /// A request is out, and its `end` is owed to the adapter.
    exchanging: bool,
    idle_steps: u32,
}

enum State {
    Opening(Box<GenerateRequest>),
    /// The adapter is to say what comes next.
    Asking,
    Sending(Box<HttpRequest>),
    Receiving(Box<Body>),
    /// The `finish` is in `ready` or was handed out.
    Over,
}

impl LlmStream {
    pub(crate) fn new(
        entry: Arc<Entry>,
        gateway: Arc<Gateway>,
        ctx: CallContext,
        request: GenerateRequest,
    ) -> Self {
        Self {
            entry,
            gateway,
            ctx,
            attempt: None,
            state: State::Opening(Box::new(request)),
            ready: VecDeque::new(),
            cause: None,
            secrets: Vec::new(),
            exchanging: false,
            idle_steps: 0,
        }
    }

    /// The next chunk; none after the `finish`. Do not drop the future to give
    /// up, cancel the context's token: a dropped one ends the stream with
    /// whatever the adapter was doing.
    pub async fn next(&mut self) -> Option<Json> {
        loop {
            let over = matches!(self.state, State::Over);
            if !over && self.ctx.cancel.is_cancelled() {
                self.ready.clear();
                self.give_up().await;
                continue;
            }
            if let Some(chunk) = self.ready.pop_front() {
                return Some(chunk);
            }
            if over {
                return None;
            }
            self.idle_steps += 1;
            if self.idle_steps > MAX_IDLE_STEPS {
                let text = "the adapter went on without ever coming to a chunk";
                self.fail(LlmFailure::new(code::LIMIT, text)).await;
            } else if let Err(failure) = self.advance().await {
                self.fail(failure).await;
            }
        }
    }

    /// One step, after which there may be chunks. An error ends the attempt.
    async fn advance(&mut self) -> Result<(), LlmFailure> {
        // What is left here if this future is dropped ends the stream.
        match std::mem::replace(&mut self.state, State::Over) {
            State::Opening(request) => {
                self.attempt = Some(self.entry.adapter.open(&self.ctx, *request).await?);
                self.state = State::Asking;
            }
            State::Asking => match self.ask().await? {
                Action::Send(request) => self.state = State::Sending(Box::new(request)),
                Action::Emit(emission) => {
                    let wait = Duration::from_millis(u64::from(emission.after_ms));
                    self.state = State::Asking;
                    if !wait.is_zero() && !unless(&self.ctx.cancel, tokio::time::sleep(wait)).await
                    {
                        return Ok(());
                    }
                    self.accept(emission.chunks).await?;
                }
                Action::Done => self.finish_by_cause().await,
            },
            State::Sending(request) => self.send(*request).await?,
            State::Receiving(body) => self.receive(body).await?,
            State::Over => {}
        }
        Ok(())
    }

    async fn ask(&mut self) -> Result<Action, LlmFailure> {
        let (ctx, attempt) = self.attempt()?;
        attempt.next(&ctx).await
    }

    async fn send(&mut self, request: HttpRequest) -> Result<(), LlmFailure> {
        let route = &self.entry.route;
        let filled = self
            .gateway
            .outgoing(&route.provider, self.entry.grant.as_ref(), request);
        let outgoing = tokio::select! {
            biased;
            () = self.ctx.cancel.cancelled() => return self.back_to_asking(),
            outgoing = filled => outgoing?,
        };
        self.cause = None;
        if !outgoing.secrets.is_empty() {
            self.secrets = outgoing.secrets;
        }
        self.exchanging = true;
        let sent = self.gateway.client.send(outgoing.request, &outgoing.policy);
        let answer = tokio::select! {
            biased;
            () = self.ctx.cancel.cancelled() => return self.back_to_asking(),
            answer = tokio::time::timeout(route.idle_timeout, sent) => answer,
        };
        match answer {
            Ok(Ok(response)) => {
                if let Some(to) = &response.redirect {
                    return Err(moved(&route.provider, response.status, to));
                }
                if !(100..600).contains(&response.status) {
                    return Err(no_status(&route.provider, response.status));
                }
                let (ctx, attempt) = self.attempt()?;
                attempt
                    .head(&ctx, response.status, response.headers)
                    .await?;
                self.state = State::Receiving(Box::new(response.body));
                Ok(())
            }
            Ok(Err(error @ (HttpError::Denied(_) | HttpError::Invalid(_)))) => {
                Err(refusal(&self.entry.route.provider, &error))
            }
            Ok(Err(error)) => self.end(failed(&error)).await,
            Err(_) => self.end(self.silent()).await,
        }
    }

    async fn receive(&mut self, mut body: Box<Body>) -> Result<(), LlmFailure> {
        let idle = self.entry.route.idle_timeout;
        let piece = tokio::select! {
            biased;
            () = self.ctx.cancel.cancelled() => return self.back_to_asking(),
            piece = tokio::time::timeout(idle, body.next()) => piece,
        };
        match piece {
            Ok(Ok(Some(bytes))) => {
                let (ctx, attempt) = self.attempt()?;
                let chunks = attempt.body(&ctx, &bytes).await?;
                self.state = State::Receiving(body);
                // A provider that goes on sending is not the adapter's fault.
                self.idle_steps = 0;
                self.accept(chunks).await
            }
            Ok(Ok(None)) => self.end(EndCause::Complete).await,
            Ok(Err(error)) => self.end(failed(&error)).await,
            Err(_) => self.end(self.silent()).await,
        }
    }

    /// The caller gave up while the host waited; `next` sees to it.
    fn back_to_asking(&mut self) -> Result<(), LlmFailure> {
        self.state = State::Asking;
        Ok(())
    }

    /// Tells the adapter how its request ended, and takes its last chunks.
    async fn end(&mut self, cause: EndCause) -> Result<(), LlmFailure> {
        self.cause = Some(cause.clone());
        self.exchanging = false;
        let (ctx, attempt) = self.attempt()?;
        let chunks = attempt.end(&ctx, cause).await?;
        self.state = State::Asking;
        self.accept(chunks).await
    }

    /// Puts chunks in line, up to a `finish`.
    async fn accept(&mut self, chunks: Vec<JsonText>) -> Result<(), LlmFailure> {
        for text in chunks {
            let chunk = read_chunk(&text)?;
            self.idle_steps = 0;
            if chunk
                .get("type")
                .and_then(Value::string)
                .is_some_and(|kind| kind.is("finish"))
            {
                let chunk = self.settle(chunk);
                self.conclude(chunk).await;
                break;
            }
            self.ready.push_back(chunk);
        }
        Ok(())
    }

    /// The adapter's `finish`, unless the watchdog or the caller came first.
    fn settle(&self, chunk: Json) -> Json {
        let reason = chunk.get("reason").map(FinishReason::from_value);
        let code = reason
            .as_ref()
            .and_then(FinishReason::failure)
            .map(|failure| &*failure.code);
        match (&self.cause, reason.as_ref()) {
            (Some(EndCause::Failed(error)), _) if error.code == code::TIMEOUT => {
                if code == Some(code::TIMEOUT) {
                    return chunk;
                }
            }
            (Some(EndCause::Aborted), Some(FinishReason::Aborted(_)))
                if code == Some(code::ABORTED) =>
            {
                return chunk;
            }
            (Some(EndCause::Aborted), _) => {}
            (_, Some(_)) => return chunk,
            (_, None) => {
                let text = "the adapter's finish has no reason";
                return FinishReason::Error(LlmFailure::new(code::INVALID_CHUNK, text)).to_chunk();
            }
        }
        reason_of(self.cause.as_ref()).to_chunk()
    }

    /// A provider that quotes the key back does not get it into the log. What a call that
    /// succeeded is finished with is the provider's own and is left as it is.
    fn redacted(&self, finish: Json) -> Json {
        let Some(reason) = finish.get("reason").filter(|_| !self.secrets.is_empty()) else {
            return finish;
        };
        let reason = FinishReason::from_value(reason);
        let Some(failure) = reason.failure() else {
            return finish;
        };
        let clean = self
            .secrets
            .iter()
            .fold(failure.clone(), LlmFailure::without);
        // Beside what a failure is known to have an adapter may have put anything.
        let quotes = |secret| redact(finish.as_str(), secret) != finish.as_str();
        if clean == *failure && !self.secrets.iter().any(quotes) {
            return finish;
        }
        match reason {
            FinishReason::Aborted(_) => FinishReason::Aborted(clean),
            _ => FinishReason::Error(clean),
        }
        .to_chunk()
    }

    /// The caller gave up: the adapter may say its last, in a context that is not cancelled.
    async fn give_up(&mut self) {
        self.ctx.cancel = CancellationToken::new();
        self.state = State::Over;
        if self.exchanging
            && self.end(EndCause::Aborted).await.is_ok()
            && matches!(self.state, State::Over)
        {
            return;
        }
        self.conclude(FinishReason::Aborted(LlmFailure::aborted()).to_chunk())
            .await;
    }

    async fn finish_by_cause(&mut self) {
        let chunk = reason_of(self.cause.as_ref()).to_chunk();
        self.conclude(chunk).await;
    }

    async fn fail(&mut self, failure: LlmFailure) {
        let reason = if self.ctx.cancel.is_cancelled() || failure.code == code::ABORTED {
            FinishReason::Aborted(LlmFailure::aborted())
        } else {
            FinishReason::Error(failure)
        };
        self.conclude(reason.to_chunk()).await;
    }

    /// The one way to the end.
    async fn conclude(&mut self, finish: Json) {
        // What comes behind the end mark is nobody's, and its connection is of use.
        if let State::Receiving(body) = std::mem::replace(&mut self.state, State::Over) {
            body.release();
        }
        self.ready.push_back(self.redacted(finish));
        if let Some(mut attempt) = self.attempt.take() {
            let ctx = CallContext {
                cancel: CancellationToken::new(),
                ..self.ctx.clone()
            };
            attempt.close(&ctx).await;
        }
    }

    fn attempt(&mut self) -> Result<(CallContext, &mut Box<dyn Attempt>), LlmFailure> {
        let ctx = self.ctx.clone();
        let attempt = self.attempt.as_mut();
        attempt.map(|attempt| (ctx, attempt)).ok_or_else(|| {
            LlmFailure::new(
                code::UNKNOWN,
                "the attempt was closed before its stream ended",
            )
        })
    }

    fn silent(&self) -> EndCause {
        let text = format!(
            "the provider {} sent nothing for {} ms",
            self.entry.route.provider,
            self.entry.route.idle_timeout.as_millis()
        );
        EndCause::Failed(PluginError::new(code::TIMEOUT, text))
    }
}

impl Drop for LlmStream {
    /// A reader that stops early leaves an attempt open in a warm instance.
    fn drop(&mut self) {
        let (Some(mut attempt), Ok(runtime)) =
            (self.attempt.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let ctx = CallContext {
            cancel: CancellationToken::new(),
            ..self.ctx.clone()
        };
        runtime.spawn(async move { attempt.close(&ctx).await });
    }
}

impl std::fmt::Debug for LlmStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmStream")
            .field("provider", &self.entry.route.provider)
            .finish_non_exhaustive()
    }
}

/// Waits, unless the caller gives up first; whether it waited to the end.
async fn unless(cancel: &CancellationToken, wait: impl Future<Output = ()>) -> bool {
    tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        () = wait => true,
    }
}

fn read_chunk(text: &str) -> Result<Json, LlmFailure> {
    let invalid = |why: &str| {
        LlmFailure::new(
            code::INVALID_CHUNK,
            format!("the adapter made a chunk that {why}"),
        )
    };
    let chunk = Json::normalise(text).map_err(|error| invalid(&format!("is {error}")))?;
    let kind = chunk.get("type").and_then(Value::string);
    if kind.is_some_and(|kind| !kind.is_empty()) {
        Ok(chunk)
    } else {
        Err(invalid("has no type"))
    }
}

/// A redirect would take conversation and key to where nobody granted them to go.
fn moved(route: &str, status: u16, to: &str) -> LlmFailure {
    let text = format!(
        "the provider {route} answered {status}, a redirect to {to}, which is not followed; if that is its address, write it as its baseURL"
    );
    LlmFailure {
        status: Some(status),
        ..LlmFailure::new(&format!("HTTP_{status}"), text)
    }
}

/// HTTP leaves open what it means, and a failure cannot carry it as its status.
fn no_status(route: &str, status: u16) -> LlmFailure {
    let text = format!(
        "the provider {route} answered with the status {status}, which HTTP does not have; see whether its baseURL leads to a model server"
    );
    LlmFailure::new(&format!("HTTP_{status}"), text)
}

fn failed(error: &HttpError) -> EndCause {
    EndCause::Failed(PluginError::new(error.code(), error.to_string()))
}

/// What the host makes of an end that the adapter did not name.
fn reason_of(cause: Option<&EndCause>) -> FinishReason {
    match cause {
        Some(EndCause::Aborted) => FinishReason::Aborted(LlmFailure::aborted()),
        Some(EndCause::Failed(error)) => {
            let code = match error.code.as_str() {
                "CONNECT" | "TLS" => code::TRANSPORT,
                other => other,
            };
            FinishReason::Error(LlmFailure::new(code, error.message.clone()))
        }
        Some(EndCause::Complete) | None => FinishReason::Error(LlmFailure::new(
            code::STREAM_CLOSED,
            "the response ended before the provider's end mark",
        )),
    }
}
