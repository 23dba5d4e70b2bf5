use std::collections::HashMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::*;
use crate::files::tests::World;
use crate::mode::Mode;
use crate::observe::WritePolicy;

fn put(world: &World, path: &str) -> Result<Metadata, Error> {
    world.write(path, b"new", &Guard::Overwrite)
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

fn leftovers(world: &World) -> usize {
    let entries = std::fs::read_dir(world.base.join("work")).unwrap();
    entries
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .ends_with(".tmp")
        })
        .count()
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_mode() {
    let world = World::new(Mode::WorkspaceWrite);
    let path = world.base.join("work/a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let open = std::fs::File::open(&path).unwrap();
    let written = put(&world, "a.txt").unwrap();
    assert_eq!(world.text("work/a.txt"), "new");
    assert_eq!(std::io::read_to_string(open).unwrap(), "alpha\nbeta\n");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o751);
    assert_eq!(written, world.files.stat("a.txt").unwrap());
    assert_eq!(leftovers(&world), 0);
}

#[test]
fn directories_above_a_new_file_are_made() {
    let world = World::new(Mode::WorkspaceWrite);
    put(&world, "x/y/z.txt").unwrap();
    assert_eq!(world.text("work/x/y/z.txt"), "new");
    assert_eq!(code(put(&world, "q/../z")), "FS_NOT_FOUND");
}

#[test]
fn nothing_leads_out_of_the_fence() {
    let world = World::new(Mode::WorkspaceWrite);
    let work = world.base.join("work");
    symlink(world.base.join("out"), work.join("dir")).unwrap();
    symlink(world.base.join("out/secret"), work.join("file")).unwrap();
    symlink(world.base.join("out/dangling"), work.join("dangling")).unwrap();
    symlink("../out/dangling", work.join("relative")).unwrap();
    for path in [
        world.path("out/secret"),
        "../out/secret".to_owned(),
        "../new".to_owned(),
        "dir/secret".to_owned(),
        "dir/new".to_owned(),
        "dir/../new".to_owned(),
        "dir/deep/er/new".to_owned(),
        "file".to_owned(),
        "dangling".to_owned(),
        "relative".to_owned(),
        "/proc/self/root/etc/new".to_owned(),
        world.path("home/settings.yaml"),
        world.path("home/profiles/p/cordis.patch.yml"),
        "/etc/dsh-should-not-exist".to_owned(),
    ] {
        assert_eq!(code(put(&world, &path)), "FS_SANDBOX_DENIED", "{path}");
    }
    assert_eq!(world.text("out/secret"), "outside");
    assert!(!world.base.join("out/dangling").exists() && !world.base.join("out/deep").exists());
    assert!(!world.base.join("home/profiles").exists());
}

