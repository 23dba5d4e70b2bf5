//! Reads `tests/conformance/llm-differences.toml`: where a model call differs from upstream's on
//! purpose, and why.
//!
//! Tests of two workspaces take this file in by its path, so it needs `serde_json` and nothing
//! else; it reads the little of TOML that the list is written in.

use std::cmp::Ordering;
use std::path::Path;

use serde_json::{Map, Value, json};

/// One difference with one reason.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Difference {
    /// `PROTOCOL/CASE`.
    pub(crate) cases: Vec<String>,
    /// JSON pointers below `/http`, `/chunks` and `/assembled`.
    pub(crate) members: Vec<String>,
    /// What the data says; none where it has no such member.
    pub(crate) upstream: Option<Value>,
    /// What is so instead; none where the member is not there.
    pub(crate) ours: Option<Value>,
    pub(crate) why: String,
}

/// The whole list.
pub(crate) struct Differences(Vec<Difference>);

impl Differences {
    /// Reads the list of the data at `root` (`tests/conformance/llm`).
    pub(crate) fn beside(root: &Path) -> Self {
        let path = root.with_file_name("llm-differences.toml");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// The names of all cases that an entry has.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|one| &one.cases).map(String::as_str)
    }

    /// Turns what upstream does into what has to be so here. `expected` is the case's
    /// expected.json with the `http` of its request.json as one more member.
    pub(crate) fn apply(&self, case: &str, expected: &mut Value) -> Result<(), String> {
        for one in self
            .0
            .iter()
            .filter(|one| one.cases.iter().any(|own| own == case))
        {
            for member in &one.members {
                let found = expected.pointer(member).cloned();
                if found != one.upstream {
                    return Err(format!(
                        "llm-differences.toml: {case} has {found:?} at {member}, not {:?}",
                        one.upstream
                    ));
                }
                set(expected, member, one.ours.clone())
                    .ok_or_else(|| format!("llm-differences.toml: {case} has no place {member}"))?;
            }
        }
        Ok(())
    }
}

/// Puts a value at a pointer whose parent is there; none takes the member away.
fn set(whole: &mut Value, pointer: &str, value: Option<Value>) -> Option<()> {
    let (parent, last) = pointer.rsplit_once('/')?;
    let last = last.replace("~1", "/").replace("~0", "~");
    match (whole.pointer_mut(parent)?, value) {
        (Value::Object(members), Some(value)) => drop(members.insert(last, value)),
        (Value::Object(members), None) => drop(members.remove(&last)),
        (Value::Array(items), Some(value)) => {
            let at: usize = last.parse().ok()?;
            match at.cmp(&items.len()) {
                Ordering::Less => items[at] = value,
                Ordering::Equal => items.push(value),
                Ordering::Greater => return None,
            }
        }
        (Value::Array(items), None) => {
            let at = last.parse().ok().filter(|at| *at < items.len())?;
            items.remove(at);
        }
        _ => return None,
    }
    Some(())
}

fn parse(text: &str) -> Result<Vec<Difference>, String> {
    let mut tables: Vec<Map<String, Value>> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[[difference]]" {
            tables.push(Map::new());
            continue;
        }
        let (key, value) = line
            .split_once(" = ")
            .ok_or_else(|| wrong("no `key = value`"))?;
        let table = tables
            .last_mut()
            .ok_or_else(|| wrong("no [[difference]] above it"))?;
        let mut value = value.to_owned();
        while value.starts_with('[') && !value.ends_with(']') {
            let (_, more) = lines.next().ok_or_else(|| wrong("the list does not end"))?;
            value.push_str(more.trim());
        }
        let value = read(&value).ok_or_else(|| wrong("neither a text nor a list of texts"))?;
        if table.insert(key.to_owned(), value).is_some() {
            return Err(wrong("the key is there twice"));
        }
    }
    tables.into_iter().map(entry).collect()
}

/// `"…"` as JSON has it, `'…'` as it stands, or a list of the former.
fn read(text: &str) -> Option<Value> {
    match text.strip_prefix('\'') {
        Some(rest) => rest.strip_suffix('\'').map(|inner| json!(inner)),
        None => serde_json::from_str(&text.replace(",]", "]")).ok(),
    }
}

