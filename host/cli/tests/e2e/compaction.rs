//! Compaction in whole runs: over sockets, with the official components, in a
//! context window so small that a session outgrows it again and again.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use dsh_session::{Event, Kind, Session};
use mock_provider::{Answer, Mock, Recorded};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::kills::opens;
use crate::support::{Record, Scratch, data, say, wait_until};

/// Tokens. The system prompt and the tools take a third of it.
const WINDOW: u32 = 24_000;

/// A model with that window, and another member of `compaction-basic`.
pub(crate) fn small(scratch: &Scratch) -> PathBuf {
    let models = json!([{"id": "deepseek-v4-flash", "contextWindow": WINDOW}]);
    scratch.write_beside(
        "small.yml",
        &format!("- id: llm-deepseek\n  config: {{models: {models}}}\n"),
    )
}

pub(crate) fn is_compaction(request: &Recorded) -> bool {
    request.header("x-deepseek-harness-compact").is_some()
}

/// Of the loop or of compaction: a title's has no tools.
pub(crate) fn has_tools(request: &Recorded) -> bool {
    body(request).get("tools").is_some()
}

fn body(request: &Recorded) -> Value {
    serde_json::from_str(&request.text()).expect("a request is JSON")
}

/// What a model says that works on until the conversation was compacted so
/// often: long words, and results of which some are worth pruning.
pub(crate) fn working(compactions: usize) -> impl FnMut(&Recorded) -> Answer + Send + 'static {
    let (mut steps, mut compacted) = (0, 0);
    move |request| {
        if !has_tools(request) {
            return say("A title").answer();
        }
        if is_compaction(request) {
            compacted += 1;
            return say(&format!("Summary {compacted}.")).answer();
        }
        steps += 1;
        if compacted == compactions {
            return say("It is done.").answer();
        }
        let long = if steps % 2 == 0 { 9000 } else { 10 };
        say(&"x".repeat(12_000))
            .bash(&format!("head -c {long} /dev/zero | tr '\\0' y"))
            .answer()
    }
}

/// One that has nothing to do any more.
fn ending() -> impl FnMut(&Recorded) -> Answer + Send + 'static {
    |request| {
        let words = match (has_tools(request), is_compaction(request)) {
            (false, _) => "A title",
            (true, true) => "A summary.",
            (true, false) => "Went on.",
        };
        say(words).answer()
    }
}

/// A message of the log as DeepSeek is sent it.
fn sent(message: &Value) -> Vec<Value> {
    let blocks = message["content"].as_array().unwrap();
    let of = |kind: &str| {
        let blocks = blocks.iter().filter(move |block| block["type"] == kind);
        blocks.collect::<Vec<_>>()
    };
    let texts = |blocks: Vec<&Value>| -> String {
        blocks
            .iter()
            .map(|block| block["text"].as_str().unwrap())
            .collect()
    };
    let text = texts(of("text"));
    if message["role"] == "user" {
        let results = of("tool-result");
        let mut sent = Vec::new();
        if !text.is_empty() || results.is_empty() {
            sent.push(json!({"role": "user", "content": text}));
        }
        for result in results {
            let inner = result["content"].as_array().unwrap();
            let text = texts(inner.iter().collect());
            let text = if text.is_empty() {
                "(no output)"
            } else {
                &text
            };
            sent.push(
                json!({"role": "tool", "tool_call_id": result["toolCallId"], "content": text}),
            );
        }
        return sent;
    }
    let mut sent = json!({"role": "assistant", "content": text});
    let reasoning = texts(of("reasoning"));
    if !reasoning.is_empty() {
        sent["reasoning_content"] = reasoning.into();
    }
    let calls: Vec<Value> = of("tool-call")
        .iter()
        .map(|call| {
            let function = json!({"name": call["name"], "arguments": call["arguments"]});
            json!({"id": call["id"], "type": "function", "function": function})
        })
        .collect();
    if !calls.is_empty() {
        sent["tool_calls"] = calls.into();
    }
    vec![sent]
}

/// What the model sees after the first `count` events, folded anew.
fn surface(log: &Record, count: usize) -> Vec<Value> {
    let events: Vec<Arc<Event>> = log.events()[..count].to_vec();
    let header = log.inspection.header.clone();
    let mut session = Session::restore(header, events, 0).expect("the prefix is sound");
    let messages = session.messages().expect("its messages can be read");
    let value = |message: &dsh_session::Message| serde_json::from_str(message.as_str()).unwrap();
    messages.iter().map(value).collect()
}

