use std::sync::Arc;

use dsh_session::{
    Draft, Event, Header, Json, JsonError, Kind, RequestHeader, Seq, Session, Stored, Surface,
    SurfaceOp, Value, core_fork, estimate, rows, title,
};

use crate::cases::{flag, member, number, root, seqs, table, text};

#[test]
fn json_goes_through_the_lossless_boundary_as_upstream() {
    table("tbl-json-lossless", |name, input, expected| {
        let got = Json::normalise(&text(input, "json"));
        if flag(expected, "accepted") {
            assert_eq!(
                got.map(|json| json.as_str().to_owned()),
                Ok(text(expected, "text")),
                "{name}"
            );
        } else {
            assert_eq!(got, Err(JsonError::NotLossless), "{name}");
        }
    });
}

#[test]
fn deep_nesting_is_accepted() {
    table_object("tbl-json-deep", |input, expected| {
        let depth = number(input, "depth") as usize;
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(Json::normalise(&deep).is_ok(), flag(expected, "accepted"));
    });
}

fn table_object(name: &str, check: impl Fn(Value<'_>, Value<'_>)) {
    let dir = root().join(name);
    let input = crate::cases::json(&dir.join("input.json"));
    let expected = crate::cases::json(&dir.join("expected.json"));
    check(input.value(), expected.value());
}

/// Surface metadata as a script gives it. What a draft cannot say comes as `Err`: upstream refuses it all.
fn with_options(draft: Draft, options: Option<Value<'_>>) -> Result<Draft, String> {
    let Some(options) = options else {
        return Ok(draft);
    };
    let line = Json::object(|o| {
        o.str("type", "user/message")
            .u64("seq", 9_007_199_254_740_991)
            .u64("time", 0)
            .null("data");
        for (key, value) in options.entries() {
            o.value(&key.decode(), value);
        }
    });
    let event = Event::parse(line.as_str()).map_err(|error| error.to_string())?;
    let mut draft = draft;
    draft.surface_op = event.surface_op;
    draft.source_event_seqs = event.source_event_seqs.map(|seqs| seqs.to_vec());
    Ok(draft)
}

fn try_append(session: &mut Session, op: Value<'_>, time: i64) -> Result<Arc<Event>, String> {
    let data = Json::normalise(&text(op, "d")).map_err(|error| error.to_string())?;
    let raw = op
        .get("oj")
        .map(|raw| Json::normalise(&raw.text().unwrap()));
    let raw = raw.transpose().map_err(|error| error.to_string())?;
    let options = raw.as_ref().map(Json::value).or(op.get("o"));
    // Scripts name foreign kinds; upstream cannot mark them, so neither does the test.
    let draft = Draft::new(Kind::from_name(&text(op, "t")), data).ignorable(false);
    session
        .append(with_options(draft, options)?, time)
        .map_err(|error| error.to_string())
}

#[test]
fn append_checks_and_commits_as_upstream() {
    table("tbl-append", |name, input, expected| {
        let mut session = Session::new(Header::new("t", 1000)).unwrap();
        let results = member(expected, "ops").items();
        for (op, want) in member(input, "ops").items().zip(results) {
            let wanted = want.get("line").and_then(Value::text);
            // The time is upstream's clock, which ticks on refused appends too.
            let time = wanted
                .as_ref()
                .map_or(0, |line| Event::parse(line).unwrap().time);
            let got = try_append(&mut session, op, time);
            assert_eq!(got.is_ok(), flag(want, "ok"), "{name}: {got:?}");
            assert_eq!(
                got.ok().map(|event| event.line()).as_deref(),
                wanted.as_deref(),
                "{name}"
            );
        }
        assert_eq!(
            session.next_seq().0,
            number(expected, "eventCount"),
            "{name}"
        );
        let nodes = seqs(session.surface().nodes());
        assert_eq!(nodes.value(), member(expected, "nodes"), "{name}");
        let generation = session.surface().replace_generation();
        assert_eq!(generation, number(expected, "replaceGeneration"), "{name}");
    });
}

