//! `dsh-torture states SEED COUNT`, `dsh-torture states SEED SCRIPTS ONE_IN`, `dsh-torture rivals SEED APPENDS`: see the
//! library. `dsh-torture child ROOT BATCH` is one rival.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dsh_torture::script::{self, Dose};
use dsh_torture::writers;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("dsh-torture: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> Result<u64> {
        let text = arguments.get(at).context("an argument is missing")?;
        text.parse()
            .with_context(|| format!("{text:?} is no number"))
    };
    match arguments.first().map(String::as_str) {
        Some("states") => {
            let start = Instant::now();
            let tally = if arguments.len() > 3 {
                script::run_wide(
                    number(1)?,
                    Dose::Thin {
                        scripts: number(2)?,
                        one_in: usize::try_from(number(3)?)?,
                    },
                )
            } else {
                script::run_wide(
                    number(1)?,
                    Dose::Every {
                        distinct: number(2)?,
                    },
                )
            };
            println!(
                "crash states: {} looked at, {} distinct, {} scripts, {} failures, {:.1} s",
                tally.states,
                tally.distinct,
                tally.scripts,
                tally.failures.len(),
                start.elapsed().as_secs_f64()
            );
            tally
                .failures
                .iter()
                .for_each(|failure| println!("  {failure}"));
            Ok(ExitCode::from(u8::from(!tally.failures.is_empty())))
        }
        Some("rivals") => {
            let (seed, appends) = (number(1)?, number(2)?);
            let program = std::env::current_exe()?;
            let start = Instant::now();
            let mut whole = writers::Rivalry::default();
            let counts = [2, 3, 5, 8];
            for round in 0.. {
                let left = appends.saturating_sub(whole.appends);
                if left == 0 {
                    break;
                }
                // Each opening reads the whole log, so it is begun anew before it is long.
                let share = left.min(20_000);
                let rivals = counts[usize::try_from(round % 4)?];
                let limit = Duration::from_secs(600);
                let done = writers::fight(&program, rivals, share, 50, seed + round, limit)?;
                whole.add(&done);
            }
            println!("{whole:?}, 2 to 8 rivals at a time, 0 duplicates");
            println!("rivals: {:.1} s", start.elapsed().as_secs_f64());
            Ok(ExitCode::SUCCESS)
        }
        Some("child") => {
            let root = arguments.get(1).context("the root is missing")?;
            writers::child(root.as_ref(), usize::try_from(number(2)?)?)?;
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("there is no {other:?}; try `states SEED COUNT` or `rivals SEED APPENDS`"),
    }
}