fn wire(messages: &[Value]) -> Vec<Value> {
    messages.iter().flat_map(sent).collect()
}

/// Compares every request with what the log says that the model saw at that
/// point: of the loop by the surface, of a compaction by the summarised part of
/// it behind the same system prompt and tools.
#[track_caller]
fn each_request_is_the_logs(log: &Record, requests: &[Recorded]) {
    let events = log.events();
    let chunk = |at: usize| events[at].kind == Kind::AssistantChunk;
    let mut asked = (0..events.len())
        .filter(|&at| events[at].kind == Kind::CompactionStart || (chunk(at) && !chunk(at - 1)));
    let mut summaries = log.of(&Kind::CompactionSummary).into_iter();
    let mut before: Option<Value> = None;
    for request in requests.iter().filter(|request| has_tools(request)) {
        let at = asked.next().expect("the log has the request");
        let body = body(request);
        let messages = body["messages"].as_array().unwrap();
        let (system, messages) = messages.split_first().unwrap();
        assert_eq!(system["role"], "system");
        let surface = surface(log, at);
        if !is_compaction(request) {
            assert_eq!(events[at].kind, Kind::AssistantChunk);
            assert_eq!(messages, wire(&surface), "event {at}");
            before = Some(body);
            continue;
        }
        assert_eq!(events[at].kind, Kind::CompactionStart);
        let summary = summaries.next().map(data);
        let (instruction, prefix) = messages.split_last().unwrap();
        let text = instruction["content"].as_str().unwrap();
        assert!(text.contains("## Primary Request and Intent"), "{text}");
        // One that was cut short has no summary that says how far it went.
        if let Some(summary) = summary {
            let count = summary["shadowedSeqs"].as_array().unwrap().len();
            assert_eq!(prefix, wire(&surface[..count]), "event {at}");
        }
        assert_eq!(body["max_tokens"], 8192);
        // What the provider has cached of the last request holds.
        if let Some(before) = &before {
            assert_eq!(body["messages"][0], before["messages"][0]);
            assert_eq!(body["tools"], before["tools"]);
        }
    }
    assert_eq!(asked.next(), None, "every request of the log was sent");
}

#[test]
fn a_session_goes_through_five_compactions_and_every_request_is_what_its_log_says() {
    let scratch = Scratch::new();
    let patch = small(&scratch);
    let mock = Mock::with(working(5));
    let run = scratch.dsh().provider(&mock).headless().patch(&patch);
    run.args(["Work until it is done"])
        .run()
        .answered("It is done.");

    let log = scratch.record();
    let ends = log.of(&Kind::CompactionEnd);
    assert_eq!(ends.len(), 5);
    assert!(ends.iter().all(|end| data(end).get("error").is_none()));
    assert_eq!(log.of(&Kind::CompactionStart).len(), 5);
    assert!(log.has(&Kind::CompactionPrune), "some results were long");
    for prune in log.of(&Kind::CompactionPrune) {
        let next = &log.events()[usize::try_from(prune.seq.0).unwrap() + 1];
        assert_eq!(next.kind, Kind::ToolResult);
    }
    for summary in log.of(&Kind::CompactionSummary) {
        let data = data(summary);
        assert_eq!(data["llmStreamCall"], true);
        assert_eq!(data["rawOutput"], data["summary"]);
        assert_eq!(data["provider"], "deepseek-official");
        let at = usize::try_from(summary.seq.0).unwrap();
        let kinds = [at - 1, at + 1, at + 2].map(|at| log.events()[at].kind.clone());
        let expected = [
            Kind::CompactionStart,
            Kind::UserMessage,
            Kind::CompactionEnd,
        ];
        assert_eq!(kinds, expected, "nothing came in between");
    }
    let requests = mock.requests();
    each_request_is_the_logs(&log, &requests);
    let told = "Current runtime context.";
    for request in requests.iter().filter(|request| has_tools(request)) {
        let told = request.text().matches(told).count();
        // A snapshot that was summarised is told again before the next request.
        assert!(is_compaction(request) || told == 1, "{told}");
    }

    // Another process finds the same conversation, and goes on with it.
    let mock = Mock::with(ending());
    let run = scratch.dsh().provider(&mock).headless().patch(&patch);
    run.args(["--resume", "last", "And now?"])
        .run()
        .answered("Went on.");
    let both: Vec<Recorded> = requests.into_iter().chain(mock.requests()).collect();
    each_request_is_the_logs(&scratch.record(), &both);
}