#[test]
fn a_link_within_the_fence_is_written_through_and_stays() {
    let world = World::new(Mode::WorkspaceWrite);
    symlink("a.txt", world.base.join("work/link")).unwrap();
    put(&world, "link").unwrap();
    assert_eq!(world.text("work/a.txt"), "new");
    assert!(
        world
            .base
            .join("work/link")
            .symlink_metadata()
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn a_hard_link_elsewhere_keeps_what_it_had() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::hard_link(world.base.join("out/secret"), world.base.join("work/hard")).unwrap();
    put(&world, "hard").unwrap();
    assert_eq!(
        (world.text("out/secret"), world.text("work/hard")),
        ("outside".to_owned(), "new".to_owned())
    );
}

#[test]
fn modes_write_where_they_may() {
    let read_only = World::new(Mode::ReadOnly);
    assert_eq!(code(put(&read_only, "a.txt")), "FS_SANDBOX_DENIED");
    assert_eq!(code(read_only.remove("a.txt")), "FS_SANDBOX_DENIED");
    let full = World::new(Mode::DangerFullAccess);
    put(&full, &full.path("out/secret")).unwrap();
    assert_eq!(
        code(put(&full, &full.path("home/settings.yaml"))),
        "FS_SANDBOX_DENIED"
    );
    let temp = World::new(Mode::WorkspaceWrite);
    put(&temp, &temp.path("temp/x")).unwrap();
}

#[test]
fn only_a_regular_file_is_replaced() {
    let world = World::new(Mode::WorkspaceWrite);
    let fifo = world.base.join("work/fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Bits::from_raw_mode(0o600)).unwrap();
    std::fs::create_dir(world.base.join("work/sub")).unwrap();
    for path in ["fifo", "sub", "sub/", "sub/.", "sub/..", "a.txt/", "new/"] {
        assert_eq!(code(put(&world, path)), "FS_NOT_REGULAR_FILE", "{path}");
    }
    assert_eq!(code(put(&world, "a.txt/x")), "FS_NOT_DIRECTORY");
    let full = World::new(Mode::DangerFullAccess);
    assert_eq!(code(put(&full, "/dev/null")), "FS_NOT_REGULAR_FILE");
}

#[test]
fn a_guard_holds_or_nothing_changes() {
    let world = World::new(Mode::WorkspaceWrite);
    let write = |path: &str, guard| world.write(path, b"new", &guard);
    let version = world.files.stat("a.txt").unwrap().version;
    assert_eq!(code(write("a.txt", Guard::Absent)), "FS_STALE_VERSION");
    assert_eq!(
        code(write("a.txt", Guard::Version("other".into()))),
        "FS_STALE_VERSION"
    );
    assert_eq!(
        code(write("none", Guard::Version(version.clone()))),
        "FS_STALE_VERSION"
    );
    assert_eq!(code(write("none", Guard::Edit)), "FS_NOT_FOUND");
    assert_eq!(
        code(write("deep/none", Guard::Version(version.clone()))),
        "FS_STALE_VERSION"
    );
    assert!(!world.base.join("work/deep").exists());
    assert_eq!(world.text("work/a.txt"), "alpha\nbeta\n");
    let next = write("a.txt", Guard::Version(version.clone()))
        .unwrap()
        .version;
    assert_eq!(
        code(write("a.txt", Guard::Version(version))),
        "FS_STALE_VERSION"
    );
    write("a.txt", Guard::Version(next)).unwrap();
    write("fresh", Guard::Absent).unwrap();
    assert_eq!(leftovers(&world), 0);
}

#[test]
fn what_was_not_read_is_not_changed() {
    let world = World::with(Mode::WorkspaceWrite, Arc::new(Observations::default()));
    let write = |path: &str, guard| world.write(path, b"new", &guard);
    assert_eq!(code(write("a.txt", Guard::Overwrite)), "FS_NOT_OBSERVED");
    assert_eq!(code(write("a.txt", Guard::Edit)), "FS_NOT_OBSERVED");
    write("fresh", Guard::Overwrite).unwrap();
    write("fresh", Guard::Edit).unwrap();

    world.files.read("a.txt", 0, 1).unwrap();
    write("a.txt", Guard::Edit).unwrap();
    write("a.txt", Guard::Overwrite).unwrap();
    std::fs::write(world.base.join("work/a.txt"), "somebody else").unwrap();
    assert_eq!(code(write("a.txt", Guard::Edit)), "FS_STALE_VERSION");
    assert_eq!(code(write("a.txt", Guard::Overwrite)), "FS_STALE_VERSION");

    world.files.read("gone", 0, 1).unwrap_err();
    std::fs::write(world.base.join("work/gone"), "appeared").unwrap();
    assert_eq!(code(write("gone", Guard::Overwrite)), "FS_STALE_VERSION");
    assert_eq!(world.text("work/gone"), "appeared");
}

#[test]
fn reading_for_a_change_is_refused_as_the_change_is_and_counts_as_no_reading() {
    let world = World::with(Mode::WorkspaceWrite, Arc::new(Observations::default()));
    let look = |path: &str, guard| world.read_for(path, &guard, 0, 99);
    let refused = [
        ("a.txt", Guard::Edit, "FS_NOT_OBSERVED"),
        ("a.txt", Guard::Overwrite, "FS_NOT_OBSERVED"),
        ("a.txt", Guard::Absent, "FS_STALE_VERSION"),
        ("none", Guard::Edit, "FS_NOT_FOUND"),
        ("none", Guard::Overwrite, "FS_NOT_FOUND"),
        ("../out/secret", Guard::Edit, "FS_SANDBOX_DENIED"),
        (".", Guard::Edit, "FS_NOT_REGULAR_FILE"),
    ];
    for (path, guard, expected) in refused {
        assert_eq!(
            code(look(path, guard.clone())),
            expected,
            "{path} {guard:?}"
        );
        assert_eq!(
            code(look(path, guard)),
            expected,
            "{path}: the first look counted"
        );
    }
    world.files.read("a.txt", 0, 1).unwrap();
    let slice = look("a.txt", Guard::Edit).unwrap();
    assert_eq!(slice.content, b"alpha\nbeta\n");
    std::fs::write(world.base.join("work/a.txt"), "somebody else").unwrap();
    assert_eq!(code(look("a.txt", Guard::Edit)), "FS_STALE_VERSION");
    let read_only = World::with(Mode::ReadOnly, Arc::new(Observations::default()));
    let denied = read_only.read_for("none", &Guard::Edit, 0, 9).unwrap_err();
    assert_eq!(denied.code(), "FS_SANDBOX_DENIED");
    assert!(denied.to_string().contains("read-only mode"));
}

#[test]
fn of_many_writers_with_one_version_one_wins() {
    let world = World::new(Mode::WorkspaceWrite);
    for guard in [
        Guard::Absent,
        Guard::Version(world.files.stat("a.txt").unwrap().version),
    ] {
        let path = if guard == Guard::Absent {
            "race"
        } else {
            "a.txt"
        };
        let won = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| world.write(path, b"mine", &guard).is_ok()))
                .collect();
            writers
                .into_iter()
                .map(|writer| writer.join().unwrap())
                .filter(|won| *won)
                .count()
        });
        assert_eq!(won, 1, "{guard:?}");
    }
}

