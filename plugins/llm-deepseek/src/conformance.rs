//! The recorded cases of `tests/conformance/llm/deepseek`, played as
//! `adapter_support::testing` says.

use adapter_support::HttpRequest;
use adapter_support::testing::{self, Case, Player};
use serde_json::{Value, json};

use super::*;

struct DeepSeek {
    attempt: u32,
}

impl Player for DeepSeek {
    fn load(case: &Case) -> Self {
        let settings = Settings::read(&case.recorded["config"].to_string()).unwrap();
        STATE.set(State {
            settings: Some(settings),
            attempts: Slots::default(),
        });
        Self { attempt: 0 }
    }

    fn open(&mut self, mut request: GenerateRequest) -> Result<HttpRequest, Error> {
        request.config = Component::prepare(request.config)?.config;
        self.attempt = Component::open(request)?;
        match Component::next(self.attempt)? {
            Action::Send(request) => Ok(request),
            _ => panic!("the adapter asks for a request first"),
        }
    }

    fn head(&mut self, status: u16, headers: Vec<(String, String)>) {
        Component::head(self.attempt, status, headers);
    }

    fn body(&mut self, data: &[u8]) -> Vec<String> {
        Component::body(self.attempt, data.to_vec())
    }

    fn end(&mut self, cause: EndCause) -> Vec<String> {
        let chunks = Component::end(self.attempt, cause);
        assert!(matches!(Component::next(self.attempt), Ok(Action::Done)));
        Component::close(self.attempt);
        chunks
    }
}

/// Pictures as the host hands them to a model that reads text.
fn without_pictures(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_pictures),
        Value::Object(members) if members.get("type") == Some(&json!("image")) => {
            *value = json!({"type": "text", "text": "{{text-only image placeholder naming sha256:01234567}}"});
        }
        Value::Object(members) => members.values_mut().for_each(without_pictures),
        _ => {}
    }
}

fn cases() -> Vec<Case> {
    let mut cases = testing::cases("deepseek", 27);
    for case in &mut cases {
        without_pictures(&mut case.recorded["generate"]);
    }
    cases
}

#[test]
fn requests_are_as_recorded() {
    testing::requests_are_as_recorded::<DeepSeek>(&cases());
}

#[test]
fn no_header_is_sent_beside_the_recorded_ones() {
    for case in cases() {
        let Some(http) = case.recorded.get("http") else {
            continue;
        };
        let request = DeepSeek::load(&case)
            .open(testing::generate(&case.recorded["generate"]))
            .unwrap();
        let recorded = http["headers"].as_object().unwrap();
        assert_eq!(request.headers.len(), recorded.len(), "{}", case.name);
    }
}

#[test]
fn chunks_are_as_recorded_however_the_body_is_cut() {
    testing::chunks_are_as_recorded::<DeepSeek>(&cases());
}
