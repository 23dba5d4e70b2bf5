use std::fs;
use std::path::{Path, PathBuf};

use dsh_plugin::{CallContext, Description, Engine, Error, Row};
use serde_json::json;

use crate::support::{
    all, engine, engine_in, guest, guest_with, new_engine, row, run, with_section,
};

async fn load(wasm: &[u8]) -> Error {
    engine().load_bytes(wasm.to_vec()).await.unwrap_err()
}

#[tokio::test]
async fn what_is_no_component_is_refused_and_says_why() {
    assert!(matches!(load(b"").await, Error::NotWasm(_)));
    assert!(matches!(load(b"hello").await, Error::NotWasm(_)));
    assert!(matches!(load(&[0; 1000]).await, Error::NotWasm(_)));
    assert!(matches!(
        load(&wat::parse_str("(module)").unwrap()).await,
        Error::CoreModule
    ));
    let code = Engine::precompile(guest()).unwrap();
    assert!(matches!(load(&code).await, Error::NotWasm(_)));
    assert!(matches!(load(&code[160..]).await, Error::Precompiled));
    let mut garbled = guest().to_vec();
    for byte in &mut garbled[5000..6000] {
        *byte ^= 0x55;
    }
    assert!(matches!(
        load(&garbled).await,
        Error::Invalid(_) | Error::NotWasm(_)
    ));
}

#[tokio::test]
async fn a_truncated_component_is_refused_wherever_it_ends() {
    let whole = guest();
    let ends = section_ends(whole);
    for part in 0..40 {
        let end = whole.len() * part / 40;
        if ends.contains(&end) {
            // What is left is a component, if one that exports less.
            continue;
        }
        let error = load(&whole[..end]).await;
        assert!(
            matches!(error, Error::NotWasm(_) | Error::Invalid(_)),
            "{part}/40: {error}"
        );
    }
}

