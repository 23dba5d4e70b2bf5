use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{PluginError, ToolCall, ToolOutcome};

use super::ToolRegistry;
use crate::error::AgentError;
use crate::tools::{CallScope, Tool, ToolSpec};

struct Named(ToolSpec);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn run(&self, _call: ToolCall, _scope: &CallScope) -> Result<ToolOutcome, PluginError> {
        Err(PluginError::new("INVALID", "is not run here"))
    }
}

fn named(name: &str) -> Arc<dyn Tool> {
    Arc::new(Named(
        ToolSpec::new(name, "", r#"{"type":"object"}"#).unwrap(),
    ))
}

fn wire(order: Option<&[&str]>, names: &[&str]) -> Result<Vec<String>, AgentError> {
    let order = order.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    let registry = ToolRegistry::new(order)?;
    for name in names {
        registry.register(named(name))?;
    }
    let names = registry.wire()?;
    Ok(names
        .iter()
        .map(|tool| tool.get("name").unwrap().text().unwrap().into_owned())
        .collect())
}

#[test]
fn a_second_tool_of_a_name_is_refused() {
    assert!(
        matches!(wire(None, &["a", "a"]), Err(AgentError::DuplicateTool { name }) if name == "a")
    );
}

#[test]
fn tools_go_out_by_code_unit() {
    // U+1F600 is D83D DE00 in UTF-16 and so comes before U+FF21.
    assert_eq!(
        wire(None, &["write", "bash", "Read", "\u{ff21}", "\u{1f600}"]).unwrap(),
        ["Read", "bash", "write", "\u{1f600}", "\u{ff21}"]
    );
}

#[test]
fn unlisted_tools_go_where_the_order_says() {
    let order = ["write", "<unlisted-tools>", "bash"];
    assert_eq!(
        wire(Some(&order), &["bash", "read", "glob", "write"]).unwrap(),
        ["write", "glob", "read", "bash"]
    );
}

#[test]
fn an_order_names_the_unlisted_once_and_no_tool_that_is_not_there() {
    assert!(
        wire(Some(&["bash"]), &["bash"])
            .unwrap_err()
            .to_string()
            .contains("exactly once")
    );
    assert!(
        wire(Some(&["<unlisted-tools>", "nope"]), &["bash"])
            .unwrap_err()
            .to_string()
            .contains("nope")
    );
}
