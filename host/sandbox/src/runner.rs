//! Which runner confines commands on this machine, found out by trying, and a
//! command wrapped in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bwrap::{self, Confined, HomeView};
use crate::environment::Environment;
use crate::error::Error;
use crate::fence::Fence;
use crate::helper::{self, FAILED, FULL, NOT_CONFINED, PREFIX};
use crate::job::{Ended, Job, Root, run};
use crate::mode::Mode;
use crate::session::{Enforcement, RunnerKind, SandboxConfig};

/// How long a candidate may take to show that it works.
const PROBE: Duration = Duration::from_secs(5);

/// The runner that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runner {
    pub(crate) kind: RunnerKind,
    pub(crate) enforcement: Enforcement,
    /// Bubblewrap's path, or the helper's.
    program: PathBuf,
}

/// A command in its runner.
#[derive(Debug)]
pub(crate) struct Wrapped {
    pub(crate) argv: Vec<OsString>,
    pub(crate) root: Root,
    /// What a denied access looks like in the command's own words; lower case.
    denials: &'static [&'static str],
}

/// What a command needs of its session.
pub(crate) struct Need<'a> {
    pub(crate) fence: &'a Fence,
    pub(crate) mode: Mode,
    pub(crate) cwd: &'a Path,
    pub(crate) spill: Option<&'a Path>,
    pub(crate) session_log: Option<&'a Path>,
}

/// Tries Bubblewrap, then Landlock, or only the one that is forced. Blocks.
pub(crate) fn find(config: &SandboxConfig, env: &Environment) -> Result<Runner, Error> {
    let candidates: &[RunnerKind] = match config.force {
        Some(RunnerKind::Bwrap) => &[RunnerKind::Bwrap],
        Some(RunnerKind::Landlock) => &[RunnerKind::Landlock],
        None => &[RunnerKind::Bwrap, RunnerKind::Landlock],
    };
    let mut reasons = Vec::new();
    for kind in candidates {
        let tried = match kind {
            RunnerKind::Bwrap => probe_bwrap(env),
            RunnerKind::Landlock => probe_landlock(&config.helper, env),
        };
        match tried {
            Ok(runner) => return Ok(runner),
            Err(reason) => reasons.push(format!("{}: {reason}", kind.as_str())),
        }
    }
    let advice = "install bubblewrap, use a kernel with Landlock, or choose danger-full-access";
    Err(Error::SandboxUnavailable(format!(
        "{}; {advice}",
        reasons.join("; ")
    )))
}

fn probe_bwrap(env: &Environment) -> Result<Runner, String> {
    let program = which(OsStr::new("bwrap"), env, Path::new("/")).ok_or("not on PATH")?;
    let nowhere = Fence {
        root: "/nowhere".into(),
        home: "/nowhere".into(),
        temps: Vec::new(),
    };
    let confined = Confined {
        fence: &nowhere,
        mode: Mode::WorkspaceWrite,
        home: None,
        spill: None,
        cwd: Path::new("/"),
        root: is_root(),
    };
    let mut argv = vec![program.clone().into()];
    argv.extend(bwrap::arguments(&confined));
    argv.push("true".into());
    probe(argv, Root::Bwrap, env)?;
    Ok(Runner {
        kind: RunnerKind::Bwrap,
        enforcement: Enforcement::Full,
        program,
    })
}

fn probe_landlock(helper: &Path, env: &Environment) -> Result<Runner, String> {
    let argv = vec![
        helper.into(),
        helper::HELPER_ARGUMENT.into(),
        "landlock".into(),
        "--probe".into(),
    ];
    let said = probe(argv, Root::Supervisor, env)?;
    let enforcement = if said.trim() == FULL {
        Enforcement::Full
    } else {
        Enforcement::Partial
    };
    Ok(Runner {
        kind: RunnerKind::Landlock,
        enforcement,
        program: helper.to_path_buf(),
    })
}

