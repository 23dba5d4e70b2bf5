//! The program as its own helper: what runs between `dsh` and a command.
//!
//! `supervise PID [--env NAME=VALUE]… -- ARGV` makes a tree of what would be loose processes: it is
//! a subreaper, so that every orphan comes to it, and when the command ends, or
//! process PID does, it kills what is left before it ends the same way. The
//! command gets a process group of its own, so that `kill 0` in a script does
//! not reach the supervisor.
//!
//! `landlock [--full] [--ro PATH]… [--rw PATH]… [--env NAME=VALUE]… -- ARGV` confines itself and becomes the
//! command (spec/cli.md §5): what is not granted is denied, and where the
//! kernel can (ABI 6), signals to processes outside, the supervisor first among
//! them, unless `--full`. Root gives up what would reach around it. `landlock --probe` says whether this kernel can.
//!
//! What neither can do is hide a file below a directory that is readable: under
//! Landlock alone a command can read what the user can.
//!
//! A failure of the helper itself is exit status 125 together with a line that
//! begins with [`PREFIX`]; a command's own 125 has no such line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, pidfd_open, wait,
};

use crate::capabilities::Capabilities;
use crate::environment::Environment;
use crate::tree;

/// The first argument that makes this program a sandbox helper.
pub const HELPER_ARGUMENT: &str = "__sandbox";

/// How the helper's own complaints begin.
pub(crate) const PREFIX: &str = "dsh-sandbox: ";

/// What it says when the kernel does not confine it.
pub(crate) const NOT_CONFINED: &str = "Landlock does not confine";

/// Exit status of a helper that ran no command.
pub(crate) const FAILED: i32 = 125;

/// What the probe prints when nothing is missing.
pub(crate) const FULL: &str = "landlock: fully enforced";

/// What it prints when a right that upstream's helper handles is missing.
pub(crate) const PARTIAL: &str = "landlock: partially enforced (older ABI)";

/// As upstream's helper; what came later governs no file content.
const HANDLED: ABI = ABI::V5;

/// Runs a helper. `args` are the process's arguments after [`HELPER_ARGUMENT`].
/// Call it first of all in `main`, while the process has one thread.
pub fn landlock_exec_main(args: Vec<OsString>) -> ! {
    let mut args = args.into_iter();
    let role = args.next().unwrap_or_default();
    let outcome = match role.to_str() {
        Some("supervise") => supervise(args),
        Some("landlock") => confine(args),
        _ => Err(format!("unknown helper {}", role.display())),
    };
    let Err(complaint) = outcome;
    eprintln!("{PREFIX}{complaint}");
    exit(FAILED)
}

enum Never {}

/// Arguments that run `argv` under supervision of the process `parent`. `env`
/// is the command's alone.
pub(crate) fn supervised(
    helper: &Path,
    parent: u32,
    env: &Environment,
    argv: Vec<OsString>,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![helper.into(), HELPER_ARGUMENT.into(), "supervise".into()];
    args.push(parent.to_string().into());
    args.extend(variables(env));
    args.push("--".into());
    args.extend(argv);
    args
}

fn variables(env: &Environment) -> impl Iterator<Item = OsString> {
    env.iter().flat_map(|(name, value)| {
        let mut variable = name.clone();
        variable.push("=");
        variable.push(value);
        [OsString::from("--env"), variable]
    })
}

/// As it was written by [`variables`].
fn variable(argument: Option<OsString>) -> Result<(OsString, OsString), String> {
    let argument = argument.ok_or("--env without a variable")?;
    let bytes = argument.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=');
    let at = at.ok_or("--env needs NAME=VALUE")?;
    let part = |part: &[u8]| OsStr::from_bytes(part).to_owned();
    Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
}

/// Arguments that run `argv` with all readable and only `writable` writable;
/// `full` leaves signals free.
pub(crate) fn confined(
    helper: &Path,
    full: bool,
    writable: &[PathBuf],
    env: &Environment,
    argv: Vec<OsString>,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![helper.into(), HELPER_ARGUMENT.into(), "landlock".into()];
    if full {
        args.push("--full".into());
    }
    args.extend(["--ro".into(), "/".into()]);
    for path in writable {
        args.extend(["--rw".into(), path.into()]);
    }
    args.extend(variables(env));
    args.push("--".into());
    args.extend(argv);
    args
}

