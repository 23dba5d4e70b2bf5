//! What is kept of an item so that the provider can have it back: the id of a call,
//! and the signature of a block.

use adapter_support::Emitter;
use guest_support::json::{Json, Object, escape, unescape};

use crate::event::{Item, ItemKind, compact};

/// Bytes of an item's id that are kept beside the id of its call, which each delta
/// repeats: the provider can do without.
const MAX_ITEM_ID: usize = 1024;

/// `CALL|ITEM`, escaped: both are needed to hand the call back.
pub(crate) fn call_id(item: &Item<'_>) -> String {
    match (item.call_id, item.id) {
        (Some(call), Some(id)) if id.len() <= MAX_ITEM_ID => format!("{call}|{id}"),
        (Some(call), _) => call.to_owned(),
        (None, id) => id.unwrap_or_default().to_owned(),
    }
}

/// What the provider wants back of an item.
pub(crate) fn sign(block: usize, item: &Item<'_>, out: &mut Emitter) {
    let signature = match (item.kind, item.id) {
        (ItemKind::Reasoning, _) => compact(item.json.raw()),
        (ItemKind::Message, Some(id)) => {
            let signature = Object::new().raw("v", "1").escaped("id", id);
            match item.phase {
                Some(phase) => signature.escaped("phase", phase).build(),
                None => signature.build(),
            }
        }
        _ => return,
    };
    let mut text = String::with_capacity(signature.len() + 64);
    escape(&signature, &mut text);
    out.sign(block, &text);
}

/// Adds the encrypted content to a reasoning item that was stored without.
pub(crate) fn seal(block: usize, item: &Item<'_>, out: &mut Emitter) {
    let Some(stored) = out.signature(block) else {
        return;
    };
    let stored = unescape(stored).into_owned();
    let (Some(stored), Some(sealed)) = (Json::parse(&stored), item.json.get("encrypted_content"))
    else {
        return;
    };
    let mut whole = Object::new();
    for (name, value) in stored.members() {
        if name != "encrypted_content" {
            whole = whole.raw(name, value.raw());
        }
    }
    let mut text = String::new();
    let whole = whole.raw("encrypted_content", sealed.raw()).build();
    escape(&whole, &mut text);
    out.sign(block, &text);
}
