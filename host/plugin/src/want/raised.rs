//! Limits above what a component has: a wish as a grant is.

use serde_json::{Map, Value};

use super::words;
use crate::component::Description;
use crate::limits::Limits;

/// Which limits of the component's manifest are above those that it has, in words:
/// `may hold 4 GiB of memory (64 MiB so far)`. `before` are the limits of the
/// lock; empty, what is usual is what it has.
#[must_use]
pub fn raised(before: &Map<String, Value>, component: &Description) -> Vec<String> {
    let usual = Limits::usual(component);
    let asked = component.manifest.as_ref();
    let asked = asked.map(|manifest| Value::Object(manifest.limits.clone()));
    // What is not of its shape was refused when it was read.
    let over = |limits: &Value| usual.with(limits).unwrap_or(usual).to_value();
    let before = over(&Value::Object(before.clone()));
    let after = over(&asked.unwrap_or_default());
    after
        .iter()
        .filter_map(|(name, wanted)| {
            let has = before.get(name)?;
            let more = wanted.as_u64()? > has.as_u64()?;
            more.then(|| say(name, wanted, has))
        })
        .collect()
}

fn say(name: &str, wanted: &Value, has: &Value) -> String {
    let amount = |value: &Value| match name {
        "memory" | "output" | "text" => words::size(value),
        "cpu" | "call" => seconds(value.as_u64().unwrap_or_default()),
        _ => value.to_string(),
    };
    let (wanted, has) = (amount(wanted), amount(has));
    let said = match name {
        "memory" => format!("may hold {wanted} of memory"),
        "cpu" => format!("may compute for {wanted} in a call"),
        "call" => format!("may take {wanted} for a call"),
        "output" => format!("may hand over {wanted} in a call"),
        "text" => format!("may hand over {wanted} at once"),
        "calls" => format!("may call dsh {wanted} times in a call"),
        "log-lines" => format!("may write {wanted} lines of log in a call"),
        _ => format!("may have {wanted} {name}"),
    };
    format!("{said} ({has} so far)")
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{} s", ms / 1000)
    } else {
        format!("{ms} ms")
    }
}
