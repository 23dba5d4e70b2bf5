//! What a stream of chunks may be (spec/llm.md §1.6).

use std::collections::HashMap;

use guest_support::json::Json;

/// Panics where these are not the chunks of one attempt; says whether there is a `finish`.
pub(crate) fn check(chunks: &[String]) -> bool {
    let mut open: HashMap<u64, (String, bool)> = HashMap::new();
    let (mut usage, mut finished) = (false, false);
    for text in chunks {
        let chunk = Json::parse(text).unwrap_or_else(|| panic!("a chunk is no JSON: {text}"));
        assert!(!finished, "a chunk behind the finish: {text}");
        let string = |of: Json<'_>, name: &str| {
            let value = of.get(name).and_then(Json::string);
            value
                .unwrap_or_else(|| panic!("no {name} in {text}"))
                .into_owned()
        };
        let index = || chunk.get("index").and_then(Json::whole);
        let index = || index().unwrap_or_else(|| panic!("no index in {text}"));
        match &*string(chunk, "type") {
            "block-start" => {
                let kind = string(chunk, "blockType");
                let before = open.insert(index(), (kind, true));
                assert!(before.is_none(), "a block is opened twice: {text}");
            }
            delta @ ("text-delta" | "reasoning-delta" | "tool-call-delta") => {
                let kind = delta.trim_end_matches("-delta");
                let at = open.get(&index());
                let fits = at.is_some_and(|(own, is_open)| own == kind && *is_open);
                assert!(fits, "a delta of no open block: {text}");
                let name = if kind == "tool-call" {
                    "argumentsDelta"
                } else {
                    "text"
                };
                string(chunk, name);
            }
            "block-end" => {
                let block = chunk.get("block").expect("a block");
                let kind = string(block, "type");
                let at = open.get_mut(&index());
                let at = at.unwrap_or_else(|| panic!("an end without a start: {text}"));
                assert!(at.0 == kind && at.1, "it ends another block: {text}");
                at.1 = false;
            }
            "usage" => {
                assert!(!usage, "usage is told twice: {text}");
                usage = true;
                for name in ["inputTokens", "outputTokens"] {
                    let count = chunk.get("usage").and_then(|usage| usage.get(name));
                    assert!(
                        count.is_some_and(|count| count.number().is_some()),
                        "{text}"
                    );
                }
            }
            "finish" => {
                finished = true;
                let reason = chunk.get("reason").expect("a reason");
                let kind = string(reason, "kind");
                let failed = matches!(&*kind, "error" | "aborted");
                assert!(
                    failed || open.values().all(|(_, is_open)| !is_open),
                    "a block is open at the finish: {text}"
                );
                if failed {
                    let failure = reason.get("failure").expect("a failure");
                    for name in ["code", "message"] {
                        assert!(!string(failure, name).is_empty(), "{name} is empty: {text}");
                    }
                }
            }
            other => panic!("there is no chunk {other}: {text}"),
        }
    }
    finished
}
