use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

struct Fixture {
    dir: tempfile::TempDir,
    home: Home,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("home")).unwrap();
    fs::create_dir(dir.path().join("work")).unwrap();
    let home = Home::resolve(
        Some(dir.path().join("home").as_os_str()),
        None,
        Path::new("/"),
    )
    .unwrap();
    Fixture { dir, home }
}

impl Fixture {
    fn document(&self, text: &str, mode: u32) -> PathBuf {
        let path = self.home.path().join(".credentials.yaml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn open(&self, inherited: &[(&str, &str)]) -> Result<CredentialStore, Error> {
        let env = Environment::process(inherited.iter().map(|(k, v)| ((*k).into(), (*v).into())));
        let env = env
            .with_files(&self.dir.path().join("work"), self.home.path())
            .unwrap();
        CredentialStore::open(&self.home, env)
    }
}

fn found(store: &CredentialStore, name: &str) -> Option<(String, Source)> {
    store
        .resolve(name)
        .unwrap()
        .map(|(secret, source)| (secret.expose().to_owned(), source))
}

#[test]
fn the_first_layer_that_is_not_empty_wins() {
    let f = fixture();
    f.document("version: 1\nrefs: {A: file, B: file, C: file}\n", 0o600);
    fs::write(f.dir.path().join("work/.env"), "A=p\nB=p\nC=p\nD=p\nE=\n").unwrap();
    fs::write(f.home.path().join(".env"), "A=u\nD=u\nE=u\n").unwrap();
    let store = f.open(&[("A", "inherited"), ("B", "")]).unwrap();
    assert_eq!(
        found(&store, "A"),
        Some(("inherited".into(), Source::Process))
    );
    assert_eq!(found(&store, "B"), Some(("file".into(), Source::File)));
    assert_eq!(found(&store, "D"), Some(("p".into(), Source::ProjectEnv)));
    assert_eq!(found(&store, "E"), Some(("u".into(), Source::UserEnv)));
    assert_eq!(found(&store, "NONE"), None);
}

#[test]
fn a_document_that_others_may_read_is_refused_and_told_how_to_mend() {
    let f = fixture();
    for mode in [0o640, 0o604, 0o660, 0o610, 0o601, 0o644] {
        f.document("version: 1\n", mode);
        let error = f.open(&[]).unwrap_err().to_string();
        assert!(
            error.contains("chmod 600") && error.contains(".credentials.yaml"),
            "{error}"
        );
    }
    f.document("version: 1\n", 0o400);
    assert!(f.open(&[]).is_ok());
}

#[test]
fn one_wrong_thing_refuses_the_whole_document() {
    let f = fixture();
    for text in [
        "refs: {}\n",
        "version: 2\n",
        "version: '1'\n",
        "- a\n",
        "version: 1\nextra: 1\n",
        "version: 1\nrefs: [A]\n",
        "version: 1\nrefs: {A: ''}\n",
        "version: 1\nrefs: {A: 7}\n",
        "version: 1\nrefs: {1A: x}\n",
        "version: 1\nrefs: {A-B: x}\n",
        "version: 1\nrefs: {A: x, A: y}\n",
        "version: 1\nrefs: {A: !!js process.env.X}\n",
        "version: 1\nrecords: {noscope: {kind: api-key}}\n",
        "version: 1\nrecords: {a/b: {kind: other}}\n",
        "version: 1\nrecords: {a/b: {kind: api-key, key: ''}}\n",
        "version: 1\nrecords: {a/b: {kind: api-key, more: x}}\n",
        "version: 1\nrecords: {a/b: {kind: grant}}\n",
    ] {
        f.document(text, 0o600);
        assert!(
            matches!(f.open(&[]), Err(Error::Document { .. })),
            "{text:?}"
        );
    }
    f.document("DEEPSEEK_API_KEY: sk-flat\n", 0o600);
    let error = f.open(&[]).unwrap_err().to_string();
    assert!(
        error.contains("refs:") && !error.contains("sk-flat"),
        "{error}"
    );
}

#[test]
fn records_of_other_programs_are_accepted() {
    let f = fixture();
    f.document(
        "version: 1\nrefs: {A: x}\nrecords:\n  pi/one: {kind: api-key, key: k, env: {K: v}}\n  pi/two: {kind: grant, payload: {t: 1}}\n",
        0o600,
    );
    assert_eq!(found(&f.open(&[]).unwrap(), "A").unwrap().0, "x");
}

#[test]
fn a_key_stored_while_running_works_at_once() {
    let f = fixture();
    let store = f.open(&[]).unwrap();
    assert_eq!(found(&store, "A"), None);
    f.document("version: 1\nrefs: {A: one}\n", 0o600);
    assert_eq!(found(&store, "A").unwrap().0, "one");
    let path = f.document("version: 1\nrefs: {A: second}\n", 0o600);
    assert_eq!(found(&store, "A").unwrap().0, "second");
    fs::remove_file(path).unwrap();
    assert_eq!(found(&store, "A"), None);
}

#[test]
fn a_document_that_becomes_invalid_is_told_and_the_last_good_one_holds() {
    let f = fixture();
    f.document("version: 1\nrefs: {A: good}\n", 0o600);
    let store = f.open(&[]).unwrap();
    assert_eq!(store.problem(), None);
    for (text, mode) in [
        ("version: 1\nrefs: [sk-broken]\n", 0o600),
        ("version: 1\nrefs: {A: open}\n", 0o644),
    ] {
        f.document(text, mode);
        assert_eq!(found(&store, "A").unwrap().0, "good");
        let problem = store.problem().unwrap();
        assert!(
            problem.contains("last good") && !problem.contains("sk-"),
            "{problem}"
        );
    }
    f.document("version: 1\nrefs: {A: mended}\n", 0o600);
    assert_eq!(found(&store, "A").unwrap().0, "mended");
    assert_eq!(store.problem(), None);
}

#[test]
fn a_name_that_no_reference_may_have_is_refused() {
    let store = fixture().open(&[("A-B", "x")]).unwrap();
    for name in ["", "A-B", "1A", "A B", "É", "a.b"] {
        assert!(
            matches!(store.resolve(name), Err(Error::CredentialName(_))),
            "{name:?}"
        );
    }
}

#[test]
fn no_debug_output_holds_a_secret() {
    let f = fixture();
    f.document("version: 1\nrefs: {A: sk-in-file}\n", 0o600);
    let store = f.open(&[("B", "sk-inherited")]).unwrap();
    let shown = format!(
        "{store:?} {:?} {:?}",
        store.resolve("A"),
        store.resolve("B")
    );
    assert!(!shown.contains("sk-"), "{shown}");
}

#[test]
fn a_pipe_in_the_documents_place_is_refused_and_not_waited_for() {
    let fixture = fixture();
    let path = fixture.home.path().join(".credentials.yaml");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = fixture.open(&[]).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}
