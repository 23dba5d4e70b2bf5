//! Whole-process figures of a release build, each beside a floor that was
//! measured in the same run: the machine's own speed drifts, ratios hold.
//!
//! The floor is `dsh-floor` (`host/plugin/src/bin`), plain wasmtime that loads
//! the same machine code: what no host around those components can go below.

mod dispatch;
mod instructions;
mod models;
mod plugins;
mod projections;
mod provider;
mod rows;
mod start;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{cache, components, process, root};
use provider::Provider;

const RUNS: usize = 21;

/// Builds, measures and prints a table.
pub(crate) fn run(only: &[String]) -> Result<()> {
    if let [one] = only
        && one == "instructions"
    {
        return instructions::run();
    }
    if let [one, arguments @ ..] = only
        && one == "plugins"
    {
        return plugins::run(arguments);
    }
    if let [one, arguments @ ..] = only
        && one == "projections"
    {
        return projections::run(arguments);
    }
    if let [one, arguments @ ..] = only
        && one == "models"
    {
        return models::run(arguments);
    }
    if let [one, arguments @ ..] = only
        && one == "plugins-start"
    {
        return start::run(arguments);
    }
    if let [one, arguments @ ..] = only
        && one == "dispatch"
    {
        return dispatch::run(arguments);
    }
    if let [one, arguments @ ..] = only
        && one == "rows"
    {
        return rows::run(arguments);
    }
    // The dev profile is enough to see that it runs.
    let (flags, only): (Vec<&str>, Vec<&str>) = only
        .iter()
        .map(String::as_str)
        .partition(|word| *word == "--dev");
    let bench = Bench::build(if flags.is_empty() { "release" } else { "dev" })?;
    let wanted = |name: &str| only.is_empty() || only.contains(&name);
    println!("| figure | median | min | max | floor (median) | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    if wanted("version") {
        bench.pair(
            "`--version`",
            |bench| bench.quick(&["--version"]),
            Bench::nothing,
        )?;
    }
    if wanted("dump") {
        let arguments = ["--profile", "headless", "--dump-config"];
        bench.pair(
            "`--dump-config`",
            |bench| bench.quick(&arguments),
            Bench::nothing,
        )?;
    }
    if wanted("first-request") {
        bench.pair(
            "exec to first provider request",
            Bench::first_request,
            Bench::floor,
        )?;
    }
    if wanted("one-tool") {
        bench.pair("whole one-tool run", Bench::one_tool, Bench::floor)?;
        let peak = (0..5)
            .map(|_| bench.peak_kib())
            .collect::<Result<Vec<_>>>()?;
        let [median, min, max] = spread(peak).map(|kib| format!("{:.1} MiB", kib as f64 / 1024.0));
        println!("| peak RSS of the one-tool run | {median} | {min} | {max} | | |");
    }
    if wanted("next-step") {
        bench.next_step()?;
    }
    std::fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

struct Bench {
    dsh: PathBuf,
    floor: PathBuf,
    code: Vec<PathBuf>,
    folder: PathBuf,
    work: PathBuf,
}

impl Bench {
    /// Builds what is measured; `dev` is enough to see that all of it runs.
    fn build(profile: &str) -> Result<Self> {
        let components = components::build()?;
        let mut cargo = process::cargo();
        cargo
            .args(["build", "--quiet", "--locked", "--profile", profile])
            .args(["--package", "dsh", "--package", "dsh-plugin"])
            .args(["--bin", "dsh", "--bin", "dsh-floor"]);
        process::run(&mut cargo)?;
        let folder = if profile == "dev" { "debug" } else { profile };
        Self::new(&components, &cache::target().join(folder))
    }

    fn new(components: &Path, programs: &Path) -> Result<Self> {
        let folder = root().join("target/bench");
        let _ = std::fs::remove_dir_all(&folder);
        let work = folder.join("work");
        std::fs::create_dir_all(&work)?;
        let mut code = Vec::new();
        for entry in std::fs::read_dir(components)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "cwasm")
            {
                code.push(path);
            }
        }
        code.sort();
        Ok(Self {
            dsh: programs.join("dsh"),
            floor: programs.join("dsh-floor"),
            code,
            folder,
            work,
        })
    }

    /// Measures both in turn, so that they meet the same machine.
    fn pair(
        &self,
        name: &str,
        ours: impl Fn(&Self) -> Result<Duration>,
        floor: impl Fn(&Self) -> Result<Duration>,
    ) -> Result<()> {
        // Once without counting: page cache, first use of the profile.
        ours(self)?;
        floor(self)?;
        let (mut mine, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let (one, other) = (ours(self)?, floor(self)?);
            ratios.push(one.as_secs_f64() / other.as_secs_f64());
            mine.push(one);
            floors.push(other);
        }
        let [median, min, max] = spread(mine).map(milliseconds);
        let [below, ..] = spread(floors).map(milliseconds);
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios[ratios.len() / 2];
        println!("| {name} | {median} | {min} | {max} | {below} | {ratio:.2} |");
        Ok(())
    }

    fn command(&self, provider: Option<&Provider>) -> Command {
        self.command_at("home", provider)
    }

    /// `dsh` with this home, a folder of the bench's own.
    fn command_at(&self, home: &str, provider: Option<&Provider>) -> Command {
        let mut command = Command::new(&self.dsh);
        command
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .env("DSH_HOME", self.folder.join(home))
            .env("DEEPSEEK_API_KEY", "sk-bench")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some(provider) = provider {
            command.env("DEEPSEEK_BASE_URL", provider.url());
        }
        command
    }

    fn quick(&self, arguments: &[&str]) -> Result<Duration> {
        timed(self.command(None).args(arguments))
    }

    /// The cheapest process there is.
    fn nothing(&self) -> Result<Duration> {
        timed(&mut Command::new("true"))
    }

    /// Plain wasmtime with the same components.
    fn floor(&self) -> Result<Duration> {
        timed(Command::new(&self.floor).args(&self.code))
    }

    fn first_request(&self) -> Result<Duration> {
        self.first_request_at("home")
    }

    fn first_request_at(&self, home: &str) -> Result<Duration> {
        self.first_request_of(home, &[])
    }

    /// With these words of the launcher's.
    fn first_request_with(&self, words: &[&str]) -> Result<Duration> {
        self.first_request_of("home", words)
    }

    fn first_request_of(&self, home: &str, words: &[&str]) -> Result<Duration> {
        let provider = Provider::text()?;
        let mut command = self.command_at(home, Some(&provider));
        let start = Instant::now();
        process::run(
            command
                .args(["--profile", "headless"])
                .args(words)
                .arg("go"),
        )?;
        let first = provider.first().context("no request came")?;
        Ok(first.duration_since(start))
    }

    fn one_tool(&self) -> Result<Duration> {
        let provider = Provider::one_tool()?;
        let start = Instant::now();
        self.task(&provider)?;
        Ok(start.elapsed())
    }

    /// What a run adds between an answer and the next request, a `read` and its barriers included; the floor is what
    /// one barrier has to wait for, in the same folder.
    fn next_step(&self) -> Result<()> {
        const STEPS: usize = 40;
        std::fs::write(self.work.join("a.txt"), "alpha\n")?;
        let (mut mine, mut floors) = (Vec::new(), Vec::new());
        for run in 0..=5 {
            let provider = Provider::steps(STEPS)?;
            self.task(&provider)?;
            let between = provider.between();
            if between.len() != STEPS {
                bail!("{} steps were seen of {STEPS}", between.len());
            }
            // Once without counting: page cache, first use of the profile.
            if run > 0 {
                mine.extend(between);
                floors.extend(
                    (0..STEPS)
                        .map(|_| self.sync())
                        .collect::<Result<Vec<_>>>()?,
                );
            }
        }
        let [median, min, max] = spread(mine);
        let [below, ..] = spread(floors);
        let ratio = median.as_secs_f64() / below.as_secs_f64();
        let [median, min, max, below] = [median, min, max, below].map(milliseconds);
        println!(
            "| last byte of an answer to first of the next request | {median} | {min} | {max} | {below} | {ratio:.2} |"
        );
        Ok(())
    }

    /// An append to a file of the home and its way to the disk.
    fn sync(&self) -> Result<Duration> {
        let path = self.folder.join("synced");
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        let start = Instant::now();
        file.write_all(&[b'x'; 300])?;
        file.sync_data()?;
        Ok(start.elapsed())
    }

    fn task(&self, provider: &Provider) -> Result<()> {
        process::run(
            self.command(Some(provider))
                .args(["--profile", "headless", "go"]),
        )
    }

    fn peak_kib(&self) -> Result<u64> {
        let provider = Provider::one_tool()?;
        let mut child = self
            .command(Some(&provider))
            .args(["--profile", "headless", "go"])
            .spawn()
            .context("starting dsh")?;
        provider.watch(child.id());
        if !child.wait()?.success() {
            bail!("the one-tool run did not complete");
        }
        provider.peak_kib().context("the run's memory was not seen")
    }
}

fn timed(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    process::run(command.stdout(Stdio::null()))?;
    Ok(start.elapsed())
}

/// Median, least, most.
fn spread<T: Ord + Copy>(mut values: Vec<T>) -> [T; 3] {
    values.sort();
    [
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    ]
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
