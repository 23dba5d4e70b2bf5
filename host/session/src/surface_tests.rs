use std::sync::Arc;

use crate::{Draft, Error, Header, Json, Kind, Seq, Session, SurfaceFault};

fn session() -> Session {
    Session::new(Header::new("s", 0)).unwrap()
}

fn user(id: &str) -> Draft {
    let data = Json::object(|o| {
        o.array("content", |_| {}).object("source", |o| {
            o.str("kind", "user");
        });
        o.str("role", "user").str("id", id);
    });
    Draft::new(Kind::UserMessage, data)
}

fn tool(id: &str, text: &str, error: bool) -> Draft {
    let data = Json::object(|o| {
        o.u64("turn", 1).u64("step", 1).object("message", |o| {
            o.object("source", |o| {
                o.str("kind", "tool").str("callId", "c");
            });
            o.array("content", |a| {
                a.object(|o| {
                    o.str("type", "tool-result").str("toolCallId", "c");
                    o.array("content", |a| {
                        a.str(text);
                    });
                    o.bool("isError", error);
                });
            });
            o.str("role", "user").str("id", id);
        });
    });
    Draft::new(Kind::ToolResult, data)
}

/// Three user messages.
fn three() -> Session {
    let mut session = session();
    for id in ["a", "b", "c"] {
        session.append(user(id).append(), 0).unwrap();
    }
    session
}

/// The rule that a draft breaks; nothing may have changed.
fn fault(session: &mut Session, draft: Draft) -> SurfaceFault {
    let before = (
        session.next_seq(),
        session.surface().nodes().to_vec(),
        session.digest().unwrap(),
    );
    let error = session.append(draft, 0).unwrap_err();
    let after = (
        session.next_seq(),
        session.surface().nodes().to_vec(),
        session.digest().unwrap(),
    );
    assert_eq!(before, after, "a refused event leaves no trace");
    match error {
        Error::Surface { fault, .. } => fault,
        other => panic!("{other}"),
    }
}

fn seqs(list: &[u64]) -> Vec<Seq> {
    list.iter().copied().map(Seq).collect()
}

#[test]
fn surface_kinds_need_an_operation_and_others_take_none() {
    let mut session = session();
    assert_eq!(fault(&mut session, user("a")), SurfaceFault::MissingOp);
    let todo = || Draft::new(Kind::TodoWrite, Json::empty_object());
    assert_eq!(
        fault(&mut session, todo().append()),
        SurfaceFault::OpOnLogOnly
    );
    assert_eq!(
        fault(&mut session, todo().sources(vec![])),
        SurfaceFault::SourcesOnLogOnly
    );
}

#[test]
fn a_replace_needs_both_ends_on_the_surface_in_order() {
    let mut session = three();
    let replace = |start, end| {
        user("r")
            .replace(Seq(start), Seq(end))
            .sources(seqs(&[0, 1, 2]))
    };
    assert_eq!(
        fault(&mut session, replace(7, 1)),
        SurfaceFault::StartNotFound(Seq(7))
    );
    assert_eq!(
        fault(&mut session, replace(0, 7)),
        SurfaceFault::EndNotFound(Seq(7))
    );
    assert_eq!(
        fault(&mut session, replace(2, 0)),
        SurfaceFault::Reversed(Seq(2), Seq(0))
    );
}

#[test]
fn position_decides_not_number() {
    let mut session = three();
    session
        .append(user("r").replace(Seq(0), Seq(1)).sources(seqs(&[1, 0])), 0)
        .unwrap();
    assert_eq!(session.surface().nodes(), seqs(&[3, 2]));
    session
        .append(user("s").replace(Seq(3), Seq(2)).sources(seqs(&[2, 3])), 0)
        .unwrap();
    assert_eq!(session.surface().nodes(), seqs(&[4]));
    assert_eq!(session.surface().replace_generation(), 2);
}

#[test]
fn rejects_a_replace_that_leaves_a_shadowed_node_out() {
    let mut session = three();
    let partial = user("r").replace(Seq(0), Seq(2)).sources(seqs(&[1]));
    assert_eq!(
        fault(&mut session, partial),
        SurfaceFault::NotCovered(seqs(&[0, 2]))
    );
    let none = user("r").replace(Seq(1), Seq(1));
    assert_eq!(
        fault(&mut session, none),
        SurfaceFault::NotCovered(seqs(&[1]))
    );
}

