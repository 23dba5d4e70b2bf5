use super::*;

fn asked(words: &[&str]) -> Result<Asked, String> {
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    parse(&words).map_err(|failure| failure.to_string())
}

fn done(words: &[&str]) -> (&'static str, Order) {
    match asked(words) {
        Ok(Asked::Do(verb, order)) => (verb.name, *order),
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn the_profile_stands_before_the_command_or_behind_it_and_is_headless_without() {
    for (words, profile) in [
        (&["add", "x.wasm"][..], "headless"),
        (&["--profile", "web", "add", "x.wasm"], "web"),
        (&["--profile=web", "add", "x.wasm"], "web"),
        (&["add", "--profile", "web", "x.wasm"], "web"),
        (&["add", "x.wasm", "--profile=web"], "web"),
        (
            &["--profile", "a", "add", "x.wasm", "--profile", "web"],
            "web",
        ),
    ] {
        let (verb, order) = done(words);
        assert_eq!(
            (verb, order.profile.as_str(), order.words.one()),
            ("add", profile, "x.wasm"),
            "{words:?}"
        );
    }
    let (_, order) = done(&["--json", "list"]);
    assert!(order.words.has("--json"));
}

#[test]
fn grants_are_kept_in_order_and_a_decision_is_one() {
    let (_, order) = done(&[
        "add",
        "--grant",
        "clock",
        "x.wasm",
        "--grant=http=https://a",
    ]);
    let grants: Vec<&str> = order.words.values("--grant").collect();
    assert_eq!(grants, ["clock", "http=https://a"]);
    assert!(
        asked(&["add", "x", "--yes", "--grant", "clock"])
            .unwrap_err()
            .contains("say one of")
    );
    assert!(
        asked(&["add", "x", "--yes", "--none"])
            .unwrap_err()
            .contains("say one of")
    );
}

#[test]
fn what_means_nothing_is_one_line_that_says_so() {
    for (words, part) in [
        (&[][..], "needs a command"),
        (&["--profile", "x"], "needs a command"),
        (&["--profile"], "argument missing"),
        (&["--profile=", "list"], "needs a name"),
        (&["list", "--profile", ""], "--profile needs a name"),
        (
            &["prune"],
            "no command \"prune\"; it has add, update, remove, list,",
        ),
        (&["install", "x"], "dsh plugin add SOURCE"),
        (&["rm", "x"], "dsh plugin remove NAME"),
        (&["add"], "needs a source"),
        (&["add", "a", "b"], "no place for \"b\""),
        (&["add", "--save-dev", "x"], "no option --save-dev"),
        (&["add", "x", "--json=yes"], "--json takes no value"),
        (&["remove"], "needs the name"),
        (&["grant", "acme:x"], "a grant"),
        (&["info", " "], "cannot be empty"),
    ] {
        let error = asked(words).unwrap_err();
        assert!(
            error.starts_with("error: ") && error.contains(part) && !error.contains('\n'),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn every_command_has_its_help_and_every_line_of_it_fits() {
    let Ok(Asked::Help(all)) = asked(&["--help"]) else {
        panic!("the help is asked for");
    };
    for verb in &VERBS {
        assert!(
            all.contains(&format!("\n  {:<9} ", verb.name)),
            "{}",
            verb.name
        );
        let Ok(Asked::Help(text)) = asked(&[verb.name, "-h"]) else {
            panic!("the help of {} is asked for", verb.name);
        };
        assert!(text.starts_with(&format!("Usage: dsh plugin {} ", verb.name)));
        assert!(text.contains("--json") && text.contains("Examples:\n  dsh plugin "));
        for line in text.lines().chain(all.lines()) {
            assert!(line.chars().count() <= 90, "{line}");
        }
    }
}
