//! Payloads of a completion stream in, chunks of the log out (spec/llm.md §7.6).
//! One block of text and one of reasoning, a block for each tool call, opened as
//! they appear and closed together at the end: the last payload may be `[DONE]`,
//! the one with the counts, or none, as servers please.

use adapter_support::failure::Failure;
use adapter_support::opening::{error_words, shown};
use adapter_support::profile::Switch;
use adapter_support::{
    Call, Emitter, Entry, Error, HttpRequest, Kind, Model, Pictures, Profile, Protocol, Stop,
    arguments, classify, sse,
};
use guest_support::json::{Json, escape};

use crate::calls::Calls;
use crate::usage::Fields;
use crate::{dialect, request};

/// Where a delta may have its reasoning; the first that has some counts.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// Names under which this model's reasoning comes and goes back: the route's own,
/// where it has one, and the known ones.
pub(crate) fn reasoning_fields(model: &Model) -> impl Iterator<Item = String> {
    let own = model.compat.text("reasoningField");
    own.map(std::borrow::Cow::into_owned)
        .into_iter()
        .chain(REASONING.map(str::to_owned))
}

/// Characters that OpenAI takes of a call's id.
const ID: usize = 40;

/// `id` within that; what is cut ends in a hash of the `whole`, as two long ids
/// often begin alike.
fn short(id: &str, whole: &str) -> String {
    if id.chars().count() <= ID {
        return id.to_owned();
    }
    // FNV-1a: nobody gains by a collision.
    let hash = whole.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let start: String = id.chars().take(ID - 9).collect();
    format!("{start}_{hash:08x}")
}

/// The state of one stream.
#[derive(Debug, Default)]
pub struct Completions {
    reasoning_fields: Vec<String>,
    usage_fields: Fields,
    text: Option<usize>,
    reasoning: Option<usize>,
    calls: Calls,
    /// Encrypted reasoning, by the escaped id of the call that it belongs to.
    details: Vec<(String, String)>,
    finish: Option<String>,
}

impl Protocol for Completions {
    const API: &'static str = "openai-completions";
    const SWITCHES: &'static [Switch] = dialect::SWITCHES;
    const CATALOGUE: &'static str = include_str!("../../adapter/catalogue/openai-completions.json");

    /// Ids of the responses protocol have two halves; OpenAI's own are short.
    fn call_id(_model: &Model, profile: &Profile, id: &str) -> Option<String> {
        if let Some((call, _)) = id.split_once('|') {
            let plain = |c: char| {
                if c.is_ascii_alphanumeric() || c == '-' {
                    c
                } else {
                    '_'
                }
            };
            return Some(short(&call.chars().map(plain).collect::<String>(), id));
        }
        (profile.provider == "openai" && !id.contains('\\')).then(|| short(id, id))
    }

    fn request(
        profile: &Profile,
        model: &Model,
        call: &Call<'_>,
        history: &[Entry<'_>],
        pictures: &mut dyn Pictures,
    ) -> Result<HttpRequest, Error> {
        request::build(profile, model, call, history, pictures)
    }

    fn begin(&mut self, _profile: &Profile, model: &Model, history: &[Entry<'_>]) {
        self.reasoning_fields = reasoning_fields(model).collect();
        self.usage_fields = Fields::of(model);
        let calls = history.iter().map(|entry| match entry {
            Entry::Assistant(assistant) => assistant.calls(),
            _ => 0,
        });
        self.calls = Calls::after(calls.sum());
    }

    fn event(&mut self, event: &sse::Event<'_>, out: &mut Emitter) -> bool {
        if event.data.trim() == "[DONE]" {
            return false;
        }
        match Json::parse(event.data) {
            Some(payload) => self.take(payload, out),
            None => {
                let message = format!(
                    "the stream has an event that is not JSON: {}",
                    shown(event.data)
                );
                out.fail_as(&Failure::new("PI_AI_ERROR", message));
            }
        }
        !out.is_over()
    }

    fn end(&mut self, out: &mut Emitter) {
        for (id, detail) in &self.details {
            if let Some(at) = self.calls.with_id(id) {
                out.sign(at, detail);
            }
        }
        out.end_all();
        match self.finish.as_deref() {
            Some("stop" | "end") => out.finish(Stop::Stop),
            Some("length") => out.finish(Stop::Length),
            Some("tool_calls" | "function_call") => out.finish(Stop::ToolUse),
            Some(reason) => out.fail(&format!(
                "the provider ended its answer with the finish_reason {reason}"
            )),
            None => out.fail("the stream ended before a finish_reason"),
        }
    }

    fn error_text(status: u16, body: &str) -> String {
        let told = Json::parse(body).and_then(|json| json.some("error"));
        match told {
            Some(error) => format!(
                "{status}: {}",
                error.string().map_or_else(
                    || arguments::compact(error.raw()),
                    std::borrow::Cow::into_owned
                )
            ),
            None if body.trim().is_empty() => format!("{status} status code (no body)"),
            None => format!("{status}: {}", body.trim()),
        }
    }
}

/// What counts of a payload, found in one pass; nulls count as absent.
#[derive(Default)]
struct Payload<'a> {
    error: Option<Json<'a>>,
    /// Escaped, as the next.
    id: Option<&'a str>,
    model: Option<&'a str>,
    choice: Option<Json<'a>>,
    usage: Option<Json<'a>>,
}

impl<'a> Payload<'a> {
    fn of(json: Json<'a>) -> Self {
        let mut payload = Self::default();
        let mut is_error = false;
        for (name, value) in json.members().filter(|(_, value)| value.raw() != "null") {
            match name {
                "error" => payload.error = Some(value),
                "id" => payload.id = value.escaped(),
                "model" => payload.model = value.escaped(),
                "choices" => payload.choice = value.items().next(),
                "usage" => payload.usage = Some(value),
                "object" => is_error = value.escaped() == Some("error"),
                _ => {}
            }
        }
        payload.error = payload.error.or(is_error.then_some(json));
        payload
    }
}

/// What counts of a choice.
#[derive(Default)]
struct Choice<'a> {
    delta: Option<Json<'a>>,
    finish_reason: Option<Json<'a>>,
    usage: Option<Json<'a>>,
}

