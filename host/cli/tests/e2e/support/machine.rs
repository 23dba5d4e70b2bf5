//! What this machine can do, asked in another way than `dsh` asks.

use std::process::{Command, Stdio};

/// Whether commands can be confined by this runner; says why not.
pub(crate) fn can_confine(runner: &str) -> bool {
    let (can, why) = match runner {
        "bwrap" => (
            bwrap(),
            "Bubblewrap is not installed or may not make namespaces here",
        ),
        "landlock" => (landlock(), "this kernel has no Landlock"),
        other => panic!("there is no runner {other}"),
    };
    if !can {
        println!("SKIPPED under {runner}: {why}");
    }
    can
}

fn bwrap() -> bool {
    Command::new("bwrap")
        .args([
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--unshare-pid",
            "--proc",
            "/proc",
            "true",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn landlock() -> bool {
    use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    // Made, not applied.
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::WriteFile)
        .and_then(Ruleset::create)
        .is_ok()
}