fn section_ends(component: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (8, vec![8]);
    while at < component.len() {
        let (mut size, mut shift) = (0, 0);
        loop {
            at += 1;
            let byte = usize::from(component[at]);
            size |= (byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        at += 1 + size;
        ends.push(at);
    }
    ends
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named() {
    let error = engine()
        .load_file(Path::new("/nowhere/x.wasm"))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("/nowhere/x.wasm"), "{error}");
    assert!(engine().load_file(Path::new("/")).await.is_err());
    let dir = tempfile::tempdir().unwrap();
    let large = fs::File::create(dir.path().join("large.wasm")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let error = engine()
        .load_file(&dir.path().join("large.wasm"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_component_says_what_it_imports_exports_and_is_without_being_run() {
    let manifest = json!({"plugin": {"name": "acme:prober", "version": "1.2.3"}, "limits": {"memory": "32MiB"}});
    let description = Description::read(&guest_with(&manifest)).unwrap();
    let imports: Vec<_> = description
        .imports
        .iter()
        .map(dsh_plugin::Interface::name)
        .collect();
    for import in ["log", "config", "work", "clock", "process"] {
        assert!(
            imports.contains(&format!("dsh:plugin/{import}@0.1.0").as_str()),
            "{import} of {imports:?}"
        );
    }
    assert!(
        imports
            .iter()
            .all(|import| import.starts_with("dsh:plugin/")),
        "{imports:?}"
    );
    for export in ["tool", "llm-adapter", "dispatch", "prompt"] {
        assert!(description.exports_interface(export), "{export}");
    }
    assert!(!description.exports_interface("command"));
    assert_eq!(description.digest.len(), 64);
    assert_eq!(description.manifest.unwrap().plugin.version, "1.2.3");
    let damaged = with_section(guest(), "dsh:manifest", b"{");
    assert!(matches!(
        Description::read(&damaged),
        Err(Error::Manifest(_))
    ));
}

#[tokio::test]
async fn a_manifest_may_ask_for_less_and_a_row_decides() {
    let manifest = |memory: &str| json!({"plugin": {"name": "acme:prober", "version": "1.0.0"}, "limits": {"memory": memory}});
    for (asked, row, expected) in [
        ("32MiB", json!(null), 32),
        ("1GiB", json!(null), 256),
        ("32MiB", json!({"memory": "512MiB"}), 512),
    ] {
        let component = engine()
            .load_bytes(guest_with(&manifest(asked)))
            .await
            .unwrap();
        let limits = dsh_plugin::Limits::of(&component, &row).unwrap();
        assert_eq!(limits.memory, expected << 20, "{asked} {row}");
    }
}

fn only(dir: &Path, extension: &str) -> PathBuf {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    assert_eq!(found.len(), 1, "{extension}: {found:?}");
    found.pop().unwrap()
}

async fn use_once(engine: &Engine) {
    let component = engine.load_bytes(guest().to_vec()).await.unwrap();
    let mounted = engine
        .mount(Row {
            component,
            ..row("{}", all(), json!({})).await
        })
        .await
        .unwrap();
    assert_eq!(mounted.tools().len(), 2);
    assert_eq!(
        run(&mounted, &CallContext::default(), "echo", "works").await,
        "works"
    );
}

#[tokio::test]
async fn machine_code_and_offers_are_kept_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    use_once(&engine_in(dir.path())).await;
    let kept: Vec<_> = ["cwasm", "offer"].map(|kind| only(dir.path(), kind)).into();
    let written = kept
        .iter()
        .map(|path| fs::metadata(path).unwrap().modified().unwrap())
        .collect::<Vec<_>>();
    use_once(&engine_in(dir.path())).await;
    let read = kept
        .iter()
        .map(|path| fs::metadata(path).unwrap().modified().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(written, read);
}

#[tokio::test]
async fn a_tampered_entry_is_not_loaded_and_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    use_once(&engine_in(dir.path())).await;
    for kind in ["cwasm", "offer"] {
        let path = only(dir.path(), kind);
        let sound = fs::read(&path).unwrap();
        // The code's own head and middle, what follows it, and the MAC.
        let end = sound.len() - 1;
        let flipped = [0, sound.len() / 2, end - 100, end - 33, end].map(|at| {
            let mut changed = sound.clone();
            changed[at] ^= 1;
            changed
        });
        let others = [
            sound[..end].to_vec(),
            vec![],
            [&sound[..], b"x"].concat(),
            [b"x", &sound[..]].concat(),
        ];
        for planted in flipped.iter().chain(&others) {
            fs::write(&path, planted).unwrap();
            use_once(&engine_in(dir.path())).await;
            assert_eq!(fs::read(&path).unwrap(), sound, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_cache_that_cannot_be_used_costs_time_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let engine = engine_in(&file);
    assert!(engine.cache_problem().unwrap().contains("file"));
    use_once(&engine).await;
}

#[tokio::test]
async fn embedded_code_is_used_where_it_fits_and_passed_over_where_not() {
    let code: &'static [u8] = Engine::precompile(guest()).unwrap().leak();
    let mut other = code.to_vec();
    other[8] ^= 1;
    let dir = tempfile::tempdir().unwrap();
    let engine = engine_in(dir.path());
    let digest = Description::read(guest()).unwrap().digest;
    assert_eq!(
        engine.load_embedded(guest(), code).await.unwrap().digest(),
        digest
    );
    assert!(
        fs::read_dir(dir.path())
            .unwrap()
            .all(|entry| entry.unwrap().file_name() == "key"),
        "nothing was compiled"
    );
    for unfit in [&b""[..], other.leak(), &code[..code.len() / 2]] {
        assert_eq!(
            new_engine()
                .load_embedded(guest(), unfit)
                .await
                .unwrap()
                .digest(),
            digest
        );
    }
}

#[tokio::test]
async fn a_pinned_component_is_loaded_by_its_digest_alone_once_it_was_compiled() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = json!({"plugin": {"name": "acme:prober", "version": "1.2.3"}, "x": 1});
    let wasm = guest_with(&manifest);
    let first = Description::read(&wasm).unwrap();
    let pin = first.digest.as_str();
    let engine = engine_in(dir.path());
    let loaded = engine.load_pinned(pin, || Ok(wasm.clone())).await.unwrap();
    assert_eq!(loaded.description(), &first);
    let again = engine_in(dir.path())
        .load_pinned(pin, || panic!("its bytes are not needed"))
        .await
        .unwrap();
    assert_eq!(again.description(), &first);
    // What was compiled of bytes serves the pin as well, and the other way round.
    let other = engine.load_bytes(guest().to_vec()).await.unwrap();
    engine
        .load_pinned(other.digest(), || panic!("its bytes are not needed"))
        .await
        .unwrap();
}

#[tokio::test]
async fn other_bytes_than_those_that_were_pinned_are_refused_with_both_digests() {
    let dir = tempfile::tempdir().unwrap();
    for engine in [new_engine(), engine_in(dir.path())] {
        let pin = "0".repeat(64);
        let error = engine
            .load_pinned(&pin, || Ok(guest().to_vec()))
            .await
            .unwrap_err();
        let found = Description::read(guest()).unwrap().digest;
        let text = error.to_string();
        assert!(text.contains(&pin) && text.contains(&found), "{text}");
        let lost = || Err(std::io::Error::from(std::io::ErrorKind::NotFound));
        let error = engine.load_pinned(&pin, lost).await.unwrap_err();
        assert!(matches!(error, Error::Bytes { .. }), "{error}");
    }
}