/// The header as upstream shows it in memory, absent members left out.
pub(crate) fn header_json(header: &Header, depth: bool) -> Json {
    Json::object(|o| {
        o.u64("version", 0)
            .str("id", &header.id)
            .u64("createdAt", header.created_at);
        o.opt_str("cwd", header.cwd.as_deref());
        o.opt_str("parentSession", header.parent_session.as_deref());
        if let Some(length) = header.seed_length {
            o.u64("seedLength", length);
        }
        if header.origin.is_some() {
            o.str("origin", "subagent");
        }
        if let Some(value) = header.delegation_depth.filter(|_| depth) {
            o.u64("delegationDepth", value);
        }
        o.opt_str("agentPreset", header.agent_preset.as_deref());
    })
}

#[test]
fn seeds_are_checked_and_closed_as_upstream() {
    table("tbl-seed", |name, input, expected| {
        let events: Result<Vec<_>, _> = member(input, "seed")
            .items()
            .map(|event| Event::parse(event.as_str()).map(Arc::new))
            .collect();
        let session =
            events.and_then(|seed| Session::with_seed(Header::new("t", 1000), seed, 1001));
        assert_eq!(
            session.is_ok(),
            flag(expected, "ok"),
            "{name}: {:?}",
            session.err()
        );
        let Some(want) = expected.get("value") else {
            return;
        };
        let session = session.unwrap();
        assert_eq!(session.next_seq().0, number(want, "eventCount"), "{name}");
        assert_eq!(
            session.first_live_seq().0,
            number(want, "firstLiveSeq"),
            "{name}"
        );
        assert_eq!(
            session.last().unwrap().line(),
            member(want, "last").as_str(),
            "{name}"
        );
        let header = header_json(session.header(), true);
        assert_eq!(header.value(), member(want, "header"), "{name}");
    });
}

#[test]
fn a_surface_window_uses_absolute_seqs() {
    table("tbl-surface-window", |name, input, expected| {
        let mut surface = Surface::at(Seq(number(input, "baseSeq")));
        let events: Vec<Arc<Event>> = member(input, "events")
            .items()
            .map(|event| Arc::new(Event::parse(event.as_str()).unwrap()))
            .collect();
        let find = |seq| Ok(events.iter().find(|event| event.seq == seq).cloned());
        let result = events
            .iter()
            .try_for_each(|event| surface.push(event, find));
        assert_eq!(result.is_ok(), flag(expected, "ok"), "{name}: {result:?}");
        if let Some(want) = expected.get("value") {
            assert_eq!(
                seqs(surface.nodes()).value(),
                member(want, "nodes"),
                "{name}"
            );
            let generation = surface.replace_generation();
            assert_eq!(generation, number(want, "replaceGeneration"), "{name}");
        }
    });
}

#[test]
fn headers_are_created_as_upstream() {
    table("tbl-create-header", |name, input, expected| {
        // A header read back from a line says what a script's untyped metadata says.
        let meta = member(input, "meta");
        let line = Json::object(|o| {
            o.str("type", "session").u64("version", 0).str("id", "t");
            for (key, value) in meta.entries() {
                o.value(&key.decode(), value);
            }
            if meta.get("createdAt").is_none() {
                o.u64("createdAt", 1000);
            }
            if meta.get("delegationDepth").is_none() {
                o.u64("delegationDepth", 0);
            }
        });
        let header = Header::parse_line(line.as_str()).and_then(Session::new);
        assert_eq!(header.is_ok(), flag(expected, "ok"), "{name}");
        if let Some(want) = expected.get("value") {
            let depth = meta.get("delegationDepth").is_some();
            let got = header_json(header.unwrap().header(), depth);
            assert_eq!(got.value(), want, "{name}");
        }
    });
}

#[test]
fn header_lines_are_read_and_written_as_upstream() {
    table("tbl-header-line", |name, input, expected| {
        let got = Header::parse_any_version(&text(input, "line"));
        // Upstream keeps a cwd of another type until the session is made; so does `check`.
        let want = expected.get("value").filter(|value| value.is_object());
        assert_eq!(got.is_ok(), want.is_some(), "{name}: {got:?}");
        let (Ok((header, version)), Some(want)) = (got, want) else {
            return;
        };
        let cwd_is_text = want.get("cwd").is_none_or(|cwd| cwd.string().is_some());
        assert_eq!(header.check().is_ok(), cwd_is_text, "{name}");
        if cwd_is_text && version == 0.0 {
            assert_eq!(header_json(&header, true).value(), want, "{name}");
            let rewritten = member(member(expected, "rewritten"), "value")
                .text()
                .unwrap();
            assert_eq!(header.line(), rewritten, "{name}");
        }
    });
}

