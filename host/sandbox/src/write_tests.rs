use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::files::tests::World;
use crate::mode::Mode;
use crate::observe::Observations;

fn put(world: &World, path: &str) -> Result<Metadata, Error> {
    world.files.write(path, b"new", &Guard::Overwrite)
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
    assert_eq!(code(read_only.files.remove("a.txt")), "FS_SANDBOX_DENIED");
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
    let write = |path: &str, guard| world.files.write(path, b"new", &guard);
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
    let write = |path: &str, guard| world.files.write(path, b"new", &guard);
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
    let look = |path: &str, guard| world.files.read_for(path, &guard, 0, 99);
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
    let denied = read_only
        .files
        .read_for("none", &Guard::Edit, 0, 9)
        .unwrap_err();
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
                .map(|_| scope.spawn(|| world.files.write(path, b"mine", &guard).is_ok()))
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
    assert_eq!(code(world.files.remove("dir/secret")), "FS_SANDBOX_DENIED");
    assert_eq!(
        code(world.files.rename("dir/secret", "mine")),
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(
        code(world.files.rename("b.txt", "dir/b.txt")),
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(
        code(world.files.rename("b.txt", "a.txt")),
        "FS_STALE_VERSION"
    );
    assert_eq!(code(world.files.rename("none", "c.txt")), "FS_NOT_FOUND");
    assert_eq!(
        code(world.files.remove(&world.path("work"))),
        "FS_SANDBOX_DENIED"
    );
    // The link goes, what it leads to stays.
    world.files.remove("dir").unwrap();
    assert!(world.base.join("out/secret").exists());
    world.files.rename("b.txt", "c.txt").unwrap();
    assert_eq!(world.text("work/c.txt"), "b");
    std::fs::create_dir(work.join("empty")).unwrap();
    world.files.remove("empty").unwrap();
    std::fs::create_dir_all(work.join("full/x")).unwrap();
    assert_eq!(code(world.files.remove("full")), "FS_IO_ERROR");
}

#[test]
fn home_inside_the_workspace_is_neither_written_nor_moved() {
    let mut world = World::new(Mode::WorkspaceWrite);
    world.files.fence.root = world.base.clone();
    for path in ["home/settings.yaml", "home/new", "work/../home/.env"] {
        assert_eq!(code(put(&world, path)), "FS_SANDBOX_DENIED", "{path}");
    }
    assert_eq!(
        code(world.files.rename("home", "elsewhere")),
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(
        code(world.files.remove("home/settings.yaml")),
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(
        code(world.files.rename("work/a.txt", "home/AGENTS.md")),
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
            let _ = world.files.remove("real/secret");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(world.text("out/secret"), "outside");
    assert_eq!(
        std::fs::read_dir(world.base.join("out")).unwrap().count(),
        1
    );
}
