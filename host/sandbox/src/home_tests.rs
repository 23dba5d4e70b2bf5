//! `$DSH_HOME` against file accesses: every operation, by every name, in every
//! mode. What must not change is compared whole, before and after.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use dsh_plugin::port::Guard;

use crate::fence::{Fence, Refusal};
use crate::files::tests::World;
use crate::mode::Mode;

/// Every name below a directory, with inode and content.
fn all_of(dir: &Path) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            open.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
        let content = if meta.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        found.insert(path, (meta.ino(), content));
    }
    found
}

/// A world whose workspace is `root`, with links to the home in `work`.
fn world(mode: Mode, root: &str) -> World {
    let mut world = World::new(mode);
    let work = world.base.join("work");
    std::fs::create_dir_all(world.base.join("home/profiles/p")).unwrap();
    std::fs::create_dir_all(world.base.join("home/empty")).unwrap();
    std::fs::write(world.base.join("home/profiles/p/dsh.lock"), "sesame").unwrap();
    symlink(world.base.join("home"), work.join("to-home")).unwrap();
    symlink("to-home/profiles", work.join("to-profiles")).unwrap();
    symlink("../home/settings.yaml", work.join("to-file")).unwrap();
    symlink("../home/not-yet", work.join("to-nothing")).unwrap();
    std::fs::hard_link(world.base.join("home/settings.yaml"), work.join("hard")).unwrap();
    world.files.fence.root = world.base.join(root);
    world
}

/// Ways to say a place in the home.
fn spellings(world: &World) -> Vec<String> {
    let (home, work) = (world.path("home"), world.path("work"));
    let names = [
        "settings.yaml",
        "new",
        "deep/er/new",
        "profiles/p/dsh.lock",
        ".env",
        "empty",
    ];
    let mut all = vec![
        format!("{work}/to-file"),
        format!("{work}/to-nothing"),
        format!("{work}/to-profiles/p/cordis.patch.yml"),
        format!("{work}/to-profiles/../settings.yaml"),
    ];
    for name in names {
        all.extend([
            format!("{home}/{name}"),
            format!("{home}//.//{name}"),
            format!("{home}/profiles/../{name}"),
            format!("{work}/../home/{name}"),
            format!("{work}/to-home/{name}"),
            format!("/proc/self/root{home}/{name}"),
            format!("/proc/self/cwd/../../../../../../../../..{home}/{name}"),
            format!("/proc/thread-self/root{home}/{name}"),
        ]);
    }
    all
}

#[test]
fn h16_to_h18_home_is_changed_by_no_operation_under_any_name_in_any_mode() {
    for mode in Mode::ALL {
        for root in ["work", "", "home", "home/profiles"] {
            let world = world(mode, root);
            let before = all_of(&world.base.join("home"));
            let mine = world.path("work/a.txt");
            for path in spellings(&world) {
                let says = format!("{path} with the workspace in {root:?} under {mode}");
                for guard in [Guard::Overwrite, Guard::Absent, Guard::Edit] {
                    let refused = world.write(&path, b"forged", &guard);
                    assert!(refused.is_err(), "written: {says}");
                    let refused = world.write(&format!("{path}/"), b"forged", &guard);
                    assert!(refused.is_err(), "written with a slash: {says}");
                }
                let link = path.contains("/to-file") || path.contains("/to-nothing");
                if !link {
                    assert!(world.remove(&path).is_err(), "removed: {says}");
                    let away = world.path("work/away");
                    assert!(world.rename(&path, &away).is_err(), "moved out: {says}");
                }
                assert!(world.rename(&mine, &path).is_err(), "moved in: {says}");
            }
            for path in ["home", "work/to-home/../home", "home/", "work/to-home/", ""] {
                let path = world.path(path);
                assert!(world.remove(&path).is_err(), "{path}");
                let away = world.path("work/away");
                assert!(world.rename(&path, &away).is_err(), "{path}");
                assert!(world.rename(&mine, &path).is_err(), "{path}");
            }
            assert_eq!(
                all_of(&world.base.join("home")),
                before,
                "{root:?} under {mode}"
            );
        }
    }
}

#[test]
fn h21_writing_to_another_name_of_a_home_file_leaves_the_home_s() {
    let world = world(Mode::WorkspaceWrite, "work");
    let before = all_of(&world.base.join("home"));
    world.write("hard", b"forged", &Guard::Overwrite).unwrap();
    assert_eq!(world.text("work/hard"), "forged");
    assert_eq!(all_of(&world.base.join("home")), before);
}

