use super::*;
use crate::lock::{Installed, LockedRow};
use crate::{Environment, Home, Implementation, Inputs, Scope, Settings, digest};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// The real disk, which stops at a step as a power cut would, or fails there.
#[derive(Debug, Default)]
struct Faulty {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    steps: usize,
    /// The step that does not happen; none for a count.
    at: Option<usize>,
    how: Stop,
    stopped: bool,
    /// Written and not synced.
    volatile: BTreeSet<PathBuf>,
    /// Names given and not synced: the name, and what it named before.
    names: Vec<(PathBuf, Option<Vec<u8>>)>,
    log: Vec<String>,
}

/// What happens at the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    /// It fails; what comes behind it does not.
    #[default]
    Fails,
    /// The power goes. Files that were not synced are half there, names that were
    /// not are as before.
    Loses,
    /// The same, and the names got through.
    Keeps,
}

impl Faulty {
    fn at(at: Option<usize>, how: Stop) -> Arc<Self> {
        let state = State {
            at,
            how,
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// Counts a step; an error where it is the one, or behind a cut.
    fn step(&self, what: &str, path: &Path) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let mut state = self.state.lock().unwrap();
        let number = state.steps;
        state.steps += 1;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        state.log.push(format!("{what} {name}"));
        if state.stopped {
            return Err(io::Error::other("the power is off"));
        }
        if state.at == Some(number) {
            if state.how != Stop::Fails {
                state.stopped = true;
                state.lose();
            }
            return Err(io::Error::other("a fault"));
        }
        Ok(state)
    }

    fn steps(&self) -> usize {
        self.state.lock().unwrap().steps
    }
}

impl State {
    fn lose(&mut self) {
        for file in &self.volatile {
            if let Ok(bytes) = fs::read(file) {
                fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
            }
        }
        if self.how == Stop::Keeps {
            return;
        }
        for (name, before) in self.names.drain(..).rev() {
            match before {
                Some(bytes) => fs::write(name, bytes).unwrap(),
                None => drop(fs::remove_file(name)),
            }
        }
    }
}

impl Disk for Faulty {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let _state = self.step("make", dir)?;
        Real.make_dir(dir)
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        {
            let mut state = self.state.lock().unwrap();
            state.volatile.insert(file.to_owned());
            // The step that is stopped may be half done.
            if !state.stopped && state.at == Some(state.steps) {
                Real.write(file, &bytes[..bytes.len() / 2])?;
            }
        }
        let _state = self.step("write", file)?;
        Real.write(file, bytes)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let mut state = self.step("sync", path)?;
        state.volatile.remove(path);
        state.names.retain(|(name, _)| name.parent() != Some(path));
        Real.sync(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.step("rename", to)?;
        let before = fs::read(to).ok();
        state.names.push((to.to_owned(), before));
        if state.volatile.remove(from) {
            state.volatile.insert(to.to_owned());
        }
        Real.rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let _state = self.step("remove", file)?;
        Real.remove(file)
    }
}

struct Case {
    dir: tempfile::TempDir,
    home: Home,
}

fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap();
    Profile::open(&home, "headless").unwrap();
    Case { dir, home }
}

fn plugin(name: &str, version: &str, digest: String) -> Installed {
    Installed {
        name: name.into(),
        version: version.into(),
        source: "/x.wasm".into(),
        granted_to: digest.clone(),
        digest,
        contract: "0.1.0".into(),
        rows: vec![LockedRow {
            id: name.replace(':', "-"),
            ..LockedRow::default()
        }],
        ..Installed::default()
    }
}

impl Case {
    fn profile(&self) -> Profile {
        Profile::open(&self.home, "headless").unwrap()
    }

    /// Installs these bytes, or takes the plugin out where there are none.
    fn set(
        &self,
        disk: Arc<dyn Disk>,
        name: &str,
        version: &str,
        bytes: Option<&[u8]>,
    ) -> Result<(), Error> {
        let mut change = self.profile().change_on(disk, Duration::ZERO)?;
        match bytes {
            Some(bytes) => {
                let digest = change.packages().put(bytes)?;
                change.packages().put_signature(&digest, "signature")?;
                let installed = plugin(name, version, digest);
                change.lock().put(installed);
            }
            None => {
                change.lock().remove(name);
            }
        }
        change.commit()
    }

    /// What boots: each plugin with the bytes that its row mounts.
    fn state(&self) -> Vec<(String, Vec<u8>)> {
        let tree = self.profile().compose(Scope::All(&[])).unwrap();
        assert_eq!(tree.warnings(), []);
        let rows = tree
            .rows(&Inputs {
                env: &Environment::default(),
                home: &self.home,
                settings: &Settings::default(),
                cwd: self.dir.path(),
            })
            .unwrap();
        assert_eq!(rows.problems, []);
        let packages = Packages::at(&self.home);
        let plugins = rows.rows.iter().filter_map(|row| row.plugin.as_ref());
        plugins
            .map(|pin| (pin.to_string(), packages.read(&pin.digest).unwrap()))
            .collect()
    }

