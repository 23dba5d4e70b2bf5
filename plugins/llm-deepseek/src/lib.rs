//! The DeepSeek adapter: neutral requests into chat completions, their streams
//! into chunks (spec/llm.md §6). Pure: it asks for the request to be sent and
//! reads the bytes that come back; the host owns sockets, time and the key.
//!
//! One attempt is one request. Where a stream breaks off the adapter adds nothing
//! unless it knows more than the host, which makes the failure from the cause.

mod failure;
mod images;
mod offload;
mod request;
mod settings;
mod stream;

use std::cell::RefCell;

use adapter_support::failure::{Failure, finish_error};
use adapter_support::opening::Opening;
use adapter_support::sse;
use guest_support::types::{CallConfig, GenerateRequest, HttpRequest};
use guest_support::{Error, Slots, config, error, hook_panics};

use settings::Settings;

use adapter_support::bindings::exports::dsh::plugin::llm_adapter::{
    Action, EndCause, Guest, Prepared,
};

// A native linker takes no such names as a component's exports have.
#[cfg(target_family = "wasm")]
adapter_support::bindings::export_adapter!(Component with_types_in adapter_support::bindings);

/// Bytes kept of an error's body; what a failure needs is at its start.
const ERROR_BODY: usize = 256 * 1024;

/// The adapter.
pub struct Component;

/// What lives as long as the instance.
#[derive(Default)]
struct State {
    settings: Option<Settings>,
    attempts: Slots<Attempt>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// One request and what came back for it.
struct Attempt {
    /// Taken when it is sent.
    request: Option<HttpRequest>,
    status: u16,
    headers: Vec<(String, String)>,
    error_body: Vec<u8>,
    /// A byte of the body arrived.
    begun: bool,
    opening: Opening,
    events: sse::Events,
    translator: stream::Translator,
}

impl Attempt {
    fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn body(&mut self, data: &[u8]) -> Vec<String> {
        let mut out = Vec::new();
        self.begun |= !data.is_empty();
        if !self.is_ok() {
            let room = ERROR_BODY - self.error_body.len();
            self.error_body
                .extend_from_slice(&data[..data.len().min(room)]);
        } else if !self.translator.is_over() && self.opening.push(data) {
            let (translator, opening) = (&mut self.translator, &mut self.opening);
            self.events.push(data, |event| {
                opening.is_stream();
                translator.push(event.data, &mut out)
            });
            if self.events.is_too_long() && !self.translator.is_over() {
                let message = format!(
                    "DeepSeek sent an event of more than {} bytes",
                    sse::MAX_EVENT
                );
                let failure = Failure::new("MALFORMED_RESPONSE", message);
                self.translator.fail(&failure, &mut out);
            }
        }
        out
    }

    fn end(&mut self, cause: &EndCause) -> Vec<String> {
        let mut out = Vec::new();
        if self.translator.is_over() || matches!(cause, EndCause::Aborted) || self.status == 0 {
            return out;
        }
        if !self.is_ok() {
            // Known by its status, however its body ended.
            out.push(finish_error(&failure::of_response(
                self.status,
                &self.headers,
                &self.error_body,
            )));
        } else if let Some(failure) = self.opening.failure("DeepSeek") {
            // That it was no stream is known whatever its end.
            self.translator.fail(&failure, &mut out);
        } else if matches!(cause, EndCause::Complete) {
            let failure = if self.begun {
                let message = "the stream ended before its last event ([DONE])";
                Failure::new("STREAM_CLOSED", message)
            } else {
                let message = format!(
                    "DeepSeek answered with the HTTP status {} and no body",
                    self.status
                );
                Failure::new("EMPTY_RESPONSE", message)
            };
            self.translator.fail(&failure, &mut out);
        }
        out
    }
}

/// Runs `work` on the settings, read from the configuration at first.
fn with_settings<T>(
    work: impl FnOnce(&Settings, &mut Slots<Attempt>) -> Result<T, Error>,
) -> Result<T, Error> {
    hook_panics();
    STATE.with_borrow_mut(|state| {
        let settings = match &mut state.settings {
            Some(settings) => settings,
            none => {
                none.insert(Settings::read(&config::get()).map_err(|why| error("INVALID", why))?)
            }
        };
        work(settings, &mut state.attempts)
    })
}

/// Configures this thread's instance anew, for whoever drives the adapter without a host.
///
/// # Errors
/// What is wrong with the configuration, in words.
#[cfg(not(target_family = "wasm"))]
pub fn configure(config: &str) -> Result<(), String> {
    let settings = Some(Settings::read(config)?);
    STATE.set(State {
        settings,
        attempts: Slots::default(),
    });
    Ok(())
}

fn with_attempt<T>(attempt: u32, work: impl FnOnce(&mut Attempt) -> T) -> Option<T> {
    STATE.with_borrow_mut(|state| state.attempts.get_mut(attempt).map(work))
}

impl Guest for Component {
    fn list_routes() -> Result<Vec<String>, Error> {
        with_settings(|settings, _| Ok(vec![settings.route()]))
    }

    fn prepare(mut config: CallConfig) -> Result<Prepared, Error> {
        with_settings(|settings, _| {
            let model = settings.model_info(&config.model);
            let defaulted = settings.complete(&mut config)?;
            Ok(Prepared {
                config,
                defaulted,
                model,
            })
        })
    }

    fn open(request: GenerateRequest) -> Result<u32, Error> {
        with_settings(|settings, attempts| {
            let pictures = &mut adapter_support::component::HostPictures;
            Ok(attempts.insert(Attempt {
                request: Some(request::build(settings, &request, pictures)?),
                status: 0,
                headers: Vec::new(),
                error_body: Vec::new(),
                begun: false,
                opening: Opening::default(),
                events: sse::Events::default(),
                translator: stream::Translator::default(),
            }))
        })
    }

    fn next(attempt: u32) -> Result<Action, Error> {
        let request = with_attempt(attempt, |attempt| attempt.request.take());
        let request =
            request.ok_or_else(|| error("INVALID", format!("no attempt {attempt} is open")))?;
        Ok(request.map_or(Action::Done, Action::Send))
    }

    fn head(attempt: u32, status: u16, headers: Vec<(String, String)>) {
        with_attempt(attempt, |attempt| {
            attempt.status = status;
            attempt.headers = headers;
        });
    }

    fn body(attempt: u32, data: Vec<u8>) -> Vec<String> {
        with_attempt(attempt, |attempt| attempt.body(&data)).unwrap_or_default()
    }

    fn end(attempt: u32, cause: EndCause) -> Vec<String> {
        with_attempt(attempt, |attempt| attempt.end(&cause)).unwrap_or_default()
    }

    fn close(attempt: u32) {
        STATE.with_borrow_mut(|state| state.attempts.remove(attempt));
    }
}

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod tests;
