//! A listener that takes part in the events that its configuration names, and
//! does nothing: what remains is what the host does to reach it.

wit_bindgen::generate!({
    path: "../../../../../wit",
    inline: "
        package dsh:watcher;
        world watcher {
            include dsh:plugin/base@0.1.0;
            export dsh:plugin/dispatch@0.1.0;
        }
    ",
    world: "dsh:watcher/watcher",
    generate_all,
});

use dsh::plugin::config;
use dsh::plugin::types::Error;
use exports::dsh::plugin::dispatch;
use serde_json::Value;

struct Watcher;

export!(Watcher);

impl dispatch::Guest for Watcher {
    fn subscriptions() -> Vec<dispatch::Subscription> {
        let config: Value = serde_json::from_str(&config::get()).unwrap_or_default();
        let events = config["events"].as_array().cloned().unwrap_or_default();
        let all = |event: &Value| dispatch::Subscription {
            event: event.as_str().unwrap_or_default().to_owned(),
            only: vec![],
            beside: false,
        };
        events.iter().map(all).collect()
    }

    fn notify(_: String, _: Vec<String>) {}

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(_: String, _: String) -> Result<dispatch::Entry, Error> {
        Ok(dispatch::Entry {
            verdict: dispatch::Verdict::Proceed,
            carry: None,
        })
    }

    fn leave(_: String, _: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }
}
