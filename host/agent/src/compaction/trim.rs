//! Shorter contents for tool results (spec/loop.md §10.6): each is a
//! `compaction/prune` and, right behind it, the result with its new content.

use dsh_plugin::api::Trim;
use dsh_session::{Draft, Event, Json, Kind, Seq, Session, Value, estimate};

use super::error::CompactionError;
use crate::agent::Inner;
use crate::error::AgentError;

/// Carries out the trims of a row, up to the first that is none.
pub(super) fn carry_out(agent: &Inner, row: &str, trims: &[Trim]) -> Result<(), CompactionError> {
    for trim in trims {
        agent.log.append_all(|session| plan(session, row, trim))?;
    }
    Ok(())
}

fn plan(session: &Session, row: &str, trim: &Trim) -> Result<Vec<Draft>, CompactionError> {
    let wrong = |what: &str| CompactionError::Plan {
        row: row.to_owned(),
        what: format!("would trim node {}, {what}", trim.node),
    };
    let seq = Seq(u64::from(trim.node));
    let event = session.event(seq).map_err(AgentError::from)?;
    let event = event
        .filter(|event| event.kind == Kind::ToolResult && session.surface().contains(seq))
        .ok_or_else(|| wrong("which is no tool result of the surface"))?;
    let content = trim.content.iter().map(|text| Json::normalise(text));
    let content: Vec<Json> = content
        .collect::<Result<_, _>>()
        .map_err(|_| wrong("with a block that is no JSON"))?;
    let is_text = |block: &&Json| {
        block
            .get("type")
            .and_then(Value::string)
            .is_some_and(|kind| kind.is("text"))
    };
    let had = |block: &Json| old_blocks(&event).any(|old| old == block.value());
    // A picture may be left out, and none put in.
    if !content.iter().filter(|block| !is_text(block)).all(had) {
        return Err(wrong(
            "with a block that is neither text nor one of its own",
        ));
    }
    let data = with_content(&event, &content).ok_or_else(|| wrong("which has no content"))?;
    let before = estimate::event(&event);
    let after = data.get("message").map_or(0, estimate::message);
    if after >= before {
        return Err(wrong("to something that is not shorter"));
    }
    let prune = Json::object(|data| {
        data.object("shadowedRange", |range| {
            range.u64("start", seq.0).u64("end", seq.0);
        });
        data.array("shadowedSeqs", |seqs| {
            seqs.u64(seq.0);
        });
        data.u64("shadowedTokenCount", before);
    });
    let result = Draft::new(Kind::ToolResult, data)
        .replace(seq, seq)
        .sources(vec![seq]);
    Ok(vec![Draft::new(Kind::CompactionPrune, prune), result])
}

fn block(event: &Event) -> Option<Value<'_>> {
    let message = event.data.get("message")?;
    message.get("content")?.items().next()
}

fn old_blocks(event: &Event) -> impl Iterator<Item = Value<'_>> {
    let content = block(event).and_then(|block| block.get("content"));
    content.into_iter().flat_map(Value::items)
}

/// A tool result's data with another content, and everything else as it was.
fn with_content(event: &Event, content: &[Json]) -> Option<Json> {
    let block = block(event)?;
    let block = replaced(
        block,
        "content",
        &Json::array(|blocks| {
            for block in content {
                blocks.json(block);
            }
        }),
    );
    let list = Json::array(|blocks| {
        blocks.json(&block);
    });
    let message = replaced(event.data.get("message")?, "content", &list);
    Some(replaced(event.data.value(), "message", &message))
}

fn replaced(object: Value<'_>, member: &str, with: &Json) -> Json {
    Json::object(|out| {
        for (key, value) in object.entries() {
            if key.is(member) {
                out.json(member, with);
            } else {
                out.value(&key.decode(), value);
            }
        }
    })
}
