//! Tells the model the time: a message with turn, step, the time and how long the
//! session has gone on, again when it is old (spec/loop.md §14). Off unless a
//! profile switches it on, as every such message stays in the conversation.

mod time;

use std::cell::RefCell;

use guest_support::follow::{Follow, Seen, Session};
use guest_support::host::Host;
use guest_support::json::{Json, Object, array, text};
use guest_support::{Error, config, hook_panics, session, tool};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:time-context;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/clock@0.1.0;
                import dsh:plugin/session@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
            }",
        path: "../../wit",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
            "dsh:plugin/config@0.1.0": guest_support::config,
            "dsh:plugin/session@0.1.0": guest_support::session,
        },
    });
    // A native linker takes no such names as a component's exports have.
    #[cfg(target_family = "wasm")]
    export!(Component with_types_in self);
    #[cfg(target_family = "wasm")]
    use super::Component;
}

use bindings::dsh::plugin::clock;
use bindings::exports::dsh::plugin::dispatch::{Entry, Guest, Subscription, Verdict};

/// The listener.
pub struct Component;

thread_local! {
    static STATE: RefCell<Option<Teller>> = const { RefCell::new(None) };
}

impl Guest for Component {
    fn subscriptions() -> Vec<Subscription> {
        vec![Subscription {
            event: "agent/pre-step".to_owned(),
            only: Vec::new(),
            beside: false,
        }]
    }

    fn notify(_: String, _: Vec<String>) {}

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(_: String, payload: String) -> Result<Entry, Error> {
        hook_panics();
        let payload = Json::of_host(&payload);
        let number = |name: &str| payload.get(name).and_then(Json::whole).unwrap_or(0);
        let (turn, step) = (number("turn"), number("step"));
        let messages = payload.get("messages").into_iter().flat_map(Json::items);
        let mut entry = Entry {
            verdict: Verdict::Proceed,
            carry: None,
        };
        // A turn without input ends before it begins, and is to stay so.
        if step == 1 && messages.count() == 0 {
            return Ok(entry);
        }
        entry.carry = STATE.with_borrow_mut(|state| {
            let state = state.get_or_insert_with(|| {
                Teller::new(&config::get(), &config::about(), &session::header())
            });
            state.before_step(turn, step, clock::now() as u64, &Host)
        });
        Ok(entry)
    }

    fn leave(_: String, carry: String, outcome: String) -> Result<Option<String>, Error> {
        let outcome = Json::of_host(&outcome);
        if text(outcome, "kind").as_deref() != Some("enter") {
            return Ok(None);
        }
        let messages = outcome.get("messages").into_iter().flat_map(Json::items);
        let messages = array(messages.map(Json::raw).chain([carry.as_str()]));
        let mut rewritten = Object::new();
        for (name, value) in outcome.members() {
            let value = if name == "messages" {
                &messages
            } else {
                value.raw()
            };
            rewritten = rewritten.raw(name, value);
        }
        Ok(Some(rewritten.build()))
    }
}

/// Tells the time where it was not told for long enough.
struct Teller {
    /// Milliseconds.
    interval: u64,
    row: String,
    /// When the session began, in milliseconds since 1970.
    began: Option<u64>,
    follow: Follow,
    /// The newest time that the model was told.
    told: Option<u64>,
}

impl Teller {
    fn new(config: &str, about: &str, header: &str) -> Self {
        let number = |text: &str, name: &str| Json::parse(text)?.some(name)?.whole();
        let row = Json::parse(about).and_then(|about| text(about, "row"));
        Self {
            interval: number(config, "refreshIntervalMs").unwrap_or(60_000),
            row: row.unwrap_or_default(),
            began: number(header, "createdAt"),
            follow: Follow::default(),
            told: None,
        }
    }

