//! The arguments that confine a command with Bubblewrap.
//!
//! Upstream's set (spec/cli.md §5), and on top of it: a session of its own, so
//! that a command cannot type into the terminal; no capability that undoes a
//! mount when `dsh` runs as root; and `$DSH_HOME` as a read-only shell in which
//! only what is no secret is shown again. The shell is empty rather than
//! masked, so that a secret that is written while the command runs does not
//! appear in it. Of the sessions, which each have a lock, only the command's
//! own is shown.
//!
//! Full access is everything as it is, devices, processes and the network
//! included, with the same shell over `$DSH_HOME`. What would reach around it is
//! shut: other processes' views of the file system, which a user namespace of
//! the command's own keeps it from. Root would not be root in one, so it gets a
//! PID namespace instead, and loses `capabilities` and the files by which the
//! kernel is told to start programs. What is started is collected by the
//! supervisor of `helper`, since there need be no PID namespace to end.
//!
//! A mount holds a directory where it is, but not what that directory is in: a
//! directory that holds `$DSH_HOME` could be moved away, and another made in
//! its place. So where such directories are writable, each is a mount too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::capabilities::Capabilities;
use crate::environment::Environment;
use crate::fence::{Fence, canonical, is_secret};
use crate::mode::Mode;

/// Where sessions are, in `$DSH_HOME`.
const SESSIONS: &str = "sessions";

/// Where profiles are, and what upstream's launcher keeps beside them.
const PROFILES: &str = "profiles";
const MODULES: &str = "node_modules";

/// Where packages are, and what plugins keep.
const PLUGINS: &str = "plugins";

/// What a command sees of `$DSH_HOME`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HomeView {
    /// Directories that are shells as well.
    pub(crate) shells: Vec<PathBuf>,
    /// Entries of it that are shown.
    pub(crate) shown: Vec<PathBuf>,
    /// Files of the session's own that are not.
    pub(crate) masked: Vec<PathBuf>,
}

impl HomeView {
    /// Looks at `$DSH_HOME`; none where there is nothing to see. `session` is
    /// the session's own log, beside which its lock may be.
    pub(crate) fn of(home: &Path, session: Option<&Path>) -> Option<Self> {
        let mut view = HomeView::default();
        for path in entries(home)? {
            if path.ends_with(PROFILES) {
                // Each has a lock file, which `dsh` replaces: shells as well.
                for profile in entries(&path).unwrap_or_default() {
                    match entries(&profile) {
                        Some(files) if !profile.ends_with(MODULES) => {
                            view.shells.push(profile);
                            view.shown.extend(files);
                        }
                        _ => view.shown.push(profile),
                    }
                }
                view.shells.push(path);
            } else if path.ends_with(PLUGINS) {
                // Beside the packages is what plugins keep.
                view.shown.extend(entries(&path).unwrap_or_default());
                view.shells.push(path);
            } else if !path.ends_with(SESSIONS) {
                view.shown.push(path);
            }
        }
        let secret = |path: &Path| path.strip_prefix(home).is_ok_and(is_secret);
        view.shown.retain(|path| !secret(path));
        let own = session.and_then(Path::parent).map(canonical);
        if let Some(own) = own.filter(|dir| dir.starts_with(home.join(SESSIONS))) {
            let files = entries(&own).unwrap_or_default().into_iter();
            view.masked = files
                .filter(|path| path.is_file() && secret(path))
                .collect();
            view.shown.push(own);
        }
        view.shells.sort();
        view.shown.sort();
        view.masked.sort();
        Some(view)
    }
}

fn entries(dir: &Path) -> Option<Vec<PathBuf>> {
    Some(
        std::fs::read_dir(dir)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .collect(),
    )
}

/// What differs from command to command.
#[derive(Debug)]
pub(crate) struct Confined<'a> {
    pub(crate) fence: &'a Fence,
    pub(crate) mode: Mode,
    pub(crate) home: Option<&'a HomeView>,
    /// A directory below `/tmp` that stays visible.
    pub(crate) spill: Option<&'a Path>,
    pub(crate) cwd: &'a Path,
    /// What the loader takes from the command's environment.
    pub(crate) env: &'a Environment,
    /// Bubblewrap runs as root, which has these, and would keep them.
    pub(crate) root: Option<Capabilities>,
}

impl Confined<'_> {
    /// The directory below which, and in which, a command may write, `/tmp` aside.
    fn opened(&self) -> Option<&Path> {
        match self.mode {
            Mode::ReadOnly => None,
            Mode::WorkspaceWrite if self.fence.root.starts_with(&self.fence.home) => None,
            Mode::WorkspaceWrite => Some(&self.fence.root),
            Mode::DangerFullAccess => Some(Path::new("/")),
        }
    }
}