/// What every interrupted session must do: open, pass the check, and go on as if
/// nothing had been, also with compacting.
#[track_caller]
fn goes_on(scratch: &Scratch, patch: &PathBuf, id: &str, before: Option<&Mock>) {
    let ended = scratch.sessions_command(["check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("1 checked, 0 damaged"), "{ended:?}");
    let mock = Mock::with(ending());
    let run = scratch.dsh().provider(&mock).headless().patch(patch);
    run.args(["--resume", id, "Go on"])
        .run()
        .answered("Went on.");
    let log = scratch.record();
    let starts = log.of(&Kind::CompactionStart).len();
    assert!(starts > 0);
    let requests = mock.requests();
    let sent = before.map(Mock::requests).unwrap_or_default();
    if !sent.is_empty() {
        let both: Vec<Recorded> = sent.into_iter().chain(requests).collect();
        each_request_is_the_logs(&log, &both);
        return;
    }
    // The last request is the loop's, and its messages are the surface.
    let last = body(requests.iter().rfind(|request| has_tools(request)).unwrap());
    let events = log.events();
    let first_chunk = events
        .iter()
        .rposition(|event| event.kind == Kind::StepStart)
        .unwrap();
    let first_chunk = first_chunk
        + events[first_chunk..]
            .iter()
            .position(|event| event.kind == Kind::AssistantChunk)
            .unwrap();
    let surface = wire(&surface(&log, first_chunk));
    assert_eq!(last["messages"].as_array().unwrap()[1..], surface[..]);
}

/// What a crash can leave: the log up to each event of a compaction, and of the
/// prunes before it.
#[test]
fn a_log_that_ends_behind_any_event_of_a_compaction_opens_and_goes_on() {
    let scratch = Scratch::new();
    let patch = small(&scratch);
    let mock = Mock::with(working(2));
    let run = scratch.dsh().provider(&mock).headless().patch(&patch);
    run.args(["Work until it is done"])
        .run()
        .answered("It is done.");
    let log = scratch.record();
    let end = log.of(&Kind::CompactionEnd)[1].seq.0;
    let prune = log.of(&Kind::CompactionPrune)[0].seq.0;
    let of_compaction = |event: &&Arc<Event>| {
        let kind = event.kind.as_str();
        kind.starts_with("compaction/")
            || event
                .surface_op
                .is_some_and(|op| op != dsh_session::SurfaceOp::Append)
    };
    let events = log.events().iter().filter(of_compaction);
    let cuts: Vec<u64> = events
        .map(|event| event.seq.0)
        .filter(|seq| (prune..=end).contains(seq))
        .collect();
    assert!(cuts.len() >= 10, "{cuts:?}");
    for cut in cuts {
        let other = Scratch::new();
        let patch = small(&other);
        let lines = log.events()[..=usize::try_from(cut).unwrap()].iter();
        let lines: Vec<String> = lines.map(|event| event.line()).collect();
        let mut header = log.inspection.header.clone();
        header.cwd = Some(other.work().to_str().unwrap().into());
        other.shelve(&header, &lines);
        goes_on(&other, &patch, &header.id, None);
    }
}

/// SIGKILL as soon as an event of a compaction is to be seen, whatever of it is on
/// disk by then.
#[test]
fn killed_at_each_event_of_a_compaction_the_session_goes_on() {
    let marks = [
        r#""type":"compaction/prune""#,
        r#""op":"replace""#,
        r#""type":"compaction/start""#,
        r#""type":"compaction/summary""#,
        r#""plugin":"compact""#,
        r#""type":"compaction/end""#,
    ];
    for mark in marks {
        let scratch = Scratch::new();
        let patch = small(&scratch);
        let mock = Mock::with(working(9));
        let (events, printed) = std::io::pipe().unwrap();
        let run = scratch.dsh().provider(&mock).headless().patch(&patch);
        let run = run
            .args(["--output", "stream-json", "Work until it is done"])
            .stdout(printed)
            .start();
        let mut lines = BufReader::new(events).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(mark)), "{mark}");
        run.signal(Signal::KILL);
        assert_eq!(run.end().signal, Some(9));
        let id = opens(&scratch).inspection.header.id.clone();
        goes_on(&scratch, &patch, &id, None);
    }
}

