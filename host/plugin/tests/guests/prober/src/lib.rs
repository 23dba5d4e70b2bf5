//! A component that does what it is told, also what it should not: the tool's
//! name, the event's name or the row's configuration say what.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

wit_bindgen::generate!({
    path: "../../../../../wit",
    inline: "
        package dsh:prober;
        world prober {
            include dsh:plugin/base@0.1.0;
            import dsh:plugin/clock@0.1.0;
            import dsh:plugin/random@0.1.0;
            import dsh:plugin/session@0.1.0;
            import dsh:plugin/journal@0.1.0;
            import dsh:plugin/workspace@0.1.0;
            import dsh:plugin/spill@0.1.0;
            import dsh:plugin/attachments@0.1.0;
            import dsh:plugin/pictures@0.1.0;
            import dsh:plugin/process@0.1.0;
            import dsh:plugin/inbox@0.1.0;
            import dsh:plugin/kv@0.1.0;
            import dsh:plugin/llm@0.1.0;
            export dsh:plugin/llm-adapter@0.1.0;
            export dsh:plugin/tool@0.1.0;
            export dsh:plugin/dispatch@0.1.0;
            export dsh:plugin/compaction@0.1.0;
            export dsh:plugin/prompt@0.1.0;
            export dsh:plugin/projection@0.1.0;
            export dsh:plugin/title@0.1.0;
        }
    ",
    world: "dsh:prober/prober",
    generate_all,
});

use dsh::plugin::types::{CallConfig, Error, GenerateRequest, HttpRequest, Part};
use dsh::plugin::{
    attachments, clock, config, inbox, journal, kv, llm, log, pictures, process, random, session,
    spill, work, workspace,
};
use exports::dsh::plugin::{compaction, dispatch, llm_adapter, projection, prompt, title, tool};

struct Prober;

export!(Prober);

/// The attempt that sends what it was told to.
const SENDING: u32 = 1000;

/// What it is to send, until it has.
static WANTED: Mutex<Option<String>> = Mutex::new(None);

/// An allocator that never returns, once it is told so: what the host calls to
/// put arguments into the component.
struct Hostile;

static ARMED: AtomicBool = AtomicBool::new(false);

#[global_allocator]
static ALLOCATOR: Hostile = Hostile;