/// The directories that hold `home`, from just below `top` on.
fn between<'a>(top: &Path, home: &'a Path) -> Vec<&'a Path> {
    let above = home.ancestors().skip(1);
    let mut held: Vec<_> = above
        .take_while(|dir| *dir != top && dir.starts_with(top))
        .collect();
    held.reverse();
    held
}

/// Arguments of Bubblewrap, up to and without the command.
pub(crate) fn arguments(command: &Confined<'_>) -> Vec<OsString> {
    let (fence, full) = (command.fence, command.mode == Mode::DangerFullAccess);
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |option: &str, paths: &[&Path]| {
        args.push(option.into());
        args.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    let all = Path::new("/");
    let opened = command.opened();
    let bind = if full { "--dev-bind" } else { "--bind" };
    // A workspace that is everything is bound first, not over what follows.
    let everything = opened == Some(all);
    add(if everything { bind } else { "--ro-bind" }, &[all, all]);
    add("--die-with-parent", &[]);
    if !full {
        add("--dev", &[Path::new("/dev")]);
        add("--new-session", &[]);
    }
    if !full || command.root.is_some() {
        add("--unshare-pid", &[]);
        add("--proc", &[Path::new("/proc")]);
    }
    match command.root {
        Some(capabilities) => {
            add("--cap-drop", &[Path::new("ALL")]);
            for name in capabilities.kept(full) {
                add("--cap-add", &[Path::new(name)]);
            }
            if everything {
                // Bubblewrap itself shuts those of its `/proc`.
                add("--ro-bind-try", &[Path::new("/sys"), Path::new("/sys")]);
            }
        }
        None if full => add("--unshare-user", &[]),
        None => {}
    }
    if command.mode == Mode::WorkspaceWrite {
        add("--tmpfs", &[Path::new("/tmp")]);
        if let Some(root) = opened.filter(|_| !everything) {
            add("--bind", &[root, root]);
        }
        if let Some(spill) = command.spill {
            add("--ro-bind-try", &[spill, spill]);
        }
    }
    if let Some(home) = command.home {
        for dir in opened
            .map(|top| between(top, &fence.home))
            .unwrap_or_default()
        {
            add(bind, &[dir, dir]);
        }
        for alias in &fence.aliases {
            if alias.path.is_dir() {
                add("--tmpfs", &[&alias.path]);
                add("--remount-ro", &[&alias.path]);
            } else if alias.path.is_file() {
                add("--ro-bind", &[Path::new("/dev/null"), &alias.path]);
            }
        }
        add("--tmpfs", &[&fence.home]);
        for path in &home.shells {
            add("--dir", &[path]);
        }
        for path in &home.shown {
            add("--ro-bind-try", &[path, path]);
        }
        for path in &home.masked {
            add("--ro-bind", &[Path::new("/dev/null"), path]);
        }
        add("--remount-ro", &[&fence.home]);
    }
    for (name, value) in command.env {
        add("--setenv", &[Path::new(name), Path::new(value)]);
    }
    add("--chdir", &[command.cwd]);
    add("--", &[]);
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(
        fence: &Fence,
        mode: Mode,
        home: Option<&HomeView>,
        spill: Option<&str>,
        root: bool,
    ) -> String {
        let confined = Confined {
            fence,
            mode,
            home,
            spill: spill.map(Path::new),
            cwd: Path::new("/w/sub"),
            env: &Environment::new(),
            root: root.then_some(Capabilities(u64::MAX)),
        };
        let args: Vec<_> = arguments(&confined)
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect();
        args.join(" ")
    }

    fn fence(root: &str) -> Fence {
        Fence {
            root: root.into(),
            home: "/h/.dsh".into(),
            temps: vec!["/tmp".into()],
            ..Fence::default()
        }
    }

    const BASE: &str = "--die-with-parent --dev /dev --new-session --unshare-pid --proc /proc";

    #[test]
    fn read_only_binds_everything_so() {
        let expected = format!("--ro-bind / / {BASE} --chdir /w/sub --");
        assert_eq!(
            line(
                &fence("/w"),
                Mode::ReadOnly,
                None,
                Some("/tmp/spill"),
                false
            ),
            expected
        );
    }

    #[test]
    fn workspace_write_opens_the_workspace_and_a_fresh_tmp_and_shuts_home_last() {
        let home = HomeView {
            shells: vec!["/h/.dsh/profiles".into()],
            shown: vec!["/h/.dsh/sessions".into()],
            masked: vec!["/h/.dsh/sessions/lock".into()],
        };
        let expected = format!(
            "--ro-bind / / {BASE} --tmpfs /tmp --bind /w /w --ro-bind-try /tmp/spill /tmp/spill \
             --tmpfs /h/.dsh --dir /h/.dsh/profiles --ro-bind-try /h/.dsh/sessions /h/.dsh/sessions \
             --ro-bind /dev/null /h/.dsh/sessions/lock --remount-ro /h/.dsh --chdir /w/sub --"
        );
        assert_eq!(
            line(
                &fence("/w"),
                Mode::WorkspaceWrite,
                Some(&home),
                Some("/tmp/spill"),
                false
            ),
            expected
        );
    }

    #[test]
    fn a_workspace_inside_home_is_not_opened() {
        assert!(
            !line(
                &fence("/h/.dsh/skills"),
                Mode::WorkspaceWrite,
                None,
                None,
                false
            )
            .contains("--bind")
        );
    }

    #[test]
    fn a_workspace_that_is_everything_does_not_cover_what_is_mounted_on_it() {
        let line = line(&fence("/"), Mode::WorkspaceWrite, None, None, false);
        assert!(
            line.starts_with(&format!("--bind / / {BASE} --tmpfs /tmp --chdir")),
            "{line}"
        );
    }

    #[test]
    fn full_access_is_everything_but_home_and_what_holds_it_stays_where_it_is() {
        let home = HomeView::default();
        let expected = "--dev-bind / / --die-with-parent --unshare-user --dev-bind /h /h \
             --tmpfs /h/.dsh --remount-ro /h/.dsh --chdir /w/sub --";
        let full = Mode::DangerFullAccess;
        assert_eq!(line(&fence("/w"), full, Some(&home), None, false), expected);
        let root = line(&fence("/w"), full, Some(&home), None, true);
        assert!(root.contains(" --unshare-pid --proc /proc "), "{root}");
        assert!(root.contains(" --ro-bind-try /sys /sys "), "{root}");
        for undoes in ["SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH", "MKNOD"] {
            assert!(!root.contains(undoes), "{root}");
        }
    }

    #[test]
    fn directories_between_the_workspace_and_home_are_mounts() {
        let home = Path::new("/w/a/b/.dsh");
        let shown = |top: &str| {
            let held = between(Path::new(top), home);
            held.iter()
                .map(|dir| dir.to_str().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(shown("/w"), ["/w/a", "/w/a/b"]);
        assert_eq!(shown("/"), ["/w", "/w/a", "/w/a/b"]);
        assert_eq!(shown("/w/a/b"), [""; 0]);
        assert_eq!(shown("/other"), [""; 0]);
        assert_eq!(shown("/w/a/b/.dsh"), [""; 0]);
    }

    #[test]
    fn home_is_shut_by_its_other_names_too() {
        let temp = tempfile::tempdir().unwrap();
        let alias = |path: PathBuf| crate::names::Alias {
            path,
            inside: PathBuf::new(),
        };
        let mut fence = fence("/w");
        fence.aliases = vec![alias(temp.path().to_owned()), alias("/not/there".into())];
        let line = line(
            &fence,
            Mode::ReadOnly,
            Some(&HomeView::default()),
            None,
            false,
        );
        let at = temp.path().display();
        assert!(
            line.contains(&format!("--tmpfs {at} --remount-ro {at} --tmpfs /h/.dsh")),
            "{line}"
        );
        assert!(!line.contains("/not/there"), "{line}");
    }

    #[test]
    fn root_keeps_no_capability_that_undoes_a_mount() {
        let line = line(&fence("/w"), Mode::ReadOnly, None, None, true);
        assert!(
            line.contains("--cap-drop ALL") && !line.contains("SYS_ADMIN"),
            "{line}"
        );
    }

    #[test]
    fn a_home_shows_what_is_no_secret() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().canonicalize().unwrap();
        for file in [
            ".env",
            ".credentials.yaml",
            "settings.yaml",
            "settings.yaml.lock",
            "cache/key",
            "plugins/sha256/ab",
            "plugins/data/acme/kv",
            "storages/session_projcache.json",
            "attachments/v1/objects/ab/abcd",
        ] {
            std::fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            std::fs::write(home.join(file), "").unwrap();
        }
        for file in [
            "profiles/p/dsh.lock",
            "profiles/p/profile.yml",
            "profiles/node_modules/x/package.json",
            "sessions/w/s/session.jsonl",
            "sessions/w/s/lock",
        ] {
            std::fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            std::fs::write(home.join(file), "").unwrap();
        }
        let view = HomeView::of(&home, Some(&home.join("sessions/w/s/session.jsonl"))).unwrap();
        assert_eq!(
            view.shown,
            [
                "plugins/sha256",
                "profiles/node_modules",
                "profiles/p/profile.yml",
                "sessions/w/s",
                "settings.yaml"
            ]
            .map(|name| home.join(name))
        );
        assert_eq!(view.masked, [home.join("sessions/w/s/lock")]);
        assert_eq!(
            view.shells,
            ["plugins", "profiles", "profiles/p"].map(|name| home.join(name))
        );
        assert_eq!(HomeView::of(&home.join("none"), None), None);
    }
}
