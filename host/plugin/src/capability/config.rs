//! `config`: what the row was set up with. Always granted.

use serde_json::json;

use crate::contract::{self, v0_1::config};
use crate::instance::State;

super::capability!(config, "config");

impl config::Host for State {
    fn get(&mut self) -> wasmtime::Result<String> {
        self.called()?;
        Ok(self.row.config.clone())
    }

    fn about(&mut self) -> wasmtime::Result<String> {
        self.called()?;
        let mut about = json!({
            "host": "dsh",
            "version": self.row.host_version,
            "contract": contract::SERVED,
            "plugin": self.row.plugin,
            "row": self.row.id,
        });
        for (name, value) in [
            ("sessionId", &self.ctx.session_id),
            ("agentId", &self.ctx.agent_id),
        ] {
            if let Some(value) = value {
                about[name] = json!(value);
            }
        }
        Ok(about.to_string())
    }
}
