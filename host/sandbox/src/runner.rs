//! Which runner confines commands on this machine, found out by trying, and a
//! command wrapped in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;

use crate::bwrap::{self, Confined, HomeView};
use crate::capabilities::Capabilities;
use crate::environment::Environment;
use crate::error::Error;
use crate::fence::Fence;
use crate::helper::{self, FAILED, FULL, NOT_CONFINED, PREFIX};
use crate::job::{Ended, Job, Root, run};
use crate::mode::Mode;
use crate::session::{Enforcement, RunnerKind, SandboxConfig};

/// Bubblewrap's program.
const BWRAP: &str = "bwrap";

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
    /// What the loader takes from the command's environment.
    pub(crate) env: &'a Environment,
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
    let program = find_bwrap(env)?;
    let nowhere = Fence {
        root: "/nowhere".into(),
        home: "/nowhere".into(),
        ..Fence::default()
    };
    let confined = Confined {
        fence: &nowhere,
        mode: Mode::WorkspaceWrite,
        home: None,
        spill: None,
        cwd: Path::new("/"),
        env: &Environment::new(),
        root: is_root().then(Capabilities::own),
    };
    let mut argv = vec![program.clone().into()];
    argv.extend(bwrap::arguments(&confined));
    argv.extend(["cat", "/proc/self/status"].map(OsString::from));
    let status = probe(argv, Root::Bwrap, env)?;
    if Capabilities::of(&status).is_none_or(Capabilities::exceed) {
        return Err(format!(
            "{} leaves a command more capabilities than it was told to",
            program.display()
        ));
    }
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

/// Bubblewrap's canonical path, of the first on `PATH` that a confined command
/// cannot have put there or changed: a project's own `bin` is often on `PATH`.
fn find_bwrap(env: &Environment) -> Result<PathBuf, String> {
    let found = candidates(OsStr::new(BWRAP), env);
    let found: Vec<_> = found
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let Some(first) = found.first() else {
        return Err("not on PATH".to_owned());
    };
    let own = found.iter().find(|path| !is_ours_to_change(path));
    own.cloned().ok_or_else(|| {
        format!(
            "{} is not used, because a command that runs as this user could replace it; \
             install the system's own",
            first.display()
        )
    })
}

/// May this user replace what is at a canonical path? Root may everything, and
/// trusts what only root may.
fn is_ours_to_change(path: &Path) -> bool {
    let mut parts = path.ancestors();
    if !is_root() {
        let writes = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
        return parts.any(writes);
    }
    parts.any(|path| {
        path.metadata().map_or(true, |meta| {
            let (mode, sticky) = (meta.permissions().mode(), 0o1000);
            meta.uid() != 0 || (mode & 0o022 != 0 && mode & sticky == 0)
        })
    })
}

/// A command that runs unconfined, but not unsupervised.
pub(crate) fn unconfined(helper: &Path, env: &Environment, argv: Vec<OsString>) -> Wrapped {
    let argv = helper::supervised(helper, std::process::id(), env, argv);
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
        if need.mode != Mode::ReadOnly && !need.fence.home.exists() {
            make_home(need)?;
        }
        match self.kind {
            RunnerKind::Bwrap => self.wrap_bwrap(helper, need, command),
            RunnerKind::Landlock => {
                let mut writable = vec![PathBuf::from("/dev/null")];
                writable.extend(landlock_writable(need.fence, need.mode, is_root())?);
                let full = need.mode == Mode::DangerFullAccess;
                let argv = helper::confined(&self.program, full, &writable, need.env, command);
                let argv =
                    helper::supervised(helper, std::process::id(), &Environment::new(), argv);
                // Of full access, hardly a refusal is the runner's.
                let denials: &[&str] = match need.mode {
                    Mode::DangerFullAccess => &[],
                    _ => &["permission denied", "eacces"],
                };
                Ok(Wrapped {
                    argv,
                    root: Root::Supervisor,
                    denials,
                })
            }
        }
    }

    fn wrap_bwrap(
        &self,
        helper: &Path,
        need: &Need<'_>,
        command: Vec<OsString>,
    ) -> Result<Wrapped, Error> {
        let view = HomeView::of(&need.fence.home, need.session_log);
        let confined = Confined {
            fence: need.fence,
            mode: need.mode,
            home: view.as_ref(),
            spill: need.spill,
            cwd: need.cwd,
            env: need.env,
            root: is_root().then(Capabilities::own),
        };
        let root = &need.fence.root;
        let mut open = need.fence.temps.iter().chain([root]);
        // A workspace that is everything has it in any case.
        if root.parent().is_some() && open.any(|dir| self.program.starts_with(dir)) {
            return Err(Error::SandboxUnavailable(format!(
                "{} is in the workspace or a temporary directory, where a command may replace it; \
                 take it off PATH, or work in another directory",
                self.program.display()
            )));
        }
        if let Some(link) = replaceable_link(need.fence, need.mode) {
            return Err(link_refused(link));
        }
        let mut argv = vec![self.program.clone().into()];
        argv.extend(bwrap::arguments(&confined));
        argv.extend(command);
        let mut root = Root::Bwrap;
        if need.mode == Mode::DangerFullAccess {
            argv = helper::supervised(helper, std::process::id(), &Environment::new(), argv);
            root = Root::Supervisor;
        }
        Ok(Wrapped {
            argv,
            root,
            denials: &["read-only file system", "erofs"],
        })
    }
}

