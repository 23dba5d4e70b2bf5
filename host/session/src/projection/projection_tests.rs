use super::*;
use crate::{Draft, Header, Session};

/// A log of these drafts, ten milliseconds apart.
fn log(drafts: Vec<Draft>) -> Vec<Arc<Event>> {
    let mut session = Session::new(Header::new("s", 0)).unwrap();
    let events = drafts.into_iter().enumerate();
    events
        .map(|(at, draft)| session.append(draft, at as i64 * 10).unwrap())
        .collect()
}

fn draft(kind: Kind, data: &str) -> Draft {
    Draft::new(kind, Json::normalise(data).unwrap())
}

fn prompt(text: &str) -> Draft {
    let data = format!(
        r#"{{"content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"user"}},"role":"user","id":"u"}}"#
    );
    draft(Kind::UserMessage, &data).append()
}

fn title(text: &str) -> Draft {
    let data = format!(r#"{{"title":"{text}","messageSeqs":[],"source":{{"kind":"user"}}}}"#);
    draft(Kind::SessionTitle, &data)
}

fn price(start: u64, end: u64, tokens: u64) -> Draft {
    let data = format!(
        r#"{{"shadowedRange":{{"start":{start},"end":{end}}},"shadowedSeqs":[],"shadowedTokenCount":{tokens}}}"#
    );
    draft(Kind::CompactionPrune, &data)
}

fn folded(registry: &Registry, events: &[Arc<Event>]) -> Projections {
    let mut projections = registry.start();
    events.iter().for_each(|event| projections.fold(event));
    projections
}

/// A unit that counts the events that reach it.
struct Counter {
    version: u64,
    reads: Vec<Kind>,
    visible: bool,
}

struct Count(u64);

impl Unit for Counter {
    fn key(&self) -> &str {
        "counter"
    }
    fn version(&self) -> u64 {
        self.version
    }
    fn reads(&self) -> &[Kind] {
        &self.reads
    }
    fn is_visible(&self) -> bool {
        self.visible
    }
    fn init(&self) -> Box<dyn State> {
        Box::new(Count(0))
    }
    fn parse(&self, state: Value<'_>, _: Option<Seq>) -> Option<Box<dyn State>> {
        Some(Box::new(Count(state.u64()?)))
    }
}

impl State for Count {
    fn apply(&mut self, _: &Look<'_>) -> Result<bool, Error> {
        self.0 += 1;
        Ok(true)
    }
    fn json(&self, _: Option<Seq>) -> Json {
        Json::restore(&self.0.to_string()).unwrap()
    }
    fn view(&self) -> Json {
        self.json(None)
    }
}

fn counter(version: u64, reads: &[Kind]) -> Arc<dyn Unit> {
    Arc::new(Counter {
        version,
        reads: reads.to_vec(),
        visible: true,
    })
}

#[test]
fn a_unit_registered_twice_goes_with_its_second_leave_and_another_version_is_refused() {
    let mut registry = Registry::new();
    registry.register(counter(1, &[])).unwrap();
    registry.register(counter(1, &[])).unwrap();
    let refused = registry.register(counter(2, &[])).unwrap_err();
    assert_eq!(refused.code(), "PROJECTION_VERSION_TAKEN");
    registry.unregister("counter");
    assert!(registry.start().snapshot().get("counter").is_some());
    registry.unregister("counter");
    assert!(registry.start().snapshot().get("counter").is_none());
    registry.register(counter(2, &[])).unwrap();
}

#[test]
fn only_what_a_unit_reads_reaches_it_foreign_kinds_too() {
    let foreign = Kind::from_name("acme/note");
    let mut registry = Registry::new();
    let reads = [Kind::TurnEnd, foreign.clone(), Kind::TurnEnd];
    registry.register(counter(1, &reads)).unwrap();
    let events = log(vec![
        draft(Kind::TurnStart, "{}"),
        draft(foreign, "{}"),
        draft(Kind::from_name("acme/other"), "{}"),
        draft(Kind::TurnEnd, "{}"),
    ]);
    let value = folded(&registry, &events).snapshot();
    assert_eq!(value.get("counter").unwrap().as_str(), "2");
    assert_eq!(value.as_of, Some(Seq(3)));
}

#[test]
fn clients_hear_of_changes_and_of_nothing_else() {
    let mut projections = Registry::standard().start();
    let mut heard = Vec::new();
    let events = log(vec![
        draft(Kind::TurnStart, "{}"),
        title("A"),
        title("A"),
        prompt("hello"),
        title("B"),
    ]);
    for event in &events {
        projections.fold_telling(event, |change| {
            heard.push(format!("{} {} {}", change.seq, change.key, change.value));
        });
    }
    let want = [
        r#"1 title "A""#,
        r#"3 contextPressure {}"#,
        r#"3 contextBreakdown {"systemTokens":0,"toolsTokens":0,"messageTokens":10}"#,
        r#"4 title "B""#,
    ];
    assert_eq!(heard, want);

    let mut hidden = Registry::new();
    hidden
        .register(Arc::new(Counter {
            version: 1,
            reads: vec![Kind::TurnStart],
            visible: false,
        }))
        .unwrap();
    let mut projections = hidden.start();
    projections.fold_telling(&events[0], |change| panic!("{change:?} is not for clients"));
    assert!(projections.snapshot().values.is_empty());
    assert!(projections.checkpoint().get("counter").is_some());
}

#[test]
fn a_price_counts_for_the_next_event_only_also_across_a_checkpoint() {
    let tokens = |events: &[Arc<Event>], cut: usize| {
        let registry = Registry::standard();
        let rows = folded(&registry, &events[..cut]).checkpoint();
        let rows = Rows::read(rows.json().value());
        let base = registry.restore_floor(&rows).unwrap();
        let next = Seq(events.len() as u64);
        let rest = events[base.0 as usize..].iter().cloned().map(Ok);
        let restored = registry.restore(&rows, base, next, rest).unwrap();
        let view = restored.snapshot().get("contextBreakdown").unwrap().clone();
        view.get("messageTokens").and_then(Value::u64).unwrap()
    };
    let replacement = || {
        let mut draft = prompt("tiny");
        draft = draft.replace(Seq(0), Seq(0)).sources(vec![Seq(0)]);
        draft
    };
    let adjacent = log(vec![prompt("hello world"), price(0, 0, 11), replacement()]);
    // 11, minus its price, plus the replacement's 9; and 11 where the price came too early to count.
    let apart = log(vec![
        prompt("hello world"),
        price(0, 0, 11),
        draft(Kind::TurnStart, "{}"),
        replacement(),
    ]);
    for cut in 0..=3 {
        assert_eq!(tokens(&adjacent, cut), 9, "cut at {cut}");
    }
    for cut in 0..=4 {
        assert_eq!(tokens(&apart, cut), 11, "cut at {cut}");
    }
}

#[test]
fn a_unit_that_cannot_fold_a_log_takes_no_other_with_it() {
    let mut events = vec![prompt("a"), prompt("b"), price(0, 0, 9)];
    let both = prompt("ab").replace(Seq(0), Seq(1));
    events.push(both.sources(vec![Seq(0), Seq(1)]));
    events.push(title("T"));
    let events = log(events);
    let registry = Registry::standard();
    let projections = folded(&registry, &events);
    let snapshot = projections.snapshot();
    let keys: Vec<&str> = snapshot.values.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, ["tokenUsage", "sessionStats", "title"]);
    let fault = projections.fault("contextPressure").unwrap();
    assert_eq!(fault.code(), "TOKEN_SURFACE_UNPRICED");
    assert!(fault.to_string().contains("seq 3"), "{fault}");
    assert_eq!(projections.fault("title"), None);
    let views = views(events.iter().cloned().map(Ok)).unwrap();
    assert_eq!(views.get("title").unwrap().as_str(), "\"T\"");
    assert_eq!(views.get("contextPressure"), None);
}