    /// The draft of the message, where there has to be one.
    fn before_step(
        &mut self,
        turn: u64,
        step: u64,
        now: u64,
        log: &impl Session,
    ) -> Option<String> {
        let (told, row) = (&mut self.told, &self.row);
        self.follow.on(log, "\"timestamp\"", |seen| match seen {
            Seen::Anew => *told = None,
            Seen::Message(message) => {
                let source = message.get("source");
                let own = |name: &str| source.and_then(|source| text(source, name));
                if own("kind").as_deref() == Some("plugin") && own("plugin").as_deref() == Some(row)
                {
                    *told = source
                        .and_then(|source| source.get("timestamp")?.whole())
                        .or(*told);
                }
            }
        });
        // A clock that was set back has told nothing of now.
        let fresh = |told: u64| told <= now && now - told < self.interval;
        if self.told.is_some_and(fresh) {
            return None;
        }
        let elapsed = self.began.map(|began| now.saturating_sub(began));
        let mut source = Object::new()
            .string("form", "snapshot")
            .number("turn", turn)
            .number("step", step)
            .number("timestamp", now);
        if let Some(elapsed) = elapsed {
            source = source.number("elapsedMs", elapsed);
        }
        let content = array([tool::text_block(&words(turn, step, now, elapsed))]);
        Some(
            Object::new()
                .raw("content", &content)
                .raw("source", &source.build())
                .build(),
        )
    }
}

fn words(turn: u64, step: u64, now: u64, elapsed: Option<u64>) -> String {
    let since = elapsed.map_or_else(String::new, |elapsed| {
        format!(" The session has gone on for {}.", time::duration(elapsed))
    });
    format!(
        "<system-reminder>\nThe time is {}, at step {step} of turn {turn}.{since} It takes the place of any time given \
         earlier.\n</system-reminder>",
        time::utc(now)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl Log {
        /// What the host makes of a draft that a step takes in.
        fn enter(&mut self, draft: &str, plugin: &str) {
            let draft = draft.replace(
                r#""source":{"#,
                &format!(r#""source":{{"kind":"plugin","plugin":"{plugin}","#),
            );
            self.0
                .push(format!(r#"{{"seq":{},"data":{draft}}}"#, self.0.len()));
        }
    }

    impl Session for Log {
        fn length(&self) -> u32 {
            self.0.len() as u32
        }

        fn events(&self, first: u32, _: u32, _: &[String]) -> Vec<String> {
            self.0[first as usize..].to_vec()
        }

        fn messages(&self, first: u32, _: u32) -> Vec<String> {
            let messages = self.0[first as usize..].iter();
            messages
                .map(|event| {
                    Json::parse(event)
                        .unwrap()
                        .get("data")
                        .unwrap()
                        .raw()
                        .to_owned()
                })
                .collect()
        }
    }

    const ABOUT: &str = r#"{"row":"clock"}"#;
    const HEADER: &str = r#"{"createdAt":1000}"#;

    fn teller(interval: u64) -> Teller {
        Teller::new(
            &format!(r#"{{"refreshIntervalMs":{interval}}}"#),
            ABOUT,
            HEADER,
        )
    }

    #[test]
    fn the_time_is_told_and_again_when_it_is_old() {
        let mut log = Log::default();
        let mut teller = teller(500);
        let draft = teller.before_step(2, 3, 3_601_000, &log).unwrap();
        assert!(draft.contains(r#""source":{"form":"snapshot","turn":2,"step":3,"timestamp":3601000,"elapsedMs":3600000}"#));
        assert!(draft.contains(
            "1970-01-01 01:00:01 UTC, at step 3 of turn 2. The session has gone on for 1 h 0 min."
        ));
        // What no step took in was not told.
        assert!(teller.before_step(2, 3, 3_601_000, &log).is_some());
        log.enter(&draft, "clock");
        assert!(teller.before_step(2, 4, 3_601_499, &log).is_none());
        assert!(teller.before_step(2, 5, 3_601_500, &log).is_some());
        // A resumed session knows what the one before it said; a clock that was set back says so.
        assert!(
            super::tests::teller(500)
                .before_step(3, 1, 3_601_499, &log)
                .is_none()
        );
        assert!(
            super::tests::teller(500)
                .before_step(3, 1, 3_600_999, &log)
                .is_some()
        );
    }

    #[test]
    fn an_interval_of_nothing_tells_it_at_every_step() {
        let mut log = Log::default();
        let mut teller = teller(0);
        let draft = teller.before_step(1, 1, 5_000, &log).unwrap();
        log.enter(&draft, "clock");
        assert!(teller.before_step(1, 2, 5_000, &log).is_some());
    }

    #[test]
    fn another_row_s_time_is_not_its_own() {
        let mut log = Log::default();
        let draft = teller(500).before_step(1, 1, 5_000, &log).unwrap();
        log.enter(&draft, "another");
        assert!(teller(500).before_step(1, 2, 5_000, &log).is_some());
    }

    #[test]
    fn nothing_configured_is_a_minute() {
        assert_eq!(Teller::new("{}", "{}", "{}").interval, 60_000);
    }
}
