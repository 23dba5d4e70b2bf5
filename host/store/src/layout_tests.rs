use super::*;
use crate::testing::json;
use crate::{Store, StoreConfig};

/// Runs a table whose rows are one string in and one string or an error out.
fn table(case: &str, field: &str, rows: usize, f: impl Fn(&str) -> Result<String, StoreError>) {
    let (input, expected) = (json(case, "input.json"), json(case, "expected.json"));
    let mut checked = 0;
    for (input, expected) in input
        .as_array()
        .unwrap()
        .iter()
        .zip(expected.as_array().unwrap())
    {
        let text = input[field].as_str().unwrap();
        // A Rust string cannot be half a surrogate pair; see session-differences.toml.
        if !text.contains('\u{fffd}') {
            assert_eq!(
                f(text).ok().as_deref(),
                expected["value"].as_str(),
                "{text:?}"
            );
            checked += 1;
        }
    }
    assert_eq!(checked, rows);
}

#[test]
fn project_keys_equal_upstreams() {
    table("tbl-project-key", "cwd", 23, |cwd| project_key(Some(cwd)));
    assert_eq!(project_key(None).unwrap(), NO_CWD);
}

#[test]
fn session_segments_equal_upstreams() {
    table("tbl-encode-segment", "id", 20, encode_segment);
}

#[test]
fn log_paths_equal_upstreams() {
    let (input, expected) = (
        json("tbl-log-path", "input.json"),
        json("tbl-log-path", "expected.json"),
    );
    for (input, expected) in input
        .as_array()
        .unwrap()
        .iter()
        .zip(expected.as_array().unwrap())
    {
        let mut header = Header::new(input["id"].as_str().unwrap(), 0);
        header.cwd = input["cwd"].as_str().map(Into::into);
        let compression = if input["compression"] == "zstd" {
            Compression::Zstd
        } else {
            Compression::None
        };
        let store = Store::open(StoreConfig::new(input["root"].as_str().unwrap())).unwrap();
        let path = log_path(store.root(), &header, compression).unwrap();
        assert_eq!(path.to_str(), expected["value"].as_str());
    }
}

#[test]
fn a_segment_names_its_id_and_nothing_else_does() {
    for id in ["s-1", ".", "..", "a/b", "é", "💡", "x\0y", "~", "日本"] {
        assert_eq!(
            decode_segment(&encode_segment(id).unwrap()).as_deref(),
            Some(id)
        );
    }
    for segment in [
        "", "..", "~", "~00", "~00e9", "~D83D", "~0041", "é", "~+041",
    ] {
        assert_eq!(decode_segment(segment), None, "{segment}");
    }
}