/// Makes `$DSH_HOME` where a command could make it otherwise, and with it what
/// `dsh` later believes.
fn make_home(need: &Need<'_>) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    let home = &need.fence.home;
    if need.mode == Mode::WorkspaceWrite && !home.starts_with(&need.fence.root) {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home);
    made.map_err(|error| Error::io(home, error))
}

/// A link on the way to `$DSH_HOME` that a command could replace by its own:
/// no mount can stand on a link.
pub(crate) fn replaceable_link(fence: &Fence, mode: Mode) -> Option<&Path> {
    let mut links = fence.links.iter().map(PathBuf::as_path);
    match mode {
        Mode::ReadOnly => None,
        Mode::WorkspaceWrite => links.find(|link| link.starts_with(&fence.root)),
        Mode::DangerFullAccess => links.find(|link| {
            let dir = link.parent().unwrap_or(link);
            rustix::fs::access(dir, Access::WRITE_OK).is_ok()
        }),
    }
}

fn link_refused(link: &Path) -> Error {
    Error::SandboxUnavailable(format!(
        "dsh's own directory is reached through the link {}, which the command could replace; \
         set DSH_HOME to where the link leads",
        link.display()
    ))
}

/// What Landlock opens. It cannot shut a directory below an open one, so
/// nothing that holds `$DSH_HOME` is opened; where that is the workspace, the
/// command cannot be run. Under full access, whatever else there is by now is
/// opened one by one, so that in a directory that holds `$DSH_HOME` itself
/// nothing new is made.
fn landlock_writable(fence: &Fence, mode: Mode, root: bool) -> Result<Vec<PathBuf>, Error> {
    match mode {
        Mode::ReadOnly => return Ok(Vec::new()),
        Mode::WorkspaceWrite => {}
        Mode::DangerFullAccess => {
            let mut kept: Vec<&Path> = fence.kept().collect();
            if root {
                // Else root has the kernel start programs outside.
                kept.extend([Path::new("/proc"), Path::new("/sys")]);
            }
            return Ok(all_but(Path::new("/"), &kept));
        }
    }
    if let Some(kept) = fence.kept().find(|kept| kept.starts_with(&fence.root)) {
        return Err(Error::SandboxUnavailable(format!(
            "the workspace {} holds dsh's own directory, or what leads to it ({}), which Landlock \
             cannot keep out of it; install bubblewrap, or work in another directory",
            fence.root.display(),
            kept.display()
        )));
    }
    let mut writable = Vec::new();
    if let Some(temp) = fence.temps.first()
        && !fence.kept().any(|kept| kept.starts_with(temp))
    {
        writable.push(temp.clone());
    }
    if fence.may_write(&fence.root, mode).is_ok() {
        writable.push(fence.root.clone());
    }
    Ok(writable)
}

/// The highest paths that hold none of `kept` and are not in one. A link is
/// none of them: where it leads is.
fn all_but(dir: &Path, kept: &[&Path]) -> Vec<PathBuf> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if link || kept.contains(&path.as_path()) {
            continue;
        }
        if kept.iter().any(|kept| kept.starts_with(&path)) {
            open.extend(all_but(&path, kept));
        } else {
            open.push(path);
        }
    }
    open.sort();
    open
}

