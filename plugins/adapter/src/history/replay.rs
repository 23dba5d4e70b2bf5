//! What an answer's replay state says, once it is known to fit (spec/llm.md §7.4).

use guest_support::json::Json;

/// Upstream's, so that its sessions go on here and ours there.
pub(crate) const KIND: &str = "pi-ai";
pub(crate) const VERSION: u64 = 2;

const STOPS: [&str; 5] = ["stop", "length", "toolUse", "error", "aborted"];

/// A replay state that fits its message.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    pub(super) api: Json<'a>,
    pub(super) response_id: Option<Json<'a>>,
    pub(super) stop: Json<'a>,
    /// One for each block.
    pub(super) blocks: Vec<Signature<'a>>,
}

/// What is kept beside a block; escaped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signature<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) redacted: bool,
}

/// Checks the replay state of a message from `source`; says what is wrong with it.
pub(super) fn read<'a>(
    state: Json<'a>,
    source: Json<'a>,
    content: &[Json<'a>],
) -> Result<Replay<'a>, &'static str> {
    let response = state
        .some("response")
        .filter(|response| response.is_object())
        .ok_or("it has no response")?;
    let text = |name: &str| {
        response
            .get(name)
            .filter(|value| value.escaped().is_some_and(|text| !text.is_empty()))
    };
    let same = |name: &str| {
        let (ours, theirs) = (text(name), source.get(name));
        ours.is_some() && ours.and_then(Json::string) == theirs.and_then(Json::string)
    };
    let optional = |name: &str| response.get(name).is_none() || text(name).is_some();
    let is = |value: Option<Json<'_>>, wanted: &str| {
        value
            .and_then(Json::string)
            .is_some_and(|text| text == wanted)
    };
    if !is(response.get("kind"), KIND) {
        return Err("it is of another kind");
    }
    if response.get("version").and_then(Json::whole) != Some(VERSION) {
        return Err("it is of another version");
    }
    let api = text("api").ok_or("its api is missing")?;
    if !same("provider") || !same("model") {
        return Err("its provider or model is not the message's");
    }
    if !optional("responseModel") || !optional("responseId") {
        return Err("its response is not named by text");
    }
    let stop = text("stopReason")
        .filter(|stop| STOPS.iter().any(|known| is(Some(*stop), known)))
        .ok_or("its stop reason is unknown")?;
    let entries = state
        .get("blocks")
        .filter(|blocks| blocks.is_array())
        .ok_or("it has no blocks")?;
    let mut blocks = Vec::with_capacity(content.len());
    let mut content = content.iter();
    for entry in entries.items() {
        let block = content
            .next()
            .ok_or("it has more blocks than the message")?;
        blocks.push(signature(entry, *block)?);
    }
    if content.next().is_some() {
        return Err("it has fewer blocks than the message");
    }
    Ok(Replay {
        api,
        response_id: text("responseId"),
        stop,
        blocks,
    })
}

fn signature<'a>(entry: Json<'a>, block: Json<'a>) -> Result<Signature<'a>, &'static str> {
    let kind = entry.get("type").and_then(Json::escaped);
    if kind.is_none() || kind != block.get("type").and_then(Json::escaped) {
        return Err("a block of it is of another type than the message's");
    }
    let name = match kind {
        Some("text") => "textSignature",
        Some("reasoning") => "thinkingSignature",
        Some("tool-call") => "thoughtSignature",
        _ => return Err("a block of it is of an unknown type"),
    };
    let text = entry
        .get(name)
        .map(|text| text.escaped().ok_or("a signature of it is no text"));
    let redacted = entry.get("redacted").map(|redacted| {
        redacted
            .bool()
            .ok_or("a block of it is neither redacted nor not")
    });
    Ok(Signature {
        text: text.transpose()?,
        redacted: redacted.transpose()?.unwrap_or(false),
    })
}
