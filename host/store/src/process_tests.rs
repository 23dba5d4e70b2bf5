//! What only several processes show: a writer killed at any moment, and two writers on one session. The child is this
//! test binary again, told by an environment variable what to do.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use dsh_session::{Draft, Event, Header, Json, Kind, Session};

use crate::{Compression, Store, StoreConfig, Target};

const ROOT: &str = "DSH_STORE_TEST_ROOT";
const PLAIN: &str = "DSH_STORE_TEST_PLAIN";

fn open(root: &Path, plain: bool) -> Store {
    let compression = if plain {
        Compression::None
    } else {
        Compression::Zstd
    };
    Store::open(StoreConfig {
        compression,
        ..StoreConfig::new(root)
    })
    .unwrap()
}

fn child(root: &Path, plain: bool) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process_tests::child_writes_until_it_is_killed",
            "--nocapture",
            "--include-ignored",
        ])
        .env(ROOT, root)
        .env(PLAIN, if plain { "1" } else { "" })
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn draft(session: &Session) -> Draft {
    let n = session.next_seq().0;
    let json = |text: String| Json::normalise(&text).unwrap();
    match n % 5 {
        0 => Draft::new(
            Kind::TurnStart,
            json(format!("{{\"turn\":{}}}", session.last_turn() + 1)),
        ),
        4 => Draft::new(
            Kind::TurnEnd,
            json(format!(
                "{{\"turn\":{},\"reason\":{{\"kind\":\"completed\"}}}}",
                session.last_turn()
            )),
        ),
        _ => Draft::new(
            Kind::AssistantChunk,
            json(format!(
                "{{\"turn\":1,\"step\":1,\"chunk\":{{\"type\":\"text-delta\",\"index\":0,\"text\":\"{n} {}\"}}}}",
                "x".repeat(usize::try_from(n * 37 % 300).unwrap())
            )),
        ),
    }
}

/// The child: opens or creates session `s`, then appends and flushes, printing each durable seq, until it is killed or
/// its input ends.
#[test]
#[ignore = "run by the other tests of this module"]
fn child_writes_until_it_is_killed() {
    let Some(root) = std::env::var_os(ROOT) else {
        return;
    };
    let store = open(
        Path::new(&root),
        std::env::var_os(PLAIN).is_some_and(|p| !p.is_empty()),
    );
    let opened = match store.find("s") {
        Ok(_) => store.resume("s", 1),
        Err(_) => {
            let session = Session::new(Header::new("s", 1)).unwrap();
            store.create(&session).map(|writer| (session, writer))
        }
    };
    let mut out = std::io::stdout();
    let (mut session, writer) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            writeln!(out, "\nrefused {} {e}", e.code()).unwrap();
            return;
        }
    };
    writeln!(out, "\nopen").unwrap();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    loop {
        for _ in 0..=session.next_seq().0 % 4 {
            let draft = draft(&session);
            writer
                .enqueue(session.append(draft, 1_700_000_000_000).unwrap())
                .unwrap();
        }
        if let Err(e) = writer.flush_blocking() {
            writeln!(out, "refused {} {e}", e.code()).unwrap();
            return;
        }
        writeln!(out, "durable {}", writer.durable_seq()).unwrap();
    }
}

fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
}

fn killed_again_and_again(plain: bool, rounds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), plain);
    let mut before: Vec<Arc<Event>> = Vec::new();
    for round in 0..rounds {
        let mut child = child(dir.path(), plain);
        let mut durable = 0;
        // Another number of acknowledged batches each round; the kill then falls anywhere into the next ones.
        let mut left = round % 7;
        let mut opened = false;
        let mut lines = lines(&mut child);
        while !(opened && left == 0) {
            let line = lines.next().expect("the child went away by itself");
            assert!(!line.starts_with("refused"), "{line}");
            opened |= line == "open";
            if let Some(seq) = line.strip_prefix("durable ") {
                durable = seq.parse().unwrap();
                left = left.saturating_sub(1);
            }
        }
        for _ in 0..round * 7919 % 50_000 {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        for line in lines {
            if let Some(seq) = line.strip_prefix("durable ") {
                durable = seq.parse().unwrap();
            }
        }
        child.wait().unwrap();

        if !dir
            .path()
            .join("_no-cwd/s")
            .join(if plain {
                "session.jsonl"
            } else {
                "session.jsonl.zstd"
            })
            .exists()
        {
            assert_eq!((durable, before.len()), (0, 0), "a durable log is gone");
            continue;
        }
        let found = store.inspect(&Target::Id("s".into())).unwrap();
        assert_eq!(found.damage, None, "round {round}");
        assert!(
            found.log.len() >= durable,
            "round {round}: {durable} durable, {} there",
            found.log.len()
        );
        let events = found.log.to_vec().unwrap();
        assert!(
            events.starts_with(&before),
            "round {round}: history changed"
        );
        for (seq, event) in (0..).zip(&events) {
            assert_eq!(event.seq.0, seq);
        }
        let (session, writer) = store.resume("s", 1).unwrap();
        assert!(session.log().to_vec().unwrap().starts_with(&events));
        let log = session.log().to_vec().unwrap();
        drop(writer);
        let before_log = store.inspect(&Target::Id("s".into())).unwrap();
        before = before_log.log.to_vec().unwrap();
        assert_eq!(before, log);
    }
    assert!(before.len() > 10, "the children wrote next to nothing");
}

#[test]
fn a_writer_killed_at_any_moment_leaves_a_log_that_opens_zstd() {
    killed_again_and_again(false, 30);
}

#[test]
fn a_writer_killed_at_any_moment_leaves_a_log_that_opens_plain() {
    killed_again_and_again(true, 20);
}

#[test]
fn a_second_process_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), false);
    let mut first = child(dir.path(), false);
    let mut first_lines = lines(&mut first);
    assert!(
        first_lines.any(|line| line.starts_with("durable ")),
        "the first writer wrote nothing"
    );

    let e = store.resume("s", 1).err().expect("two writers");
    assert_eq!(e.code(), "SESSION_LOCKED");
    assert!(
        e.to_string().contains(&format!("(pid {} on ", first.id())),
        "{e}"
    );
    // Reading needs no lock.
    assert!(
        store
            .inspect(&Target::Id("s".into()))
            .unwrap()
            .damage
            .is_none()
    );

    let mut second = child(dir.path(), false);
    let mut second_lines = lines(&mut second);
    let refusal = second_lines
        .find(|line| line.starts_with("refused"))
        .expect("the second writer was let in");
    assert!(refusal.starts_with("refused SESSION_LOCKED"), "{refusal}");
    second_lines.for_each(drop);
    second.wait().unwrap();

    drop(first.stdin.take());
    first.kill().unwrap();
    first.wait().unwrap();
    store.resume("s", 1).unwrap();
}

#[test]
fn two_processes_that_create_one_session_do_not_both_succeed() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let mut children: Vec<Child> = (0..3).map(|_| child(dir.path(), false)).collect();
        // Kept open until the end: a child whose output is closed dies of it.
        let mut outputs: Vec<_> = children.iter_mut().map(lines).collect();
        let verdicts = outputs.iter_mut().filter_map(|lines| {
            lines.find(|l| l.starts_with("refused") || l.starts_with("durable"))
        });
        let writing = verdicts.filter(|line| line.starts_with("durable")).count();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(writing, 1);
        let found = open(dir.path(), false)
            .inspect(&Target::Id("s".into()))
            .unwrap();
        assert_eq!(found.damage, None);
    }
}
