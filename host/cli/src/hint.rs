//! What to do about a run that failed, behind the provider's own words, for people.
//!
//! A provider says that a key is wrong and not which one it was given, and a failure that was retried looks like one
//! that was not. The log keeps the failure as it came; this is said on stderr alone.

use dsh_plugin::Grants;
use dsh_profile::{Composition, CredentialStore, Source};
use dsh_session::{Kind, Seq, Session, Value};

use crate::boot::Composed;
use crate::credentials::place_of;

/// What stands behind the line of a failure; empty where there is nothing to add.
pub(crate) fn of(code: &str, composed: &Composed, session: &Session, first: Seq) -> String {
    let provider = session.request_header().and_then(|header| {
        let config = header.config()?;
        Some(config.get("provider").and_then(Value::text)?.into_owned())
    });
    let key = provider.and_then(|provider| key(composed, &provider));
    let key = key
        .as_ref()
        .map(|(name, source)| (name.as_str(), *source, place_of(*source, &composed.place)));
    text(code, retries(session, first), key)
}

fn text(code: &str, retries: u64, key: Option<(&str, Source, String)>) -> String {
    let mut hint = match (code, key) {
        ("AUTH", Some((name, Source::File, place))) => {
            format!("; it was given {name} of {place}: dsh credentials set {name} changes it")
        }
        ("AUTH", Some((name, _, place))) => format!("; it was given {name} of {place}"),
        _ => String::new(),
    };
    match retries {
        0 => {}
        1 => hint += " (asked again once)",
        times => hint += &format!(" (asked again {times} times)"),
    }
    hint
}

/// The credential of a provider, and where it came from.
fn key(composed: &Composed, provider: &str) -> Option<(String, Source)> {
    let name = reference(&composed.rows, provider)?;
    let store = CredentialStore::open(&composed.place.home, composed.env.clone()).ok()?;
    let source = *store.layers(&name).ok()?.first()?;
    Some((name, source))
}

fn reference(rows: &Composition, provider: &str) -> Option<String> {
    rows.components().find_map(|row| {
        let grants = Grants::parse(&row.grants).ok()?;
        let route = grants
            .routes()
            .iter()
            .find(|route| route.provider == provider)?;
        route.credential.clone()
    })
}

/// How often the last step was made again.
fn retries(session: &Session, first: Seq) -> u64 {
    let events = session.live_from(first).iter().rev();
    let step = events.take_while(|event| event.kind != Kind::StepStart);
    let retry = step.into_iter().find(|event| event.kind == Kind::LlmRetry);
    retry
        .and_then(|event| event.data.get("retry")?.u64())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_key_is_named_with_its_place_and_retries_are_counted() {
        let key = |source| Some(("K", source, "PLACE".to_owned()));
        for (code, retries, key, says) in [
            (
                "AUTH",
                0,
                key(Source::File),
                "; it was given K of PLACE: dsh credentials set K changes it",
            ),
            ("AUTH", 0, key(Source::Process), "; it was given K of PLACE"),
            ("AUTH", 0, None, ""),
            ("SERVER", 0, key(Source::File), ""),
            ("SERVER", 1, None, " (asked again once)"),
            ("RATE_LIMIT", 5, None, " (asked again 5 times)"),
        ] {
            assert_eq!(text(code, retries, key), says, "{code}");
        }
    }
}
