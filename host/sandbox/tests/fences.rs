//! `$DSH_HOME` against commands: under each runner, in each mode, wherever the
//! workspace is. What must not change is compared whole, before and after.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use dsh_plugin::port::Command;
use dsh_sandbox::{Mode, RunnerKind};
use support::{World, bash, err, exists, out, worlds};

/// What is compared of a home. Landlock governs no permissions and no times,
/// only content and names.
fn home_of(world: &World) -> BTreeMap<PathBuf, (u64, u32, Vec<u8>)> {
    let mut found = all_of(&world.base.join("home"));
    if world.kind == RunnerKind::Landlock {
        found.values_mut().for_each(|(_, mode, _)| *mode = 0);
    }
    found
}

/// Every name below a directory, with inode, permissions and content.
fn all_of(dir: &Path) -> BTreeMap<PathBuf, (u64, u32, Vec<u8>)> {
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
        found.insert(path, (meta.ino(), meta.mode(), content));
    }
    found
}

/// What a command may try; `$H` is the home, `$W` a directory to work in.
const ATTEMPTS: &str = r#"
cd "$W"
try() { ( eval "$1" ) >/dev/null 2>&1; }
for f in settings.yaml new .env profiles/p/dsh.lock cache/key; do
  for h in "$H/" "$H/../${H##*/}" "/proc/self/root$H" "/proc/$$/root$H" "/proc/self/cwd/$R"; do
    try "echo forged > '$h/$f'"
    try "echo forged >> '$h/$f'"
    try "truncate -s 0 '$h/$f'"
    try "rm -f '$h/$f'"
    try "mv '$h/$f' '$W/stolen'"
    try "echo forged > '$W/forged'; mv -f '$W/forged' '$h/$f'"
    try "mkdir -p '$h/$f'"
    try "ln -s /dev/null '$h/$f.link'"
    try "ln '$h/$f' '$W/hard'; echo forged > '$W/hard'; rm -f '$W/hard'"
    try "ln -s '$h/$f' '$W/soft'; echo forged > '$W/soft'; rm -f '$W/soft'"
    try "chmod 777 '$h/$f'"
    try "touch -d @0 '$h/$f'"
  done
done
ln -s "$H" "$W/dir"
try "echo forged > dir/new"; try "cp '$0' dir/"; try "rm -rf dir/"
try "mv '$H' '$H.away'"; try "rm -rf '$H'"; try "rmdir '$H'"; try "chmod 777 '$H'"
try "mkdir other; mv -T other '$H'"; try "mv --exchange other '$H'"
try "mount --bind /tmp '$H'"; try "umount -l '$H'"; try "mount -o remount,rw,bind '$H'"
for flags in -Urm -rm -m; do
  try "unshare $flags sh -c 'umount -l $H; echo forged > $H/new'"
  try "unshare $flags sh -c 'mount -o remount,rw,bind $H; echo forged > $H/new'"
  try "unshare $flags sh -c 'mkdir -p m; mount --rbind / m; umount -l m$H; echo forged > m$H/new'"
  try "unshare $flags sh -c 'mkdir -p m; mount --bind / m; echo forged > m$H/new'"
done
for p in /proc/1 /proc/2 /proc/3 /proc/$PPID /proc/$T; do
  try "echo forged > $p/root$H/new"
  try "nsenter -t ${p#/proc/} -m sh -c 'echo forged > $H/new'"
done
(while :; do rm -f "$W/swap"; ln -s "$H" "$W/swap"; rm -f "$W/swap"; mkdir "$W/swap" && rmdir "$W/swap"; done) 2>/dev/null &
for i in $(seq 50); do try "echo forged > '$W/swap/new'"; done
kill $!
echo tried
"#;

fn fill(world: &World) {
    for dir in ["home/sessions/s", "home/plugins", "work/sub"] {
        std::fs::create_dir_all(world.base.join(dir)).unwrap();
    }
    std::fs::write(world.base.join("home/sessions/s/lock"), "sesame").unwrap();
}

