//! `kind: torn-sweep`: a file cut at every byte of its end.

use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::frame;
use crate::load::Target;

fn sweep(case: &str, encoding: Compression, cuts: usize) {
    let expected = json(case, "expected.json");
    let suffix = if encoding == Compression::Zstd {
        ".zstd"
    } else {
        ""
    };
    let input = fs::read(cases().join(case).join(format!("input.jsonl{suffix}"))).unwrap();
    let dir = quick_dir();
    let path = dir.path().join("--work-p--/s-1").join(encoding.file_name());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let store = store(dir.path(), encoding);
    let rows = expected["rows"].as_array().unwrap();
    assert_eq!(rows.len(), cuts);
    for row in rows {
        let cut = usize::try_from(row["cut"].as_u64().unwrap()).unwrap();
        fs::write(&path, &input[..cut]).unwrap();
        let inspection = store.inspect(&Target::Id("s-1".into())).unwrap();
        assert_eq!(inspection.damage, None, "cut at {cut}");
        assert_eq!(row["ok"], true);
        assert_eq!(inspection.log.len(), row["eventCount"], "cut at {cut}");
        let closers: Vec<_> = inspection
            .closers
            .iter()
            .map(|e| event_json(e)["type"].clone())
            .collect();
        assert_eq!(Value::Array(closers), row["closers"], "cut at {cut}");
        if encoding == Compression::None {
            let committed = inspection.torn.map_or(cut as u64, |t| t.truncate_to);
            assert_eq!(committed, row["committedBytes"], "cut at {cut}");
            continue;
        }
        let torn = inspection
            .torn
            .map(|t| json!({"truncateTo": t.truncate_to, "recovered": t.recovered}));
        assert_eq!(json!(torn), row["torn"], "cut at {cut}");
        if row["afterLoad"].is_object() {
            // The repaired file was read again and found clean, else this would fail.
            store.repair("s-1").unwrap();
            let after = fs::read(&path).unwrap();
            let ours = json!({"bytes": after.len(), "frames": frame::scan(&after).complete.len()});
            assert_eq!(ours, row["afterLoad"], "cut at {cut}");
        }
    }
}

#[test]
fn a_plain_file_cut_anywhere_keeps_what_upstream_keeps() {
    sweep("torn-plain-sweep", Compression::None, 175);
}

#[test]
fn a_frame_cut_anywhere_keeps_what_upstream_keeps() {
    sweep("torn-zstd-sweep-small", Compression::Zstd, 233);
}

#[test]
fn a_frame_of_many_blocks_cut_anywhere_keeps_what_upstream_keeps() {
    sweep(
        "torn-zstd-sweep-multiblock",
        Compression::Zstd,
        json("torn-zstd-sweep-multiblock", "expected.json")["rows"]
            .as_array()
            .unwrap()
            .len(),
    );
}
