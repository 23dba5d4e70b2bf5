//! The adapters as one: what the host calls, natively.

use adapter_support::bindings::exports::dsh::plugin::llm_adapter::{Action, EndCause, Guest};
use adapter_support::component::Adapter;
use adapter_support::{
    CallConfig, Error, GenerateRequest, HttpRequest, Picture, Pictures, Protocol,
};

/// A model that takes pictures and thinks, at a provider that nobody knows.
pub(crate) const PROVIDER: &str = "acme";
pub(crate) const MODEL: &str = "m";

/// An adapter with its configuration.
pub(crate) trait Driven {
    fn open(&mut self, request: GenerateRequest) -> Result<u32, Error>;
    fn sent(&mut self, attempt: u32) -> HttpRequest;
    fn head(&mut self, attempt: u32, status: u16, headers: Vec<(String, String)>);
    fn body(&mut self, attempt: u32, data: &[u8]) -> Vec<String>;
    fn end(&mut self, attempt: u32, cause: EndCause) -> Vec<String>;
    fn close(&mut self, attempt: u32);
}

impl<P: Protocol> Driven for Adapter<P> {
    fn open(&mut self, request: GenerateRequest) -> Result<u32, Error> {
        Adapter::open(self, &request, &mut Variants)
    }

    fn sent(&mut self, attempt: u32) -> HttpRequest {
        first(self.next(attempt))
    }

    fn head(&mut self, attempt: u32, status: u16, headers: Vec<(String, String)>) {
        Adapter::head(self, attempt, status, headers);
    }

    fn body(&mut self, attempt: u32, data: &[u8]) -> Vec<String> {
        Adapter::body(self, attempt, data)
    }

    fn end(&mut self, attempt: u32, cause: EndCause) -> Vec<String> {
        Adapter::end(self, attempt, &cause)
    }

    fn close(&mut self, attempt: u32) {
        Adapter::close(self, attempt);
    }
}

/// An adapter of a profile, as a person might write one.
pub(crate) fn of<P: Protocol>() -> Adapter<P> {
    let efforts = r#"{"off":null,"low":"low","medium":"medium","high":"high"}"#;
    let model = format!(
        r#"{{"id":"{MODEL}","contextWindow":200000,"maxTokens":8192,"input":["text","image"],"reasoningEfforts":{efforts}}}"#
    );
    let config = format!(
        r#"{{"providers":{{"{PROVIDER}":{{"api":"{}","baseURL":"https://acme.example/v1","apiKeyEnv":"ACME_KEY","models":[{model}]}}}}}}"#,
        P::API
    );
    Adapter::new(&config).expect("the configuration is read")
}

/// DeepSeek's, whose instance is the thread's.
pub(crate) struct DeepSeek;

impl DeepSeek {
    pub(crate) fn new() -> Self {
        llm_deepseek::configure(r#"{"baseURL":"https://acme.example"}"#).expect("it is read");
        Self
    }
}

impl Driven for DeepSeek {
    fn open(&mut self, request: GenerateRequest) -> Result<u32, Error> {
        llm_deepseek::Component::open(request)
    }

    fn sent(&mut self, attempt: u32) -> HttpRequest {
        first(llm_deepseek::Component::next(attempt))
    }

    fn head(&mut self, attempt: u32, status: u16, headers: Vec<(String, String)>) {
        llm_deepseek::Component::head(attempt, status, headers);
    }

    fn body(&mut self, attempt: u32, data: &[u8]) -> Vec<String> {
        llm_deepseek::Component::body(attempt, data.to_vec())
    }

    fn end(&mut self, attempt: u32, cause: EndCause) -> Vec<String> {
        llm_deepseek::Component::end(attempt, cause)
    }

    fn close(&mut self, attempt: u32) {
        llm_deepseek::Component::close(attempt);
    }
}

fn first(action: Result<Action, Error>) -> HttpRequest {
    match action {
        Ok(Action::Send(request)) => request,
        _ => panic!("an attempt asks for its request first"),
    }
}

/// Every picture can be had.
struct Variants;

impl Pictures for Variants {
    fn render(&mut self, _: &str, _: Option<u32>, _: Option<u32>) -> Result<Picture, Error> {
        Ok(Picture {
            id: "sha256:v".to_owned(),
            media_type: "image/png".to_owned(),
            bytes: 100,
            width: 10,
            height: 10,
            alpha: false,
        })
    }
}

/// A plain request.
pub(crate) fn request(provider: &str, messages: Vec<String>) -> GenerateRequest {
    GenerateRequest {
        config: CallConfig {
            provider: provider.to_owned(),
            model: MODEL.to_owned(),
            reasoning_effort: None,
            temperature: None,
            max_tokens: Some(1000),
            stop: None,
            more: None,
        },
        purpose: None,
        system: Some("Be brief.".to_owned()),
        messages,
        tools: Vec::new(),
        session_id: Some("s".to_owned()),
        more: None,
    }
}
