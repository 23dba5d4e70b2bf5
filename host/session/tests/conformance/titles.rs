//! Which titles are appended, and when.

use dsh_session::title::{Generation, Proposal, Request, Titles, rename};
use dsh_session::{Draft, Error, Event, Header, Json, Kind, Seq, Session, Value, title};

use crate::cases::{member, table};

/// A session with the service beside it, as a caller would wire the two.
struct Service {
    session: Session,
    titles: Titles,
    error: Option<Error>,
}

impl Service {
    fn new() -> Service {
        Service {
            session: Session::new(Header::new("t", 0)).unwrap(),
            titles: Titles::default(),
            error: None,
        }
    }

    fn put(&mut self, draft: Draft) -> Seq {
        let event = self.session.append(draft, 0).unwrap();
        self.titles.fold(&event);
        event.seq
    }

    fn note(&mut self, kind: Kind) {
        self.put(Draft::new(kind, Json::empty_object()));
    }

    fn prompt(&mut self, text: &str) -> Seq {
        let source = r#"{"kind":"user"}"#;
        self.message(text, source)
    }

    fn message(&mut self, text: &str, source: &str) -> Seq {
        let data = format!(
            r#"{{"content":[{{"type":"text","text":"{text}"}}],"source":{source},"role":"user","id":"u"}}"#
        );
        self.put(Draft::new(Kind::UserMessage, Json::normalise(&data).unwrap()).append())
    }

    /// What happens once the append is over.
    fn drain(&mut self) {
        if let Some(draft) = self.titles.fallback_due() {
            self.put(draft);
        }
    }