/// The lines of a batch. Test batches hold events that no session could; those are never packed.
fn batch_lines(events: &[Stored]) -> Vec<String> {
    let mut out = String::new();
    let mut batch: Vec<Arc<Event>> = Vec::new();
    for item in events {
        match item {
            Stored::Sound(event) => batch.push(event.clone()),
            Stored::Odd { line, .. } => {
                rows::write_batch(&batch, true, &mut out);
                batch.clear();
                out.push_str(line.as_str());
                out.push('\n');
            }
        }
    }
    rows::write_batch(&batch, true, &mut out);
    out.lines().map(str::to_owned).collect()
}

fn decoded(line: &str) -> Vec<String> {
    let events = rows::decode_line(line).unwrap();
    events.iter().map(stored_line).collect()
}

fn stored_line(item: &Stored) -> String {
    let mut out = String::new();
    item.write_line(&mut out);
    out
}

#[test]
fn batches_are_packed_as_upstream() {
    table("tbl-pack", |name, input, expected| {
        let value = member(expected, "value");
        let events = member(input, "events").items();
        let events: Vec<Stored> = events
            .flat_map(|event| rows::decode_line(event.as_str()).unwrap())
            .collect();
        let lines = batch_lines(&events);
        let want: Vec<_> = member(value, "lines")
            .items()
            .map(|line| line.text().unwrap())
            .collect();
        assert_eq!(lines, want, "{name}");
        let back: Vec<String> = lines.iter().flat_map(|line| decoded(line)).collect();
        let before: Vec<String> = events.iter().map(stored_line).collect();
        assert_eq!(back == before, flag(value, "roundTrip"), "{name}");
    });
}

#[test]
fn rows_are_unpacked_as_upstream() {
    table("tbl-decode-row", |name, input, expected| {
        let got = rows::decode_line(member(input, "value").as_str());
        assert_eq!(got.is_ok(), flag(expected, "ok"), "{name}: {got:?}");
        if let Some(want) = expected.get("value") {
            let got: Vec<String> = got.unwrap().iter().map(stored_line).collect();
            let want: Vec<&str> = want.items().map(Value::as_str).collect();
            assert_eq!(got, want, "{name}");
        }
    });
}

#[test]
fn request_headers_are_canonicalised_and_compared_as_upstream() {
    let mut headers = Vec::new();
    table("tbl-header-canonical", |name, input, expected| {
        let header = RequestHeader::canonical(input).unwrap();
        assert_eq!(header.json().value(), expected, "{name}");
        headers.push(header);
    });
    table("tbl-header-equals", |name, input, expected| {
        let pick = |key| &headers[number(input, key) as usize];
        assert_eq!(
            Some(pick("a").same(pick("b"))),
            expected.bool(),
            "{name} {input:?}"
        );
    });
}