#[test]
fn sources_are_earlier_distinct_and_seldom_empty() {
    let mut session = three();
    let with = |list: &[u64]| user("r").append().sources(seqs(list));
    assert_eq!(fault(&mut session, with(&[])), SurfaceFault::SourcesEmpty);
    assert_eq!(
        fault(&mut session, with(&[1, 0, 1])),
        SurfaceFault::SourcesDuplicate(Seq(1))
    );
    assert_eq!(
        fault(&mut session, with(&[0, 3])),
        SurfaceFault::SourcesNotEarlier(Seq(3))
    );
    let many: Vec<u64> = (0..40).rev().chain([5]).collect();
    assert_eq!(
        fault(&mut session, with(&many)),
        SurfaceFault::SourcesDuplicate(Seq(5))
    );
    let assistant = Draft::new(Kind::AssistantMessage, Json::empty_object());
    session
        .append(assistant.append().sources(vec![]), 0)
        .unwrap();
}

#[test]
fn a_tool_result_may_only_rewrite_the_content_of_one_tool_result() {
    let mut session = session();
    session.append(user("a").append(), 0).unwrap();
    session
        .append(tool("t", "long", false).append(), 0)
        .unwrap();
    let rewrite =
        |draft: Draft, start, end| draft.replace(Seq(start), Seq(end)).sources(seqs(&[0, 1]));
    let short = || tool("t", "short", false);
    assert_eq!(
        fault(&mut session, rewrite(short(), 0, 1)),
        SurfaceFault::ToolRange
    );
    assert_eq!(
        fault(&mut session, rewrite(short(), 0, 0)),
        SurfaceFault::ToolTarget(Seq(0))
    );
    for other in [tool("t", "short", true), tool("u", "short", false)] {
        assert_eq!(
            fault(&mut session, rewrite(other, 1, 1)),
            SurfaceFault::ToolRewrite
        );
    }
    let event = session.append(rewrite(short(), 1, 1), 0).unwrap();
    assert_eq!(session.surface().nodes(), [Seq(0), event.seq]);
}

#[test]
fn removed_vocabulary_is_refused_before_the_surface_is_asked() {
    let mut session = session();
    let fallback = Json::object(|o| {
        o.str("reason", "fallback");
    });
    let error = session
        .append(Draft::new(Kind::RequestHeader, fallback).append(), 0)
        .unwrap_err();
    assert_eq!(error.code(), "EVENT_FORMAT_REMOVED");
    let foreign = Kind::from_name("request/header-delta");
    assert!(
        session
            .append(Draft::new(foreign, Json::null()), 0)
            .is_err()
    );
    assert!(session.log().is_empty());
}

#[test]
fn the_newest_event_of_a_kind_is_known() {
    let mut session = three();
    let foreign = Kind::from_name("acme/x");
    assert!(session.last_of(&foreign).is_none() && session.last_of(&Kind::TurnStart).is_none());
    let note = session
        .append(Draft::new(foreign.clone(), Json::null()), 5)
        .unwrap();
    assert!(Arc::ptr_eq(session.last_of(&foreign).unwrap(), &note));
    assert_eq!(session.last_of(&Kind::UserMessage).unwrap().seq, Seq(2));
    assert_eq!(
        note.line(),
        r#"{"type":"acme/x","seq":3,"time":5,"data":null,"ignorable":true}"#
    );
}

/// Whatever was replaced, and by what, each node is found where it stands and no other seq is.
#[test]
fn a_node_is_found_after_any_replaces() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for _ in 0..40 {
        let mut session = session();
        for index in 0..60 {
            let nodes = session.surface().nodes().to_vec();
            let draft = user(&format!("m{index}"));
            let draft = if nodes.is_empty() || below(3) == 0 {
                draft.append()
            } else {
                let first = below(nodes.len());
                let last = first + below((nodes.len() - first).min(4));
                let gone = nodes[first..=last].to_vec();
                draft.replace(nodes[first], nodes[last]).sources(gone)
            };
            session.append(draft, 0).unwrap();
            let nodes = session.surface().nodes();
            for seq in (0..=index + 1).map(Seq) {
                let stands = nodes.iter().position(|node| *node == seq);
                assert_eq!(session.surface().position(seq), stands);
            }
        }
    }
}
