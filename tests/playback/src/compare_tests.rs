use serde_json::{Value, json};

use super::compare;
use crate::recording::{Recording, Told};

fn told(seq: u64, kind: &str, data: Value, sources: &[u64]) -> Told {
    Told {
        seq,
        kind: kind.to_owned(),
        data,
        surface: Value::Null,
        sources: sources.to_vec(),
    }
}

/// A turn in which a person says something and one chunk is answered.
fn turn(first: u64, said: &str, ids: [&str; 2]) -> Vec<Told> {
    let [asked, answered] = ids;
    let message = json!({"role": "user", "id": asked, "source": {"kind": "user"}, "content": [{"type": "text", "text": said}]});
    let chunk =
        json!({"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": "a"}});
    let answer = json!({"turn": 1, "step": 1, "message": {"role": "assistant", "id": answered, "content": []}});
    vec![
        told(
            first,
            "agent/inbox/spliced",
            json!({"inserted": [message]}),
            &[],
        ),
        told(first + 1, "user/message", message, &[]),
        told(first + 2, "assistant/chunk", chunk, &[]),
        told(first + 3, "assistant/message", answer, &[first + 2]),
    ]
}

fn found(theirs: Vec<Told>, ours: &[Told]) -> Vec<String> {
    let recording = Recording {
        case: "case".to_owned(),
        cwd: String::new(),
        child: false,
        opens: true,
        events: theirs,
        lines: Vec::new(),
    };
    let outcome = compare(&recording, ours);
    outcome
        .differences
        .into_iter()
        .map(|found| found.what)
        .collect()
}

#[test]
fn numbers_and_ids_may_differ_where_they_mean_the_same() {
    let mut ours = turn(7, "hi", ["x", "y"]);
    // What a rule takes out shifts the numbers of what follows.
    ours.insert(0, told(6, "permission/preset", json!({}), &[]));
    assert_eq!(found(turn(0, "hi", ["a", "b"]), &ours), [""; 0]);
}

#[test]
fn an_id_that_stands_for_two_others_is_a_difference() {
    for (theirs, ours) in [(["a", "b"], ["x", "x"]), (["a", "a"], ["x", "y"])] {
        let found = found(turn(0, "hi", theirs), &turn(0, "hi", ours));
        assert!(found.len() == 1 && found[0].contains("ids"), "{found:?}");
    }
}

#[test]
fn another_word_another_source_and_another_place_on_the_surface_are_differences() {
    let found_in = |change: fn(&mut Vec<Told>)| {
        let mut ours = turn(0, "hi", ["a", "b"]);
        change(&mut ours);
        found(turn(0, "hi", ["a", "b"]), &ours)
    };
    assert_eq!(found_in(|_| ()), [""; 0]);
    let word = found_in(|ours| ours[1].data["content"][0]["text"] = "ho".into());
    assert!(word[0].contains("\"hi\"; ours \"ho\""), "{word:?}");
    let source = found_in(|ours| ours[3].sources = vec![1]);
    assert!(source[0].contains("sourceEventSeqs"), "{source:?}");
    let surface = found_in(|ours| ours[1].surface = "append".into());
    assert!(surface[0].contains("surfaceOp"), "{surface:?}");
}

#[test]
fn events_in_another_order_one_more_or_one_less_are_differences() {
    for change in [
        |ours: &mut Vec<Told>| ours.swap(0, 1),
        |ours: &mut Vec<Told>| drop(ours.pop()),
        |ours: &mut Vec<Told>| ours.push(told(4, "step/end", json!({}), &[])),
    ] {
        let mut ours = turn(0, "hi", ["a", "b"]);
        change(&mut ours);
        let found = found(turn(0, "hi", ["a", "b"]), &ours);
        assert!(
            found.len() == 1 && found[0].starts_with("kinds part"),
            "{found:?}"
        );
    }
}
