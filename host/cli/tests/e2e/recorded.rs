//! Upstream's recorded sessions, played back by `dsh`: see the crate `playback`
//! for what is compared and by which rules it may differ.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_session::Header;
use playback::{
    Door, List, Outcome, Provider, Recording, Stage, Told, compare, played, recordings,
};

use crate::prober;
use crate::support::{Scratch, root};

/// Every recording that lacks nothing, and that one command can play.
#[test]
fn every_recording_that_lacks_nothing_comes_out_equal() {
    let Some(recordings) = recordings(&root()) else {
        println!("SKIPPED: no recorded sessions here; set DSH_SHARED to a directory that has them");
        return;
    };
    let player = prober::named(&root().join("host/plugin"), "player");
    let all: Vec<(&Recording, Stage)> = played(&recordings, &player.to_string_lossy()).collect();
    assert!(all.len() >= 40, "{} lack nothing", all.len());
    let of_a_command = all.iter().filter(|(_, stage)| stage.door == Door::Command);
    let of_a_command: Vec<_> = of_a_command.collect();
    let outcomes = side_by_side(&of_a_command, |(recording, stage)| play(recording, stage));
    let mut list = List::new(&root(), &recordings);
    for ((recording, _), outcome) in of_a_command.iter().zip(outcomes) {
        list.met(recording, outcome);
    }
    list.settle();
}

fn side_by_side<T: Sync, U: Send>(all: &[T], work: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, U)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(at) else { return };
                    let made = work(one);
                    done.lock().unwrap().push((at, made));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

fn play(recording: &Recording, stage: &Stage) -> Result<Outcome, String> {
    let mock = Provider::of(recording)?.serve();
    let scratch = Scratch::new();
    for (path, text) in &stage.files {
        scratch.write(path, text);
    }
    let patch = scratch.write_beside("stage.yml", &stage.patch.to_string());
    let mut dsh = scratch.dsh().provider(&mock).headless().patch(patch);
    dsh = dsh.args(["--model", &stage.model, "--permission", stage.permission]);
    if let Some(header) = stage.stored.first() {
        let mut header = Header::parse_line(header).map_err(|error| error.to_string())?;
        header.cwd = Some(scratch.work().to_string_lossy().into());
        header.id = "stored".into();
        scratch.shelve(&header, &stage.stored[1..]);
        dsh = dsh.args(["--resume", "stored"]);
    }
    let ended = dsh.args(["--", &stage.prompts[0].text]).run();
    let record = scratch
        .record_so_far()
        .ok_or_else(|| format!("no log: {ended:?}"))?;
    let ours: Vec<Told> = record
        .events()
        .iter()
        .map(|event| Told::of(event))
        .collect();
    let outcome = compare(recording, &ours);
    if !outcome.differences.is_empty() && !ended.stderr.is_empty() {
        println!("{}: {}", recording.case, ended.stderr);
    }
    Ok(outcome)
}
