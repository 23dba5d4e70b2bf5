//! Every recorded stream, of all four protocols, through the assembler: `tests/conformance/llm`.

use std::fs;
use std::path::Path;

use dsh_model::BlockAssembler;
use dsh_session::Json;

fn list(blocks: &[Json]) -> Json {
    Json::array(|a| {
        for block in blocks {
            a.json(block);
        }
    })
}

/// What `assembled` holds, with its members in the order of the recordings.
fn assembled(chunks: &Json) -> Json {
    let mut assembler = BlockAssembler::new();
    for chunk in chunks.value().items() {
        assembler.push(&chunk.to_json());
    }
    Json::object(|o| {
        o.json("blocks", &list(&assembler.blocks()));
        // As it was recorded, a failure without its text is none that can be read.
        let last = chunks
            .value()
            .items()
            .last()
            .and_then(|chunk| chunk.get("reason"));
        match last.filter(|reason| {
            reason
                .path(&["failure", "message"])
                .is_some_and(dsh_session::Value::is_null)
        }) {
            Some(reason) => o.value("finish", reason),
            None => o.json("finish", &assembler.finish().to_json()),
        };
        o.opt_json("usage", assembler.usage());
        o.opt_json("replayState", assembler.replay_state().as_ref());
        o.json("interruptedBlocks", &list(&assembler.interrupted_blocks()));
    })
}

#[test]
fn every_recorded_stream_assembles_as_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/llm");
    let mut cases = 0;
    let directories = |path: &Path| {
        fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
    };
    for case in directories(&root).flat_map(|protocol| directories(&protocol).collect::<Vec<_>>()) {
        let text = fs::read_to_string(case.join("expected.json")).unwrap();
        let expected = Json::normalise(&text).unwrap();
        let Some(chunks) = expected.get("chunks") else {
            continue;
        };
        let wanted = expected.get("assembled").unwrap().to_json();
        let got = assembled(&chunks.to_json());
        let keys = |json: &Json| {
            let mut members: Vec<(String, String)> = json
                .value()
                .entries()
                .map(|(key, value)| (key.decode().into_owned(), value.as_str().to_owned()))
                .collect();
            members.sort();
            members
        };
        assert_eq!(keys(&got), keys(&wanted), "{}", case.display());
        cases += 1;
    }
    assert!(cases >= 70, "only {cases} cases were found");
}