/// What a candidate printed, or why it does not work.
fn probe(argv: Vec<OsString>, root: Root, env: &Environment) -> Result<String, String> {
    let (control, _held) = pipe().map_err(|error| error.to_string())?;
    let job = Job {
        argv,
        root,
        cwd: Path::new("/"),
        env,
        stdin: None,
        timeout: Some(PROBE),
        max_output: 4096,
        sink: None,
        spill: &|_| Err(std::io::Error::other("a probe keeps nothing")),
    };
    let ended = run(job, &control).map_err(|error| error.to_string())?;
    if ended.timed_out {
        return Err(format!("did not answer within {} s", PROBE.as_secs()));
    }
    if ended.code != Some(0) {
        let said = String::from_utf8_lossy(&ended.stderr.0).trim().to_owned();
        return Err(if said.is_empty() {
            format!("ended with {:?}", ended.code)
        } else {
            said
        });
    }
    Ok(String::from_utf8_lossy(&ended.stdout.0).into_owned())
}

/// A pipe's two ends, neither inherited.
pub(crate) fn pipe() -> std::io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// A command that runs unconfined, but not unsupervised.
pub(crate) fn unconfined(helper: &Path, argv: Vec<OsString>) -> Wrapped {
    let argv = helper::supervised(helper, std::process::id(), argv);
    Wrapped {
        argv,
        root: Root::Supervisor,
        denials: &[],
    }
}

impl Runner {
    /// Wraps a command so that its mode holds.
    pub(crate) fn wrap(
        &self,
        helper: &Path,
        need: &Need<'_>,
        command: Vec<OsString>,
    ) -> Result<Wrapped, Error> {
        match self.kind {
            RunnerKind::Bwrap => self.wrap_bwrap(need, command),
            RunnerKind::Landlock => {
                let mut writable = vec![PathBuf::from("/dev/null")];
                writable.extend(landlock_writable(need.fence, need.mode)?);
                let argv = helper::confined(&self.program, &writable, command);
                let argv = helper::supervised(helper, std::process::id(), argv);
                Ok(Wrapped {
                    argv,
                    root: Root::Supervisor,
                    denials: &["permission denied", "eacces"],
                })
            }
        }
    }

    fn wrap_bwrap(&self, need: &Need<'_>, command: Vec<OsString>) -> Result<Wrapped, Error> {
        let home = &need.fence.home;
        if !home.exists() && home.starts_with(&need.fence.root) {
            // Else the command could make it, and what `dsh` later believes.
            use std::os::unix::fs::DirBuilderExt;
            let made = std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(home);
            made.map_err(|error| Error::io(home, error))?;
        }
        let view = HomeView::of(home, need.session_log);
        let confined = Confined {
            fence: need.fence,
            mode: need.mode,
            home: view.as_ref(),
            spill: need.spill,
            cwd: need.cwd,
            root: is_root(),
        };
        let mut argv = vec![self.program.clone().into()];
        argv.extend(bwrap::arguments(&confined));
        argv.extend(command);
        Ok(Wrapped {
            argv,
            root: Root::Bwrap,
            denials: &["read-only file system", "erofs"],
        })
    }
}

/// What Landlock opens. It cannot shut a directory below an open one, so
/// nothing that holds `$DSH_HOME` is opened; where that is the workspace, the
/// command cannot be run.
fn landlock_writable(fence: &Fence, mode: Mode) -> Result<Vec<PathBuf>, Error> {
    if mode != Mode::WorkspaceWrite {
        return Ok(Vec::new());
    }
    if fence.home.starts_with(&fence.root) {
        return Err(Error::SandboxUnavailable(format!(
            "the workspace {} holds dsh's own directory {}, which Landlock cannot keep out of it; \
             install bubblewrap, or work in another directory",
            fence.root.display(),
            fence.home.display()
        )));
    }
    let temp = PathBuf::from("/tmp");
    let mut writable = Vec::new();
    if !fence.home.starts_with(&temp) {
        writable.push(temp);
    }
    if !fence.root.starts_with(&fence.home) {
        writable.push(fence.root.clone());
    }
    Ok(writable)
}

