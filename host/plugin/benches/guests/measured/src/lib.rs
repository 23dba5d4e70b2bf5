//! What a benchmark asks for, in a component of a real tool's size.
//!
//! - `llm-adapter.close` does nothing: the cheapest call there is.
//! - `dispatch.decide` gives its payload back.
//! - `tool.run` does what the tool's name says.

use std::hint::black_box;

wit_bindgen::generate!({
    path: "../../../../../wit",
    inline: "
        package dsh:measured;
        world measured {
            include dsh:plugin/base@0.1.0;
            import dsh:plugin/clock@0.1.0;
            import dsh:plugin/journal@0.1.0;
            export dsh:plugin/llm-adapter@0.1.0;
            export dsh:plugin/tool@0.1.0;
            export dsh:plugin/dispatch@0.1.0;
        }
    ",
    world: "dsh:measured/measured",
    generate_all,
});

use dsh::plugin::types::{CallConfig, Error, GenerateRequest};
use dsh::plugin::{clock, journal, log};
use exports::dsh::plugin::{dispatch, llm_adapter, tool};
use serde_json::{Value, json};

struct Measured;

export!(Measured);

fn error(message: impl ToString) -> Error {
    Error {
        code: "INVALID".to_owned(),
        message: message.to_string(),
        details: None,
    }
}

fn text(content: impl Into<String>) -> Result<tool::Outcome, Error> {
    Ok(tool::Outcome {
        content: vec![content.into()],
        more: None,
    })
}

/// As many records as make about this many bytes of JSON.
fn document(bytes: usize) -> Value {
    let record = |at: usize| {
        json!({
            "id": at, "name": format!("record {at}"), "ratio": at as f64 / 7.0, "on": at.is_multiple_of(2),
            "tags": ["one", "two\n", "drei \u{fc}"], "nested": {"path": format!("/a/b/{at}"), "none": null},
        })
    };
    (0..bytes / 150).map(record).collect()
}

impl tool::Guest for Measured {
    fn list_tools() -> Result<Vec<String>, Error> {
        let tools = ["echo", "typical", "json", "search", "now", "log", "append", "spin"];
        let listing = |name: &&str| json!({"name": name, "description": "measured", "parameters": {"type": "object"}}).to_string();
        Ok(tools.iter().map(listing).collect())
    }

    fn may_overlap(_: tool::Call) -> bool {
        true
    }

    fn run(call: tool::Call) -> Result<tool::Outcome, Error> {
        let count = || call.arguments.parse::<u32>().map_err(error);
        match call.name.as_str() {
            "echo" => text(call.arguments),
            // What a tool does with a few kilobytes: reads its arguments, writes a result.
            "typical" => {
                let asked: Value = serde_json::from_str(&call.arguments).map_err(error)?;
                let found = document(20_000);
                text(json!({"asked": asked, "found": found}).to_string())
            }
            // JSON of this many bytes, written, read and written again.
            "json" => {
                let written = document(count()? as usize).to_string();
                let read: Value = serde_json::from_str(&written).map_err(error)?;
                text(read.to_string().len().to_string())
            }
            "search" => {
                let pattern = regex::Regex::new(&call.arguments).map_err(error)?;
                text(pattern.find_iter(&document(20_000).to_string()).count().to_string())
            }
            "now" => {
                let last = (0..count()?).map(|_| clock::now()).fold(0.0, f64::max);
                text(last.to_string())
            }
            "log" => {
                for _ in 0..count()? {
                    log::write(log::Level::Info, "a line of a usual length, for the host's log");
                }
                text("")
            }
            "append" => {
                let event = [journal::NewEvent {
                    kind: "todo/write".to_owned(),
                    data: r#"{"todos":[]}"#.to_owned(),
                }];
                for _ in 0..count()? {
                    journal::append(&event, None)?;
                }
                text("")
            }
            "spin" => loop {
                black_box(());
            },
            other => Err(error(other)),
        }
    }
}

impl dispatch::Guest for Measured {
    fn subscriptions() -> Vec<dispatch::Subscription> {
        vec![]
    }

    fn notify(_: String, _: Vec<String>) {}

    fn decide(event: String, payload: String) -> Result<Option<String>, Error> {
        if event == "bench/typical" {
            return Ok(Some(document(20_000).to_string().len().to_string()));
        }
        Ok(Some(payload))
    }

    fn enter(_: String, _: String) -> Result<dispatch::Entry, Error> {
        Err(error("enter"))
    }

    fn leave(_: String, _: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

impl llm_adapter::Guest for Measured {
    fn list_routes() -> Result<Vec<String>, Error> {
        Ok(vec![])
    }

    fn prepare(_: CallConfig) -> Result<llm_adapter::Prepared, Error> {
        Err(error("prepare"))
    }

    fn open(_: GenerateRequest) -> Result<u32, Error> {
        Ok(1)
    }

    fn next(_: u32) -> Result<llm_adapter::Action, Error> {
        Ok(llm_adapter::Action::Done)
    }

    fn head(_: u32, _: u16, _: Vec<(String, String)>) {}

    fn body(_: u32, _: Vec<u8>) -> Vec<String> {
        vec![]
    }

    fn end(_: u32, _: llm_adapter::EndCause) -> Vec<String> {
        vec![]
    }

    fn close(_: u32) {}
}
