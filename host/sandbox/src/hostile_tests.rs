//! The file side of what a hostile component tries, by the numbers that the
//! published list gives: a component with the grant `workspace` has these calls
//! and no others.

use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

use dsh_plugin::port::Guard;

use crate::error::Error;
use crate::files::tests::World;
use crate::mode::Mode;

fn write(world: &World, path: &str) -> Result<(), Error> {
    world.write(path, b"evil", &Guard::Overwrite).map(drop)
}

#[track_caller]
fn denied<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    assert_eq!(outcome.unwrap_err().code(), "FS_SANDBOX_DENIED");
}

#[test]
fn h16_dots_lead_out_of_no_workspace() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::create_dir(world.base.join("work/sub")).unwrap();
    for path in [
        "../out/secret",
        "sub/../../out/secret",
        "./sub/./../../out/new",
        "..//out/new",
    ] {
        denied(write(&world, path));
        denied(world.remove(path));
        denied(world.rename("a.txt", path));
    }
    assert_eq!(world.text("out/secret"), "outside");
}

#[test]
fn h17_an_absolute_path_is_judged_like_any_other() {
    let world = World::new(Mode::WorkspaceWrite);
    denied(write(&world, &world.path("out/secret")));
    denied(write(&world, "/etc/passwd"));
    write(&world, &world.path("work/new")).unwrap();
    assert_eq!(world.text("out/secret"), "outside");
}

#[test]
fn h18_a_link_to_outside_is_no_way_out() {
    let world = World::new(Mode::WorkspaceWrite);
    symlink(world.base.join("out"), world.base.join("work/dir")).unwrap();
    symlink("../out/secret", world.base.join("work/file")).unwrap();
    symlink("../out/made", world.base.join("work/dangling")).unwrap();
    for path in ["dir/secret", "dir/new/deep", "file", "dangling"] {
        denied(write(&world, path));
    }
    assert_eq!(world.text("out/secret"), "outside");
    assert!(!world.base.join("out/made").exists());
}

#[test]
fn h20_a_trailing_slash_makes_no_file_a_directory_and_follows_no_link() {
    let world = World::new(Mode::WorkspaceWrite);
    symlink("../out/secret", world.base.join("work/link")).unwrap();
    for path in ["a.txt/", "link/", "link/.", "a.txt/..", "a.txt/../a.txt"] {
        assert!(write(&world, path).is_err(), "{path}");
        assert!(world.files.read(path, 0, 9).is_err(), "{path}");
        assert!(world.remove(path).is_err(), "{path}");
    }
    assert_eq!(
        (world.text("work/a.txt"), world.text("out/secret")),
        ("alpha\nbeta\n".to_owned(), "outside".to_owned())
    );
}

#[test]
fn h21_another_name_of_a_file_outside_changes_here_alone() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::hard_link(world.base.join("out/secret"), world.base.join("work/hard")).unwrap();
    std::fs::hard_link(world.base.join("home/.env"), world.base.join("work/key")).unwrap();
    write(&world, "hard").unwrap();
    assert_eq!(world.text("out/secret"), "outside");
    denied(world.files.read("key", 0, 9));
    assert!(
        world
            .files
            .grep(
                "sesame",
                None,
                None,
                9,
                crate::search::Bounds::SHIPPED,
                Default::default()
            )
            .unwrap()
            .matches
            .is_empty()
    );
}

#[test]
fn h22_h23_reading_cuts_nothing_short_and_a_place_to_write_opens_no_other() {
    let read_only = World::new(Mode::ReadOnly);
    read_only.files.read("a.txt", 0, 4).unwrap();
    let edit = read_only.read_for("a.txt", &Guard::Edit, 0, 4);
    denied(edit);
    denied(write(&read_only, "a.txt"));
    assert_eq!(read_only.text("work/a.txt"), "alpha\nbeta\n");

    let world = World::new(Mode::WorkspaceWrite);
    write(&world, &world.path("temp/new")).unwrap();
    world.files.read(&world.path("out/secret"), 0, 9).unwrap();
    denied(write(&world, &world.path("out/secret")));
    assert_eq!(world.text("out/secret"), "outside");
}

#[test]
fn h24_pipes_devices_and_open_descriptors_are_neither_read_nor_written() {
    let world = World::new(Mode::WorkspaceWrite);
    let bits = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, world.base.join("work/pipe"), bits).unwrap();
    let open = std::fs::File::open(world.base.join("out/secret")).unwrap();
    let own = format!("/proc/self/fd/{}", open.as_raw_fd());
    for path in [
        "pipe",
        "/dev/null",
        "/dev/zero",
        "/dev/stdin",
        &own,
        "/proc/self/mem",
    ] {
        assert!(world.files.read(path, 0, 9).is_err(), "{path}");
        assert!(write(&world, path).is_err(), "{path}");
    }
    assert_eq!(world.text("out/secret"), "outside");
}

#[test]
fn h25_a_rename_crosses_no_fence_in_either_direction() {
    let world = World::new(Mode::WorkspaceWrite);
    std::fs::create_dir_all(world.base.join("temp")).unwrap();
    denied(world.rename(&world.path("out/secret"), "mine"));
    denied(world.rename("a.txt", &world.path("out/theirs")));
    denied(world.rename(&world.path("home/settings.yaml"), "mine"));
    assert_eq!(
        world.rename("a.txt", ".").unwrap_err().code(),
        "FS_NOT_REGULAR_FILE"
    );
    world.rename("a.txt", &world.path("temp/a.txt")).unwrap();
    assert_eq!(world.text("out/secret"), "outside");
}

#[test]
fn h26_no_name_is_more_than_a_name() {
    let world = World::new(Mode::WorkspaceWrite);
    for path in ["a\0b", "", "a.txt\0/../../out/secret"] {
        assert_eq!(
            write(&world, path).unwrap_err().code(),
            "FS_NOT_FOUND",
            "{path:?}"
        );
    }
    // What other systems reserve or read as a path is a file here.
    for path in [
        "CON",
        "nul.txt",
        "a:stream",
        "..\\out\\secret",
        "C:\\x",
        "SECRET~1",
        "~",
        "$HOME",
    ] {
        write(&world, path).unwrap();
        assert!(world.base.join("work").join(path).is_file(), "{path}");
    }
    assert_eq!(world.text("out/secret"), "outside");
}

#[test]
fn h28_a_directory_with_more_entries_than_are_listed_is_refused() {
    let world = World::new(Mode::ReadOnly);
    for name in ["b", "c"] {
        std::fs::write(world.base.join("work").join(name), "").unwrap();
    }
    assert_eq!(world.files.list_up_to(".", 3).unwrap().len(), 3);
    assert_eq!(
        world.files.list_up_to(".", 2).unwrap_err().code(),
        "FS_TOO_LARGE"
    );
}

#[test]
fn h29_one_write_has_a_bound_and_leaves_nothing_when_it_is_refused() {
    let world = World::new(Mode::WorkspaceWrite);
    let much = vec![0; (64 << 20) + 1];
    let refused = world.write("deep/much", &much, &Guard::Overwrite);
    assert_eq!(refused.unwrap_err().code(), "FS_TOO_LARGE");
    assert!(!world.base.join("work/deep").exists());
}
