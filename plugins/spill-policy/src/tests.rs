use serde_json::{Value, json};

use super::shorten::{file_name, shortened};
use super::*;

const CAP: usize = 400;

fn payload(name: &str, text: &str) -> String {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": false});
    json!({"turn": 1, "step": 1, "callId": "A", "name": name, "arguments": {}, "raw": "{}", "result": result})
        .to_string()
}

/// What a chain that ends in `outcome` makes of a result, and what was stored.
fn spilled(payload: &str, outcome: &Value) -> (Option<Value>, Option<(String, String)>) {
    let Some(carry) = carry(payload, CAP) else {
        return (None, None);
    };
    let mut kept = None;
    let reviewed = reviewed(&carry, &outcome.to_string(), CAP, |name, text| {
        kept = Some((name.to_owned(), text.to_owned()));
        Some(format!("/spill/{name}"))
    });
    let reviewed = reviewed.map(|text| serde_json::from_str(&text).unwrap());
    (reviewed, kept)
}

fn accept() -> Value {
    json!({"kind": "accept"})
}

#[test]
fn a_result_spills_above_the_cap_and_not_at_it() {
    for (text, spills) in [
        ("x".repeat(CAP), false),
        ("x".repeat(CAP + 1), true),
        ("é".repeat(CAP / 2), false),
        (format!("{}x", "é".repeat(CAP / 2)), true),
        // Longer than the cap only as JSON.
        ("\n".repeat(CAP), false),
        ("\n".repeat(CAP + 1), true),
    ] {
        let (reviewed, kept) = spilled(&payload("t", &text), &accept());
        assert_eq!(reviewed.is_some(), spills, "{}", text.len());
        assert_eq!(kept, spills.then(|| ("A.txt".to_owned(), text)));
        if let Some(reviewed) = reviewed {
            let short = reviewed["content"][0]["text"].as_str().unwrap();
            assert!(
                short.len() <= CAP && short.contains("/spill/A.txt"),
                "{short}"
            );
        }
    }
}

#[test]
fn read_blocks_values_and_pictures_stay() {
    let long = "x".repeat(CAP + 1);
    let of_t = payload("t", &long);
    let picture = json!([{"type": "text", "text": long}, {"type": "image", "attachment": "a"}]);
    let stays = [
        (payload("read", &long), accept()),
        (of_t.clone(), json!({"kind": "block", "feedback": long})),
        (
            of_t.clone(),
            json!({"kind": "accept", "value": {"a": long}}),
        ),
        (
            of_t.clone(),
            json!({"kind": "accept", "content": [{"type": "text", "text": "short"}]}),
        ),
        (of_t, json!({"kind": "accept", "content": picture})),
    ];
    for (payload, outcome) in stays {
        assert_eq!(spilled(&payload, &outcome), (None, None), "{outcome}");
    }
}

#[test]
fn what_a_reviewer_put_in_its_place_spills_too() {
    let long = "y".repeat(CAP + 1);
    let outcome = json!({
        "kind": "accept",
        "content": [{"type": "text", "text": long}],
        "additionalContexts": [{"content": []}]
    });
    let (reviewed, kept) = spilled(&payload("t", "short"), &outcome);
    assert_eq!(kept.unwrap().1, long);
    let reviewed = reviewed.unwrap();
    assert_eq!(
        reviewed["additionalContexts"],
        outcome["additionalContexts"]
    );
    assert_eq!(reviewed["kind"], "accept");
}

#[test]
fn a_store_that_fails_and_a_cap_below_the_notice_leave_the_result_whole() {
    let long = payload("t", &"x".repeat(CAP + 1));
    let full = carry(&long, CAP).unwrap();
    assert_eq!(
        reviewed(&full, r#"{"kind":"accept"}"#, CAP, |_, _| None),
        None
    );
    let full = carry(&long, 3).unwrap();
    let stored = |_: &str, _: &str| Some("/x".to_owned());
    assert_eq!(reviewed(&full, r#"{"kind":"accept"}"#, 3, stored), None);
}

#[test]
fn a_short_result_carries_nothing_but_its_call() {
    assert_eq!(
        carry(&payload("t", "short"), CAP).unwrap(),
        r#"{"callId":"A"}"#
    );
}

#[test]
fn a_call_names_its_file_whatever_its_id_holds() {
    assert_eq!(file_name("call_1-a"), "call_1-a");
    assert_eq!(file_name("../../etc/é"), "------etc--");
    assert_eq!(file_name(""), "result");
    assert_eq!(file_name(&"x".repeat(500)).len(), 80);
}

#[test]
fn head_and_tail_share_what_the_notice_leaves() {
    let text: String = (0..200).map(|n| format!("{n:03} ")).collect();
    let short = shortened(&text, 400, "/tmp/x").unwrap();
    assert!(short.len() <= 400);
    assert!(short.starts_with("000 001 "));
    assert!(short.contains("199 \n\n("), "{short}");
    let shown = short.split("\n\n(").next().unwrap().len();
    assert!(short.contains(&format!("({} bytes are left out", text.len() - shown)));
}

#[test]
fn cuts_fall_between_characters() {
    for cap in 200..260 {
        let text = "€".repeat(400);
        let short = shortened(&text, cap, "/x").unwrap();
        assert!(short.len() <= cap);
        let preview = short.split('(').next().unwrap();
        assert!(preview.chars().all(|c| c == '€' || c == '\n'), "{short}");
    }
}

#[test]
fn a_cap_that_only_the_notice_fits_shows_only_the_notice() {
    let text = "x".repeat(1000);
    let bare = (0..400)
        .find_map(|cap| shortened(&text, cap, "/x"))
        .unwrap();
    assert!(bare.starts_with("(1000 bytes are left out"), "{bare}");
    assert!(shortened(&text, 10, "/x").is_none());
}
