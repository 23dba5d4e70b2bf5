//! What a confined command can write and read, under each runner.

mod support;

use dsh_sandbox::{Mode, RunnerKind};
use support::{World, err, exists, out, worlds};

#[tokio::test]
async fn workspace_write_opens_the_workspace_and_tmp_and_nothing_else() {
    for world in worlds() {
        let made = world
            .bash(
                Mode::WorkspaceWrite,
                "echo in > made; mkdir -p a/b; mv made a/b/; cat a/b/made",
            )
            .await;
        let made = made.unwrap();
        assert_eq!(
            (out(&made), made.exit_code, made.denied),
            ("in\n", Some(0), false),
            "{:?}",
            err(&made)
        );
        assert_eq!(world.text("work/a/b/made").as_deref(), Some("in\n"));

        let temp = world.bash(
            Mode::WorkspaceWrite,
            "f=$(mktemp /tmp/dsh-test-XXXXXX) && echo t > $f && cat $f; rm $f",
        );
        assert_eq!(out(&temp.await.unwrap()), "t\n");

        for script in [
            format!("echo x > {}", world.path("out/new")),
            format!("echo x >> {}", world.path("out/file")),
            format!("rm {}", world.path("out/file")),
            format!(
                "mv {} {}",
                world.path("out/file"),
                world.path("work/stolen")
            ),
            format!("ln -s {} link; echo x > link/new", world.path("out")),
            format!("truncate -s 0 {}", world.path("out/file")),
        ] {
            let refused = world.bash(Mode::WorkspaceWrite, &script).await.unwrap();
            assert_ne!(refused.exit_code, Some(0), "{script}");
            assert!(
                refused.denied,
                "{script} under {:?}: {}",
                world.kind,
                err(&refused)
            );
        }
        assert_eq!(world.text("out/file").as_deref(), Some("outside"));
        assert!(!exists(&world.base.join("out/new")));
    }
}

#[tokio::test]
async fn read_only_opens_nothing_but_dev_null() {
    for world in worlds() {
        let read = world.bash(
            Mode::ReadOnly,
            format!("echo x > /dev/null && cat {}", world.path("out/file")),
        );
        assert_eq!(out(&read.await.unwrap()), "outside");
        for target in [world.path("work/new"), world.path("out/new")] {
            let refused = world
                .bash(Mode::ReadOnly, format!("echo x > {target}"))
                .await
                .unwrap();
            assert!(
                refused.denied,
                "{target} under {:?}: {}",
                world.kind,
                err(&refused)
            );
            assert!(!exists(target.as_ref()));
        }
        let failed = world
            .bash(Mode::ReadOnly, "echo Nothing >&2; exit 3")
            .await
            .unwrap();
        assert_eq!((failed.exit_code, failed.denied), (Some(3), false));
    }
}

#[tokio::test]
async fn home_is_not_written_and_under_bwrap_its_secrets_are_not_read() {
    for mut world in worlds() {
        let log = world.base.join("home/sessions/w/s/session.jsonl");
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        std::fs::write(&log, "log").unwrap();
        std::fs::write(log.with_file_name("lock"), "sesame").unwrap();
        let other = world.base.join("home/sessions/w/other");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("lock"), "sesame").unwrap();
        world.env = vec![(
            "DSH_SESSION_JSONL".to_owned(),
            log.to_str().unwrap().to_owned(),
        )];

        for target in [
            "settings.yaml",
            "new",
            ".env",
            "cordis.patch.yml",
            "profiles/p/cordis.patch.yml",
        ] {
            let refused = world.bash(
                Mode::WorkspaceWrite,
                format!("echo x > {}/{target}", world.path("home")),
            );
            let refused = refused.await.unwrap();
            assert!(
                refused.denied,
                "{target} under {:?}: {}",
                world.kind,
                err(&refused)
            );
        }
        assert_eq!(world.text("home/settings.yaml").as_deref(), Some("plain"));

        let plain = world
            .bash(
                Mode::WorkspaceWrite,
                format!("cat {}/settings.yaml", world.path("home")),
            )
            .await;
        assert_eq!(out(&plain.unwrap()), "plain");
        let own = world
            .bash(Mode::WorkspaceWrite, "cat $DSH_SESSION_JSONL")
            .await
            .unwrap();
        assert_eq!(out(&own), "log");
        if world.kind == RunnerKind::Bwrap {
            for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
                let all = world
                    .bash(mode, &format!("grep -r sesame {}", world.path("home")))
                    .await
                    .unwrap();
                assert_eq!(out(&all), "", "{mode}");
                assert_ne!(all.exit_code, Some(0));
            }
        }
    }
}

