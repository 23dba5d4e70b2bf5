//! What confines commands here, and what that leaves open.

use std::path::Path;

use dsh_check::Finding;

use crate::environment::environment;
use crate::fence::Fence;
use crate::mode::Mode;
use crate::runner::{find, replaceable_link};
use crate::session::{Enforcement, RunnerKind, Sandbox, SandboxConfig};

impl Sandbox {
    /// Tries the runners (5 s each at most), and says what holds for a session
    /// in the working directory `root`. Blocks.
    #[must_use]
    pub fn check(&self, root: &Path) -> Vec<Finding> {
        let config = self.config();
        let fence = Fence::new(root, &config.dsh_home, &config.temp_dir);
        let kinds = [RunnerKind::Bwrap, RunnerKind::Landlock];
        let [bwrap, landlock] = kinds.map(|kind| tried(config, kind));
        let mut found = findings(config.force, &bwrap, &landlock, &fence);
        if !config.guard_home {
            found.push(Finding::warning(format_args!(
                "row sandbox-policy: `guardHome: false`: under danger-full-access a command may \
                 change {}, and so what dsh does next; take it out of the patch when it is not needed",
                fence.home.display()
            )));
        }
        found
    }
}

/// What trying a runner came to: how far it reaches, or why it does not work.
type Tried = Result<Enforcement, String>;

fn tried(config: &SandboxConfig, kind: RunnerKind) -> Tried {
    let config = SandboxConfig {
        force: Some(kind),
        ..config.clone()
    };
    let env = environment(&config.inherited_env, []);
    let found = find(&config, &env).map(|runner| runner.enforcement);
    found.map_err(|error| {
        let text = error.to_string();
        let reason = text.split_once(&format!("{}: ", kind.as_str()));
        let reason = reason.map_or(text.as_str(), |(_, reason)| reason);
        reason
            .split("; install bubblewrap")
            .next()
            .unwrap_or(reason)
            .to_owned()
    })
}

/// The decision, of plain values.
fn findings(
    force: Option<RunnerKind>,
    bwrap: &Tried,
    landlock: &Tried,
    fence: &Fence,
) -> Vec<Finding> {
    let may = |kind| force.is_none_or(|forced| forced == kind);
    let home = fence.home.display();
    let mut found = Vec::new();
    let used = match (bwrap, landlock) {
        (Ok(_), _) if may(RunnerKind::Bwrap) => RunnerKind::Bwrap,
        (_, Ok(_)) if may(RunnerKind::Landlock) => RunnerKind::Landlock,
        _ => {
            let reason = |tried: &Tried| {
                tried
                    .as_ref()
                    .err()
                    .map_or("it works", String::as_str)
                    .to_owned()
            };
            let only = force.map_or(String::new(), |kind| {
                format!("DSH_SANDBOX allows {} alone, and ", kind.as_str())
            });
            let (bwrap, landlock) = (reason(bwrap), reason(landlock));
            return vec![Finding::wrong(format_args!(
                "{only}nothing confines commands here (bwrap: {bwrap}; landlock: {landlock}): they \
                 are run under danger-full-access alone, and then may change {home}; install \
                 bubblewrap, or use a kernel with Landlock"
            ))];
        }
    };
    match used {
        RunnerKind::Bwrap => found.push(Finding::ok(format_args!(
            "commands run under bwrap; {home} is read-only to them in every mode, and its secrets \
             are not there"
        ))),
        RunnerKind::Landlock => {
            let why = match bwrap {
                Ok(_) => "DSH_SANDBOX says so".to_owned(),
                Err(reason) => format!("bwrap: {reason}"),
            };
            found.push(Finding::warning(format_args!(
                "commands run under Landlock ({why}): they cannot write to {home}, but read all that \
                 you can read, your credentials and other sessions too, and may change permissions \
                 there; install bubblewrap to keep them out"
            )));
            if *landlock == Ok(Enforcement::Partial) {
                found.push(Finding::warning(format_args!(
                    "this kernel's Landlock is an older one and cannot keep a command from cutting \
                     files short, those of {home} too; install bubblewrap or use a newer kernel"
                )));
            }
            if fence.kept().any(|kept| kept.starts_with(&fence.root)) {
                found.push(Finding::warning(format_args!(
                    "the working directory {} holds {home}, so Landlock cannot confine commands here \
                     under workspace-write and they are refused; install bubblewrap, or work elsewhere",
                    fence.root.display()
                )));
            }
        }
    }
    for mode in [Mode::WorkspaceWrite, Mode::DangerFullAccess] {
        if used == RunnerKind::Bwrap
            && let Some(link) = replaceable_link(fence, mode)
        {
            found.push(Finding::warning(format_args!(
                "{home} is reached through the link {}, which a command could replace, so commands \
                 are refused under {mode}; set DSH_HOME to {home}",
                link.display()
            )));
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use dsh_check::Level;

    use super::*;

    fn fence(root: &str, home: &str) -> Fence {
        Fence {
            root: root.into(),
            home: home.into(),
            ..Fence::default()
        }
    }

    #[test]
    fn what_is_told_follows_from_what_works() {
        use Level::{Ok as Fine, Warning, Wrong};
        let full = || Ok(Enforcement::Full);
        let none = || Err("not on PATH".to_owned());
        let (bwrap, landlock) = (Some(RunnerKind::Bwrap), Some(RunnerKind::Landlock));
        type Case = (
            Option<RunnerKind>,
            Tried,
            Tried,
            &'static str,
            &'static [(Level, &'static str)],
        );
        let table: [Case; 8] = [
            (
                None,
                full(),
                full(),
                "/w",
                &[(Fine, "under bwrap; /h/.dsh")],
            ),
            (None, full(), none(), "/h", &[(Fine, "under bwrap")]),
            (
                None,
                none(),
                full(),
                "/w",
                &[(Warning, "Landlock (bwrap: not on PATH)")],
            ),
            (
                landlock,
                full(),
                full(),
                "/w",
                &[(Warning, "DSH_SANDBOX says so")],
            ),
            (
                None,
                none(),
                full(),
                "/h",
                &[(Warning, "Landlock"), (Warning, "/h holds /h/.dsh")],
            ),
            (
                None,
                none(),
                Ok(Enforcement::Partial),
                "/w",
                &[(Warning, "Landlock"), (Warning, "older one")],
            ),
            (
                None,
                none(),
                none(),
                "/w",
                &[(Wrong, "danger-full-access alone")],
            ),
            (
                bwrap,
                none(),
                full(),
                "/w",
                &[(Wrong, "DSH_SANDBOX allows bwrap alone")],
            ),
        ];
        for (force, bwrap, landlock, root, expected) in table {
            let found = findings(force, &bwrap, &landlock, &fence(root, "/h/.dsh"));
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (one, (level, text)) in found.iter().zip(expected) {
                assert_eq!(one.level, *level, "{one:?}");
                assert!(one.what.contains(text), "{text:?} is not in {one:?}");
            }
        }
    }

    #[test]
    fn a_link_to_home_in_the_workspace_is_told() {
        let mut linked = fence("/w", "/h/.dsh");
        linked.links = vec!["/w/.dsh".into()];
        let found = findings(None, &Ok(Enforcement::Full), &Err(String::new()), &linked);
        assert!(found[1].what.contains("the link /w/.dsh"), "{found:?}");
        assert!(found[1].what.contains("under workspace-write"), "{found:?}");
    }
}
