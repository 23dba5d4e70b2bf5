//! A tool whose name its configuration gives, so that many can be mounted at once.

wit_bindgen::generate!({
    path: "../../../../../wit",
    inline: "
        package dsh:small;
        world small {
            include dsh:plugin/base@0.1.0;
            export dsh:plugin/tool@0.1.0;
        }
    ",
    world: "dsh:small/small",
    generate_all,
});

use dsh::plugin::config;
use dsh::plugin::types::Error;
use exports::dsh::plugin::tool;
use serde_json::{Value, json};

struct Small;

export!(Small);

impl tool::Guest for Small {
    fn list_tools() -> Result<Vec<String>, Error> {
        let config: Value = serde_json::from_str(&config::get()).unwrap_or_default();
        let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let listing =
            json!({"name": config["name"], "description": "Gives its text back.", "parameters": parameters});
        Ok(vec![listing.to_string()])
    }

    fn may_overlap(_: tool::Call) -> bool {
        true
    }

    fn run(call: tool::Call) -> Result<tool::Outcome, Error> {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        Ok(tool::Outcome {
            content: vec![json!({"type": "text", "text": arguments["text"]}).to_string()],
            more: None,
        })
    }
}
