//! The arguments that confine a command with Bubblewrap.
//!
//! Upstream's set (spec/cli.md §5), and on top of it: a session of its own, so
//! that a command cannot type into the terminal; no capability that undoes a
//! mount when `dsh` runs as root; and `$DSH_HOME` as a read-only shell in which
//! only what is no secret is shown again. The shell is empty rather than
//! masked, so that a secret that is written while the command runs does not
//! appear in it. Of the sessions, which each have a lock, only the command's
//! own is shown.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::fence::{Fence, canonical, is_secret};
use crate::mode::Mode;

/// Capabilities that root keeps: what it takes to work on other users' files.
const KEPT: [&str; 6] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_SETGID",
    "CAP_SETUID",
];

/// Where sessions are, in `$DSH_HOME`.
const SESSIONS: &str = "sessions";

/// What a command sees of `$DSH_HOME`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HomeView {
    /// Entries of it that are shown.
    pub(crate) shown: Vec<PathBuf>,
    /// Files below those that are not.
    pub(crate) masked: Vec<PathBuf>,
}

impl HomeView {
    /// Looks at `$DSH_HOME`; none where there is nothing to see. `session` is
    /// the session's own log, beside which its lock may be.
    pub(crate) fn of(home: &Path, session: Option<&Path>) -> Option<Self> {
        let mut view = HomeView::default();
        for path in entries(home)? {
            let inside = path.strip_prefix(home).unwrap_or(&path);
            if !is_secret(inside) && inside != Path::new(SESSIONS) {
                view.shown.push(path);
            }
        }
        let own = session.and_then(Path::parent).map(canonical);
        let own = own.filter(|dir| dir.starts_with(home.join(SESSIONS)));
        view.shown.extend(own.clone());
        let profiles = entries(&home.join("profiles")).unwrap_or_default();
        for dir in profiles.into_iter().chain(own) {
            // Not through a link: nothing can be mounted on what one leads to.
            let files = entries(&canonical(&dir)).unwrap_or_default().into_iter();
            let secret = |path: &PathBuf| path.strip_prefix(home).is_ok_and(is_secret);
            view.masked
                .extend(files.filter(|path| path.is_file() && secret(path)));
        }
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
    /// Bubblewrap runs as root, and would keep its capabilities.
    pub(crate) root: bool,
}

/// Arguments of Bubblewrap, up to and without the command.
pub(crate) fn arguments(command: &Confined<'_>) -> Vec<OsString> {
    let Confined {
        fence,
        mode,
        home,
        spill,
        cwd,
        root,
    } = command;
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |option: &str, paths: &[&Path]| {
        args.push(option.into());
        args.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    let writes = *mode == Mode::WorkspaceWrite && !fence.root.starts_with(&fence.home);
    let all = Path::new("/");
    // A workspace that is everything is bound first, not over what follows.
    let everything = writes && fence.root == all;
    add(if everything { "--bind" } else { "--ro-bind" }, &[all, all]);
    add("--dev", &[Path::new("/dev")]);
    add("--unshare-pid", &[]);
    add("--proc", &[Path::new("/proc")]);
    add("--die-with-parent", &[]);
    add("--new-session", &[]);
    if *root {
        add("--cap-drop", &[Path::new("ALL")]);
        for capability in KEPT {
            add("--cap-add", &[Path::new(capability)]);
        }
    }
    if *mode == Mode::WorkspaceWrite {
        add("--tmpfs", &[Path::new("/tmp")]);
        if writes && !everything {
            add("--bind", &[&fence.root, &fence.root]);
        }
        if let Some(spill) = spill {
            add("--ro-bind-try", &[spill, spill]);
        }
    }
    if let Some(home) = home {
        add("--tmpfs", &[&fence.home]);
        for path in &home.shown {
            add("--ro-bind-try", &[path, path]);
        }
        for path in &home.masked {
            add("--ro-bind", &[Path::new("/dev/null"), path]);
        }
        add("--remount-ro", &[&fence.home]);
    }
    add("--chdir", &[cwd]);
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
            root,
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
        }
    }

    const BASE: &str = "--dev /dev --unshare-pid --proc /proc --die-with-parent --new-session";

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
            shown: vec!["/h/.dsh/sessions".into()],
            masked: vec!["/h/.dsh/profiles/p/dsh.lock".into()],
        };
        let expected = format!(
            "--ro-bind / / {BASE} --tmpfs /tmp --bind /w /w --ro-bind-try /tmp/spill /tmp/spill \
             --tmpfs /h/.dsh --ro-bind-try /h/.dsh/sessions /h/.dsh/sessions \
             --ro-bind /dev/null /h/.dsh/profiles/p/dsh.lock --remount-ro /h/.dsh --chdir /w/sub --"
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
        ] {
            std::fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            std::fs::write(home.join(file), "").unwrap();
        }
        for file in [
            "profiles/p/dsh.lock",
            "profiles/p/profile.yml",
            "sessions/w/s/session.jsonl",
            "sessions/w/s/lock",
        ] {
            std::fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            std::fs::write(home.join(file), "").unwrap();
        }
        let view = HomeView::of(&home, Some(&home.join("sessions/w/s/session.jsonl"))).unwrap();
        assert_eq!(
            view.shown,
            ["profiles", "sessions/w/s", "settings.yaml"].map(|name| home.join(name))
        );
        assert_eq!(
            view.masked,
            ["profiles/p/dsh.lock", "sessions/w/s/lock"].map(|name| home.join(name))
        );
        assert_eq!(HomeView::of(&home.join("none"), None), None);
    }
}