/// SIGKILL while the summary is asked for, while it is said, and when the next
/// request shows that the compaction is durable.
#[test]
fn killed_inside_a_compaction_the_session_goes_on() {
    for (compaction, held) in [(true, false), (true, true), (false, false)] {
        let scratch = Scratch::new();
        let patch = small(&scratch);
        let victim: Arc<OnceLock<Pid>> = Arc::default();
        let of_mock = Arc::clone(&victim);
        let mut work = working(9);
        let mut compacted = false;
        let mock = Mock::with(move |request| {
            let now = if compaction {
                is_compaction(request)
            } else {
                compacted && has_tools(request)
            };
            compacted |= is_compaction(request);
            if now && held {
                return say("A summary of many words").held();
            }
            if now {
                kill_process(*of_mock.wait(), Signal::KILL).unwrap();
            }
            work(request)
        });
        let run = scratch.dsh().provider(&mock).headless().patch(&patch);
        let run = run.args(["Work until it is done"]).start();
        victim.set(run.pid()).unwrap();
        if held {
            wait_until("a summary is being said", || {
                mock.requests().iter().any(is_compaction)
            });
            run.signal(Signal::KILL);
        }
        assert_eq!(run.end().signal, Some(9));
        let left = opens(&scratch);
        assert_eq!(left.of(&Kind::CompactionStart).len(), 1);
        // Nothing of a summary is there unless the whole of it is.
        let whole = usize::from(!compaction);
        assert_eq!(left.of(&Kind::CompactionSummary).len(), whole);
        assert_eq!(left.of(&Kind::CompactionEnd).len(), whole);
        let id = left.inspection.header.id.clone();
        goes_on(&scratch, &patch, &id, None);
    }
}

/// A provider that refuses a request as too long is sent a shorter one in the
/// same step, and the person hears nothing of it.
#[test]
fn an_overflow_is_recovered_from_without_a_word() {
    let scratch = Scratch::new();
    let mut refused = false;
    let mock = Mock::with(move |request| {
        if !has_tools(request) {
            return say("A title").answer();
        }
        if is_compaction(request) {
            return say("Somebody asked for a note.").answer();
        }
        let messages = body(request)["messages"].as_array().unwrap().len();
        if messages < 4 {
            return say(&"x".repeat(4000)).bash("echo one").answer();
        }
        if !std::mem::replace(&mut refused, true) {
            let message =
                "This model's maximum context length is 10 tokens, however you requested 99 tokens";
            let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
            return Answer::new(400, error.to_string());
        }
        say("Went on.").answer()
    });
    let run = scratch.dsh().provider(&mock).headless();
    let prompt = format!("Do it. {}", "lorem ipsum ".repeat(200));
    run.args([&*prompt]).run().answered("Went on.");
    let log = scratch.record();
    assert_eq!(log.of(&Kind::CompactionEnd).len(), 1);
    assert_eq!(
        log.of(&Kind::StepStart).len(),
        2,
        "in the step that was refused"
    );
    let start = usize::try_from(log.of(&Kind::CompactionStart)[0].seq.0).unwrap();
    assert_eq!(log.events()[start - 1].kind, Kind::AssistantChunk);
    each_request_is_the_logs(&log, &mock.requests());
}

/// A failure is a line, once for each cause, and the work goes on.
#[test]
fn a_summary_that_is_none_is_told_once_and_the_run_completes() {
    let scratch = Scratch::new();
    let patch = small(&scratch);
    let mut work = working(2);
    let mock = Mock::with(move |request| {
        let answer = work(request);
        if is_compaction(request) {
            return say("").thinking("What was that?").answer();
        }
        answer
    });
    let run = scratch.dsh().provider(&mock).headless().patch(&patch);
    let ended = run.args(["Work until it is done"]).run();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "It is done.\n"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for part in ["dsh: ", "row compaction-basic", "without text"] {
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
    let log = scratch.record();
    let ends = log.of(&Kind::CompactionEnd);
    assert_eq!(ends.len(), 2);
    for end in ends {
        let error = data(end)["error"].as_str().unwrap().to_owned();
        assert!(error.contains("EMPTY_SUMMARY"), "{error}");
    }
}