unsafe impl GlobalAlloc for Hostile {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) {
            spin()
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

/// How often this instance was called.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// A panic says to the host's log what it was about.
fn tell_panics() {
    std::panic::set_hook(Box::new(|info| {
        log::write(log::Level::Error, &info.to_string())
    }));
}

fn called() -> u32 {
    tell_panics();
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}

fn configured(word: &str) -> bool {
    config::get().contains(word)
}

/// What it was configured to do at an event: texts `EVENT|HOW|TEXT` anywhere in
/// its configuration, with `'` for `"` in TEXT.
struct Rule {
    event: String,
    how: String,
    text: String,
}

fn rules() -> Vec<Rule> {
    let config = config::get();
    let rule = |piece: &str| {
        let mut parts = piece.splitn(3, '|');
        Some(Rule {
            event: parts.next()?.to_owned(),
            how: parts.next()?.to_owned(),
            text: parts.next()?.replace('\'', "\""),
        })
    };
    config.split('"').filter_map(rule).collect()
}

fn rule(event: &str) -> Option<Rule> {
    rules().into_iter().find(|rule| rule.event == event)
}

/// What a rule does before it answers.
fn follow(rule: &Rule) {
    tell_panics();
    misbehave(&rule.how);
    match rule.how.as_str() {
        "panic-saying" => panic!("{}", rule.text.replace("ESC", "\x1b")),
        "exec" => {
            let _ = process::run(&command(&rule.text));
        }
        "append" => {
            let event = journal::NewEvent {
                kind: rule.text.clone(),
                data: "{}".to_owned(),
            };
            if let Err(error) = journal::append(&[event], None) {
                log::write(log::Level::Warn, &error.code);
            }
        }
        how if how.contains("note") => {
            // By which instance it is met shows in how often that was called.
            let key = format!("{} {}", rule.event, called());
            let _ = kv::set(kv::Scope::Profile, &key, b"met");
        }
        "recall" => {
            let kept = kv::get(kv::Scope::Profile, "memory").ok().flatten();
            if let Some(kept) = kept {
                let text = String::from_utf8_lossy(&kept);
                let draft = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
                let _ = inbox::send(&draft, inbox::Target::NextStep, false);
            }
            let _ = kv::set(kv::Scope::Profile, "memory", rule.text.as_bytes());
        }
        "send" => {
            if let Err(error) = inbox::send(&rule.text, inbox::Target::NextTurn, true) {
                log::write(log::Level::Warn, &error.code);
            }
        }
        _ => {}
    }
}

fn command(program: &str) -> process::Command {
    process::Command {
        program: program.to_owned(),
        arguments: vec!["-x".to_owned()],
        cwd: None,
        env: vec![],
        stdin: None,
        timeout_ms: None,
        max_output: 100,
        more: None,
    }
}

fn question(text: &str) -> llm::Question {
    llm::Question {
        purpose: "probe".to_owned(),
        config: r#"{"maxTokens":9}"#.to_owned(),
        prefix: Some((3, 5)),
        system: Some("system".to_owned()),
        messages: vec![text.to_owned()],
        timeout_ms: Some(1000),
    }
}

fn error(code: &str) -> Error {
    Error {
        code: code.to_owned(),
        message: "as it was told".to_owned(),
        details: Some("{}".to_owned()),
    }
}

fn spin() -> ! {
    let mut n = 0u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

fn recurse(n: u64) -> u64 {
    if n == u64::MAX {
        n
    } else {
        black_box(recurse(n + 1)) + 1
    }
}

/// Takes memory in pieces until it may have no more.
fn grow() -> ! {
    let mut pieces = Vec::new();
    loop {
        pieces.push(black_box(vec![1u8; 1 << 20]));
    }
}

fn misbehave(how: &str) {
    match how {
        "spin" => spin(),
        "grow" => grow(),
        "recurse" => drop(black_box(recurse(0))),
        "panic" => panic!("it was told to panic"),
        _ => {}
    }
}

/// The part of an event's name behind the slash.
fn how(event: &str) -> &str {
    event.split_once('/').map_or("", |(_, how)| how)
}

fn outcome(text: impl Into<String>) -> Result<tool::Outcome, Error> {
    Ok(tool::Outcome {
        content: vec![text.into()],
        more: None,
    })
}

impl tool::Guest for Prober {
    fn list_tools() -> Result<Vec<String>, Error> {
        if configured("misplaced") {
            clock::now();
        }
        if configured("listing-fails") {
            return Err(error("NO_LIST"));
        }
        let twice = configured("listing-twice");
        let entry = |name: &str| {
            format!(
                r#"{{"name":"{name}","description":"d","parameters":{{"type":"object"}},"concurrent":"ask"}}"#
            )
        };
        let config = config::get();
        let named = config
            .split('"')
            .filter_map(|piece| piece.strip_prefix("tool:"));
        let mut tools = vec![entry("one"), entry(if twice { "one" } else { "two" })];
        tools.extend(named.map(entry));
        Ok(tools)
    }

    fn may_overlap(call: tool::Call) -> bool {
        misbehave(&call.name);
        call.arguments == "yes"
    }

    fn run(call: tool::Call) -> Result<tool::Outcome, Error> {
        let calls = called();
        misbehave(&call.name);
        let argument = call.arguments;
        match call.name.as_str() {
            "echo" => outcome(argument),
            "calls" => outcome(calls.to_string()),
            "fail" => Err(error("AS_TOLD")),
            // A block of whatever kind, as the argument is.
            "block" => outcome(argument),
            // A view of the session, of the key that the arguments name.
            "view" => {
                let key = argument.split('"').nth(3).unwrap_or_default();
                let view = session::projection(key).unwrap_or_else(|| "none".to_owned());
                let text = view.replace('\\', "\\\\").replace('"', "\\\"");
                outcome(format!(r#"{{"type":"text","text":"{text}"}}"#))
            }
            // What goes beside the content: drafts for the next step.
            "more" => Ok(tool::Outcome {
                content: vec![],
                more: Some(argument),
            }),
            "config" => outcome(config::get()),
            "about" => outcome(config::about()),
            "huge" => outcome("x".repeat(20 << 20)),
            "amplify" => {
                let piece = "x".repeat(1 << 10);
                Ok(tool::Outcome {
                    content: vec![piece; 30_000],
                    more: None,
                })
            }
            // Safety of none of these: the point is what the host makes of it.
            "no-text" => outcome(unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe]) }),
            "out-of-bounds" => {
                let lie =
                    unsafe { String::from_raw_parts(0xffff_0000_u32 as *mut u8, 0x8000, 0x8000) };
                Ok(tool::Outcome {
                    content: vec![lie],
                    more: None,
                })
            }
            "too-long" => {
                let lie = unsafe { String::from_raw_parts(16 as *mut u8, usize::MAX, usize::MAX) };
                Ok(tool::Outcome {
                    content: vec![lie],
                    more: None,
                })
            }
            "chatter" => {
                for n in 0..1500 {
                    log::write(log::Level::Info, &format!("{n} {}", "é".repeat(5000)));
                }
                outcome("")
            }
            "progress" => {
                work::progress(&argument);
                outcome("")
            }
            "now" => outcome(clock::now().to_string()),
            "uuid" => outcome(format!("{} {}", random::uuid(), random::bytes(16).len())),
            "wait" => {
                clock::wait(argument.parse().unwrap())?;
                outcome("waited")
            }
            "wait-then-tell" => match clock::wait(600_000) {
                Ok(()) => outcome("waited"),
                Err(error) => outcome(format!("{} {}", error.code, work::cancelled())),
            },
            "wait-then-spin" => {
                let _ = clock::wait(600_000);
                spin()
            }
            "poll" => {
                while !work::cancelled() {}
                outcome("saw it")
            }
            "length" => outcome(session::length().to_string()),
            "events" => outcome(session::events(0, 10, &[]).join(",")),
            "projection" => outcome(session::projection(&argument).unwrap_or_default()),
            "append-large" => {
                let event = journal::NewEvent {
                    kind: "todo/write".to_owned(),
                    data: "x".repeat(argument.parse().unwrap()),
                };
                outcome(journal::append(&[event], None)?.to_string())
            }
            "append" => {
                let event = journal::NewEvent {
                    kind: argument,
                    data: "{}".to_owned(),
                };
                outcome(journal::append(&[event], None)?.to_string())
            }
            "root" => outcome(workspace::root()),
            "read" => {
                let slice = workspace::read(&argument, 0.0, 100)?;
                outcome(String::from_utf8(slice.content).unwrap())
            }
            "read-odd" => {
                workspace::read(&argument, 0.5, 100)?;
                outcome("")
            }
            "write" => {
                outcome(workspace::write(&argument, b"new", &workspace::Guard::Absent)?.version)
            }
            "send" => outcome(inbox::send(&argument, inbox::Target::NextStep, true)?),
            "pending" => outcome(inbox::pending().join(",")),
            "take-back" => outcome(inbox::cancel(&argument).to_string()),
            "ask" => {
                let answer = llm::ask(&question(&argument))?;
                outcome(format!("{} {}", answer.content.concat(), answer.finish))
            }
            "kv" => {
                let scope = kv::Scope::Session;
                kv::set(scope, &argument, b"one")?;
                let swapped = kv::swap(scope, &argument, Some(b"one"), b"two")?;
                let value = kv::get(scope, &argument)?.unwrap_or_default();
                let keys = kv::keys(scope, "")?.join(",");
                kv::remove(scope, &argument)?;
                outcome(format!(
                    "{swapped} {} {keys}",
                    String::from_utf8(value).unwrap()
                ))
            }
            "kv-profile" => {
                kv::set(kv::Scope::Profile, &argument, b"")?;
                outcome("")
            }
            // As often as the argument says.
            "config-often" => {
                for _ in 0..argument.parse::<u32>().unwrap() {
                    config::get();
                }
                outcome("done")
            }
            "write-often" => {
                for n in 0..argument.parse::<u32>().unwrap() {
                    workspace::write(&n.to_string(), &[0; 1024], &workspace::Guard::Overwrite)?;
                }
                outcome("done")
            }
            "spill" => outcome(spill::store("name", argument.as_bytes())?),
            "attach" => outcome(attachments::put(argument.as_bytes(), "image/png", Some("n"))?),
            "attached" => outcome(
                String::from_utf8_lossy(&attachments::read(&argument)?).into_owned(),
            ),
            "picture" => outcome(format!("{:?}", pictures::render(&argument, Some(1), None)?)),
            "exec" => {
                let output = process::run(&command(&argument))?;
                outcome(String::from_utf8(output.stdout).unwrap())
            }
            other => Err(Error {
                code: "UNKNOWN".to_owned(),
                message: other.to_owned(),
                details: None,
            }),
        }
    }
}

impl llm_adapter::Guest for Prober {
    fn list_routes() -> Result<Vec<String>, Error> {
        Ok(vec![
            r#"{"provider":"prober","name":"Prober","models":[]}"#.to_owned(),
        ])
    }

