use super::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

struct Fixture {
    _dir: tempfile::TempDir,
    home: Home,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let home = Home::resolve(Some(home.as_os_str()), None, Path::new("/")).unwrap();
    Fixture { _dir: dir, home }
}

impl Fixture {
    fn file(&self) -> CredentialFile {
        CredentialFile::at(&self.home, Environment::default()).hasty()
    }

    fn put(&self, text: &str, mode: u32) -> PathBuf {
        let path = self.home.path().join(FILE);
        fs::create_dir_all(self.home.path()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn text(&self) -> String {
        fs::read_to_string(self.home.path().join(FILE)).unwrap()
    }

    /// What is in the home.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn secret(text: &str) -> Secret {
    Secret(text.to_owned())
}

#[test]
fn the_first_key_makes_the_home_and_a_file_that_nobody_else_reads() {
    let f = fixture();
    let changed = f.file().set("A_KEY", &secret("sk-0123456789")).unwrap();
    assert_eq!(
        changed,
        Changed {
            had: false,
            moved: false
        }
    );
    assert_eq!(f.text(), "version: 1\nrefs:\n  A_KEY: sk-0123456789\n");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(f.home.path()), 0o700);
    assert_eq!(mode(&f.file().path()), 0o600);
    assert_eq!(f.names(), [FILE], "neither lock nor draft is left");
    assert!(f.file().set("A_KEY", &secret("sk-other")).unwrap().had);
    assert!(f.file().unset("A_KEY").unwrap().had);
    assert!(!f.file().unset("A_KEY").unwrap().had);
    assert_eq!(f.text(), "version: 1\nrefs: {}\n");
}

#[test]
fn nothing_is_made_to_take_out_what_is_not_there() {
    let f = fixture();
    assert!(!f.file().unset("A").unwrap().had);
    assert!(!f.home.path().exists());
}

#[test]
fn what_is_not_to_be_written_is_left_as_it_is() {
    let f = fixture();
    let good = "version: 1\nrefs: {A: sk-first}\n";
    type Says = fn(&Error) -> bool;
    let cases: [(&str, u32, Says); 4] = [
        (good, 0o644, |e| matches!(e, Error::CredentialsMode { .. })),
        (good, 0o660, |e| matches!(e, Error::CredentialsMode { .. })),
        ("version: 3\n", 0o600, |e| {
            matches!(e, Error::Document { line: 1, .. })
        }),
        ("version: 1\nrefs:\n  A: &k x\n  B: *k\n", 0o600, |e| {
            matches!(e, Error::CredentialsLayout { .. })
        }),
    ];
    for (text, mode, says) in cases {
        f.put(text, mode);
        let error = f.file().set("A", &secret("sk-new")).unwrap_err();
        assert!(says(&error), "{text:?}: {error:?}");
        assert!(!error.to_string().contains("sk-"), "{error}");
        assert_eq!(f.text(), text);
        assert_eq!(f.names(), [FILE]);
    }
}

#[test]
fn a_link_a_pipe_and_a_folder_in_its_place_are_refused() {
    let f = fixture();
    let path = f.put("version: 1\n", 0o600);
    let target = f.home.path().join("real");
    fs::rename(&path, &target).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(matches!(
        f.file().set("A", &secret("x")),
        Err(Error::CredentialsLink(_))
    ));
    assert_eq!(fs::read_to_string(&target).unwrap(), "version: 1\n");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(
        f.file().set("A", &secret("x")),
        Err(Error::Io { .. })
    ));
    fs::remove_dir(&path).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &path,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let error = f.file().set("A", &secret("x")).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    fs::remove_file(&path).unwrap();
    // A link to nothing is a link.
    std::os::unix::fs::symlink("/nowhere/at/all", &path).unwrap();
    assert!(matches!(
        f.file().set("A", &secret("x")),
        Err(Error::CredentialsLink(_))
    ));
}

#[test]
fn a_lock_that_somebody_holds_is_never_taken_from_them() {
    let f = fixture();
    f.put("version: 1\n", 0o600);
    let lock = f.home.path().join(".credentials.yaml.lock");
    fs::write(&lock, "").unwrap();
    let error = f.file().set("A", &secret("x")).unwrap_err();
    assert!(matches!(error, Error::CredentialsBusy(_)));
    let text = error.to_string();
    assert!(
        text.contains("rm ") && text.contains(".credentials.yaml.lock"),
        "{text}"
    );
    assert!(lock.exists());
    assert_eq!(f.text(), "version: 1\n");
    fs::remove_file(&lock).unwrap();
    f.file().set("A", &secret("x")).unwrap();
}

#[test]
fn writers_at_once_follow_each_other_and_lose_nothing() {
    let f = Arc::new(fixture());
    let writers = 8;
    let threads: Vec<_> = (0..writers)
        .map(|n| {
            let f = Arc::clone(&f);
            std::thread::spawn(move || {
                let file = CredentialFile::at(&f.home, Environment::default());
                file.set(&format!("KEY_{n}"), &secret(&format!("sk-of-writer-{n}")))
                    .unwrap();
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let store = super::super::CredentialStore::open(&f.home, Environment::default()).unwrap();
    for n in 0..writers {
        let (value, source) = store.resolve(&format!("KEY_{n}")).unwrap().unwrap();
        assert_eq!(
            (value.expose(), source),
            (&*format!("sk-of-writer-{n}"), Source::File)
        );
    }
    assert_eq!(f.names(), [FILE]);
}

#[test]
fn a_name_that_the_environment_gives_is_not_written() {
    let f = fixture();
    let env = Environment::process([("A".into(), "inherited".into()), ("B".into(), "".into())]);
    let file = CredentialFile::at(&f.home, env);
    assert!(matches!(
        file.set("A", &secret("x")),
        Err(Error::CredentialInherited(_))
    ));
    file.set("B", &secret("x")).unwrap();
    assert!(matches!(
        file.set("A-B", &secret("x")),
        Err(Error::CredentialName(_))
    ));
    assert!(matches!(file.unset("A-B"), Err(Error::CredentialName(_))));
}

#[test]
fn a_home_that_cannot_be_written_is_told_and_left() {
    let f = fixture();
    f.put("version: 1\n", 0o600);
    fs::set_permissions(f.home.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let result = f.file().set("A", &secret("x"));
    fs::set_permissions(f.home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // The superuser may write anywhere.
    if let Err(error) = result {
        assert!(
            error.to_string().contains(".credentials.yaml.lock"),
            "{error}"
        );
        assert_eq!(f.text(), "version: 1\n");
    }
}

#[test]
fn the_early_layout_is_moved_by_the_first_change() {
    let f = fixture();
    f.put("OLD_KEY: sk-flat\n", 0o600);
    assert!(super::super::CredentialStore::open(&f.home, Environment::default()).is_err());
    assert!(f.file().set("NEW", &secret("x")).unwrap().moved);
    let store = super::super::CredentialStore::open(&f.home, Environment::default()).unwrap();
    assert_eq!(store.names(), ["NEW", "OLD_KEY"]);
    assert_eq!(
        store.resolve("OLD_KEY").unwrap().unwrap().0.expose(),
        "sk-flat"
    );
}
