use std::fs;
use std::path::Path;

use dsh_session::Seq;

use crate::testing::quick_dir;
use crate::{Compression, Store, StoreConfig, StoreError, Target};

/// Two turns that ended with a title behind each, and one that is open.
const LOG: &str = r#"{"type":"session","version":0,"id":"parent","createdAt":5,"cwd":"/w","origin":"subagent","delegationDepth":3,"agentPreset":"old"}
{"type":"turn/start","seq":0,"time":10,"data":{"turn":1}}
{"type":"agent-preset/selected","seq":1,"time":11,"data":{"agentPreset":"new"}}
{"type":"turn/end","seq":2,"time":12,"data":{"turn":1,"reason":{"kind":"completed"}}}
{"type":"session/title","seq":3,"time":13,"data":{"title":"T","messageSeqs":[],"source":{"kind":"user"}}}
{"type":"turn/start","seq":4,"time":14,"data":{"turn":2}}
{"type":"turn/end","seq":5,"time":15,"data":{"turn":2,"reason":{"kind":"completed"}}}
{"type":"session/title","seq":6,"time":16,"data":{"title":"U","messageSeqs":[],"source":{"kind":"user"}}}
{"type":"turn/start","seq":7,"time":17,"data":{"turn":3}}
"#;

fn store(root: &Path, log: &str) -> Store {
    let dir = root.join("--w--/parent");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("session.jsonl"), log).unwrap();
    Store::open(StoreConfig {
        compression: Compression::None,
        ..StoreConfig::new(root)
    })
    .unwrap()
}

#[test]
fn a_fork_inherits_through_a_closed_turn_and_what_follows_it() {
    let dir = quick_dir();
    let store = store(dir.path(), LOG);
    for (name, at, inherited) in [
        ("last", None, 7),
        ("first", Some(0), 4),
        ("end", Some(2), 4),
        ("title", Some(3), 7),
        ("beyond", Some(900), 7),
    ] {
        let forked = store.fork("parent", at.map(Seq), name, 99).unwrap();
        assert_eq!(forked.inherited, inherited, "{name}");
        let child = store.inspect(&Target::Id(name.to_owned())).unwrap();
        assert_eq!(child.damage, None);
        assert!(child.torn.is_none() && child.closers.is_empty());
        assert_eq!(
            child.header.line(),
            format!(
                r#"{{"type":"session","version":0,"id":"{name}","createdAt":99,"cwd":"/w","parentSession":"parent","seedLength":{inherited},"delegationDepth":0,"agentPreset":"new"}}"#
            )
        );
        let text = fs::read_to_string(&forked.path).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let parents: Vec<&str> = LOG.lines().skip(1).collect();
        assert_eq!(lines[..inherited as usize], parents[..inherited as usize]);
        let seed =
            format!(r#"{{"type":"session/end-seed","seq":{inherited},"time":99,"data":{{}}}}"#);
        assert_eq!(lines[inherited as usize..], [seed]);
    }
    let path = dir.path().join("--w--/parent/session.jsonl");
    assert_eq!(fs::read_to_string(path).unwrap(), LOG);
    assert!(!dir.path().join("--w--/parent/lock").exists());
}

#[test]
fn a_fork_inside_an_open_turn_and_under_a_taken_id_is_refused() {
    let dir = quick_dir();
    let store = store(dir.path(), LOG);
    let error = store.fork("parent", Some(Seq(7)), "child", 99).unwrap_err();
    assert_eq!(error.code(), "FORK_UNAVAILABLE");
    assert!(error.to_string().contains("seq 7"), "{error}");
    assert!(!dir.path().join("--w--/child").exists());
    let error = store.fork("parent", None, "parent", 99).unwrap_err();
    assert!(matches!(error, StoreError::AlreadyExists { .. }), "{error}");
    let error = store.fork("nobody", None, "child", 99).unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
}

#[test]
fn a_damaged_log_gives_what_is_sound_of_it() {
    let dir = quick_dir();
    let damaged = LOG.replace("\"seq\":5", "\"seq\":55");
    let store = store(dir.path(), &damaged);
    assert_eq!(
        store.fork("parent", None, "child", 99).unwrap().inherited,
        4
    );
}