    fn prepare(config: CallConfig) -> Result<llm_adapter::Prepared, Error> {
        misbehave(&config.model);
        if config.model == "pictures" {
            for _ in 0..4 {
                pictures::render("sha256:1", None, None)?;
            }
        }
        let model = format!(r#"{{"id":"{0}","name":"{0}"}}"#, config.model);
        let config = CallConfig {
            max_tokens: config.max_tokens.or(Some(7)),
            ..config
        };
        Ok(llm_adapter::Prepared {
            config,
            defaulted: vec!["maxTokens".to_owned()],
            model,
        })
    }

    fn open(request: GenerateRequest) -> Result<u32, Error> {
        misbehave(&request.config.model);
        // `send|URL|HEADER|VALUE|BODY`: what the attempt asks for.
        let asked = request.system.as_deref().unwrap_or_default();
        if let Some(wanted) = asked.strip_prefix("send|") {
            *WANTED.lock().unwrap() = Some(wanted.to_owned());
            return Ok(SENDING);
        }
        if request.messages.is_empty() {
            return Err(error("EMPTY"));
        }
        Ok(called())
    }

    fn next(attempt: u32) -> Result<llm_adapter::Action, Error> {
        if attempt == SENDING {
            let Some(wanted) = WANTED.lock().unwrap().take() else {
                return Ok(llm_adapter::Action::Done);
            };
            let parts: Vec<&str> = wanted.splitn(4, '|').collect();
            let [url, name, value, body] = parts[..] else {
                return Err(error("PARTS"));
            };
            return Ok(llm_adapter::Action::Send(HttpRequest {
                method: "POST".to_owned(),
                url: url.to_owned(),
                headers: vec![(name.to_owned(), value.to_owned())],
                body: vec![Part::Bytes(body.as_bytes().to_vec())],
                timeout_ms: None,
            }));
        }
        Ok(match attempt {
            1 => llm_adapter::Action::Send(HttpRequest {
                method: "POST".to_owned(),
                url: "https://provider.example/chat".to_owned(),
                headers: vec![("authorization".to_owned(), "Bearer {credential}".to_owned())],
                body: vec![Part::Bytes(b"{}".to_vec())],
                timeout_ms: Some(5),
            }),
            2 => llm_adapter::Action::Emit(llm_adapter::Emission {
                after_ms: 3,
                chunks: vec!["{}".to_owned()],
            }),
            _ => llm_adapter::Action::Done,
        })
    }

    fn head(_attempt: u32, status: u16, _headers: Vec<(String, String)>) {
        if status == 500 {
            panic!("it was told to panic at 500");
        }
        if status == 600 {
            session::length();
        }
    }

    fn body(attempt: u32, data: Vec<u8>) -> Vec<String> {
        misbehave(std::str::from_utf8(&data).unwrap_or_default());
        vec![format!("{attempt}:{}", data.len())]
    }

    fn end(_attempt: u32, cause: llm_adapter::EndCause) -> Vec<String> {
        vec![match cause {
            llm_adapter::EndCause::Complete => "complete".to_owned(),
            llm_adapter::EndCause::Failed(error) => error.code,
            llm_adapter::EndCause::Aborted => "aborted".to_owned(),
        }]
    }

    fn close(_attempt: u32) {}
}

impl dispatch::Guest for Prober {
    fn subscriptions() -> Vec<dispatch::Subscription> {
        if !configured("listen") {
            let subscribed = |rule: Rule| dispatch::Subscription {
                event: rule.event,
                only: vec![],
                beside: rule.how.starts_with("beside"),
            };
            return rules().into_iter().map(subscribed).collect();
        }
        vec![dispatch::Subscription {
            event: "agent/pre-step".to_owned(),
            only: vec!["a".to_owned()],
            beside: true,
        }]
    }