    /// All files of the profile and the packages, without the locks of the system.
    fn files(&self) -> BTreeSet<String> {
        let dirs = ["profiles/headless", "plugins/sha256"];
        let entries = dirs.iter().flat_map(|dir| {
            fs::read_dir(self.dir.path().join(dir))
                .into_iter()
                .flatten()
        });
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".lock")
            .collect()
    }
}

fn state(plugins: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    plugins
        .iter()
        .map(|(label, bytes)| ((*label).to_owned(), bytes.to_vec()))
        .collect()
}

/// Goes through every step of a change, cutting or failing it there.
fn walk(before: &[(&str, &str, &[u8])], name: &str, version: &str, bytes: Option<&[u8]>) {
    let ready = || {
        let case = case();
        for (name, version, bytes) in before {
            case.set(Arc::new(Real), name, version, Some(bytes))
                .unwrap();
        }
        case
    };
    let counted = ready();
    let old = counted.state();
    let count = Faulty::at(None, Stop::Fails);
    counted
        .set(Arc::clone(&count) as _, name, version, bytes)
        .unwrap();
    let new = counted.state();
    let clean = counted.files();
    assert_ne!(old, new);
    assert!(count.steps() >= 4, "{count:?}");

    for how in [Stop::Fails, Stop::Loses, Stop::Keeps] {
        let (mut saw_old, mut saw_new) = (0, 0);
        for at in 0..count.steps() {
            let case = ready();
            let disk = Faulty::at(Some(at), how);
            let done = case.set(Arc::clone(&disk) as _, name, version, bytes);
            let found = case.state();
            assert!(found == old || found == new, "{at} {how:?}: {disk:?}");
            if done.is_ok() {
                assert_eq!(found, new, "{at} {how:?}: {disk:?}");
            }
            saw_old += usize::from(found == old);
            saw_new += usize::from(found == new);
            // The next change comes through, and leaves nothing behind.
            case.set(Arc::new(Real), name, version, bytes).unwrap();
            assert_eq!(case.state(), new, "{at} {how:?}");
            assert_eq!(case.files(), clean, "{at} {how:?}");
        }
        assert!(saw_old > 0, "{how:?}");
        // Behind the new lock's name there may be nothing but its sync.
        assert!(saw_new > 0 || how == Stop::Loses, "{how:?}");
    }
}

#[test]
fn h58_an_add_that_stops_at_any_step_leaves_the_old_state_or_the_new_one() {
    walk(&[], "acme:a", "1.0.0", Some(b"one"));
    walk(
        &[("acme:b", "1.0.0", b"other")],
        "acme:a",
        "1.0.0",
        Some(b"one"),
    );
}

#[test]
fn h58_an_update_that_stops_at_any_step_leaves_the_old_state_or_the_new_one() {
    walk(
        &[("acme:a", "1.0.0", b"one"), ("acme:b", "1.0.0", b"other")],
        "acme:a",
        "1.1.0",
        Some(b"two"),
    );
}

#[test]
fn h58_a_removal_that_stops_at_any_step_leaves_the_old_state_or_the_new_one() {
    walk(
        &[("acme:a", "1.0.0", b"one"), ("acme:b", "1.0.0", b"other")],
        "acme:a",
        "",
        None,
    );
    walk(&[("acme:a", "1.0.0", b"one")], "acme:a", "", None);
}

#[test]
fn a_package_is_durable_before_the_lock_that_names_it() {
    let case = case();
    let disk = Faulty::at(None, Stop::Fails);
    case.set(Arc::clone(&disk) as _, "acme:a", "1.0.0", Some(b"one"))
        .unwrap();
    let log = disk.state.lock().unwrap().log.clone();
    let place = |what: &str| {
        log.iter()
            .position(|line| line.starts_with(what))
            .unwrap_or_else(|| panic!("{what}: {log:?}"))
    };
    let package = format!("rename {}.wasm", digest(b"one"));
    assert!(place("write .") < place(&package));
    assert!(log[place(&package) - 1].starts_with("sync ."), "{log:?}");
    assert_eq!(log[place(&package) + 1], "sync sha256");
    assert!(place(&package) < place("write .dsh.lock."));
    let lock = place("rename dsh.lock");
    assert!(log[lock - 1].starts_with("sync .dsh.lock."), "{log:?}");
    assert_eq!(log[lock + 1], "sync headless");
}