#[tokio::test]
async fn a_workspace_that_holds_home_is_kept_out_of_it_or_refused() {
    for mut world in worlds() {
        world.root = world.base.clone();
        let script = "echo x > work/new; echo x > home/new; rm home/settings.yaml; mv home other; cat home/.env; ls home";
        let outcome = world.bash(Mode::WorkspaceWrite, script).await;
        match world.kind {
            RunnerKind::Bwrap => {
                assert_eq!(out(&outcome.unwrap()), "profiles\nsettings.yaml\n");
                assert_eq!(world.text("work/new").as_deref(), Some("x\n"));
            }
            RunnerKind::Landlock => {
                let error = outcome.unwrap_err();
                assert_eq!(error.code(), "SANDBOX_UNAVAILABLE");
                assert!(!exists(&world.base.join("work/new")), "it was run");
            }
        }
        assert!(!exists(&world.base.join("home/new")));
        assert_eq!(world.text("home/settings.yaml").as_deref(), Some("plain"));
    }
}

#[tokio::test]
async fn a_home_that_is_not_there_yet_cannot_be_made_by_a_command() {
    for mut world in worlds()
        .into_iter()
        .filter(|world| world.kind == RunnerKind::Bwrap)
    {
        std::fs::remove_dir_all(world.base.join("home")).unwrap();
        world.root = world.base.clone();
        let refused = world
            .bash(
                Mode::WorkspaceWrite,
                "mkdir -p home; echo x > home/cordis.patch.yml",
            )
            .await
            .unwrap();
        assert!(refused.denied, "{}", err(&refused));
        assert!(!exists(&world.base.join("home/cordis.patch.yml")));
    }
}

#[tokio::test]
async fn a_command_cannot_loosen_what_holds_it() {
    for world in worlds() {
        let file = world.path("out/file");
        for script in [
            "mount -o remount,rw,bind /".to_owned(),
            format!("mount -o remount,rw,bind / && echo x > {file}"),
            format!("unshare -Urm sh -c 'mount -o remount,rw,bind / && echo x > {file}'"),
            format!(
                "umount -l {} && cat {}",
                world.path("home"),
                world.path("home/.env")
            ),
        ] {
            let refused = world.bash(Mode::WorkspaceWrite, &script).await.unwrap();
            assert_ne!(
                refused.exit_code,
                Some(0),
                "{script} under {:?}",
                world.kind
            );
            assert!(!out(&refused).contains("sesame"));
        }
        assert_eq!(world.text("out/file").as_deref(), Some("outside"));
        let links = format!(
            "ln {} hard; ln {file} hard2; cat hard; echo x > hard2",
            world.path("home/.env")
        );
        let refused = world.bash(Mode::WorkspaceWrite, &links).await.unwrap();
        assert!(!out(&refused).contains("sesame") && !exists(&world.base.join("work/hard")));
        assert_eq!(world.text("out/file").as_deref(), Some("outside"));
    }
}

#[tokio::test]
async fn bwrap_gives_a_fresh_tmp_and_landlock_the_real_one() {
    for world in worlds() {
        let marker = tempfile::Builder::new()
            .prefix("dsh-marker-")
            .tempfile_in("/tmp")
            .unwrap();
        let seen = world
            .bash(
                Mode::WorkspaceWrite,
                format!("test -e {}", marker.path().display()),
            )
            .await
            .unwrap();
        assert_eq!(
            seen.exit_code == Some(0),
            world.kind == RunnerKind::Landlock
        );
    }
}

#[tokio::test]
async fn full_access_is_not_confined() {
    let world = World::new(RunnerKind::Landlock);
    let made = world
        .bash(
            Mode::DangerFullAccess,
            format!("echo x > {}", world.path("out/new")),
        )
        .await
        .unwrap();
    assert_eq!((made.exit_code, made.denied), (Some(0), false));
    assert_eq!(world.text("out/new").as_deref(), Some("x\n"));
}

#[tokio::test]
async fn what_cannot_be_confined_is_not_run() {
    let world = World::new(RunnerKind::Bwrap);
    let mut config = world.config();
    config.force = None;
    config.helper = world.base.join("no-helper");
    config.inherited_env.retain(|(name, _)| name != "PATH");
    // Programs are found, bubblewrap is not.
    let bin = world.base.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/bash", bin.join("bash")).unwrap();
    config.inherited_env.push(("PATH".into(), bin.into()));
    let sandbox = dsh_sandbox::Sandbox::new(config);
    let session = world.session_in(&sandbox, Mode::WorkspaceWrite);
    let error = session
        .run_in(Mode::WorkspaceWrite, support::bash("echo x > ran"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "SANDBOX_UNAVAILABLE");
    let text = error.to_string();
    assert!(
        text.contains("bwrap: not on PATH") && text.contains("landlock: "),
        "{text}"
    );
    assert!(!exists(&world.base.join("work/ran")));
}
