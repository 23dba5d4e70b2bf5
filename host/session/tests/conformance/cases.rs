//! Finding cases and reading their files.

use std::path::{Path, PathBuf};

use dsh_session::{Json, Seq, Value};

/// The cases that are part of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/session")
}

/// Cases recorded from upstream's own fixtures; they may be used where they lie and are not part of the project.
pub(crate) fn recorded() -> Option<PathBuf> {
    let named = std::env::var_os("DSH_SHARED").map(PathBuf::from);
    let above = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|dir| dir.join("shared"));
    let places = named
        .into_iter()
        .chain(above)
        .map(|dir| dir.join("conformance/session/recorded"));
    places.into_iter().find(|dir| dir.is_dir())
}

pub(crate) fn json(path: &Path) -> Json {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Json::restore(&String::from_utf8_lossy(&bytes))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A member that must be there.
pub(crate) fn member<'a>(value: Value<'a>, key: &str) -> Value<'a> {
    value
        .get(key)
        .unwrap_or_else(|| panic!("no {key:?} in {value:?}"))
}

pub(crate) fn text(value: Value<'_>, key: &str) -> String {
    member(value, key)
        .text()
        .unwrap_or_else(|| panic!("{key} in {value:?}"))
        .into_owned()
}

pub(crate) fn number(value: Value<'_>, key: &str) -> u64 {
    member(value, key)
        .u64()
        .unwrap_or_else(|| panic!("{key} in {value:?}"))
}

pub(crate) fn flag(value: Value<'_>, key: &str) -> bool {
    member(value, key).bool() == Some(true)
}

pub(crate) fn seqs(seqs: &[Seq]) -> Json {
    Json::array(|a| {
        for seq in seqs {
            a.u64(seq.0);
        }
    })
}

/// Input and expected rows of a table, with a name for messages.
pub(crate) fn table(name: &str, mut check: impl FnMut(&str, Value<'_>, Value<'_>)) {
    let dir = root().join(name);
    let (input, expected) = (
        json(&dir.join("input.json")),
        json(&dir.join("expected.json")),
    );
    let inputs: Vec<_> = input.value().items().collect();
    let outputs: Vec<_> = expected.value().items().collect();
    assert!(
        !inputs.is_empty() && inputs.len() == outputs.len(),
        "{name}"
    );
    for (index, (input, output)) in inputs.into_iter().zip(outputs).enumerate() {
        let title = input.get("name").and_then(Value::text).unwrap_or_default();
        check(&format!("{name}[{index}] {title}"), input, output);
    }
}