/// Runs the attempts and says whether they were run at all.
async fn attempt(world: &mut World, mode: Mode, work: &str) -> Result<(), dsh_sandbox::Error> {
    let relative = |from: &Path, to: &str| {
        let up = "../".repeat(from.components().count());
        format!("{up}{to}")
    };
    world.env = vec![
        ("T".to_owned(), std::process::id().to_string()),
        ("H".to_owned(), world.path("home")),
        ("W".to_owned(), world.path(work)),
        (
            "R".to_owned(),
            relative(&world.base.join(work), &world.path("home")),
        ),
    ];
    let ended = world.bash(mode, ATTEMPTS).await?;
    assert!(out(&ended).contains("tried"), "{mode}: {ended:?}");
    Ok(())
}

#[tokio::test]
async fn no_command_changes_home_in_any_mode_under_any_runner() {
    for mut world in worlds() {
        fill(&world);
        for mode in Mode::ALL {
            let before = home_of(&world);
            let outside = all_of(&world.base.join("out"));
            attempt(&mut world, mode, "work").await.unwrap();
            let kind = world.kind;
            assert_eq!(home_of(&world), before, "{kind:?} {mode}");
            assert_eq!(all_of(&world.base.join("out")), outside);
            std::fs::remove_dir_all(world.base.join("work")).unwrap();
            std::fs::create_dir_all(world.base.join("work/sub")).unwrap();
        }
    }
}