#[test]
fn forks_cut_where_upstream_does() {
    let mut header = Header::new("src", 1000);
    header.cwd = Some("/w".into());
    let mut source = Session::new(header).unwrap();
    let mut put = |kind: Kind, data: &str| {
        let draft = Draft::new(kind.clone(), Json::normalise(data).unwrap());
        source
            .append(
                if kind.is_surface() {
                    draft.append()
                } else {
                    draft
                },
                1,
            )
            .unwrap();
    };
    put(Kind::TurnStart, r#"{"turn":1}"#);
    put(
        Kind::UserMessage,
        r#"{"content":[],"source":{"kind":"user"},"role":"user","id":"u"}"#,
    );
    put(Kind::TurnEnd, r#"{"turn":1,"reason":{"kind":"completed"}}"#);
    put(
        Kind::SessionTitle,
        r#"{"title":"t","messageSeqs":[],"source":{"kind":"user"}}"#,
    );
    put(Kind::TurnStart, r#"{"turn":2}"#);
    put(Kind::TodoWrite, r#"{"todos":[]}"#);
    let empty = Session::new(Header::new("empty", 1000)).unwrap();
    table("tbl-fork", |name, input, expected| {
        let code = expected
            .path(&["error", "code"])
            .and_then(Value::text)
            .unwrap_or_default();
        // Whether ids are free and sessions live is known to whoever holds the sessions.
        if matches!(
            &*code,
            "SESSION_ALREADY_EXISTS" | "SESSION_NOT_FOUND" | "SESSION_NOT_LIVE"
        ) {
            return;
        }
        let from = input.get("source").and_then(Value::text);
        let from = if from.as_deref() == Some("empty") {
            &empty
        } else {
            &source
        };
        let child = input
            .get("childId")
            .and_then(Value::text)
            .unwrap_or("session-1".into());
        let boundary = input.get("boundary").and_then(Value::f64);
        let got = core_fork(from, boundary, &child, 1000);
        assert_eq!(got.is_ok(), flag(expected, "ok"), "{name}: {got:?}");
        match got {
            Err(error) => assert_eq!(error.code(), code, "{name}"),
            Ok(header) => {
                let mut seed = from.log().to_vec().unwrap();
                seed.truncate(header.seed_length.unwrap() as usize);
                let child = Session::with_seed(header, seed, 1).unwrap();
                let want = member(expected, "value");
                if let Some(want) = want.get("header") {
                    let shown = Json::restore(&want.as_str().replace("\"T\"", "1000")).unwrap();
                    assert_eq!(header_json(child.header(), true), shown, "{name}");
                }
                let length = want
                    .get("seedLength")
                    .or(want.path(&["header", "seedLength"]));
                assert_eq!(
                    child.header().seed_length,
                    length.and_then(Value::u64),
                    "{name}"
                );
                assert_eq!(child.next_seq().0, number(want, "eventCount"), "{name}");
                let first_live = want.get("firstLiveSeq").and_then(Value::u64);
                let got = child.first_live_seq().0;
                assert_eq!(got, first_live.unwrap_or(got), "{name}");
                let last = child.last().unwrap();
                assert_eq!(last.kind.as_str(), text(want, "lastType"), "{name}");
            }
        }
    });
}

#[test]
fn tokens_are_estimated_as_upstream() {
    table("tbl-estimate", |name, input, expected| {
        assert_eq!(
            Some(estimate::message(input)),
            expected.u64(),
            "{name} {input:?}"
        );
    });
    table("tbl-estimate-header", |name, input, expected| {
        let header = RequestHeader::canonical(input).ok();
        let measure = |by: fn(&RequestHeader) -> u64| header.as_ref().map_or(0, by);
        assert_eq!(
            measure(estimate::system),
            number(expected, "system"),
            "{name}"
        );
        assert_eq!(
            measure(estimate::tools),
            number(expected, "tools"),
            "{name}"
        );
    });
}

#[test]
fn titles_are_cleaned_and_cut_as_upstream() {
    table("tbl-title", |name, input, expected| {
        let input = text(input, "text");
        assert_eq!(
            title::normalise(&input, 80),
            text(expected, "normalized"),
            "{name}"
        );
        assert_eq!(
            title::normalise(&input, 10),
            text(expected, "normalized10"),
            "{name}"
        );
        assert_eq!(
            title::fallback(&input, 5, 40),
            text(expected, "fallback"),
            "{name}"
        );
        assert_eq!(
            title::cut(&input, 7),
            text(expected, "truncated7"),
            "{name}"
        );
    });
    table("tbl-title-messages", |name, input, expected| {
        let mut session = Session::new(Header::new("t", 0)).unwrap();
        for message in member(input, "messages").items() {
            let mut draft = Draft::new(Kind::UserMessage, message.to_json());
            draft.surface_op = Some(SurfaceOp::Append);
            session.append(draft, 0).unwrap();
        }
        let got = Json::array(|a| {
            for event in &session.log().to_vec().unwrap() {
                if let Some(text) = title::eligible_prompt(event) {
                    a.object(|o| {
                        o.u64("seq", event.seq.0).str("text", &text);
                    });
                }
            }
        });
        assert_eq!(got.value(), expected, "{name}");
    });
}