#[test]
fn a_later_sample_of_a_step_takes_the_place_of_the_earlier_one() {
    let usage = |step: u64, input: u64| {
        let data = format!(
            r#"{{"turn":1,"step":{step},"chunk":{{"type":"usage","usage":{{"inputTokens":{input},"outputTokens":1}}}}}}"#
        );
        draft(Kind::AssistantChunk, &data)
    };
    let events = log(vec![usage(1, 5), usage(1, 7), usage(2, 10), usage(1, 100)]);
    let total = |count: usize| {
        let snapshot = folded(&Registry::standard(), &events[..count]).snapshot();
        let view = snapshot.get("tokenUsage").unwrap();
        view.get("uncachedInputTokens")
            .and_then(Value::u64)
            .unwrap()
    };
    // Only the last sample can be replaced: a step that comes again later adds.
    assert_eq!([1, 2, 3, 4].map(total), [5, 7, 17, 117]);
}

#[test]
fn states_that_are_none_are_refused() {
    let cases: [(&dyn Unit, &[&str]); 5] = [
        (&Title, &["7", "{}"]),
        (&TokenUsage, &["null", r#"{"totals":{},"last":null}"#]),
        (
            &ContextPressure,
            &[
                "{}",
                r#"{"surfaceTokens":"1"}"#,
                r#"{"surfaceTokens":1,"pressureTokens":2}"#,
                r#"{"surfaceTokens":1,"contextWindow":null}"#,
            ],
        ),
        (
            &ContextBreakdown,
            &[r#"{"systemTokens":0,"toolsTokens":0}"#],
        ),
        (&SessionStats, &["{}", "[]"]),
    ];
    for (unit, states) in cases {
        for state in states {
            let state = Json::restore(state).unwrap();
            assert!(
                unit.parse(state.value(), None).is_none(),
                "{} {state}",
                unit.key()
            );
        }
        let init = unit.init().json(None);
        let again = unit.parse(init.value(), None).unwrap();
        assert_eq!(again.json(None), init, "{}", unit.key());
    }
}

#[test]
fn an_open_step_and_its_calls_survive_a_checkpoint() {
    let events = log(vec![
        draft(Kind::StepStart, r#"{"turn":1,"step":1}"#),
        draft(Kind::ToolCall, r#"{"turn":1,"step":1,"callId":"b"}"#),
        draft(Kind::ToolCall, r#"{"turn":1,"step":1,"callId":"7"}"#),
        draft(
            Kind::AssistantChunk,
            r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x"}}"#,
        ),
        draft(
            Kind::AssistantChunk,
            r#"{"step":1,"turn":1,"chunk":{"type":"text-delta","index":0,"text":"y"}}"#,
        ),
    ]);
    let rows = folded(&Registry::standard(), &events).checkpoint();
    let state = &rows.get("sessionStats").unwrap().state;
    assert!(
        state.as_str().ends_with(
            r#""openStep":{"turn":1,"step":1,"startTime":0,"firstTokenTime":30},"pendingCalls":{"7":20,"b":10}}"#
        ),
        "{state}"
    );
    let again = SessionStats.parse(state.value(), Some(Seq(4))).unwrap();
    assert_eq!(again.json(Some(Seq(4))), *state);
}

#[test]
fn a_chunk_is_told_by_its_first_bytes_and_by_its_members() {
    let tag_of = |data: &str| {
        let event = log(vec![draft(Kind::AssistantChunk, data)]).remove(0);
        chunk::tag(&event).map(str::to_owned)
    };
    for (data, want) in [
        (
            r#"{"turn":1,"step":2,"chunk":{"type":"usage","usage":{}}}"#,
            Some("usage"),
        ),
        (
            r#"{"turn":1.5,"step":-2e-7,"chunk":{"type":"finish"}}"#,
            Some("finish"),
        ),
        (
            r#"{"step":2,"turn":1,"chunk":{"index":0,"type":"usage"}}"#,
            Some("usage"),
        ),
        (
            r#"{"turn":1,"step":2,"chunk":{"index":0,"type":"usage"}}"#,
            Some("usage"),
        ),
        (
            r#"{"turn":1,"step":2,"chunk":{"text":"{\"type\":\"usage\""}}"#,
            None,
        ),
        (r#"{"turn":1,"step":2}"#, None),
        ("null", None),
    ] {
        assert_eq!(tag_of(data).as_deref(), want, "{data}");
    }
}

#[test]
fn a_list_shows_the_last_prompt_of_a_person_and_whether_anything_ran() {
    let mut facts = ListFacts::new(15);
    assert_eq!((facts.updated_at(), facts.blank()), (15, true));
    let plugin = r#"{"content":[],"source":{"kind":"plugin"},"role":"user","id":"p"}"#;
    let events = log(vec![
        prompt("early"),
        draft(Kind::FeedbackRecord, "{}"),
        prompt("late"),
        draft(Kind::UserMessage, plugin).append(),
        draft(Kind::TurnStart, "{}"),
    ]);
    let after: Vec<_> = events
        .iter()
        .map(|event| {
            facts.fold(event);
            (facts.updated_at(), facts.blank())
        })
        .collect();
    let want = [(15, true), (15, true), (20, true), (20, true), (20, false)];
    assert_eq!(after, want);
}

#[test]
fn a_cold_session_is_blank_when_that_is_known_or_cheap_to_learn() {
    let never = || -> Option<bool> { panic!("not to be read") };
    assert!(!cold_blank(Some(false), 10, never));
    assert!(!cold_blank(None, SMALL_LOG + 1, never));
    assert!(cold_blank(None, SMALL_LOG, || Some(true)));
    assert!(!cold_blank(Some(true), 10, || Some(false)));
    assert!(!cold_blank(None, 10, || None));
}

/// The `key` view after each event that changed it.
fn changes(key: &str, events: &[Arc<Event>]) -> Vec<String> {
    let mut projections = Registry::standard().start();
    let mut heard = Vec::new();
    for event in events {
        projections.fold_telling(event, |change| {
            if change.key == key {
                heard.push(format!("{} {}", change.seq, change.value));
            }
        });
    }
    heard
}

#[test]
fn pressure_is_told_when_it_changes_and_never_falls_below_nothing() {
    let window = |window: &str| draft(Kind::RequestContext, &format!("{{{window}}}"));
    let usage = |input: u64| {
        let data = format!(
            r#"{{"turn":1,"step":1,"chunk":{{"type":"usage","usage":{{"inputTokens":{input},"outputTokens":9,"cacheReadTokens":2,"cacheWriteTokens":1}}}}}}"#
        );
        draft(Kind::AssistantChunk, &data)
    };
    let events = log(vec![
        prompt("hello world"),
        window(r#""contextWindow":100"#),
        window(r#""contextWindow":100"#),
        usage(2),
        usage(2),
        price(0, 0, 50),
        prompt("tiny").replace(Seq(0), Seq(0)).sources(vec![Seq(0)]),
        window(""),
    ]);
    let want = [
        r#"0 {}"#,
        r#"1 {"contextWindow":100}"#,
        r#"3 {"pressureTokens":5,"projectedTokens":5,"contextWindow":100}"#,
        r#"6 {"pressureTokens":5,"projectedTokens":0,"contextWindow":100}"#,
        r#"7 {"pressureTokens":5,"projectedTokens":0}"#,
    ];
    assert_eq!(changes("contextPressure", &events), want);
}

#[test]
fn the_newest_header_is_broken_down_into_system_and_tools() {
    let header = |rest: &str| {
        let data = format!(r#"{{"header":{{"config":{{}}{rest}}},"reason":"initial"}}"#);
        draft(Kind::RequestHeader, &data)
    };
    let events = log(vec![
        header(r#","system":"abcd""#),
        header(r#","system":"abcd","tools":[]"#),
        header(r#","tools":["abcd123"]"#),
    ]);
    let want = [
        r#"0 {"systemTokens":5,"toolsTokens":0,"messageTokens":0}"#,
        r#"2 {"systemTokens":0,"toolsTokens":7,"messageTokens":0}"#,
    ];
    assert_eq!(changes("contextBreakdown", &events), want);
}

#[test]
fn a_turn_counts_once_and_a_clock_that_goes_back_takes_no_time() {
    let at = |kind: Kind, time: i64, data: &str| Draft {
        source_event_seqs: None,
        ..draft(kind, &format!(r#"{{"time":{time},{data}}}"#))
    };
    let step = |n: u64| format!(r#""turn":1,"step":{n}"#);
    let delta = |n: u64| {
        let chunk = r#""chunk":{"type":"text-delta","index":0,"text":"x"}"#;
        format!("{},{chunk}", step(n))
    };
    let message = |n: u64| {
        let rest = r#""message":{"role":"assistant","content":[],"id":"a","source":{"kind":"model","provider":"p","model":"m"}},"usage":{"outputTokens":3}"#;
        format!("{},{rest}", step(n))
    };
    let call = r#""callId":"c""#;
    let result = r#""message":{"source":{"kind":"tool","callId":"c"}}"#;
    let drafts = vec![
        // Another step's chunk is not this one's first token, nor its message this one's.
        at(Kind::StepStart, 100, &step(1)),
        at(Kind::AssistantChunk, 105, &delta(2)),
        at(Kind::AssistantMessage, 106, &message(2)).append(),
        at(Kind::AssistantChunk, 110, &delta(1)),
        at(Kind::AssistantMessage, 130, &message(1)).append(),
        at(Kind::ToolCall, 130, call),
        at(Kind::ToolCall, 140, call),
        at(Kind::ToolResult, 145, result).append(),
        at(Kind::StepEnd, 150, &step(1)),
        // Everything goes back in time here.
        at(Kind::StepStart, 100, &step(2)),
        at(Kind::AssistantChunk, 90, &delta(2)),
        at(Kind::AssistantMessage, 80, &message(2)).append(),
        at(Kind::ToolCall, 80, call),
        at(Kind::ToolResult, 70, result).append(),
        at(Kind::StepEnd, 60, &step(2)),
        // A call whose turn ended is not answered any more.
        at(Kind::ToolCall, 60, call),
        at(Kind::TurnEnd, 61, r#""turn":1"#),
        at(Kind::ToolResult, 99, result).append(),
    ];
    let mut session = Session::new(Header::new("s", 0)).unwrap();
    let mut stats = SessionStats.init();
    for draft in drafts {
        let time = draft.data.get("time").and_then(Value::safe_int).unwrap();
        let event = session.append(draft, time).unwrap();
        if SessionStats.reads().contains(&event.kind) {
            stats.apply(&Look::new(&event)).unwrap();
        }
    }
    let want = r#"{"turns":1,"steps":2,"llmMs":30,"toolMs":5,"ttftMs":10,"ttftSteps":2,"decodeMs":20,"decodeTokens":6}"#;
    assert_eq!(stats.view().as_str(), want);
}

#[test]
fn a_row_is_used_when_it_is_of_this_version_and_touches_the_events_at_hand() {
    let registry = |version| {
        let mut registry = Registry::standard();
        registry
            .register(counter(version, &[Kind::SessionTitle]))
            .unwrap();
        registry
    };
    let events = log(vec![title("a"), title("b"), title("c"), title("d")]);
    let rows = folded(&registry(1), &events[..2]).checkpoint();
    let restore = |version: u64, base: u64| {
        let rest = events[base as usize..].iter().cloned().map(Ok);
        let restored = registry(version).restore(&rows, Seq(base), Seq(4), rest);
        restored.map(|restored| restored.snapshot().get("counter").unwrap().to_string())
    };
    // From before the row, from it, and from just behind it; further on an event would be missed.
    for base in 0..=2 {
        assert_eq!(restore(1, base).as_deref(), Ok("4"), "from {base}");
    }
    let refused = restore(1, 3).unwrap_err();
    assert_eq!(refused.code(), "PROJECTION_RESTORE_REFUSED");
    assert!(refused.to_string().contains("from seq 3"), "{refused}");
    // A row of another version is no row: nothing of it is counted.
    assert_eq!(restore(2, 0).as_deref(), Ok("4"));
    assert!(restore(2, 1).is_err());
    let mut older = rows.clone();
    older.set(
        "counter",
        Row {
            version: 1,
            as_of: None,
            state: Json::restore("70").unwrap(),
        },
    );
    let rest = events.iter().cloned().map(Ok);
    let counted = registry(2).restore(&older, Seq(0), Seq(4), rest).unwrap();
    assert_eq!(counted.snapshot().get("counter").unwrap().as_str(), "4");
}

#[test]
fn cached_views_are_as_of_the_oldest_row_served() {
    let registry = Registry::standard();
    let events = log(vec![title("a"), title("b"), title("c")]);
    let mut rows = folded(&registry, &events).checkpoint();
    assert_eq!(registry.view_checkpoint(&rows).unwrap().as_of, Some(Seq(2)));
    let older = folded(&registry, &events[..1]).checkpoint();
    rows.set("title", older.get("title").unwrap().clone());
    let views = registry.view_checkpoint(&rows).unwrap();
    assert_eq!(views.as_of, Some(Seq(0)));
    assert_eq!(views.get("title").unwrap().as_str(), "\"a\"");
    // Rows that are not served do not count.
    rows.set(
        "goal",
        Row {
            version: 4,
            as_of: None,
            state: Json::null(),
        },
    );
    assert_eq!(registry.view_checkpoint(&rows).unwrap().as_of, Some(Seq(0)));
    assert_eq!(registry.view_checkpoint(&Rows::default()), None);
}
