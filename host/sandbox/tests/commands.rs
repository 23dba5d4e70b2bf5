//! How commands run and end, under each runner and unconfined.

mod support;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_plugin::api::PluginError;
use dsh_plugin::port::{Process, Spill, Workspace};
use dsh_sandbox::{Escalation, HELPER_ARGUMENT, Mode, OutputSink, RunnerKind, Stream};
use support::{World, bash, err, out, processes, until, worlds};

/// Each way to run a command here: confined by each runner, and not.
fn ways() -> Vec<(World, Mode)> {
    let mut ways: Vec<_> = worlds()
        .into_iter()
        .map(|world| (world, Mode::WorkspaceWrite))
        .collect();
    ways.push((World::new(RunnerKind::Landlock), Mode::DangerFullAccess));
    ways
}

/// A word that only this test's processes have among their arguments, and that
/// `sleep` takes for a long time.
fn word(test: u32, way: usize) -> String {
    format!(
        "{}",
        1_000_000_000 + u64::from(std::process::id()) * 1000 + u64::from(test) * 10 + way as u64
    )
}

#[tokio::test]
async fn a_command_s_streams_status_directory_and_input_are_its_own() {
    for (world, mode) in ways() {
        std::fs::create_dir(world.base.join("work/sub")).unwrap();
        let mut command = bash("pwd; cat; echo oops >&2; exit 3");
        command.cwd = Some("sub".to_owned());
        let input = "line\n".repeat(100_000);
        command.stdin = Some(input.clone().into_bytes());
        command.max_output = 1_000_000;
        let output = world.session(mode).run_in(mode, command).await.unwrap();
        assert_eq!(
            (output.exit_code, output.signal, output.timed_out),
            (Some(3), None, false)
        );
        assert_eq!(err(&output), "oops\n");
        assert_eq!(out(&output), format!("{}\n{input}", world.path("work/sub")));

        let mut unread = bash("true");
        unread.stdin = Some(vec![b'x'; 1 << 20]);
        assert_eq!(
            world
                .session(mode)
                .run_in(mode, unread)
                .await
                .unwrap()
                .exit_code,
            Some(0)
        );
        let none = world.bash(mode, "cat | wc -c").await.unwrap();
        assert_eq!(out(&none).trim(), "0");
    }
}

#[tokio::test]
async fn the_environment_is_scrubbed_and_then_given() {
    for (world, mode) in ways() {
        let mut config = world.config();
        for (name, value) in [
            ("MY_API_KEY", "sesame"),
            ("DSH_HOME", "sesame"),
            ("PLAIN", "kept"),
            ("TERM", "xterm"),
        ] {
            config.inherited_env.push((name.into(), value.into()));
        }
        let mut world = world;
        world.env = vec![
            ("TERM".to_owned(), "dumb".to_owned()),
            ("DSH_SHELL".to_owned(), "1".to_owned()),
        ];
        let session = world.session_in(&dsh_sandbox::Sandbox::new(config), mode);
        let mut command = bash("echo $PLAIN $TERM $DSH_SHELL $OWN; env");
        command.env = vec![("OWN".to_owned(), "o".to_owned())];
        let output = session.run_in(mode, command).await.unwrap();
        assert!(
            out(&output).starts_with("kept dumb 1 o\n"),
            "{}",
            out(&output)
        );
        assert!(!out(&output).contains("sesame"));
    }
}

#[tokio::test]
async fn of_long_output_the_end_is_kept_and_the_whole_is_where_the_next_command_reads_it() {
    for (world, mode) in ways() {
        let session = world.session(mode);
        let mut command = bash("seq 1 30000; echo short >&2");
        command.max_output = 1000;
        let output = session.run_in(mode, command).await.unwrap();
        assert_eq!(output.stdout.len(), 1000);
        assert!(out(&output).ends_with("29999\n30000\n"));
        assert_eq!((err(&output), &output.stderr_spill), ("short\n", &None));
        let spill = output.stdout_spill.unwrap();
        let whole: String = (1..=30000).map(|number| format!("{number}\n")).collect();
        assert_eq!(std::fs::read_to_string(&spill).unwrap(), whole);
        let again = session
            .run_in(mode, bash(&format!("head -n 2 {spill}")))
            .await
            .unwrap();
        assert_eq!(out(&again), "1\n2\n", "{}", err(&again));
        assert!(session.read(&spill, 0, 2).await.is_ok());
    }
}

#[tokio::test]
async fn when_a_command_ends_what_it_left_behind_ends_too() {
    for (way, (world, mode)) in ways().into_iter().enumerate() {
        let word = word(1, way);
        let script = format!(
            "setsid sleep {word} & (setsid setsid sleep {word} >/dev/null 2>&1 &) ; disown -a; echo done"
        );
        let output = world.bash(mode, &script).await.unwrap();
        assert_eq!((out(&output), output.exit_code), ("done\n", Some(0)));
        until("leftovers are gone", || processes(&word) == 0);
    }
}

