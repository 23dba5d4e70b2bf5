//! Values of a profile, by their keys; what is wrong with one is said by its key.

use std::borrow::Cow;

use guest_support::json::Json;

/// What a timer of the host can hold.
const MAX_TIMEOUT_MS: u64 = 2_147_483_647;

/// Keys that were, and what took their place.
const GONE: &[(&str, &str)] = &[
    (
        "provider",
        "the key under `providers` is the provider's id: name the profile by it",
    ),
    (
        "maxRetries",
        "write `retryPolicy: {mode: normal, maxRetries: N}`",
    ),
    (
        "maxRetryDelayMs",
        "write `retryPolicy: {mode: normal, backoff: {maxDelayMs: N}}`",
    ),
];

/// Refuses keys that nobody knows, those that were, and nulls.
pub(super) fn known_keys(json: Json<'_>, keys: &[&str], at: &str) -> Result<(), String> {
    let path = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    for (name, value) in json.members() {
        if let Some((_, instead)) = GONE.iter().find(|(gone, _)| at.is_empty() && *gone == name) {
            return Err(format!("{name} is no key any more: {instead}"));
        }
        if !keys.contains(&name) {
            return Err(format!(
                "{} is no key: there are {}",
                path(name),
                keys.join(", ")
            ));
        }
        if value.raw() == "null" {
            return Err(format!("{} is null: leave it out, or set it", path(name)));
        }
    }
    Ok(())
}

pub(super) fn string(json: Json<'_>, key: &str) -> Result<Option<String>, String> {
    json.get(key)
        .map(|value| {
            value
                .string()
                .filter(|text| !text.trim().is_empty())
                .map(Cow::into_owned)
                .ok_or_else(|| format!("{key} must be a text that is not empty"))
        })
        .transpose()
}

pub(super) fn one_of(json: Json<'_>, key: &str, texts: &[&str]) -> Result<Option<String>, String> {
    json.get(key)
        .map(|value| {
            value
                .string()
                .filter(|text| texts.contains(&&**text))
                .map(Cow::into_owned)
                .ok_or_else(|| format!("{key} must be one of {}", texts.join(", ")))
        })
        .transpose()
}

/// A whole number from 1 to `max`.
pub(super) fn whole(json: Json<'_>, key: &str, max: u64) -> Result<Option<u64>, String> {
    json.get(key)
        .map(|value| {
            value
                .whole()
                .filter(|number| (1..=max).contains(number))
                .ok_or_else(|| {
                    format!(
                        "{key} must be a whole number above 0, and no more than {}",
                        max.min((1 << 53) - 1)
                    )
                })
        })
        .transpose()
}

/// Milliseconds above 0, a part of one counted as one.
pub(super) fn timeout(json: Json<'_>, key: &str) -> Result<Option<u64>, String> {
    json.get(key)
        .map(|value| {
            value
                .number()
                .filter(|ms| *ms > 0.0 && *ms <= MAX_TIMEOUT_MS as f64)
                .map(|ms| ms.ceil() as u64)
                .ok_or_else(|| {
                    format!("{key} must be milliseconds above 0, and no more than {MAX_TIMEOUT_MS}")
                })
        })
        .transpose()
}

pub(super) fn tokens(json: Json<'_>, key: &str) -> Result<Option<u32>, String> {
    Ok(whole(json, key, u32::MAX.into())?.map(|number| number as u32))
}