#[test]
fn a_change_that_is_dropped_changes_nothing() {
    let case = case();
    case.set(Arc::new(Real), "acme:a", "1.0.0", Some(b"one"))
        .unwrap();
    let before = fs::read(case.profile().lock_path()).unwrap();
    let mut change = case.profile().change().unwrap();
    change.lock().remove("acme:a");
    assert!(change.before().find("acme:a").is_some());
    drop(change);
    assert_eq!(fs::read(case.profile().lock_path()).unwrap(), before);
    assert_eq!(case.state(), state(&[("acme:a 1.0.0", b"one")]));
}

#[test]
fn nothing_is_written_where_nothing_changed() {
    let case = case();
    case.profile().change().unwrap().commit().unwrap();
    assert!(!case.profile().lock_path().exists());
    case.set(Arc::new(Real), "acme:a", "1.0.0", Some(b"one"))
        .unwrap();
    let disk = Faulty::at(None, Stop::Fails);
    let change = case
        .profile()
        .change_on(Arc::clone(&disk) as _, Duration::ZERO)
        .unwrap();
    change.commit().unwrap();
    assert_eq!(disk.state.lock().unwrap().log, Vec::<String>::new());
}

#[test]
fn a_lock_is_never_made_to_name_a_package_that_is_not_there() {
    let case = case();
    let mut change = case.profile().change().unwrap();
    let absent = plugin("acme:a", "1.0.0", digest(b"absent"));
    change.lock().put(absent);
    assert!(matches!(change.commit(), Err(Error::PackageMissing { .. })));
    assert!(!case.profile().lock_path().exists());
    // One that got lost since does not stand in the way of other changes.
    case.set(Arc::new(Real), "acme:a", "1.0.0", Some(b"one"))
        .unwrap();
    fs::remove_file(Packages::at(&case.home).path(&digest(b"one"))).unwrap();
    let mut change = case.profile().change().unwrap();
    change.lock().find_mut("acme:a").unwrap().disabled = true;
    change.commit().unwrap();
    assert!(case.profile().lock().unwrap().plugins[0].disabled);
}

#[test]
fn changes_of_one_profile_follow_each_other_and_say_who_is_in_the_way() {
    let case = case();
    let held = case.profile().change().unwrap();
    match case.profile().change_on(Arc::new(Real), Duration::ZERO) {
        Err(Error::Busy { holder, path }) => {
            assert_eq!(holder, format!("process {}", std::process::id()));
            assert!(path.ends_with("profiles/headless/.lock"));
        }
        other => panic!("{other:?}"),
    }
    // Another profile is not held up.
    let (other, _) = Profile::open_or_make(&case.home, "other").unwrap();
    other.change_on(Arc::new(Real), Duration::ZERO).unwrap();
    drop(held);
    case.profile()
        .change_on(Arc::new(Real), Duration::ZERO)
        .unwrap();
}

#[test]
fn changes_at_once_all_land() {
    const EACH: usize = 4;
    let case = case();
    let names = ["acme:a", "acme:b", "acme:c", "acme:d"];
    std::thread::scope(|scope| {
        for name in names {
            let case = &case;
            scope.spawn(move || {
                for round in 0..EACH {
                    let mut change = case.profile().change().unwrap();
                    let bytes = format!("{name} {round}");
                    let digest = change.packages().put(bytes.as_bytes()).unwrap();
                    let installed = plugin(name, &format!("1.{round}.0"), digest);
                    change.lock().put(installed);
                    change.commit().unwrap();
                }
            });
        }
    });
    let mut state = case.state();
    state.sort();
    let labels: Vec<_> = state.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "acme:a 1.3.0",
            "acme:b 1.3.0",
            "acme:c 1.3.0",
            "acme:d 1.3.0"
        ]
    );
    // What was replaced is gone, once nobody is changing anything.
    case.profile().change().unwrap().commit().unwrap();
    let packages = case
        .files()
        .iter()
        .filter(|name| name.ends_with(".wasm"))
        .count();
    assert_eq!(packages, names.len());
}

#[test]
fn a_lock_that_cannot_be_read_is_not_replaced() {
    let case = case();
    let path = case.profile().lock_path();
    for text in ["version = 9\n", "not toml", "\u{0}"] {
        fs::write(&path, text).unwrap();
        assert!(case.profile().change().is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_row_of_an_installed_plugin_mounts_it_by_its_name() {
    let case = case();
    case.set(Arc::new(Real), "acme:a", "1.0.0", Some(b"one"))
        .unwrap();
    let tree = case.profile().compose(Scope::All(&[])).unwrap();
    let inputs = Inputs {
        env: &Environment::default(),
        home: &case.home,
        settings: &Settings::default(),
        cwd: case.dir.path(),
    };
    let rows = tree.rows(&inputs).unwrap();
    let row = rows.rows.last().unwrap();
    assert_eq!(row.id, "acme-a");
    assert_eq!(
        row.implementation,
        Implementation::Component("acme:a".into())
    );
    assert_eq!(row.plugin.as_ref().unwrap().digest, digest(b"one"));
}
