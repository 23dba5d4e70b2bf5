//! The component around a [`Protocol`]: profiles from the row's configuration,
//! attempts by their handles, and the exports of the contract. One attempt is one
//! request; an answer other than 2xx is a failure with the protocol's text, and
//! what a body means that is no event stream at all is told here once.
//!
//! Where a stream breaks off, nothing is added to it: the host makes the failure,
//! as it knows the cause.

use std::borrow::Cow;
use std::cell::RefCell;

use guest_support::json::{Json, Object};
use guest_support::types::{CallConfig, GenerateRequest, HttpRequest};
use guest_support::{Error, Slots, error};

use crate::bindings::exports::dsh::plugin::llm_adapter::{Action, EndCause, Prepared};
use crate::bound::bound_pictures;
use crate::emit::{Emitter, Target};
use crate::failure::{Failure, MAX_MESSAGE};
use crate::opening::{self, Opening};
use crate::profile::{Catalogue, Model, Profile, Speaks};
use crate::{Call, Pictures, Protocol, cap, classify, history, sse};

/// Bytes kept of an error's body; what a failure needs is at its start.
const ERROR_BODY: usize = 256 * 1024;

/// An instance: the providers that it serves and the attempts under way.
pub struct Adapter<P> {
    providers: Vec<Provider>,
    attempts: Slots<Attempt<P>>,
}

/// A provider of the configuration, or why it cannot be called.
struct Provider {
    id: String,
    profile: Result<Profile, String>,
}

struct Attempt<P> {
    /// Taken when it is sent.
    request: Option<HttpRequest>,
    provider: String,
    status: u16,
    headers: Vec<(String, String)>,
    error_body: Vec<u8>,
    opening: Opening,
    events: sse::Events,
    protocol: P,
    out: Emitter,
}

impl<P: Protocol> Adapter<P> {
    /// The providers of `config`, `{providers: {ROUTE: PROFILE}}`.
    pub fn new(config: &str) -> Result<Self, Error> {
        let invalid = |why: &str| error("INVALID", why);
        let config = Json::parse(config).ok_or_else(|| invalid("the configuration is not JSON"))?;
        let providers = config.some("providers");
        if providers.is_some_and(|providers| !providers.is_object()) {
            return Err(invalid(
                "providers must be an object, {ROUTE: {...}}, and no list",
            ));
        }
        let speaks = Speaks {
            api: P::API,
            switches: P::SWITCHES,
            catalogue: Catalogue::new(P::CATALOGUE),
        };
        let providers = providers.into_iter().flat_map(Json::members);
        Ok(Self {
            providers: providers
                .map(|(id, json)| {
                    let id = guest_support::json::unescape(id).into_owned();
                    let profile = Profile::read(&id, json, &speaks);
                    Provider { id, profile }
                })
                .collect(),
            attempts: Slots::default(),
        })
    }

    /// As the contract's.
    pub fn list_routes(&self) -> Vec<String> {
        let route = |provider: &Provider| match &provider.profile {
            Ok(profile) => profile.route(P::API),
            Err(problem) => Object::new()
                .string("provider", &provider.id)
                .string("name", &provider.id)
                .string("api", P::API)
                .string("problem", &format!("providers.{}.{problem}", provider.id))
                .build(),
        };
        self.providers.iter().map(route).collect()
    }

    /// As the contract's.
    pub fn prepare(&self, mut config: CallConfig) -> Result<Prepared, Error> {
        let (profile, model) = self.target(&config)?;
        let mut defaulted = Vec::new();
        let effort = profile.effort(model, config.reasoning_effort.as_deref())?;
        if config.reasoning_effort.is_none()
            && let Some(effort) = effort
        {
            config.reasoning_effort = Some(effort.to_owned());
            defaulted.push("reasoningEffort".to_owned());
        }
        if config.max_tokens.is_none()
            && let Some(cap) = model.default_max_tokens
        {
            config.max_tokens = Some(cap);
            defaulted.push("maxTokens".to_owned());
        }
        Ok(Prepared {
            model: model.info(profile),
            config,
            defaulted,
        })
    }

