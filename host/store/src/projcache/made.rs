//! What upstream's format has no place for: who made a state, and what is shown of it.
//!
//! A state that a component folded is good for that component in that configuration alone, and only the component can
//! show it; so both are kept, in a row of their own beside the state's, `dsh/made/KEY` with `{by, of, view}`. Upstream
//! passes over rows of keys that it does not know, and when it writes a record it leaves them out: then a state without
//! one is nobody's, and is folded anew. `of` ties the row to the very state that it is about, so that one which
//! somebody else has replaced does not pass for it.

use dsh_session::Json;
use dsh_session::Value;
use dsh_session::projection::{Row, Rows};

const PREFIX: &str = "dsh/made/";
const VERSION: u64 = 1;

/// The key of the row about a key's state.
pub fn key(key: &str) -> String {
    format!("{PREFIX}{key}")
}

/// Whether a key is one of those.
pub fn is_key(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The row about a state: `by` names whoever folded it, `view` is what is shown of it.
pub fn row(state: &Row, by: &str, view: &Json) -> Row {
    Row {
        version: VERSION,
        as_of: state.as_of,
        state: Json::object(|o| {
            o.str("by", by).str("of", &tie(state)).json("view", view);
        }),
    }
}

/// Who folded the state of a key, where that is known of the state that is there.
pub fn by(rows: &Rows, key: &str) -> Option<String> {
    let made = made(rows, key)?;
    Some(made.get("by")?.text()?.into_owned())
}

/// What is shown of the state of a key, where that is known of the state that is there.
pub fn view(rows: &Rows, key: &str) -> Option<Json> {
    Some(made(rows, key)?.get("view")?.to_json())
}

fn made<'r>(rows: &'r Rows, of: &str) -> Option<Value<'r>> {
    let made = rows.get(&key(of)).filter(|row| row.version == VERSION)?;
    let tied = made.state.get("of")?.is(&tie(rows.get(of)?));
    tied.then(|| made.state.value())
}

/// A digest of a state and of what it is as of.
fn tie(state: &Row) -> String {
    let as_of = state.as_of.map_or(-1, |seq| seq.0.cast_signed());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&state.version.to_le_bytes());
    hasher.update(&as_of.to_le_bytes());
    hasher.update(state.state.as_str().as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}