    fn notify(event: String, payloads: Vec<String>) {
        misbehave(how(&event));
        if let Some(rule) = rule(&event) {
            follow(&rule);
            log::write(log::Level::Info, &format!("{event} {}", payloads.len()));
            ARMED.store(rule.how == "arm", Ordering::Relaxed);
        }
    }

    fn decide(event: String, payload: String) -> Result<Option<String>, Error> {
        misbehave(how(&event));
        if let Some(rule) = rule(&event) {
            follow(&rule);
            return Ok((rule.how == "answer").then_some(rule.text));
        }
        Ok(Some(payload))
    }

    fn enter(event: String, payload: String) -> Result<dispatch::Entry, Error> {
        misbehave(how(&event));
        if let Some(rule) = rule(&event) {
            follow(&rule);
            let carry = (rule.how == "leave").then(|| rule.text.clone());
            let verdict = match rule.how.as_str() {
                "rewrite" => dispatch::Verdict::Rewrite(rule.text),
                "settle" | "note-settle" => dispatch::Verdict::Settle(rule.text),
                _ => dispatch::Verdict::Proceed,
            };
            return Ok(dispatch::Entry { verdict, carry });
        }
        Ok(dispatch::Entry {
            verdict: dispatch::Verdict::Rewrite(payload),
            carry: Some(event),
        })
    }

