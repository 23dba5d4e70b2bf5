//! What came, against what was recorded. Pure.
//!
//! Three rules of the recordings (`tests/conformance/llm/README.md`): where a failure is recorded without its message,
//! an adapter writes its own, and any text will do; `{{…name}}` stands for a text of one's own that holds the name; the
//! value of `user-agent` is the host's. The order of members is not looked at.

use dsh_session::{Json, Value};

/// The first place where `got` is not what `expected` says, as a path with both values; none where it is.
pub(super) fn difference(
    name: &str,
    expected: Value<'_>,
    got: Option<Value<'_>>,
) -> Option<String> {
    let Some(got) = got else {
        return Some(format!("{name} is missing; expected {}", cut(expected)));
    };
    if expected.is_object() && got.is_object() {
        let free =
            expected.get("code").is_some() && expected.get("message").is_some_and(Value::is_null);
        for key in members(expected) {
            let (Some(wanted), at) = (expected.get(&key), format!("{name}.{key}")) else {
                continue;
            };
            if free
                && key == "message"
                && got
                    .get(&key)
                    .and_then(Value::text)
                    .is_some_and(|text| !text.is_empty())
            {
                continue;
            }
            if let Some(found) = difference(&at, wanted, got.get(&key)) {
                return Some(found);
            }
        }
        let extra = members(got)
            .into_iter()
            .find(|key| expected.get(key).is_none())?;
        let value = got.get(&extra).map(cut).unwrap_or_default();
        return Some(format!("{name}.{extra} is {value}; expected none"));
    }
    if expected.is_array() && got.is_array() {
        let (mut wanted, mut come) = (expected.items(), got.items());
        for at in 0.. {
            let name = format!("{name}[{at}]");
            match (wanted.next(), come.next()) {
                (None, None) => break,
                (None, Some(extra)) => {
                    return Some(format!("{name} is {}; expected none", cut(extra)));
                }
                (Some(wanted), come) => {
                    if let Some(found) = difference(&name, wanted, come) {
                        return Some(found);
                    }
                }
            }
        }
        return None;
    }
    let same = expected.same(got)
        || match (expected.text(), got.text()) {
            (Some(wanted), Some(come)) => says(&wanted, &come),
            _ => false,
        };
    (!same).then(|| format!("{name} is {}; expected {}", cut(got), cut(expected)))
}

/// The request that was made, against the one that was recorded: all of its body, and those headers that were recorded.
pub(super) fn request(expected: Option<&Json>, got: Option<Value<'_>>) -> Option<String> {
    let (expected, got) = match (expected, got) {
        (None, None) => return None,
        (None, Some(_)) => return Some("http: a request was made; expected none".to_owned()),
        (Some(_), None) => return Some("http: no request was made; expected one".to_owned()),
        (Some(expected), Some(got)) => (expected, got),
    };
    for key in ["method", "path", "body"] {
        let name = format!("http.{key}");
        if let Some(wanted) = expected.get(key)
            && let Some(found) = difference(&name, wanted, got.get(key))
        {
            return Some(found);
        }
    }
    let headers = expected.get("headers")?;
    members(headers).into_iter().find_map(|header| {
        let name = format!("http.headers.{header}");
        let got = got.path(&["headers", &header.to_ascii_lowercase()]);
        if header.eq_ignore_ascii_case("user-agent") && got.is_some() {
            return None;
        }
        difference(&name, headers.get(&header)?, got)
    })
}

/// The names of an object's members, in their order.
pub(super) fn members(value: Value<'_>) -> Vec<String> {
    value
        .entries()
        .map(|(name, _)| name.decode().into_owned())
        .collect()
}

/// Whether a text is the one that a recording has, where `{{…name}}` is anything that holds the name.
fn says(wanted: &str, come: &str) -> bool {
    let Some((before, rest)) = wanted.split_once("{{") else {
        return false;
    };
    let Some((naming, after)) = rest.split_once("}}") else {
        return false;
    };
    let named = naming.rsplit(' ').next().unwrap_or_default();
    come.strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(after))
        .is_some_and(|own| own.contains(named))
}

/// A value, short enough for a line.
fn cut(value: Value<'_>) -> String {
    super::super::text::shown(value.as_str(), 200)
}

#[cfg(test)]
#[path = "expected_tests.rs"]
mod tests;
