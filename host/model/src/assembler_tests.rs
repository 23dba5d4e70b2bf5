use super::*;
use crate::failure::LlmFailure;

fn push_all(chunks: &[&str]) -> BlockAssembler {
    let mut assembler = BlockAssembler::new();
    for chunk in chunks {
        assembler.push(&Json::normalise(chunk).unwrap());
    }
    assembler
}

fn texts(blocks: &[Json]) -> Vec<String> {
    blocks
        .iter()
        .map(|block| block.as_str().to_owned())
        .collect()
}

#[test]
fn blocks_stand_in_order_of_first_appearance() {
    let assembler = push_all(&[
        r#"{"type":"block-start","index":5,"blockType":"text"}"#,
        r#"{"type":"reasoning-delta","index":2,"text":"r"}"#,
        r#"{"type":"text-delta","index":5,"text":"a"}"#,
        r#"{"type":"text-delta","index":5,"text":"b"}"#,
    ]);
    assert_eq!(
        texts(&assembler.blocks()),
        [
            r#"{"type":"text","text":"ab"}"#,
            r#"{"type":"reasoning","text":"r"}"#
        ]
    );
    assert_eq!(assembler.finish(), FinishReason::Stop);
}

#[test]
fn the_first_close_wins_and_later_deltas_are_ignored() {
    let assembler = push_all(&[
        r#"{"type":"text-delta","index":0,"text":"draft"}"#,
        r#"{"type":"block-end","index":0,"block":{"type":"text","text":"final","x":1}}"#,
        r#"{"type":"text-delta","index":0,"text":"!"}"#,
        r#"{"type":"block-end","index":0,"block":{"type":"text","text":"again"}}"#,
        r#"{"type":"block-end","index":1,"block":{"type":"citation","of":"x"}}"#,
    ]);
    assert_eq!(
        texts(&assembler.blocks()),
        [
            r#"{"type":"text","text":"final","x":1}"#,
            r#"{"type":"citation","of":"x"}"#
        ]
    );
}

#[test]
fn a_call_takes_its_newest_id_and_name_and_has_stand_ins_without() {
    let assembler = push_all(&[
        r#"{"type":"tool-call-delta","index":0,"id":"","argumentsDelta":"{\"a\""}"#,
        r#"{"type":"tool-call-delta","index":0,"id":"c1","name":"read","argumentsDelta":":1}"}"#,
        r#"{"type":"tool-call-delta","index":0,"id":"c2","name":"","argumentsDelta":""}"#,
        r#"{"type":"block-start","index":3,"blockType":"tool-call"}"#,
    ]);
    assert_eq!(
        texts(&assembler.blocks()),
        [
            r#"{"type":"tool-call","id":"c2","name":"read","arguments":"{\"a\":1}"}"#,
            r#"{"type":"tool-call","id":"call-3","name":"","arguments":""}"#
        ]
    );
}

#[test]
fn a_cut_answer_loses_its_calls_and_their_replay_entries() {
    let chunks = [
        r#"{"type":"text-delta","index":0,"text":"t"}"#,
        r#"{"type":"tool-call-delta","index":1,"id":"c","name":"n","argumentsDelta":""}"#,
        r#"{"type":"reasoning-delta","index":2,"text":"r"}"#,
    ];
    let finish = |reason: &str, state: &str| {
        let last =
            format!(r#"{{"type":"finish","reason":{{"kind":"{reason}"}},"replayState":{state}}}"#);
        let mut all = chunks.to_vec();
        all.push(&last);
        push_all(&all)
    };
    let state = r#"{"response":1,"blocks":["t","c","r"],"more":2}"#;
    let cut = finish("max-tokens", state);
    assert_eq!(cut.blocks().len(), 2);
    assert_eq!(
        cut.replay_state().unwrap().as_str(),
        r#"{"response":1,"blocks":["t","r"],"more":2}"#
    );
    let whole = finish("stop", state);
    assert_eq!(whole.blocks().len(), 3);
    assert_eq!(whole.replay_state().unwrap().as_str(), state);
    assert_eq!(
        finish("stop", r#"{"response":1,"blocks":["t"]}"#).replay_state(),
        None
    );
    assert_eq!(
        finish("stop", r#"{"response":1}"#)
            .replay_state()
            .unwrap()
            .as_str(),
        r#"{"response":1}"#
    );
}

#[test]
fn an_interrupted_answer_keeps_words_only() {
    let assembler = push_all(&[
        r#"{"type":"reasoning-delta","index":0,"text":"think"}"#,
        r#"{"type":"text-delta","index":1,"text":" \n\u00a0\ufeff"}"#,
        r#"{"type":"tool-call-delta","index":2,"id":"c","name":"n","argumentsDelta":"{}"}"#,
        r#"{"type":"block-end","index":3,"block":{"type":"text","text":"closed"}}"#,
        r#"{"type":"block-start","index":4,"blockType":"strange"}"#,
    ]);
    assert_eq!(
        texts(&assembler.interrupted_blocks()),
        [
            r#"{"type":"reasoning","text":"think"}"#,
            r#"{"type":"text","text":"closed"}"#
        ]
    );
}

#[test]
fn a_surrogate_pair_split_over_two_deltas_comes_out_whole() {
    let assembler = push_all(&[
        r#"{"type":"text-delta","index":0,"text":"a\ud83d"}"#,
        r#"{"type":"text-delta","index":0,"text":"\ude00b"}"#,
        r#"{"type":"text-delta","index":1,"text":"\ud83d"}"#,
    ]);
    assert_eq!(
        texts(&assembler.blocks()),
        [
            r#"{"type":"text","text":"a😀b"}"#,
            r#"{"type":"text","text":"\ud83d"}"#
        ]
    );
}

#[test]
fn the_last_usage_and_the_last_finish_win() {
    let assembler = push_all(&[
        r#"{"type":"usage","usage":{"inputTokens":1,"outputTokens":1}}"#,
        r#"{"type":"usage","usage":{"inputTokens":2,"outputTokens":3,"cacheReadTokens":0}}"#,
        r#"{"type":"finish","reason":{"kind":"stop"},"replayState":{"response":1}}"#,
        r#"{"type":"finish","reason":{"kind":"error","failure":{"message":"m","code":"SERVER"}}}"#,
    ]);
    let usage = assembler.token_usage().unwrap();
    assert_eq!(
        (
            usage.input,
            usage.output,
            usage.cache_read,
            usage.billed_input()
        ),
        (2, 3, Some(0), 2)
    );
    assert_eq!(
        assembler.finish(),
        FinishReason::Error(LlmFailure::new("SERVER", "m"))
    );
    assert_eq!(assembler.replay_state(), None);
}

#[test]
fn what_is_no_chunk_leaves_no_trace() {
    let assembler = push_all(&[
        r#"null"#,
        r#"{"type":"text-delta","text":"x"}"#,
        r#"{"type":"text-delta","index":-1,"text":"x"}"#,
        r#"{"type":"new-thing","index":0}"#,
        r#"{"type":"block-end","index":0}"#,
    ]);
    assert!(assembler.blocks().is_empty());
}