impl Wrapped {
    /// Did the runner fail, so that the command did not run?
    pub(crate) fn failure(&self, program: &str, ended: &Ended) -> Option<Error> {
        let stderr = String::from_utf8_lossy(&ended.stderr.0);
        match self.root {
            Root::Bwrap if ended.code == Some(1) && ended.stdout.0.is_empty() => {
                let reason = stderr.lines().next()?.strip_prefix("bwrap: ")?;
                if reason.starts_with("execvp") {
                    return Some(Error::Start {
                        program: program.to_owned(),
                        reason: reason.to_owned(),
                    });
                }
                Some(Error::SandboxUnavailable(format!("bwrap: {reason}")))
            }
            Root::Supervisor if ended.code == Some(FAILED) => {
                let reason = stderr.lines().find_map(|line| line.strip_prefix(PREFIX))?;
                if reason.starts_with(NOT_CONFINED) {
                    return Some(Error::SandboxUnavailable(reason.to_owned()));
                }
                Some(Error::Start {
                    program: program.to_owned(),
                    reason: reason.to_owned(),
                })
            }
            _ => None,
        }
    }

    /// Was it, by its own words, denied a file access?
    pub(crate) fn denied(&self, ended: &Ended) -> bool {
        if ended.code == Some(0) || self.denials.is_empty() {
            return false;
        }
        let stderr = String::from_utf8_lossy(&ended.stderr.0).to_ascii_lowercase();
        self.denials.iter().any(|denial| stderr.contains(denial))
    }
}

/// Where a program is, on an absolute part of `PATH` or from `cwd`.
pub(crate) fn which(program: &OsStr, env: &Environment, cwd: &Path) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if Path::new(program).components().count() > 1 {
        return Some(cwd.join(program)).filter(runs);
    }
    let path = env.get(OsStr::new("PATH"))?;
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(runs)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landlock_opens_nothing_that_holds_home() {
        let open = |root: &str, home: &str, mode| {
            let fence = Fence {
                root: root.into(),
                home: home.into(),
                temps: Vec::new(),
            };
            landlock_writable(&fence, mode).map(|paths| {
                paths
                    .iter()
                    .map(|path| path.to_str().unwrap().to_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        let write = Mode::WorkspaceWrite;
        assert_eq!(open("/w", "/h", Mode::ReadOnly).unwrap(), "");
        assert_eq!(open("/w", "/h", write).unwrap(), "/tmp /w");
        assert_eq!(open("/w", "/tmp/h", write).unwrap(), "/w");
        assert_eq!(open("/h/w", "/h", write).unwrap(), "/tmp");
        for (root, home) in [("/w", "/w"), ("/w", "/w/.dsh"), ("/", "/h")] {
            let error = open(root, home, write).unwrap_err();
            assert_eq!(error.code(), "SANDBOX_UNAVAILABLE");
            assert!(error.to_string().contains("holds dsh's own directory"));
        }
        assert_eq!(open("/w", "/w/.dsh", Mode::ReadOnly).unwrap(), "");
    }

    #[test]
    fn a_program_is_looked_for_on_absolute_parts_of_path_only() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("bwrap");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let env = |value: &str| Environment::from([("PATH".into(), value.into())]);
        let find = |env: &Environment| which(OsStr::new("bwrap"), env, temp.path());
        assert_eq!(
            find(&env(&format!(".:{}", temp.path().display()))),
            Some(path.clone())
        );
        assert_eq!(find(&env(".:relative:")), None);
        assert_eq!(
            which(OsStr::new("./bwrap"), &env(""), temp.path()),
            Some(temp.path().join("./bwrap"))
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find(&env(temp.path().to_str().unwrap())), None);
    }
}