fn confine(mut args: impl Iterator<Item = OsString>) -> Result<Never, String> {
    let mut readable = Vec::new();
    let mut writable = Vec::new();
    let mut env = Vec::new();
    let mut full = false;
    loop {
        let option = args.next().ok_or("no command after --")?;
        match option.to_str() {
            Some("--probe") => {
                let status = restrict(&[PathBuf::from("/")], &[], false)?;
                println!(
                    "{}",
                    if status == RulesetStatus::FullyEnforced {
                        FULL
                    } else {
                        PARTIAL
                    }
                );
                exit(0)
            }
            Some("--") => break,
            Some("--ro") => readable.push(PathBuf::from(args.next().ok_or("--ro without a path")?)),
            Some("--rw") => writable.push(PathBuf::from(args.next().ok_or("--rw without a path")?)),
            Some("--env") => env.push(variable(args.next())?),
            Some("--full") => full = true,
            _ => return Err(format!("unknown option {}", option.display())),
        }
    }
    let program = args.next().ok_or("no command after --")?;
    restrict(&readable, &writable, !full)?;
    Capabilities::give_up_others(full)
        .map_err(|errno| format!("{NOT_CONFINED}: cannot give up capabilities: {errno}"))?;
    let error = Command::new(&program).args(args).envs(env).exec();
    Err(cannot_run(&program, &error))
}

fn cannot_run(program: &OsStr, error: &std::io::Error) -> String {
    format!("cannot run {}: {error}", program.display())
}

/// Confines this thread, and what it becomes.
fn restrict(
    readable: &[PathBuf],
    writable: &[PathBuf],
    scoped: bool,
) -> Result<RulesetStatus, String> {
    let failed = |error: landlock::RulesetError| format!("{NOT_CONFINED}: {error}");
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(HANDLED))
        .map_err(failed)?;
    if scoped {
        rules = rules.scope(Scope::Signal).map_err(failed)?;
    }
    let status = rules
        .create()
        .map_err(failed)?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(HANDLED)))
        .map_err(failed)?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(HANDLED)))
        .map_err(failed)?
        .restrict_self()
        .map_err(failed)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(format!("{NOT_CONFINED}: this kernel has none of it")),
        status => Ok(status),
    }
}

fn supervise(mut args: impl Iterator<Item = OsString>) -> Result<Never, String> {
    let parent = args
        .next()
        .and_then(|pid| pid.to_str()?.parse().ok())
        .and_then(Pid::from_raw);
    let parent = parent.ok_or("supervise needs the parent's number")?;
    let mut env = Vec::new();
    loop {
        match args.next().as_deref().and_then(OsStr::to_str) {
            Some("--env") => env.push(variable(args.next())?),
            Some("--") => break,
            _ => return Err("supervise PID [--env NAME=VALUE]… -- COMMAND".to_owned()),
        }
    }
    let program = args.next().ok_or("no command after --")?;

    // Away from the terminal: neither its signals nor its input are the command's.
    let _ = rustix::process::setsid();
    let me = getpid();
    rustix::process::set_child_subreaper(Some(me))
        .map_err(|errno| format!("cannot collect orphans: {errno}"))?;
    // Held before it is looked at, so that it cannot become another process between.
    let watched = pidfd_open(parent, PidfdFlags::empty());
    if getppid() != Some(parent) {
        return Err("the process that asked for the command is gone".to_owned());
    }
    let watched = watched.map_err(|errno| format!("cannot watch the parent: {errno}"))?;

    let spawned = Command::new(&program)
        .args(args)
        .envs(env)
        .process_group(0)
        .spawn();
    let child = spawned.map_err(|error| cannot_run(&program, &error))?;
    let child = i32::try_from(child.id()).unwrap_or(0);
    if let Ok(null) = std::fs::File::open("/dev/null") {
        // Who writes to the command shall notice when the command stops reading.
        let _ = rustix::stdio::dup2_stdin(null);
    }
    std::thread::spawn(move || {
        let mut fds = [PollFd::new(&watched, PollFlags::IN)];
        while poll(&mut fds, None) == Err(Errno::INTR) {}
        // Nobody is left to tell: the main thread reaps and ends.
        kill_all(me);
    });

    let mut status = None;
    while status.is_none() {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, ended))) if pid.as_raw_nonzero().get() == child => status = Some(ended),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    // What is left is killed, and what is forked meanwhile in the next round.
    loop {
        kill_all(me);
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    end_as(status)
}

fn kill_all(below: Pid) {
    for member in tree::descendants(below.as_raw_nonzero().get()) {
        tree::signal(member, Signal::KILL);
    }
}

/// Ends this process as the command ended.
fn end_as(status: Option<WaitStatus>) -> ! {
    let Some(status) = status else { exit(FAILED) };
    if let Some(number) = status.terminating_signal() {
        // The command's own dump, if any, is enough.
        let none = rustix::process::Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = rustix::process::kill_process(getpid(), signal);
        }
        // One that this process ignores.
        exit(128 + number)
    }
    exit(status.exit_status().unwrap_or(FAILED))
}
