//! Ids of messages and calls, as the protocol takes them.

use guest_support::json::{Json, unescape};

/// What the protocol takes of an id.
pub(crate) const MAX_ID: usize = 64;

/// Id and phase of a message's signature (escaped): `{"v":1,"id","phase"?}`, or the
/// bare id that older logs hold.
pub(crate) fn read_signature(signature: &str) -> Option<(String, Option<String>)> {
    let signature = unescape(signature);
    if signature.starts_with('{') {
        let json = Json::parse(&signature)?;
        let text = |name: &str| json.get(name)?.string().map(std::borrow::Cow::into_owned);
        let known = json.get("v").and_then(Json::whole) == Some(1);
        return text("id").filter(|_| known).map(|id| (id, text("phase")));
    }
    Some((signature.into_owned(), None)).filter(|(id, _)| !id.is_empty())
}

/// The id of a message item: its own, if the protocol takes it; else one that is
/// the same in every request, so that the provider's cache holds.
pub(crate) fn message_id(own: &str, at: usize, text: usize) -> String {
    match (own.is_empty(), own.chars().count() <= MAX_ID, text) {
        (false, true, _) => own.to_owned(),
        (false, false, _) => format!("msg_{}", hash(own)),
        (true, _, 0) => format!("msg_pi_{at}"),
        (true, _, text) => format!("msg_pi_{at}_{text}"),
    }
}

/// `CALL|ITEM` of this protocol's calls; escaped, as it stands.
pub(crate) fn split_id(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item)),
        None => (id, None),
    }
}

/// The id of another model's call, as this protocol takes it: letters, digits, `_`
/// and `-`, no longer than 64. What is cut off is hashed, so that two ids stay two.
/// Given and returned escaped.
pub(crate) fn foreign_call_id(id: &str) -> String {
    let id = unescape(id);
    // Another model of this protocol: the item is that model's.
    let call = match id.split_once('|') {
        Some((call, item)) if item.starts_with("fc_") => call,
        _ => &id,
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !call.is_empty() && call.len() <= MAX_ID && call.chars().all(fits) {
        return call.to_owned();
    }
    let kept = call.chars().take(MAX_ID - 17);
    let kept: String = kept.map(|c| if fits(c) { c } else { '_' }).collect();
    format!("{kept}_{}", hash(call))
}

/// 16 digits that tell ids of one conversation apart (FNV-1a).
pub(crate) fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
