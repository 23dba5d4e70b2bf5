use super::*;

fn parsed(words: &[&str]) -> Result<Launch, String> {
    parse(words.iter().map(|w| (*w).to_owned())).map_err(|e| e.to_string())
}

fn boot(words: &[&str]) -> Boot {
    match parsed(words) {
        Ok(Launch::Boot(boot)) => boot,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn flags_end_at_the_first_token_that_the_launcher_does_not_know() {
    let boot = boot(&[
        "--profile",
        "tui",
        "--patch",
        "a.yml",
        "--resume",
        "b",
        "--patch",
        "late.yml",
    ]);
    assert_eq!(boot.profile, "tui");
    assert_eq!(boot.patches, [PathBuf::from("a.yml")]);
    assert_eq!(boot.args, ["--resume", "b", "--patch", "late.yml"]);
}

#[test]
fn everything_after_the_boundary_is_the_apps() {
    let cases: [(&[&str], &[&str]); 9] = [
        (&["task"], &["task"]),
        (
            &["task", "-h", "--version", "--profile", "y"],
            &["task", "-h", "--version", "--profile", "y"],
        ),
        (&["-h"], &["-h"]),
        (&["--help"], &["--help"]),
        (&["--model=x/y", "t"], &["--model=x/y", "t"]),
        (&["--", "--patch", "x"], &["--patch", "x"]),
        (&["--", "--", "x"], &["--", "x"]),
        (&["--", "web"], &["web"]),
        (&["task", "--", "x"], &["task", "--", "x"]),
    ];
    for (words, args) in cases {
        let words = [&["--profile", "x"], words].concat();
        assert_eq!(boot(&words).args, args, "{words:?}");
    }
}

#[test]
fn flags_come_in_any_order_and_either_spelling() {
    let boot = boot(&[
        "--strict",
        "--patch=a",
        "--profile=x",
        "--patch",
        "b",
        "--patch=c=d",
        "go",
    ]);
    let patches: Vec<PathBuf> = vec!["a".into(), "b".into(), "c=d".into()];
    assert_eq!(
        (boot.patches, boot.strict, boot.safe),
        (patches, true, false)
    );
    let boot = self::boot(&["--profile", "x", "--safe"]);
    assert!(boot.safe && boot.args.is_empty());
}

#[test]
fn help_is_the_launchers_only_without_a_profile() {
    for words in [
        &["-h"][..],
        &["--help"],
        &["--patch", "a", "-h"],
        &["--safe", "--help", "x"],
    ] {
        assert_eq!(parsed(words), Ok(Launch::Help), "{words:?}");
    }
    assert_eq!(boot(&["--profile", "x", "-h"]).args, ["-h"]);
}

#[test]
fn version_is_printed_before_the_boundary_only() {
    for words in [
        &["-V"][..],
        &["--version"],
        &["--profile", "x", "-V"],
        &["-V", "rubbish"],
    ] {
        assert_eq!(parsed(words), Ok(Launch::Version), "{words:?}");
    }
    assert_eq!(boot(&["--profile", "x", "t", "-V"]).args, ["t", "-V"]);
}

#[test]
fn dumps_take_their_own_flags_and_no_app_arguments() {
    let profile = || "x".to_owned();
    assert_eq!(
        parsed(&[
            "--profile",
            "x",
            "--dump-config",
            "--patch",
            "a",
            "--strict"
        ]),
        Ok(Launch::DumpConfig {
            profile: profile(),
            patches: vec!["a".into()],
            safe: false,
            strict: true
        })
    );
    assert_eq!(
        parsed(&["--dump-config", "--safe", "--profile", "x"]),
        Ok(Launch::DumpConfig {
            profile: profile(),
            patches: vec![],
            safe: true,
            strict: false
        })
    );
    assert_eq!(
        parsed(&["--profile", "x", "--dump-default-config"]),
        Ok(Launch::DumpDefault { profile: profile() })
    );
}

#[test]
fn a_usage_error_is_one_line_that_names_its_cause() {
    let cases: [(&[&str], &str); 21] = [
        (&[], "--profile <name> is required"),
        (&["run", "task"], "--profile <name> is required"),
        (&["tui"], "--profile <name> is required"),
        (&["-p", "task"], "--profile <name> is required"),
        (&["--config", "x"], "--profile <name> is required"),
        (&["--profile"], "argument missing"),
        (&["--profile", ""], "--profile needs a name"),
        (&["--profile="], "--profile needs a name"),
        (&["--profile", "x", "--patch"], "argument missing"),
        (&["--profile", "x", "--patch="], "--patch needs a path"),
        (
            &["--profile", "x", "--dump-config", "--dump-default-config"],
            "exclude each other",
        ),
        (
            &["--profile", "x", "--dump-default-config", "--patch", "a"],
            "takes no --patch",
        ),
        (
            &["--profile", "x", "--dump-config", "task"],
            "no app arguments",
        ),
        (
            &["--profile", "x", "--dump-config", "-h"],
            "no app arguments",
        ),
        (
            &["--profile", "x", "--safe", "--patch", "a"],
            "takes no --patch",
        ),
        (&["web"], "no web surface"),
        (&["--profile", "x", "web"], "web takes none of parent"),
        (&["--patch", "a", "web"], "web takes none of parent"),
        (&["--safe", "plugin", "list"], "plugin takes none of parent"),
        (
            &["--profile=x", "plugin", "add"],
            "write dsh plugin --profile NAME",
        ),
        (
            &["--profile", "x", "plugin", "add"],
            "plugin takes none of parent",
        ),
    ];
    for (words, cause) in cases {
        let error = parsed(words).unwrap_err();
        assert!(
            error.starts_with("error: ") && error.contains(cause) && !error.contains('\n'),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn sessions_models_and_doctor_are_commands_as_the_first_word_and_words_of_a_task_elsewhere() {
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        parsed(&["sessions", "list", "--", "--json"]),
        Ok(Launch::Sessions(words(&["list", "--", "--json"])))
    );
    assert_eq!(parsed(&["sessions"]), Ok(Launch::Sessions(Vec::new())));
    assert_eq!(
        parsed(&["models", "--json"]),
        Ok(Launch::Models(vec!["--json".to_owned()]))
    );
    assert_eq!(
        parsed(&["doctor", "--json"]),
        Ok(Launch::Doctor(vec!["--json".to_owned()]))
    );
    let task = boot(&["--profile", "headless", "doctor", "this"]);
    assert_eq!(task.args, ["doctor", "this"]);
    let task = boot(&["--profile", "headless", "sessions", "leak"]);
    assert_eq!(task.args, ["sessions", "leak"]);
    assert!(parsed(&["--", "sessions"]).is_err());
    assert!(parsed(&["--safe", "sessions", "list"]).is_err());
}

#[test]
fn plugin_is_a_command_with_a_profile_of_its_own_behind_it() {
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    for tail in [
        &[][..],
        &["--profile", "x", "add", "y"],
        &["add", "y", "--profile", "x", "--"],
        &["--help"],
    ] {
        let mut line = vec!["plugin"];
        line.extend(tail);
        assert_eq!(parsed(&line), Ok(Launch::Plugin(words(tail))));
    }
    let task = boot(&["--profile", "headless", "--", "plugin", "add"]);
    assert_eq!(task.args, ["plugin", "add"]);
}
