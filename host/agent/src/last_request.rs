//! What a session goes on with: the configuration of its last request.
//!
//! A provider that nobody serves gets no request, though the header of what was tried
//! is logged. Were that counted, a mistyped name would be the session's until somebody
//! names another one; so such a turn is passed over, and what was before it counts.

use dsh_session::{Event, Kind, RequestHeader, Session, Value};

/// The header of the last request that was made; none where there was none.
#[must_use]
pub fn last_request(session: &Session) -> Option<RequestHeader> {
    let unserved = |event: &Event| {
        let code = event.data.value().path(&["reason", "error", "code"]);
        code.and_then(Value::text).as_deref() == Some("NO_ADAPTER")
    };
    if !session
        .last_of(&Kind::TurnEnd)
        .is_some_and(|end| unserved(end))
    {
        return session.request_header();
    }
    let mut unserved_turn = false;
    for event in session.log().events_before(session.next_seq()) {
        let event = event.ok()?;
        match event.kind {
            Kind::TurnEnd => unserved_turn = unserved(&event),
            Kind::TurnStart => unserved_turn = false,
            // Of its headers only the last one was not served.
            Kind::RequestHeader if unserved_turn => unserved_turn = false,
            Kind::RequestHeader => {
                return RequestHeader::canonical(event.data.get("header")?).ok();
            }
            _ => {}
        }
    }
    None
}