fn entry(mut table: Map<String, Value>) -> Result<Difference, String> {
    let list = |value: Option<Value>| -> Option<Vec<String>> {
        let texts: Option<Vec<String>> = value?
            .as_array()?
            .iter()
            .map(|text| text.as_str().map(str::to_owned))
            .collect();
        texts.filter(|texts| !texts.is_empty())
    };
    let json = |value: Option<Value>| match value {
        None => Ok(None),
        Some(text) => serde_json::from_str(text.as_str().unwrap_or_default())
            .map(Some)
            .map_err(|error| format!("{text} is no JSON text: {error}")),
    };
    let whole = Value::Object(table.clone());
    let wrong = |what: &str| format!("{what}: {whole}");
    let one = Difference {
        cases: list(table.remove("cases")).ok_or_else(|| wrong("`cases` is no list of texts"))?,
        members: list(table.remove("members"))
            .ok_or_else(|| wrong("`members` is no list of texts"))?,
        upstream: json(table.remove("upstream"))?,
        ours: json(table.remove("ours"))?,
        why: match table.remove("why") {
            Some(Value::String(why)) if why.len() > 20 => why,
            _ => return Err(wrong("`why` gives no reason")),
        },
    };
    if one.upstream == one.ours {
        return Err(wrong("upstream's and ours are the same"));
    }
    match table.keys().next() {
        Some(key) => Err(wrong(&format!("no member `{key}` is known"))),
        None => Ok(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "# words\n[[difference]]\ncases = [\n    \"p/a\",\n    \"p/b\",\n]\n\
        members = [\"/chunks/0/code\", \"/assembled/code\"]\nupstream = '\"OLD\"'\nours = '\"NEW\"'\n\
        why = \"it is an overload, which is retried\"\n";

    #[test]
    fn an_entry_turns_upstreams_value_into_ours_in_its_cases_alone() {
        let list = Differences(parse(ONE).unwrap());
        assert_eq!(list.cases().collect::<Vec<_>>(), ["p/a", "p/b"]);
        let data = json!({"chunks": [{"code": "OLD"}], "assembled": {"code": "OLD"}});
        let mut changed = data.clone();
        list.apply("p/b", &mut changed).unwrap();
        assert_eq!(
            changed,
            json!({"chunks": [{"code": "NEW"}], "assembled": {"code": "NEW"}})
        );
        let mut other = data.clone();
        list.apply("p/c", &mut other).unwrap();
        assert_eq!(other, data);
    }

    #[test]
    fn an_entry_that_is_not_so_in_the_data_fails() {
        let list = Differences(parse(ONE).unwrap());
        for data in [
            json!({"chunks": [{"code": "NEW"}], "assembled": {"code": "OLD"}}),
            json!({"chunks": [], "assembled": {"code": "OLD"}}),
            json!({"chunks": [{"code": "OLD"}]}),
        ] {
            list.apply("p/a", &mut data.clone()).unwrap_err();
        }
    }

    #[test]
    fn members_come_and_go() {
        let list = |members: &str| {
            let text = format!(
                "[[difference]]\ncases = [\"p/a\"]\n{members}\nwhy = \"because it has to be so here\"\n"
            );
            Differences(parse(&text).unwrap())
        };
        let mut data = json!({"http": {"headers": {"a": "1"}}, "chunks": [1, 2]});
        list("members = [\"/http/headers/a\"]\nupstream = '\"1\"'")
            .apply("p/a", &mut data)
            .unwrap();
        list("members = [\"/chunks/0\"]\nupstream = '1'")
            .apply("p/a", &mut data)
            .unwrap();
        list("members = [\"/chunks/1\"]\nours = '{\"x\":3}'")
            .apply("p/a", &mut data)
            .unwrap();
        list("members = [\"/http/b\"]\nours = 'null'")
            .apply("p/a", &mut data)
            .unwrap();
        assert_eq!(
            data,
            json!({"http": {"headers": {}, "b": null}, "chunks": [2, {"x": 3}]})
        );
    }

    #[test]
    fn what_is_no_difference_or_has_no_reason_is_refused() {
        for (from, to) in [
            ("'\"NEW\"'", "'\"OLD\"'"),
            ("it is an overload, which is retried", "so"),
            ("why", "because"),
            ("ours = '\"NEW\"'", "ours = 'NEW'"),
            ("[[difference]]", ""),
            ("cases = [", "cases = \"p/a\" # ["),
        ] {
            parse(&ONE.replace(from, to)).expect_err(from);
        }
    }
}