#[tokio::test]
async fn at_the_time_limit_the_whole_tree_ends() {
    for (way, (world, mode)) in ways().into_iter().enumerate() {
        let word = word(2, way);
        let mut command = bash(&format!(
            "echo before; setsid sleep {word} & sleep {word}; echo after"
        ));
        command.timeout_ms = Some(300);
        let output = world.session(mode).run_in(mode, command).await.unwrap();
        assert_eq!(
            (output.timed_out, output.exit_code, out(&output)),
            (true, None, "before\n")
        );
        assert_eq!(output.signal, Some(15), "{:?} {mode}", world.kind);
        until("the tree is gone", || processes(&word) == 0);
    }
}

#[tokio::test]
async fn a_command_may_tidy_up_when_it_is_told_to_end() {
    for (world, mode) in ways() {
        let script = "trap 'echo tidied > tidied; exit 0' TERM; echo ready > ready; while :; do sleep 0.05; done";
        let session = world.session(mode);
        let runs = session.clone();
        let running = tokio::spawn(async move { runs.run_in(mode, bash(script)).await });
        let ready = world.base.join("work/ready");
        tokio::task::spawn_blocking(move || until("it is ready", || support::exists(&ready)))
            .await
            .unwrap();
        running.abort();
        let _ = running.await;
        session.idle().await;
        assert!(support::exists(&world.base.join("work/tidied")));
    }
}

#[tokio::test]
async fn a_command_that_will_not_end_is_killed() {
    for (way, (world, mode)) in ways().into_iter().enumerate() {
        let word = word(3, way);
        let mut command = bash(&format!(
            "trap '' TERM; setsid sleep {word} & sleep {word}; sleep {word}"
        ));
        command.timeout_ms = Some(200);
        let output = world.session(mode).run_in(mode, command).await.unwrap();
        assert_eq!(
            (output.timed_out, output.exit_code, output.signal),
            (true, None, Some(9))
        );
        until("the tree is gone", || processes(&word) == 0);
    }
}

