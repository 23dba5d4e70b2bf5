use super::*;
use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};

struct Case {
    dir: tempfile::TempDir,
    packages: Packages,
}

fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap();
    let packages = Packages::at(&home);
    Case { dir, packages }
}

impl Case {
    /// A profile's lock with this text.
    fn lock(&self, profile: &str, text: &str) {
        let dir = self.dir.path().join("profiles").join(profile);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(FILE), text).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.packages.dir()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_put_is_read_by_its_digest_and_is_the_owners_alone() {
    let case = case();
    let digest = case.packages.put(b"bytes").unwrap();
    assert_eq!(
        digest,
        "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9"
    );
    assert_eq!(case.packages.read(&digest).unwrap(), b"bytes");
    let path = case.packages.path(&digest);
    assert!(path.ends_with(format!("plugins/sha256/{digest}.wasm")));
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(path.parent().unwrap().parent().unwrap()), 0o700);
    assert_eq!(case.packages.put(b"bytes").unwrap(), digest);
    assert_eq!(case.names(), [format!("{digest}.wasm")]);
}

#[test]
fn a_package_that_is_gone_or_changed_says_so_and_is_healed_by_putting_it_again() {
    let case = case();
    let digest = case.packages.put(b"bytes").unwrap();
    let path = case.packages.path(&digest);
    for damage in [&b"byteS"[..], b"", b"bytes and more"] {
        fs::write(&path, damage).unwrap();
        match case.packages.read(&digest) {
            Err(Error::PackageDamaged {
                expected, found, ..
            }) => {
                assert_eq!((expected, found), (digest.clone(), self::digest(damage)));
            }
            other => panic!("{other:?}"),
        }
        case.packages.put(b"bytes").unwrap();
        assert_eq!(case.packages.read(&digest).unwrap(), b"bytes");
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        case.packages.read(&digest),
        Err(Error::PackageMissing { .. })
    ));
}

#[test]
fn links_pipes_and_directories_are_no_packages() {
    let case = case();
    let digest = case.packages.put(b"bytes").unwrap();
    let path = case.packages.path(&digest);
    let elsewhere = case.dir.path().join("elsewhere");
    fs::write(&elsewhere, b"bytes").unwrap();

    fs::remove_file(&path).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(case.packages.read(&digest), Err(Error::Io { .. })));
    // It is replaced, and what it led to is left alone.
    case.packages.put(b"bytes").unwrap();
    assert!(path.symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(&elsewhere).unwrap(), b"bytes");

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(case.packages.read(&digest), Err(Error::Io { .. })));
    assert!(case.packages.put(b"bytes").is_err());
    fs::remove_dir(&path).unwrap();

    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if made.is_ok_and(|status| status.success()) {
        assert!(matches!(case.packages.read(&digest), Err(Error::Io { .. })));
    }
}

#[test]
fn a_folder_of_packages_that_is_a_link_is_refused() {
    let case = case();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), case.dir.path().join("plugins")).unwrap();
    assert!(case.packages.put(b"bytes").is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_signature_stands_beside_its_bytes() {
    let case = case();
    let digest = case.packages.put(b"bytes").unwrap();
    assert_eq!(case.packages.signature(&digest).unwrap(), None);
    case.packages.put_signature(&digest, "one").unwrap();
    case.packages.put_signature(&digest, "two").unwrap();
    assert_eq!(case.packages.signature(&digest).unwrap().unwrap(), "two");
    let path = case.packages.signature_path(&digest);
    fs::write(&path, b"\xff").unwrap();
    assert!(case.packages.signature(&digest).is_err());
}

#[test]
fn a_sweep_removes_what_no_lock_names_and_what_dead_processes_left() {
    let case = case();
    let kept = case.packages.put(b"kept").unwrap();
    let other = case.packages.put(b"other").unwrap();
    let gone = case.packages.put(b"gone").unwrap();
    for digest in [&kept, &gone] {
        case.packages.put_signature(digest, "signature").unwrap();
    }
    let dir = case.packages.dir();
    fs::write(dir.join(".x.wasm.999-1.draft"), b"half").unwrap();
    fs::write(dir.join("a person's own"), b"").unwrap();
    case.lock("one", &format!("digest = \"{kept}\""));
    // A lock that is no TOML keeps what it had.
    case.lock("two", &format!("]] {} <<<<", other.to_uppercase()));
    fs::create_dir_all(case.dir.path().join("profiles/bare")).unwrap();
    fs::write(case.dir.path().join("profiles/stray"), b"").unwrap();

    let swept = case.packages.sweep().unwrap().unwrap();
    assert_eq!(
        swept,
        Swept {
            packages: 1,
            remains: 2
        }
    );
    let mut names = vec![
        "a person's own".to_owned(),
        format!("{kept}.minisig"),
        format!("{kept}.wasm"),
        format!("{other}.wasm"),
    ];
    names.sort();
    assert_eq!(case.names(), names);
    assert_eq!(case.packages.sweep().unwrap().unwrap(), Swept::default());
}

#[test]
fn a_sweep_stands_back_while_a_profile_is_changed_and_where_a_lock_cannot_be_read() {
    let case = case();
    assert_eq!(case.packages.sweep().unwrap(), Some(Swept::default()));
    case.packages.put(b"bytes").unwrap();
    let hold = case.packages.hold(Duration::ZERO).unwrap();
    let second = case.packages.hold(Duration::ZERO).unwrap();
    assert_eq!(case.packages.sweep().unwrap(), None);
    drop(hold);
    assert_eq!(case.packages.sweep().unwrap(), None);
    drop(second);
    let unreadable = case.dir.path().join("profiles/x").join(FILE);
    fs::create_dir_all(&unreadable).unwrap();
    assert!(case.packages.sweep().is_err());
    assert_eq!(case.names().len(), 1);
    fs::remove_dir(&unreadable).unwrap();
    assert_eq!(case.packages.sweep().unwrap().unwrap().packages, 1);
}

#[test]
fn nothing_is_made_by_looking() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none");
    let home = Home::resolve(Some(OsStr::new(&path)), None, Path::new("/")).unwrap();
    let packages = Packages::at(&home);
    assert!(packages.read(&digest(b"x")).is_err());
    assert_eq!(packages.signature(&digest(b"x")).unwrap(), None);
    assert_eq!(packages.sweep().unwrap(), Some(Swept::default()));
    assert!(!path.exists());
}