impl<'a> Choice<'a> {
    fn of(json: Option<Json<'a>>) -> Self {
        let mut choice = Self::default();
        let mut message = None;
        let members = json.into_iter().flat_map(Json::members);
        for (name, value) in members.filter(|(_, value)| value.raw() != "null") {
            match name {
                "delta" => choice.delta = Some(value),
                "message" => message = Some(value),
                "finish_reason" => choice.finish_reason = Some(value),
                "usage" => choice.usage = Some(value),
                _ => {}
            }
        }
        choice.delta = choice.delta.or(message);
        choice
    }
}

impl Completions {
    fn take(&mut self, payload: Json<'_>, out: &mut Emitter) {
        let told = Payload::of(payload);
        if let Some(error) = told.error {
            let (message, detail) = error_words(error);
            let message = message.unwrap_or_else(|| shown(error.raw()));
            out.fail_as(&Failure::new(classify::of_text(&detail), message));
            return;
        }
        if let Some(id) = told.id {
            out.response_id(id);
        }
        if let Some(model) = told.model {
            out.response_model(model);
        }
        let choice = Choice::of(told.choice);
        let usage = told.usage.or(choice.usage);
        if let Some(usage) = usage.filter(|usage| usage.is_object()) {
            out.usage(self.usage_fields.read(usage));
        }
        if let Some(reason) = choice
            .finish_reason
            .and_then(Json::string)
            .filter(|reason| !reason.is_empty())
        {
            self.finish = Some(reason.into_owned());
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, out);
        }
    }

    fn delta(&mut self, delta: Json<'_>, out: &mut Emitter) {
        if let Some(content) = delta.some("content") {
            self.content(content, out);
        }
        let reasoning = self.reasoning_fields.iter().find_map(|field| {
            let text = delta
                .get(field)?
                .escaped()
                .filter(|text| !text.is_empty())?;
            Some((field.clone(), text))
        });
        if let Some((field, text)) = reasoning {
            self.think(&field, text, out);
        }
        for call in delta.get("tool_calls").into_iter().flat_map(Json::items) {
            self.calls.push(call, out);
        }
        if let Some(function) = delta.some("function_call") {
            self.calls.push_function(function, out);
        }
        let details = delta.get("reasoning_details");
        for detail in details.into_iter().flat_map(Json::items) {
            self.detail(detail);
        }
    }

    /// A text, or parts as some have it: texts, and thoughts made of texts.
    fn content(&mut self, content: Json<'_>, out: &mut Emitter) {
        if let Some(text) = content.escaped() {
            self.say(text, out);
        }
        for part in content.items() {
            let text = |name: &str| part.get(name).and_then(Json::escaped);
            match text("type") {
                Some("text") => self.say(text("text").unwrap_or(""), out),
                Some("thinking") => {
                    let thoughts = part.get("thinking");
                    if let Some(thought) = thoughts.and_then(Json::escaped) {
                        self.think(REASONING[0], thought, out);
                    }
                    for thought in thoughts.into_iter().flat_map(Json::items) {
                        let text = thought.get("text").and_then(Json::escaped);
                        self.think(REASONING[0], text.unwrap_or(""), out);
                    }
                }
                _ => {}
            }
        }
    }

    fn say(&mut self, text: &str, out: &mut Emitter) {
        if text.is_empty() {
            return;
        }
        let at = *self.text.get_or_insert_with(|| out.start(Kind::Text));
        out.append(at, text);
    }

    fn think(&mut self, field: &str, text: &str, out: &mut Emitter) {
        if text.is_empty() {
            return;
        }
        let at = *self.reasoning.get_or_insert_with(|| {
            let at = out.start(Kind::Reasoning);
            out.sign(at, field);
            at
        });
        out.append(at, text);
    }

    /// What a provider hides of its reasoning, and wants back with the call.
    fn detail(&mut self, detail: Json<'_>) {
        let text = |name: &str| detail.get(name).and_then(Json::escaped);
        let (Some("reasoning.encrypted"), Some(id), Some(data)) =
            (text("type"), text("id"), text("data"))
        else {
            return;
        };
        if id.is_empty() || data.is_empty() {
            return;
        }
        let mut escaped = String::new();
        escape(&arguments::compact(detail.raw()), &mut escaped);
        self.details.push((id.to_owned(), escaped));
    }
}
