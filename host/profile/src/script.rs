//! The scripted model's `scriptFile`: the component has no files, so the host
//! reads the script in and hands it over as `script`.

use crate::{Implementation, Row, file};
use serde_json::Value;
use std::path::Path;

const COMPONENT: &str = "dsh:llm-scripted";

/// Replaces `config.scriptFile` (JSON or YAML, relative to `cwd`) by `config.script`.
pub(crate) fn read_in(row: &mut Row, cwd: &Path) -> Result<(), String> {
    if row.implementation != Implementation::Component(COMPONENT.into()) {
        return Ok(());
    }
    let Value::Object(config) = &mut row.config else {
        return Ok(());
    };
    let Some(path) = config.shift_remove("scriptFile") else {
        return Ok(());
    };
    let Some(path) = path.as_str() else {
        return Err("`scriptFile` must be a path".into());
    };
    let path = cwd.join(path);
    let text = file::read(&path).map_err(|e| e.to_string())?;
    let script = match file::document(&path, &text).map_err(|e| e.to_string())? {
        Some(node) => node
            .plain_json()
            .map_err(|fault| file::at(&path, fault).to_string())?,
        None => Value::Array(Vec::new()),
    };
    config.insert("script".into(), script);
    Ok(())
}