#[test]
fn removing_and_renaming_stay_within_the_fence_and_lose_nothing() {
    let world = World::new(Mode::WorkspaceWrite);
    let work = world.base.join("work");
    symlink(world.base.join("out"), work.join("dir")).unwrap();
    std::fs::write(work.join("b.txt"), "b").unwrap();
    assert_eq!(code(world.remove("dir/secret")), "FS_SANDBOX_DENIED");
    assert_eq!(
        code(world.rename("dir/secret", "mine")),
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(
        code(world.rename("b.txt", "dir/b.txt")),
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(code(world.rename("b.txt", "a.txt")), "FS_STALE_VERSION");
    assert_eq!(code(world.rename("none", "c.txt")), "FS_NOT_FOUND");
    assert_eq!(code(world.remove(&world.path("work"))), "FS_SANDBOX_DENIED");
    // The link goes, what it leads to stays.
    world.remove("dir").unwrap();
    assert!(world.base.join("out/secret").exists());
    world.rename("b.txt", "c.txt").unwrap();
    assert_eq!(world.text("work/c.txt"), "b");
    std::fs::create_dir(work.join("empty")).unwrap();
    world.remove("empty").unwrap();
    std::fs::create_dir_all(work.join("full/x")).unwrap();
    assert_eq!(code(world.remove("full")), "FS_IO_ERROR");
}

#[test]
fn home_inside_the_workspace_is_neither_written_nor_moved() {
    let mut world = World::new(Mode::WorkspaceWrite);
    world.files.fence.root = world.base.clone();
    for path in ["home/settings.yaml", "home/new", "work/../home/.env"] {
        assert_eq!(code(put(&world, path)), "FS_SANDBOX_DENIED", "{path}");
    }
    assert_eq!(code(world.rename("home", "elsewhere")), "FS_SANDBOX_DENIED");
    assert_eq!(
        code(world.remove("home/settings.yaml")),
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(
        code(world.rename("work/a.txt", "home/AGENTS.md")),
        "FS_SANDBOX_DENIED"
    );
}

#[test]
fn a_link_swapped_in_while_writing_never_leads_out() {
    let world = World::new(Mode::WorkspaceWrite);
    let work = world.base.join("work");
    std::fs::create_dir_all(work.join("real")).unwrap();
    symlink(world.base.join("out"), work.join("link")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let flags = RenameFlags::EXCHANGE;
                let at = rustix::fs::CWD;
                rustix::fs::renameat_with(at, work.join("real"), at, work.join("link"), flags)
                    .unwrap();
            }
        });
        for _ in 0..500 {
            let _ = put(&world, "real/target");
            let _ = put(&world, "real/secret");
            let _ = world.remove("real/secret");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(world.text("out/secret"), "outside");
    assert_eq!(
        std::fs::read_dir(world.base.join("out")).unwrap().count(),
        1
    );
}

/// Answers the same to every intent, after doing something to the world.
struct Says(Expect, Box<dyn Fn(&Intent) + Send + Sync>);

#[async_trait::async_trait]
impl WritePolicy for Says {
    fn observed(&self, _: &Path, _: Option<&str>) {}

    async fn intent(&self, intent: &Intent) -> Expect {
        (self.1)(intent);
        self.0.clone()
    }
}

fn saying(expect: Expect, meanwhile: impl Fn(&Intent) + Send + Sync + 'static) -> World {
    World::with(
        Mode::WorkspaceWrite,
        Arc::new(Says(expect, Box::new(meanwhile))),
    )
}

#[test]
fn the_policy_is_asked_before_every_change_and_for_every_guard() {
    let asked: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let world = saying(Expect::Any, move |intent| {
        let name = intent.path.file_name().unwrap().to_string_lossy();
        let there = if intent.version.is_some() {
            ""
        } else {
            ", new"
        };
        let operation = intent.operation.as_str();
        noted
            .lock()
            .unwrap()
            .push(format!("{operation} {name}{there}"));
    });
    let version = world.files.stat("a.txt").unwrap().version;
    world.read_for("a.txt", &Guard::Edit, 0, 9).unwrap();
    world
        .write("a.txt", b"1", &Guard::Version(version))
        .unwrap();
    world.write("a.txt", b"2", &Guard::Edit).unwrap();
    world.write("b.txt", b"3", &Guard::Absent).unwrap();
    world.write("b.txt", b"4", &Guard::Overwrite).unwrap();
    world.rename("b.txt", "c.txt").unwrap();
    world.remove("c.txt").unwrap();
    // Refused anyway.
    world.write("../out/x", b"", &Guard::Overwrite).unwrap_err();
    world.write("none", b"", &Guard::Edit).unwrap_err();
    let expected = [
        "edit a.txt",
        "write a.txt",
        "edit a.txt",
        "write b.txt, new",
        "write b.txt",
        "rename b.txt",
        "rename c.txt, new",
        "remove c.txt",
    ];
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[test]
fn a_denial_keeps_everything_as_it_was_and_says_why() {
    let world = saying(Expect::Denied("not on a Sunday".to_owned()), |_| {});
    let every: [Result<(), Error>; 5] = [
        put(&world, "a.txt").map(drop),
        put(&world, "deep/new").map(drop),
        world.read_for("a.txt", &Guard::Edit, 0, 9).map(drop),
        world.rename("a.txt", "b.txt"),
        world.remove("a.txt"),
    ];
    for refused in every {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "FS_PERMISSION_DENIED");
        assert!(
            error
                .to_string()
                .ends_with("policy of this session: not on a Sunday")
        );
    }
    assert_eq!(world.text("work/a.txt"), "alpha\nbeta\n");
    assert!(!world.base.join("work/deep").exists());
}

#[test]
fn what_is_allowed_holds_for_the_file_as_it_was_asked_about() {
    // Changed between answer and change: what was answered is checked last.
    let world = World::with(Mode::WorkspaceWrite, Arc::new(Observations::default()));
    world.files.read("a.txt", 0, 1).unwrap();
    let intent = world.files.intent(Operation::Write, "a.txt").unwrap();
    let version = intent.version.clone().unwrap();
    let allowed = Allowed::new(intent, Expect::Version(version));
    std::fs::write(world.base.join("work/a.txt"), "somebody else").unwrap();
    let refused = world
        .files
        .write("a.txt", b"new", &Guard::Overwrite, &allowed);
    assert_eq!(code(refused), "FS_STALE_VERSION");
    // Another file by now, whatever it is allowed.
    let intent = world.files.intent(Operation::Write, "a.txt").unwrap();
    let allowed = Allowed::new(intent, Expect::Any);
    std::fs::write(world.base.join("work/other"), "other").unwrap();
    std::fs::remove_file(world.base.join("work/a.txt")).unwrap();
    symlink("other", world.base.join("work/a.txt")).unwrap();
    let refused = world
        .files
        .write("a.txt", b"new", &Guard::Overwrite, &allowed);
    assert_eq!(code(refused), "FS_STALE_VERSION");
    assert_eq!(world.text("work/other"), "other");
}

#[test]
fn a_removal_loses_nothing_that_was_not_read() {
    let world = World::with(Mode::WorkspaceWrite, Arc::new(Observations::default()));
    assert_eq!(code(world.remove("a.txt")), "FS_NOT_OBSERVED");
    world.files.read("a.txt", 0, 1).unwrap();
    world.remove("a.txt").unwrap();
}

/// Replace only what was read and is still so: the rule that the component
/// `fs-observation` has.
#[derive(Debug, Default)]
struct Observations(Mutex<HashMap<PathBuf, Option<String>>>);

impl Observations {
    fn of(&self, path: &Path) -> Option<Option<String>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .cloned()
    }
}

#[async_trait]
impl WritePolicy for Observations {
    fn observed(&self, path: &Path, version: Option<&str>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(path.to_path_buf(), version.map(str::to_owned));
    }

    async fn intent(&self, intent: &Intent) -> Expect {
        let edit = intent.operation == Operation::Edit;
        match self.of(&intent.path) {
            _ if intent.operation == Operation::Rename => Expect::Any,
            Some(Some(version)) => Expect::Version(version),
            _ if edit => Expect::Refused,
            Some(None) => Expect::Absent,
            None => Expect::Unobserved,
        }
    }
}
