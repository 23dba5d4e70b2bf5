//! An installed plugin, for programs and for people.

use dsh_profile::Installed;
use dsh_profile::signature::Key;
use serde_json::{Value, json};

/// As `docs/schema/plugin-*.schema.json` has it.
pub(super) fn json(plugin: &Installed) -> Value {
    let rows: Value = plugin
        .rows
        .iter()
        .map(|row| json!({"id": row.id, "disabled": row.disabled, "config": row.config}))
        .collect();
    let signature = plugin.signature.as_ref().map(
        |signed| json!({"key": signed.key, "id": key_id(&signed.key), "comment": signed.comment}),
    );
    json!({
        "name": plugin.name,
        "version": plugin.version,
        "source": plugin.source,
        "digest": plugin.digest,
        "fetched": plugin.fetched,
        "contract": plugin.contract,
        "disabled": plugin.disabled,
        "rows": rows,
        "tools": plugin.tools,
        "commands": plugin.commands,
        "grants": plugin.granted(),
        "limits": plugin.limits,
        "signature": signature,
    })
}

/// How a key is named to people.
pub(super) fn key_id(key: &str) -> String {
    Key::parse(key).map_or_else(|_| "(damaged)".to_owned(), |key| key.id().to_string())
}