    /// As the contract's.
    pub fn open(
        &mut self,
        request: &GenerateRequest,
        pictures: &mut dyn Pictures,
    ) -> Result<u32, Error> {
        let (profile, model) = self.target(&request.config)?;
        let effort = profile
            .effort(model, request.config.reasoning_effort.as_deref())?
            .filter(|effort| *effort != "off");
        let mut history = history::build(
            &request.messages,
            &history::Target {
                api: P::API,
                provider: &profile.provider,
                model: &model.id,
                vision: model.vision,
                call_id: &|id| P::call_id(model, profile, id),
                warn: &warn,
            },
        )?;
        bound_pictures(&mut history, &profile.pictures, pictures)?;
        let room = cap::room(model, cap::estimate(request, &history));
        let call = Call {
            request,
            effort,
            cap: request
                .config
                .max_tokens
                .unwrap_or(model.max_tokens)
                .min(room),
            room,
        };
        let mut http = P::request(profile, model, &call, &history, pictures)?;
        add_headers(&mut http.headers, &profile.headers);
        http.timeout_ms = http.timeout_ms.or(profile.timeout_ms);
        let mut protocol = P::default();
        protocol.begin(profile, model, &history);
        let out = Emitter::new(Target {
            api: P::API,
            provider: profile.provider.clone(),
            model: model.id.clone(),
            context_window: model.context_window,
        });
        let provider = profile.name.clone();
        Ok(self.attempts.insert(Attempt {
            request: Some(http),
            provider,
            status: 0,
            headers: Vec::new(),
            error_body: Vec::new(),
            opening: Opening::default(),
            events: sse::Events::default(),
            protocol,
            out,
        }))
    }

    fn target(&self, config: &CallConfig) -> Result<(&Profile, &Model), Error> {
        let id = &config.provider;
        let provider = self.providers.iter().find(|provider| provider.id == *id);
        let profile = match provider.map(|provider| &provider.profile) {
            Some(Ok(profile)) => profile,
            Some(Err(problem)) => {
                let message = format!("{id} cannot be called: providers.{id}.{problem}");
                return Err(error("INVALID_CONFIG", message));
            }
            None => return Err(error("NO_ADAPTER", format!("{id} is not configured here"))),
        };
        if config.stop.is_some() {
            let message = format!("{id} takes no stop sequences: leave `stop` out");
            return Err(error("UNSUPPORTED_OPTION", message));
        }
        Ok((profile, profile.model(&config.model)?))
    }

    /// As the contract's.
    pub fn next(&mut self, attempt: u32) -> Result<Action, Error> {
        let found = self.attempts.get_mut(attempt);
        let found =
            found.ok_or_else(|| error("INVALID", format!("no attempt {attempt} is open")))?;
        Ok(found.request.take().map_or(Action::Done, Action::Send))
    }

    /// As the contract's.
    pub fn head(&mut self, attempt: u32, status: u16, headers: Vec<(String, String)>) {
        if let Some(attempt) = self.attempts.get_mut(attempt) {
            attempt.status = status;
            attempt.headers = headers;
        }
    }

    /// As the contract's.
    pub fn body(&mut self, attempt: u32, data: &[u8]) -> Vec<String> {
        let attempt = self.attempts.get_mut(attempt);
        attempt.map_or_else(Vec::new, |attempt| attempt.body(data))
    }

    /// As the contract's.
    pub fn end(&mut self, attempt: u32, cause: &EndCause) -> Vec<String> {
        let attempt = self.attempts.get_mut(attempt);
        attempt.map_or_else(Vec::new, |attempt| attempt.end(cause))
    }

    /// As the contract's.
    pub fn close(&mut self, attempt: u32) {
        self.attempts.remove(attempt);
    }
}

impl<P: Protocol> Attempt<P> {
    fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn body(&mut self, data: &[u8]) -> Vec<String> {
        if !self.is_ok() {
            let room = ERROR_BODY - self.error_body.len();
            self.error_body
                .extend_from_slice(&data[..data.len().min(room)]);
        } else if !self.out.is_over() && self.opening.push(data) {
            self.stream(data);
        }
        self.out.take()
    }

    fn stream(&mut self, data: &[u8]) {
        let (protocol, out) = (&mut self.protocol, &mut self.out);
        let opening = &mut self.opening;
        self.events.push(data, |event| {
            opening.is_stream();
            let goes_on = protocol.event(event, out);
            if !goes_on && !out.is_over() {
                protocol.end(out);
            }
            goes_on && !out.is_over()
        });
        if self.events.is_too_long() && !self.out.is_over() {
            let message = format!(
                "{} sent an event of more than {} bytes",
                self.provider,
                sse::MAX_EVENT
            );
            self.out
                .fail_as(&Failure::new("MALFORMED_RESPONSE", message));
        }
    }

    fn end(&mut self, cause: &EndCause) -> Vec<String> {
        if self.out.is_over() || matches!(cause, EndCause::Aborted) || self.status == 0 {
            return Vec::new();
        }
        if !self.is_ok() {
            // Known by its status, however its body ended.
            let body = String::from_utf8_lossy(&self.error_body);
            // Of a proxy's page people need the first words, not the whole.
            let body = match body.trim_start().starts_with('<') {
                true => Cow::Owned(format!("a page of HTML: {}", opening::shown(&body))),
                false => body,
            };
            let text = P::error_text(self.status, &body);
            let text = guest_support::words::start(&text, MAX_MESSAGE);
            let failure = Failure::new(classify::of_text(text), text);
            self.out
                .fail_as(&failure.of_response(self.status, &self.headers));
        } else if let Some(failure) = self.opening.failure(&self.provider) {
            // That it was no stream is known whatever its end.
            self.out.fail_as(&failure);
        } else if matches!(cause, EndCause::Complete) {
            if P::FLUSHES {
                let (protocol, out) = (&mut self.protocol, &mut self.out);
                self.events.flush(|event| {
                    protocol.event(event, out);
                    false
                });
            }
            if !self.out.is_over() {
                self.protocol.end(&mut self.out);
            }
        }
        self.out.take()
    }
}