#[tokio::test]
async fn no_command_changes_home_where_the_workspace_is_in_it_is_it_or_holds_it() {
    for mut world in worlds() {
        fill(&world);
        for root in ["home/plugins", "home", ""] {
            world.root = world.base.join(root).components().collect();
            for mode in Mode::ALL {
                let before = home_of(&world);
                let run = attempt(&mut world, mode, "work").await;
                let held = root.is_empty() || root == "home";
                let refused =
                    world.kind == RunnerKind::Landlock && mode == Mode::WorkspaceWrite && held;
                let says = format!("{:?} {mode} in {root:?}", world.kind);
                match run {
                    Ok(()) => assert!(!refused, "{says}"),
                    Err(error) => {
                        assert!(refused, "{says}: {error}");
                        assert!(error.to_string().contains("install bubblewrap"), "{error}");
                    }
                }
                assert_eq!(home_of(&world), before, "{says}");
                std::fs::remove_dir_all(world.base.join("work")).unwrap();
                std::fs::create_dir_all(world.base.join("work/sub")).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_directory_that_holds_home_is_not_moved_away_for_another_in_its_place() {
    for mut world in worlds() {
        let home = world.base.join("a/b/home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("settings.yaml"), "plain").unwrap();
        let script = "cd \"$B\"; mv a away; mv a/b a/away; mkdir -p a/b/home; \
                      echo forged > a/b/home/settings.yaml; echo forged > a/b/home/new; \
                      echo mine > a/b/file; cat a/b/home/settings.yaml";
        world.root = world.base.clone();
        world.env = vec![("B".to_owned(), world.path(""))];
        let mut config = world.config();
        config.dsh_home.clone_from(&home);
        let sandbox = dsh_sandbox::Sandbox::new(config);
        for mode in [Mode::WorkspaceWrite, Mode::DangerFullAccess] {
            let session = world.session_in(&sandbox, mode);
            let ended = session.run_in(mode, bash(script)).await;
            let says = format!("{:?} {mode}: {ended:?}", world.kind);
            if world.kind == RunnerKind::Landlock && mode == Mode::WorkspaceWrite {
                assert_eq!(ended.unwrap_err().code(), "SANDBOX_UNAVAILABLE", "{says}");
            } else {
                assert_eq!(out(&ended.unwrap()), "plain", "{says}");
            }
            let names: Vec<_> = home.read_dir().unwrap().collect();
            assert_eq!(names.len(), 1, "{says}");
            assert_eq!(
                std::fs::read_to_string(home.join("settings.yaml")).unwrap(),
                "plain"
            );
            if world.kind == RunnerKind::Bwrap {
                assert_eq!(
                    std::fs::read_to_string(home.with_file_name("file")).unwrap(),
                    "mine\n"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_link_that_leads_to_home_is_not_replaced() {
    for mut world in worlds() {
        let link = world.base.join("work/dot-dsh");
        symlink("../home", &link).unwrap();
        let mut config = world.config();
        config.dsh_home.clone_from(&link);
        let sandbox = dsh_sandbox::Sandbox::new(config);
        let script = "cd \"$B\"; rm -f dot-dsh; mkdir dot-dsh; mv -T . elsewhere; echo tried";
        world.env = vec![("B".to_owned(), world.path("work"))];
        for mode in Mode::ALL {
            let session = world.session_in(&sandbox, mode);
            match session.run_in(mode, bash(script)).await {
                Ok(ended) => assert_eq!(out(&ended), "tried\n", "{:?} {mode}", world.kind),
                Err(error) => {
                    let text = error.to_string();
                    assert_eq!(error.code(), "SANDBOX_UNAVAILABLE", "{text}");
                    assert!(text.contains(link.to_str().unwrap()), "{text}");
                }
            }
            assert!(link.is_symlink(), "{:?} {mode}", world.kind);
        }
    }
}

#[tokio::test]
async fn full_access_opens_the_rest_of_the_machine() {
    for world in worlds() {
        let script = format!(
            "echo x > {out}/new && echo y >> {out}/file && mkdir {out}/d && mv {out}/new {out}/d/ \
             && rm -r {out}/d && echo t > {work}/w && test -w /dev/null && cat {out}/file",
            out = world.path("out"),
            work = world.path("work"),
        );
        let ended = world.bash(Mode::DangerFullAccess, script).await.unwrap();
        assert_eq!(
            (out(&ended), ended.exit_code, ended.denied),
            ("outsidey\n", Some(0), false),
            "{:?}: {}",
            world.kind,
            err(&ended)
        );
    }
}

#[tokio::test]
async fn where_nothing_confines_full_access_runs_all_the_same_and_nothing_else_does() {
    let world = World::new(RunnerKind::Landlock);
    let mut config = world.config();
    config.force = Some(RunnerKind::Bwrap);
    let bin = world.base.join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink("/bin/bash", bin.join("bash")).unwrap();
    config.inherited_env = vec![("PATH".into(), bin.into())];
    let sandbox = dsh_sandbox::Sandbox::new(config);
    for mode in Mode::ALL {
        let session = world.session_in(&sandbox, mode);
        let ended = session.run_in(mode, bash("echo ran")).await;
        match mode {
            Mode::DangerFullAccess => assert_eq!(out(&ended.unwrap()), "ran\n"),
            _ => assert_eq!(ended.unwrap_err().code(), "SANDBOX_UNAVAILABLE"),
        }
    }
}

#[tokio::test]
async fn full_access_without_the_guard_writes_to_home_as_the_person_would() {
    for world in worlds() {
        let mut config = world.config();
        config.guard_home = false;
        let sandbox = dsh_sandbox::Sandbox::new(config);
        let script = format!("echo x > {0}/new; cat {0}/.env", world.path("home"));
        for mode in Mode::ALL {
            let session = world.session_in(&sandbox, mode);
            let ended = session.run_in(mode, bash(&script)).await.unwrap();
            let full = mode == Mode::DangerFullAccess;
            assert_eq!(exists(&world.base.join("home/new")), full, "{mode}");
            assert!(!full || out(&ended) == "sesame", "{ended:?}");
        }
    }
}

#[tokio::test]
async fn full_access_sees_devices_processes_and_their_signals_as_they_are() {
    let root = rustix::process::geteuid().is_root();
    // Root is kept from other processes under Bubblewrap.
    let sees = |world: &World| !(root && world.kind == RunnerKind::Bwrap);
    for world in worlds().into_iter().filter(sees) {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let script = format!("test -e /dev/full && kill {} && id -u", child.id());
        let ended = world.bash(Mode::DangerFullAccess, script).await.unwrap();
        let uid = rustix::process::getuid().as_raw();
        assert_eq!(
            out(&ended),
            format!("{uid}\n"),
            "{:?}: {ended:?}",
            world.kind
        );
        assert!(!child.wait().unwrap().success());
    }
}

#[tokio::test]
async fn a_command_s_environment_does_not_reach_into_the_runner() {
    for world in worlds() {
        for mode in Mode::ALL {
            let before = home_of(&world);
            let session = world.session(mode);
            let with = |name: &str, value: String| Command {
                env: vec![(name.to_owned(), value)],
                ..bash("echo \"$LD_DEBUG_OUTPUT$LD_TRACE_LOADED_OBJECTS\"")
            };
            // The loader writes what it does to a file of this name.
            let mut debug = with("LD_DEBUG_OUTPUT", world.path("home/forged"));
            debug.env.push(("LD_DEBUG".to_owned(), "all".to_owned()));
            let ended = session.run_in(mode, debug).await.unwrap();
            assert!(out(&ended).contains(&world.path("home/forged")));
            // It shows what would be loaded and ends, so that nothing is confined.
            let trace = with("LD_TRACE_LOADED_OBJECTS", "1".to_owned());
            let ended = session.run_in(mode, trace).await.unwrap();
            assert!(!out(&ended).contains("libcap"), "{}", out(&ended));
            assert!(out(&ended).contains("libc"), "{}", out(&ended));
            assert_eq!(home_of(&world), before, "{:?} {mode}", world.kind);
        }
    }
}

#[tokio::test]
async fn no_other_process_s_view_is_a_way_around() {
    for world in worlds() {
        let pid = std::process::id();
        for mode in Mode::ALL {
            let script = format!(
                "cat /proc/{pid}/environ /proc/{pid}/root/etc/hostname; ls /proc/{pid}/root/ /proc/{pid}/cwd/; \
                 readlink /proc/{pid}/fd/0 && echo seen"
            );
            let ended = world.bash(mode, script).await.unwrap();
            assert_eq!(out(&ended), "", "{:?} {mode}", world.kind);
        }
    }
}

#[tokio::test]
async fn under_bwrap_what_dsh_keeps_to_itself_is_not_read_in_any_mode() {
    let bwrap = |world: &World| world.kind == RunnerKind::Bwrap;
    for mut world in worlds().into_iter().filter(bwrap) {
        fill(&world);
        for root in ["work", "home/plugins", ""] {
            world.root = world.base.join(root).components().collect();
            for mode in Mode::ALL {
                let script = format!(
                    "grep -r sesame {0}; ls {0}/cache {0}/storages; cat {0}/settings.yaml",
                    world.path("home")
                );
                let ended = world.bash(mode, script).await.unwrap();
                assert_eq!(out(&ended), "plain", "{mode} in {root:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_dsh_replaces_while_a_command_runs_does_not_appear_in_it() {
    let bwrap = |world: &World| world.kind == RunnerKind::Bwrap;
    for world in worlds().into_iter().filter(bwrap) {
        let lock = world.path("home/profiles/p/dsh.lock");
        let (ready, go) = (world.path("work/ready"), world.path("work/go"));
        let script = format!(
            "touch {ready}; until test -e {go}; do sleep 0.01; done; cat {lock} {lock}2; echo end"
        );
        let session = world.session(Mode::WorkspaceWrite);
        let running =
            tokio::spawn(async move { session.run_in(Mode::WorkspaceWrite, bash(&script)).await });
        let seen = || exists(Path::new(&ready));
        tokio::task::block_in_place(|| support::until("the command runs", seen));
        std::fs::write(format!("{lock}.new"), "sesame").unwrap();
        std::fs::rename(format!("{lock}.new"), &lock).unwrap();
        std::fs::write(format!("{lock}2"), "sesame").unwrap();
        std::fs::write(go, "").unwrap();
        assert_eq!(out(&running.await.unwrap().unwrap()), "end\n");
    }
}