impl Wrapped {
    /// Did the runner fail, so that the command did not run?
    pub(crate) fn failure(&self, program: &str, ended: &Ended) -> Option<Error> {
        let stderr = String::from_utf8_lossy(&ended.stderr.0);
        if ended.code == Some(1)
            && ended.stdout.0.is_empty()
            && self.argv.iter().any(|arg| Path::new(arg).ends_with(BWRAP))
            && let Some(reason) = stderr.lines().next()?.strip_prefix("bwrap: ")
        {
            if reason.starts_with("execvp") {
                return Some(Error::Start {
                    program: program.to_owned(),
                    reason: reason.to_owned(),
                });
            }
            return Some(Error::SandboxUnavailable(format!("bwrap: {reason}")));
        }
        if self.root != Root::Supervisor || ended.code != Some(FAILED) {
            return None;
        }
        let reason = stderr.lines().find_map(|line| line.strip_prefix(PREFIX))?;
        if reason.starts_with(NOT_CONFINED) {
            return Some(Error::SandboxUnavailable(reason.to_owned()));
        }
        Some(Error::Start {
            program: program.to_owned(),
            reason: reason.to_owned(),
        })
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
    if Path::new(program).components().count() > 1 {
        return Some(cwd.join(program)).filter(|path| runs(path));
    }
    candidates(program, env).into_iter().next()
}

/// All programs of this name on absolute parts of `PATH`.
fn candidates(program: &OsStr, env: &Environment) -> Vec<PathBuf> {
    let Some(path) = env.get(OsStr::new("PATH")) else {
        return Vec::new();
    };
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .filter(|path| runs(path))
        .collect()
}

fn runs(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(root: &str, home: &str) -> Fence {
        Fence {
            root: root.into(),
            home: home.into(),
            temps: vec!["/tmp".into()],
            ..Fence::default()
        }
    }

    #[test]
    fn landlock_opens_nothing_that_holds_home() {
        let open_in = |fence: &Fence, mode| {
            landlock_writable(fence, mode, false).map(|paths| {
                paths
                    .iter()
                    .map(|path| path.to_str().unwrap().to_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        let open = |root: &str, home: &str, mode| open_in(&fence(root, home), mode);
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

        let mut seen = fence("/w", "/h");
        seen.aliases = vec![crate::names::Alias {
            path: "/w/mnt".into(),
            inside: PathBuf::new(),
        }];
        assert!(open_in(&seen, write).is_err());
        seen.root = "/w/mnt/skills".into();
        assert_eq!(open_in(&seen, write).unwrap(), "/tmp");
        let mut linked = fence("/w", "/h");
        linked.links = vec!["/w/.dsh".into()];
        assert!(open_in(&linked, write).is_err());
    }

    #[test]
    fn full_access_under_landlock_opens_everything_beside_the_way_to_home() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for dir in ["u/.dsh/sessions", "u/work/deep", "v", "links"] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        std::fs::write(base.join("u/file"), "").unwrap();
        std::os::unix::fs::symlink("../u/.dsh", base.join("links/dsh")).unwrap();
        let kept = [base.join("u/.dsh"), base.join("links/dsh")];
        let kept: Vec<_> = kept.iter().map(PathBuf::as_path).collect();
        let open = all_but(&base, &kept);
        assert_eq!(open, ["u/file", "u/work", "v"].map(|path| base.join(path)));

        let home = base.join("u/.dsh");
        let whole = landlock_writable(
            &fence("/w", home.to_str().unwrap()),
            Mode::DangerFullAccess,
            true,
        )
        .unwrap();
        assert!(whole.contains(&"/usr".into()) && whole.contains(&base.join("u/work")));
        assert!(!whole.iter().any(|path| home.starts_with(path)));
        assert!(!whole.contains(&"/sys".into()));
    }

    #[test]
    fn a_link_to_home_that_a_command_could_replace_is_found() {
        let temp = tempfile::tempdir().unwrap();
        let mut linked = fence("/w", "/h");
        linked.links = vec!["/w/.dsh".into(), temp.path().join("link")];
        let link = |mode| replaceable_link(&linked, mode).map(Path::to_owned);
        assert_eq!(link(Mode::ReadOnly), None);
        assert_eq!(link(Mode::WorkspaceWrite), Some("/w/.dsh".into()));
        assert_eq!(link(Mode::DangerFullAccess), Some(temp.path().join("link")));
        linked.root = "/other".into();
        let link = replaceable_link(&linked, Mode::WorkspaceWrite);
        assert_eq!(link, None);
    }

    #[test]
    fn a_bwrap_that_others_could_have_put_there_is_passed_over() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("bwrap");
        std::fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let env = Environment::from([("PATH".into(), temp.path().into())]);
        let error = find_bwrap(&env).unwrap_err();
        assert!(error.contains("could replace it"), "{error}");
        assert_eq!(find_bwrap(&Environment::new()).unwrap_err(), "not on PATH");
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
