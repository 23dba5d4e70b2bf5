//! The list of all recordings, generated from them and from what was played.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::needs::lacks;
use crate::recording::Recording;
use crate::rules::{Outcome, RULES};
use crate::stage::{Stage, stage};

/// Where it is, in a checkout.
const PLACE: &str = "tests/conformance/recorded.toml";

/// The recordings that lack nothing, with how each is put on.
pub fn played<'a>(
    recordings: &'a [Recording],
    player: &str,
) -> impl Iterator<Item = (&'a Recording, Stage)> {
    let playable = move |(at, recording): &(usize, &Recording)| {
        lacks(recording, &recordings[..*at]).is_empty()
    };
    let staged =
        move |(_, recording): (usize, &'a Recording)| (recording, stage(recording, player));
    recordings.iter().enumerate().filter(playable).map(staged)
}

/// The list under test. Those who play only a part of the recordings leave the
/// lines of the others as they are committed.
#[derive(Debug)]
pub struct List<'a> {
    path: PathBuf,
    recordings: &'a [Recording],
    met: Vec<(&'a str, Vec<&'static str>)>,
    failed: usize,
}

impl<'a> List<'a> {
    /// With nothing played.
    #[must_use]
    pub fn new(checkout: &Path, recordings: &'a [Recording]) -> Self {
        Self {
            path: checkout.join(PLACE),
            recordings,
            met: Vec::new(),
            failed: 0,
        }
    }

    /// Takes what became of one; says on stdout where it differs.
    pub fn met(&mut self, recording: &'a Recording, outcome: Result<Outcome, String>) {
        match outcome {
            Ok(outcome) => {
                for difference in outcome.differences.iter().take(4) {
                    println!(
                        "{}: {}: {}",
                        recording.case, difference.seq, difference.what
                    );
                }
                self.failed += usize::from(!outcome.differences.is_empty());
                self.met.push((&recording.case, outcome.rules));
            }
            Err(why) => {
                println!("{}: {why}", recording.case);
                self.failed += 1;
            }
        }
    }

    /// Nothing differed, and the committed list is what the recordings and this build make of it.
    ///
    /// # Panics
    /// When that is not so.
    pub fn settle(self) {
        println!("{} played, {} of them differ", self.met.len(), self.failed);
        assert_eq!(self.failed, 0, "some differ; stdout says which and where");
        let committed = std::fs::read_to_string(&self.path).unwrap_or_default();
        let text = self.text(&committed);
        let unmet = RULES
            .iter()
            .find(|rule| !text.contains(&format!("{:?}", rule.name)));
        assert!(unmet.is_none(), "no recording meets the rule {unmet:?}");
        if std::env::var_os("DSH_WRITE").is_some() {
            std::fs::write(&self.path, text).expect("the list can be written");
            return;
        }
        let path = self.path.display();
        assert!(
            committed == text,
            "{path} is stale; run this test with DSH_WRITE=1 to write it anew"
        );
    }

    fn text(&self, committed: &str) -> String {
        let mut out = String::from(
            "# Upstream's recorded sessions: which are played back, and what each of the others lacks.\n\
             # Generated from the recordings, where they are at hand: run the tests `recorded` and\n\
             # `played_tests` of the crate `dsh` with DSH_WRITE=1.\n\
             \n# What may differ, and why.\n[rules]\n",
        );
        for rule in &RULES {
            let _ = writeln!(out, "{} = {:?}", rule.name, rule.why);
        }
        let all = self.recordings.iter().enumerate();
        let all = all.map(|(at, recording)| (recording, lacks(recording, &self.recordings[..at])));
        let (played, others): (Vec<_>, Vec<_>) = all.partition(|(_, lacks)| lacks.is_empty());
        let of = self.recordings.len();
        let _ = writeln!(
            out,
            "\n# {} of {of} sessions, and the rules that each of them meets.\n[played]",
            played.len()
        );
        for (recording, _) in played {
            let begin = format!("{} = ", recording.case);
            let met = self.met.iter().find(|(case, _)| *case == recording.case);
            match met {
                Some((_, met)) => drop(writeln!(out, "{begin}{met:?}")),
                None => {
                    let line = committed.lines().find(|line| line.starts_with(&begin));
                    let _ = writeln!(out, "{}", line.unwrap_or(&begin));
                }
            }
        }
        out.push_str("\n# The others, and what each lacks.\n[lacks]\n");
        for (recording, lacks) in others {
            let _ = writeln!(out, "{} = {lacks:?}", recording.case);
        }
        out
    }
}