    fn leave(event: String, carry: String, outcome: String) -> Result<Option<String>, Error> {
        if rule(&event).is_some() {
            return Ok(Some(carry));
        }
        Ok(Some(format!("{event} {carry} {outcome}")))
    }
}

/// Plans what the situation's `more` says.
impl compaction::Guest for Prober {
    fn choose(situation: compaction::Situation) -> Result<compaction::Plan, Error> {
        let told = situation.more.unwrap_or_default();
        misbehave(&told);
        match told.as_str() {
            "trim" => Ok(compaction::Plan::Trim(vec![compaction::Trim {
                node: situation.tokens,
                content: vec!["short".to_owned()],
            }])),
            "summarise" => Ok(compaction::Plan::Summarise((
                situation.round,
                situation.tokens,
            ))),
            "fail" => Err(error("AS_TOLD")),
            _ => Ok(compaction::Plan::Nothing),
        }
    }

    fn summarise(
        situation: compaction::Situation,
        nodes: (u32, u32),
    ) -> Result<compaction::Summary, Error> {
        misbehave(&situation.more.unwrap_or_default());
        Ok(compaction::Summary {
            content: vec![format!("{nodes:?} {:?} {}", situation.trigger, called())],
            origin: "{}".to_owned(),
        })
    }
}

/// Counts bytes; what an event says may be to misbehave.
impl projection::Guest for Prober {
    fn list_projections() -> Result<Vec<projection::Spec>, Error> {
        if !configured("project") {
            return Ok(vec![]);
        }
        Ok(vec![projection::Spec {
            key: "bytes".to_owned(),
            version: 3,
            kinds: vec!["user/message".to_owned()],
        }])
    }

    fn fold(_key: String, state: Option<String>, events: Vec<String>) -> Result<String, Error> {
        let mut bytes: usize = state.map_or(0, |state| state.parse().unwrap());
        for event in events {
            // An event may be the word itself, or a line of a log that has it.
            let said = event.split_once("project: ");
            let told = said.map_or(&*event, |(_, rest)| rest.split('"').next().unwrap());
            misbehave(told);
            match told {
                "nonsense" => return Ok("{".to_owned()),
                "swell" => return Ok("1".repeat(300 << 10)),
                "deepen" => return Ok(format!("{}{}", "[".repeat(40), "]".repeat(40))),
                "session" => drop(session::length()),
                "journal" => drop(journal::append(&[], None)),
                "clock" => drop(clock::now()),
                "random" => drop(random::uuid()),
                "inbox" => drop(inbox::pending()),
                "kv" => drop(kv::keys(kv::Scope::Session, "")),
                "workspace" => drop(workspace::root()),
                "spill" => drop(spill::store("name", b"")),
                "attachments" => drop(attachments::put(b"", "", None)),
                "pictures" => drop(pictures::render("", None, None)),
                "process" => drop(process::run(&command("allowed"))),
                "llm" => drop(llm::ask(&question("{}"))),
                "fail" => return Err(error("AS_TOLD")),
                _ => bytes += event.len(),
            }
        }
        Ok(bytes.to_string())
    }

    fn view(key: String, state: String) -> Result<String, Error> {
        Ok(format!("\"{key} {state}\""))
    }
}

impl prompt::Guest for Prober {
    fn sections(variables: String) -> Result<Vec<prompt::Section>, Error> {
        Ok(vec![prompt::Section {
            place: prompt::Place::System,
            name: "prober".to_owned(),
            order: 1.5,
            text: format!("{variables} {}", called()),
            complete: variables.contains("complete"),
        }])
    }
}

/// Asks a model what it is told to; without prompts it has nothing to propose.
impl title::Guest for Prober {
    fn propose(prompts: Vec<String>, current: Option<String>) -> Result<Option<String>, Error> {
        let Some(first) = prompts.first() else {
            return Ok(None);
        };
        misbehave(first);
        let answer = llm::ask(&question(first))?;
        let current = current.unwrap_or_default();
        Ok(Some(format!("{current}{}", answer.content.concat())))
    }
}
