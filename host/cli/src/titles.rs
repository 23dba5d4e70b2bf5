//! What names a session: the row `session-title`, and the rows that mount a
//! component that proposes titles.

use std::sync::Arc;

use dsh_agent::{LlmPort, TitleParts, Titler};
use dsh_profile::{Implementation, Row};
use dsh_session::title::Limits;

use crate::boot::{Composed, Mount};
use crate::exit::Failure;

/// The official component, by the name that it has in upstream's logs.
const OFFICIAL: (&str, &str) = ("dsh:title-first-prompt", "session-title-first-prompt-llm");

/// None where the row is switched off: then a session gets no name.
pub(crate) fn parts(
    composed: &Composed,
    mounts: &[Mount],
    llm: &LlmPort,
) -> Result<Option<TitleParts>, Failure> {
    let Some(row) = composed.rows.host("session-title") else {
        return Ok(None);
    };
    let limits = match limits(row) {
        Ok(limits) => limits,
        Err(reason) => {
            composed.left_out.row(row, &reason)?;
            return Ok(None);
        }
    };
    Ok(Some(TitleParts {
        limits,
        titlers: mounts.iter().filter_map(titler).collect(),
        llm: Some(llm.clone()),
    }))
}

fn titler(mount: &Mount) -> Option<Titler> {
    let title = Arc::new(mount.mounted.title()?);
    let component = match &mount.row.implementation {
        Implementation::Component(component) => component.as_str(),
        Implementation::Host(_) => "",
    };
    let row = mount.row.id.clone();
    let (provider, source) = if component == OFFICIAL.0 {
        (OFFICIAL.1.to_owned(), format!("dsh-{row}"))
    } else {
        (row.clone(), row.clone())
    };
    Some(Titler {
        row,
        provider,
        source,
        title,
    })
}

/// `fallbackMaxWords`, `fallbackMaxBytes` and `maxTitleBytes` of the row.
fn limits(row: &Row) -> Result<Limits, String> {
    let usual = Limits::default();
    let number = |key: &str, usual: usize| match row.config.get(key) {
        None => Ok(usual),
        Some(value) => value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("{key}: {value} is no whole number above 0")),
    };
    let limits = Limits {
        fallback_words: number("fallbackMaxWords", usual.fallback_words)?,
        fallback_bytes: number("fallbackMaxBytes", usual.fallback_bytes)?,
        max_bytes: number("maxTitleBytes", usual.max_bytes)?,
    };
    if limits.fallback_bytes > limits.max_bytes {
        return Err(format!(
            "fallbackMaxBytes ({}) is above maxTitleBytes ({}); make it no larger",
            limits.fallback_bytes, limits.max_bytes
        ));
    }
    Ok(limits)
}

#[cfg(test)]
#[path = "titles_tests.rs"]
mod tests;