#[tokio::test]
async fn dropping_the_future_ends_the_tree() {
    for (way, (world, mode)) in ways().into_iter().enumerate() {
        let word = word(4, way);
        let session = world.session(mode);
        let script = format!("setsid sleep {word} & sleep {word}; sleep {word}");
        let running = tokio::spawn(async move { session.run_in(mode, bash(&script)).await });
        let seen = word.clone();
        tokio::task::spawn_blocking(move || until("it runs", || processes(&seen) >= 2))
            .await
            .unwrap();
        running.abort();
        tokio::task::spawn_blocking(move || until("the tree is gone", || processes(&word) == 0))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn signals_of_a_command_to_itself_and_its_group_stay_its_own() {
    for (world, mode) in ways() {
        let output = world.bash(mode, "kill -9 $$").await.unwrap();
        let expected = match (world.kind, mode) {
            // It reports as shells do.
            (RunnerKind::Bwrap, _) => (Some(137), None),
            _ => (None, Some(9)),
        };
        assert_eq!((output.exit_code, output.signal), expected);
        let group = world
            .bash(mode, "trap '' TERM; kill 0; echo alive; exit 5")
            .await
            .unwrap();
        assert_eq!(
            (out(&group), group.exit_code),
            ("alive\n", Some(5)),
            "{:?} {mode}",
            world.kind
        );
    }
}

#[tokio::test]
async fn a_confined_command_cannot_kill_what_holds_it() {
    for (way, world) in worlds().into_iter().enumerate() {
        let word = word(5, way);
        let script = format!(
            "(setsid sleep {word} &); kill -9 $PPID; kill -9 {}; echo alive",
            std::process::id()
        );
        let output = world.bash(Mode::WorkspaceWrite, &script).await.unwrap();
        assert_eq!(out(&output), "alive\n", "{:?}: {output:?}", world.kind);
        until("leftovers are gone", || processes(&word) == 0);
    }
}

#[test]
fn when_the_host_dies_the_supervisor_ends_the_tree() {
    let word = word(6, 0);
    let helper = env!("CARGO_BIN_EXE_sandbox-helper");
    let script = format!(
        "{helper} {HELPER_ARGUMENT} supervise $$ -- bash -c 'setsid sleep {word} & sleep {word}' & wait"
    );
    let mut host = std::process::Command::new("bash")
        .args(["-c", &script])
        .spawn()
        .unwrap();
    until("it runs", || processes(&word) >= 2);
    host.kill().unwrap();
    host.wait().unwrap();
    until("the tree is gone", || processes(&word) == 0);
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    for (world, mode) in ways() {
        let session = world.session(mode);
        let run = |change: fn(&mut dsh_plugin::port::Command)| {
            let mut command = bash("echo x > ran");
            change(&mut command);
            let session = session.clone();
            async move { session.run_in(mode, command).await.unwrap_err().code() }
        };
        assert_eq!(
            run(|command| command.program = "no-such-program".into()).await,
            "NOT_FOUND"
        );
        assert_eq!(
            run(|command| command.program = "/etc/passwd".into()).await,
            "NOT_FOUND"
        );
        assert_eq!(
            run(|command| command.cwd = Some("none".into())).await,
            "FS_NOT_FOUND"
        );
        assert_eq!(
            run(|command| command.cwd = Some("/etc/passwd".into())).await,
            "FS_NOT_DIRECTORY"
        );
        assert_eq!(
            run(|command| command.arguments.push("a\0b".into())).await,
            "PROCESS_FAILED"
        );
        std::fs::write(world.base.join("work/bad"), "#!/no/such/interpreter\n").unwrap();
        std::process::Command::new("chmod")
            .arg("+x")
            .arg(world.base.join("work/bad"))
            .status()
            .unwrap();
        assert_eq!(
            run(|command| command.program = "./bad".into()).await,
            "PROCESS_FAILED"
        );
        assert!(!support::exists(&world.base.join("work/ran")));
        // A command's own 125 is its own.
        assert_eq!(
            world.bash(mode, "exit 125").await.unwrap().exit_code,
            Some(125)
        );
    }
}

struct Approves(&'static str);

#[async_trait]
impl Escalation for Approves {
    async fn decide(&self, current: Mode, more: &str) -> Result<Mode, PluginError> {
        assert_eq!((current, more), (Mode::ReadOnly, self.0));
        Ok(Mode::WorkspaceWrite)
    }
}

#[tokio::test]
async fn a_wider_mode_is_given_once_and_only_by_who_decides() {
    for mut world in worlds() {
        let more = r#"{"sandbox":"workspace-write","justification":"why"}"#;
        let mut command = bash("echo x > made");
        command.more = Some(more.to_owned());
        let refused = world
            .session(Mode::ReadOnly)
            .run(command.clone())
            .await
            .unwrap_err();
        assert_eq!(refused.code, "DENIED");
        world.escalation = Some(Arc::new(Approves(more)));
        let session = world.session(Mode::ReadOnly);
        assert_eq!(session.run(command).await.unwrap().exit_code, Some(0));
        assert!(session.run(bash("echo x > made")).await.unwrap().denied);
    }
}

#[derive(Default)]
struct Shown(Mutex<Vec<(Stream, String)>>);

impl OutputSink for Shown {
    fn output(&self, stream: Stream, bytes: &[u8]) {
        self.0
            .lock()
            .unwrap()
            .push((stream, String::from_utf8_lossy(bytes).into_owned()));
    }
}

#[tokio::test]
async fn output_is_shown_while_the_command_runs() {
    for (mut world, mode) in ways() {
        let shown = Arc::new(Shown::default());
        world.output = Some(shown.clone());
        let session = world.session(mode);
        let script = "echo first; while ! test -e go; do sleep 0.02; done; echo second >&2";
        let running = tokio::spawn(async move { session.run_in(mode, bash(script)).await });
        let seen = shown.clone();
        let first = move || !seen.0.lock().unwrap().is_empty();
        tokio::task::spawn_blocking(move || until("the first line is shown", first))
            .await
            .unwrap();
        std::fs::write(world.base.join("work/go"), "").unwrap();
        running.await.unwrap().unwrap();
        let expected = vec![
            (Stream::Stdout, "first\n".to_owned()),
            (Stream::Stderr, "second\n".to_owned()),
        ];
        assert_eq!(*shown.0.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn the_ports_answer_with_the_log_s_codes() {
    let world = World::new(RunnerKind::Landlock);
    let session = world.session(Mode::WorkspaceWrite);
    assert_eq!(session.root(), world.path("work"));
    let guard = dsh_plugin::port::Guard::Absent;
    let made = session
        .write("a/b.txt", b"beta\n".to_vec(), guard)
        .await
        .unwrap();
    assert_eq!(session.stat("a/b.txt").await.unwrap(), made);
    assert_eq!(
        session.glob("*.txt", None, 9).await.unwrap().paths,
        ["a/b.txt"]
    );
    assert_eq!(
        session.grep("bet", None, None, 9).await.unwrap().matches[0].text,
        "beta"
    );
    assert_eq!(session.list_dir("a").await.unwrap()[0].name, "b.txt");
    assert_eq!(
        session.read("../home/.env", 0, 9).await.unwrap_err().code,
        "FS_SANDBOX_DENIED"
    );
    assert_eq!(
        session.grep("(", None, None, 9).await.unwrap_err().code,
        "SEARCH_INVALID_PATTERN"
    );
    session.rename("a/b.txt", "c.txt").await.unwrap();
    session.remove("c.txt").await.unwrap();
    let kept = session
        .store("glob-results.txt", b"long".to_vec())
        .await
        .unwrap();
    assert_eq!(session.read(&kept, 0, 9).await.unwrap().content, b"long");
}