/// The profile's headers, over those of the protocol but not over `user-agent`;
/// an empty value takes the protocol's away.
fn add_headers(headers: &mut Vec<(String, String)>, own: &[(String, String)]) {
    for (name, value) in own {
        if name.eq_ignore_ascii_case("user-agent") {
            continue;
        }
        headers.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            headers.push((name.to_ascii_lowercase(), value.clone()));
        }
    }
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("user-agent"));
    headers.push(("user-agent".to_owned(), "{user-agent}".to_owned()));
}

/// Runs `work` on the instance, which is made of the row's configuration at first.
pub fn with<P: Protocol, T>(
    state: &'static std::thread::LocalKey<RefCell<Option<Adapter<P>>>>,
    work: impl FnOnce(&mut Adapter<P>) -> T,
) -> Result<T, Error> {
    guest_support::hook_panics();
    state.with_borrow_mut(|state| {
        let adapter = match state {
            Some(adapter) => adapter,
            none => none.insert(Adapter::new(&guest_support::config::get())?),
        };
        Ok(work(adapter))
    })
}

/// A line for the host's log.
fn warn(why: &str) {
    #[cfg(target_family = "wasm")]
    guest_support::log::write(guest_support::log::Level::Warn, why);
    // Natively there is no host: tests look here.
    #[cfg(not(target_family = "wasm"))]
    WARNINGS.with_borrow_mut(|warnings| warnings.push(why.to_owned()));
}

#[cfg(not(target_family = "wasm"))]
thread_local! {
    pub(crate) static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Refuses every picture.
#[derive(Debug, Default)]
pub struct NoPictures;

impl Pictures for NoPictures {
    fn render(&mut self, _: &str, _: Option<u32>, _: Option<u32>) -> Result<crate::Picture, Error> {
        let message =
            "this adapter sends no pictures: take a model of another provider, or leave them out";
        Err(error("UNSUPPORTED_CONTENT", message))
    }
}

/// Renders by the host.
#[derive(Debug, Default)]
pub struct HostPictures;

impl Pictures for HostPictures {
    fn render(
        &mut self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<crate::Picture, Error> {
        crate::bindings::dsh::plugin::pictures::render(attachment, max_pixels, max_bytes)
    }
}

/// Makes the crate the component of a protocol: `adapter_support::component!(Completions);`.
#[macro_export]
macro_rules! component {
    ($protocol:ty) => {
        /// The component.
        pub struct Component;

        const _: () = {
            use $crate::bindings::exports::dsh::plugin::llm_adapter as contract;
            use $crate::component::{Adapter, HostPictures, with};

            ::std::thread_local! {
                static STATE: ::std::cell::RefCell<Option<Adapter<$protocol>>> =
                    const { ::std::cell::RefCell::new(None) };
            }

            impl contract::Guest for Component {
                fn list_routes() -> Result<Vec<String>, $crate::Error> {
                    with(&STATE, |adapter| adapter.list_routes())
                }

                fn prepare(
                    config: $crate::CallConfig,
                ) -> Result<contract::Prepared, $crate::Error> {
                    with(&STATE, |adapter| adapter.prepare(config))?
                }

                fn open(request: $crate::GenerateRequest) -> Result<u32, $crate::Error> {
                    with(&STATE, |adapter| adapter.open(&request, &mut HostPictures))?
                }

                fn next(attempt: u32) -> Result<contract::Action, $crate::Error> {
                    with(&STATE, |adapter| adapter.next(attempt))?
                }

                fn head(attempt: u32, status: u16, headers: Vec<(String, String)>) {
                    let _ = with(&STATE, |adapter| adapter.head(attempt, status, headers));
                }

                fn body(attempt: u32, data: Vec<u8>) -> Vec<String> {
                    with(&STATE, |adapter| adapter.body(attempt, &data)).unwrap_or_default()
                }

                fn end(attempt: u32, cause: contract::EndCause) -> Vec<String> {
                    with(&STATE, |adapter| adapter.end(attempt, &cause)).unwrap_or_default()
                }

                fn close(attempt: u32) {
                    let _ = with(&STATE, |adapter| adapter.close(attempt));
                }
            }
        };

        // A native linker takes no such names as a component's exports have.
        #[cfg(target_family = "wasm")]
        $crate::bindings::export_adapter!(Component with_types_in $crate::bindings);
    };
}

#[cfg(test)]
#[path = "component_tests.rs"]
mod tests;