#[test]
fn h19_a_link_to_home_swapped_in_during_the_call_changes_nothing() {
    use std::sync::atomic::{AtomicBool, Ordering};
    for mode in [Mode::WorkspaceWrite, Mode::DangerFullAccess] {
        let world = world(mode, "");
        let work = world.base.join("work");
        std::fs::create_dir(work.join("real")).unwrap();
        let before = all_of(&world.base.join("home"));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (real, link) = (work.join("real"), work.join("to-home"));
                let (at, flags) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
                while !done.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(at, &real, at, &link, flags).unwrap();
                }
            });
            for _ in 0..300 {
                for name in ["settings.yaml", "new", "deep/new"] {
                    let path = format!("work/real/{name}");
                    let _ = world.write(&path, b"forged", &Guard::Overwrite);
                    let _ = world.rename(&path, "work/away");
                    let _ = world.rename("work/away", &path);
                    let _ = world.remove(&path);
                    let _ = world.remove("work/away");
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(all_of(&world.base.join("home")), before, "under {mode}");
    }
}

#[test]
fn what_holds_home_and_the_links_that_lead_to_it_stay_where_they_are() {
    for mode in [Mode::WorkspaceWrite, Mode::DangerFullAccess] {
        let mut world = World::new(mode);
        let base = world.base.clone();
        std::fs::create_dir_all(base.join("real/deep/.dsh")).unwrap();
        symlink("real", base.join("way")).unwrap();
        symlink("way/deep/.dsh", base.join("dot-dsh")).unwrap();
        let temps = vec![base.join("temp")];
        world.files.fence = Fence {
            temps,
            ..Fence::new(&base, &base.join("dot-dsh"), &base.join("temp"))
        };
        assert_eq!(world.files.fence.home, base.join("real/deep/.dsh"));
        std::fs::create_dir(base.join("mine")).unwrap();
        for path in [
            "real",
            "real/deep",
            "real/deep/.dsh",
            "way",
            "dot-dsh",
            "way/deep",
        ] {
            for error in [
                world.rename(path, "elsewhere").unwrap_err(),
                world.remove(path).unwrap_err(),
            ] {
                assert_eq!(error.code(), "FS_SANDBOX_DENIED", "{path} under {mode}");
            }
            assert!(world.rename("mine", path).is_err(), "{path} under {mode}");
            assert!(world.write(path, b"", &Guard::Overwrite).is_err());
        }
        world.rename("mine", "real/deep/mine").unwrap();
        assert!(base.join("dot-dsh").is_symlink() && base.join("real/deep/mine").is_dir());
    }
}

#[test]
fn h27_a_home_under_a_name_that_no_table_knows_is_told_by_what_it_is() {
    // As where capitals are small letters: the fence knows the home by another name.
    let mut world = world(Mode::DangerFullAccess, "work");
    let real = world.base.join("home");
    let before = all_of(&real);
    symlink(&real, world.base.join("HOME")).unwrap();
    world.files.fence.home = world.base.join("HOME");
    for path in ["home/new", "home/settings.yaml", "home/deep/er/new"] {
        let path = world.path(path);
        let error = world
            .write(&path, b"forged", &Guard::Overwrite)
            .unwrap_err();
        assert_eq!(error.code(), "FS_SANDBOX_DENIED", "{path}");
        assert!(
            world.rename(&world.path("work/a.txt"), &path).is_err(),
            "{path}"
        );
    }
    assert!(world.remove(&world.path("home/settings.yaml")).is_err());
    assert!(
        world
            .rename(&world.path("home/empty"), &world.path("work/away"))
            .is_err()
    );
    assert_eq!(all_of(&real), before);
}

#[test]
fn home_is_neither_written_nor_are_its_secrets_read_where_it_is_mounted_again() {
    let fence = Fence {
        root: "/w".into(),
        home: "/h".into(),
        aliases: vec![
            crate::names::Alias {
                path: "/w/all".into(),
                inside: PathBuf::new(),
            },
            crate::names::Alias {
                path: "/w/part".into(),
                inside: "cache".into(),
            },
        ],
        ..Fence::default()
    };
    for mode in [Mode::WorkspaceWrite, Mode::DangerFullAccess] {
        for path in ["/w/all", "/w/all/new", "/w/part/key"] {
            assert_eq!(
                fence.may_write(Path::new(path), mode),
                Err(Refusal::Home),
                "{path}"
            );
        }
        assert_eq!(fence.may_write(Path::new("/w/allow"), mode), Ok(()));
        assert_eq!(
            fence.may_move(Path::new("/w/all"), mode),
            Err(Refusal::Home)
        );
    }
    for path in ["/w/all/.env", "/w/part/key", "/w/part"] {
        assert_eq!(
            fence.may_read(Path::new(path)),
            Err(Refusal::Secret),
            "{path}"
        );
    }
    assert_eq!(fence.may_read(Path::new("/w/all/settings.yaml")), Ok(()));
}
