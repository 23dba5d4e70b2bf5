use super::*;

fn asked(words: &[&str]) -> Result<Asked, String> {
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    parse(&words).map_err(|failure| failure.to_string())
}

fn done(words: &[&str]) -> (&'static str, Words) {
    match asked(words) {
        Ok(Asked::Do(verb, words)) => (verb.name, words),
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn options_stand_anywhere_in_either_spelling_and_the_last_one_wins() {
    let (verb, words) = done(&["fork", "--at", "3", "abc", "--at=5"]);
    assert_eq!(verb, "fork");
    assert_eq!((words.one(), words.value("--at")), ("abc", Some("5")));
    let (_, words) = done(&["rm", "a", "--yes", "b"]);
    assert_eq!(words.arguments, ["a", "b"]);
    assert!(words.has("--yes"));
    let (_, words) = done(&["list"]);
    assert!(!words.has("--json"));
    let (_, words) = done(&["show", "--", "--full"]);
    assert_eq!(words.one(), "--full");
}

#[test]
fn what_means_nothing_is_one_line_that_says_so() {
    for (words, part) in [
        (&[][..], "needs a command"),
        (&["prune"], "no command \"prune\"; it has list, show,"),
        (&["help"], "no command"),
        (&["list", "--cwd"], "--cwd needs a dir"),
        (&["list", "--cwd="], "--cwd needs a dir"),
        (&["list", "--json=yes"], "--json takes no value"),
        (&["list", "--profile", "x"], "no option --profile"),
        (&["list", "-x"], "no option -x"),
        (&["list", "abc"], "no place for \"abc\""),
        (&["show"], "needs the id"),
        (&["show", ""], "cannot be empty"),
        (&["show", "a", "b"], "no place for \"b\""),
    ] {
        let error = asked(words).unwrap_err();
        assert!(
            error.starts_with("error: ") && error.contains(part),
            "{error}"
        );
        assert!(!error.contains('\n'));
    }
}

#[test]
fn help_names_every_command_and_every_option() {
    let Ok(Asked::Help(all)) = asked(&["--help"]) else {
        panic!("no help");
    };
    for verb in &VERBS {
        assert!(all.contains(&format!("\n  {}", verb.name)));
        let Ok(Asked::Help(own)) = asked(&[verb.name, "x", "-h"]) else {
            panic!("no help of {}", verb.name);
        };
        for flag in verb.flags {
            assert!(own.contains(flag.name), "{own}");
        }
        assert!(own.lines().all(|line| line.chars().count() <= 80), "{own}");
    }
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
}