    fn rename(&mut self, text: &str) {
        match rename(text, title::MAX_BYTES) {
            Ok(draft) => {
                self.put(draft);
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn answer(&mut self, request: &Request, seqs: &[Seq]) {
        let title = Json::string("Generated \u{200b}title");
        let proposal = Proposal {
            title: title.value(),
            message_seqs: seqs,
            provider: "acme",
            model: Some(("p", "m")),
        };
        match self.titles.accept(request, proposal) {
            Ok(draft) => {
                draft.map(|draft| self.put(draft));
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn play(&mut self, name: &str) {
        match name {
            "first human prompt" => {
                self.note(Kind::TurnStart);
                self.prompt("Please fix the login bug in the app");
                self.note(Kind::StepEnd);
                self.drain();
                self.prompt("another");
            }
            "plugin message only" => {
                self.message("hello", r#"{"kind":"plugin","plugin":"p"}"#);
            }
            "rename pins" => {
                self.prompt("first");
                self.drain();
                self.rename(" My  title\u{7}");
                assert!(self.titles.is_pinned());
                self.prompt("second");
            }
            "rename before any prompt" => {
                self.rename("Pinned");
                self.prompt("first");
            }
            "rename to empty" => self.rename(" \u{200b} "),
            "refresh unpins to fallback" => {
                self.prompt("first prompt text");
                self.drain();
                self.rename("Pinned");
                let draft = self.titles.refresh().unwrap();
                self.put(draft);
                assert!(!self.titles.is_pinned());
            }
            "provider first-prompt" => {
                let seq = self.prompt("first");
                self.drain();
                let when = Generation::FirstPrompt;
                let request = self.titles.generation_due(when, seq, false).unwrap();
                self.note(Kind::RequestHeader);
                self.answer(&request, &[seq]);
            }
            "provider result citing unknown seq" => {
                let seq = self.prompt("first");
                self.drain();
                let when = Generation::FirstPrompt;
                let request = self.titles.generation_due(when, seq, false).unwrap();
                self.answer(&request, &[Seq(99)]);
            }
            other => panic!("no steps for {other:?}"),
        }
        self.drain();
    }
}

fn shown(event: &Event) -> Json {
    Json::object(|o| {
        o.str("type", event.kind.as_str()).u64("seq", event.seq.0);
        if event.kind == Kind::SessionTitle {
            o.json("data", &event.data);
        }
    })
}

#[test]
fn titles_are_appended_when_upstreams_service_appends_them() {
    let mut count = 0;
    table("tbl-title-service", |name, input, expected| {
        let mut service = Service::new();
        service.play(&member(input, "name").text().unwrap());
        let got = Json::array(|a| {
            for event in &service.session.log().to_vec().unwrap() {
                a.json(&shown(event));
            }
        });
        assert_eq!(got.value(), member(expected, "events"), "{name}");
        let refused = !member(expected, "error").is_null();
        assert_eq!(service.error.is_some(), refused, "{name}");
        count += 1;
    });
    assert_eq!(count, 8);
}

#[test]
fn a_rename_supersedes_what_was_asked_before_it() {
    let mut service = Service::new();
    let first = service.prompt("first");
    let request = service.titles.request();
    service.rename("Mine");
    service.answer(&request, &[first]);
    assert_eq!(service.titles.title().as_deref(), Some("Mine"));
    // Asked for after it, a title may come again.
    let request = service.titles.request();
    service.answer(&request, &[first]);
    assert_eq!(service.titles.title().as_deref(), Some("Generated title"));
    assert!(service.error.is_none());
}

#[test]
fn a_provider_is_asked_for_the_first_prompt_of_an_unnamed_session_or_for_all() {
    use Generation::{AllPrompts, FirstPrompt};
    let mut service = Service::new();
    assert_eq!(
        service.titles.generation_due(AllPrompts, Seq(0), false),
        None
    );
    let first = service.prompt("first");
    service.drain();
    let due = |service: &Service, when, seq, is_fork| {
        let request = service.titles.generation_due(when, seq, is_fork);
        request.map_or(0, |request| request.prompts.len())
    };
    assert_eq!(due(&service, FirstPrompt, first, false), 1);
    assert_eq!(due(&service, FirstPrompt, first, true), 0);
    assert_eq!(due(&service, AllPrompts, first, true), 1);
    let second = service.prompt("second");
    assert_eq!(due(&service, FirstPrompt, second, false), 0);
    assert_eq!(due(&service, AllPrompts, first, false), 0);
    assert_eq!(due(&service, AllPrompts, second, false), 2);
    service.rename("Mine");
    assert_eq!(due(&service, AllPrompts, second, false), 0);
    let mut named = Service::new();
    named.rename("Mine");
    let refreshed = named.titles.refresh();
    assert_eq!(refreshed, None, "there is no prompt to make a title of");
    let mut named = Service::new();
    let draft = rename("x", title::MAX_BYTES).unwrap();
    named.put(Draft {
        data: Json::normalise(r#"{"title":"x","messageSeqs":[0],"source":{"kind":"fallback"}}"#)
            .unwrap(),
        ..draft
    });
    let first = named.prompt("first");
    assert_eq!(
        due(&named, FirstPrompt, first, false),
        0,
        "it came with a title"
    );
}

#[test]
fn a_proposal_says_which_messages_it_is_made_of_each_once_and_in_order() {
    let mut service = Service::new();
    let (a, b) = (service.prompt("a"), service.prompt("b"));
    let request = service.titles.request();
    let verdict = |title: Json, seqs: &[Seq]| {
        let proposal = Proposal {
            title: title.value(),
            message_seqs: seqs,
            provider: "acme",
            model: None,
        };
        match service.titles.accept(&request, proposal) {
            Ok(draft) => draft.unwrap().data.to_string(),
            Err(error) => error.code().to_owned(),
        }
    };
    let good = || Json::string(&"long ".repeat(30));
    let title = verdict(good(), &[a, b]);
    let title = Json::normalise(&title).unwrap();
    let text = title.get("title").and_then(Value::text).unwrap();
    assert_eq!(
        text.len(),
        title::MAX_BYTES - 1,
        "80 bytes end in a space: {text:?}"
    );
    assert_eq!(
        title.get("source").unwrap().as_str(),
        r#"{"kind":"provider","provider":"acme"}"#
    );
    for seqs in [&[b, a][..], &[a, a], &[Seq(7)], &[]] {
        assert_eq!(verdict(good(), seqs), "SESSION_TITLE_INVALID", "{seqs:?}");
    }
    for title in ["7", "null", r#""\u001b[31m\u200b""#] {
        let title = Json::normalise(title).unwrap();
        assert_eq!(verdict(title, &[a]), "SESSION_TITLE_INVALID");
    }
}
