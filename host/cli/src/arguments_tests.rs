use super::*;

fn parsed(words: &[&str]) -> Result<Arguments, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    parse(&words).map_err(|failure| failure.to_string())
}

#[track_caller]
fn request(words: &[&str]) -> Request {
    match parsed(words) {
        Ok(Arguments::Run(request)) => *request,
        other => panic!("{words:?} is no run: {other:?}"),
    }
}

fn words(task: &str) -> Request {
    Request {
        task: Task::Words(task.to_owned()),
        ..Request::default()
    }
}

#[test]
fn words_are_joined_and_options_end_at_two_dashes() {
    let table: &[(&[&str], &str)] = &[
        (&["run", "the tests"], "run the tests"),
        (&["--", "-h"], "-h"),
        (&["a", "--", "b", "--", "--model"], "a b -- --model"),
        (&["--", "-"], "-"),
        (&["-", "a"], "- a"),
        (&["mind the --gap"], "mind the --gap"),
    ];
    for (given, task) in table {
        assert_eq!(request(given), words(task), "{given:?}");
    }
}

#[test]
fn a_lone_dash_is_standard_input() {
    assert_eq!(request(&["-"]).task, Task::Stdin);
    assert_eq!(request(&["--verbose", "-"]).task, Task::Stdin);
}

#[test]
fn help_wins_wherever_it_stands_before_two_dashes() {
    for given in [&["-h"][..], &["a", "--help"], &["--model", "a/b", "-h"]] {
        assert_eq!(parsed(given), Ok(Arguments::Help), "{given:?}");
    }
}

#[test]
fn each_flag_takes_its_value_in_both_forms() {
    type Table<'a> = &'a [(&'a str, &'a str, fn(&mut Request))];
    let table: Table<'_> = &[
        ("--model", "p/org/m", |r| {
            r.model = Some(Model {
                provider: "p".to_owned(),
                model: "org/m".to_owned(),
            });
        }),
        ("--effort", "max", |r| r.effort = Some("max".to_owned())),
        ("--permission", "read-only", |r| {
            r.permission = Some(Preset::ReadOnly);
        }),
        ("--cwd", "a=b", |r| r.cwd = Some("a=b".into())),
        ("--session-id", "s-1", |r| {
            r.session = Which::Named("s-1".to_owned());
        }),
        ("--resume", "s-1", |r| {
            r.session = Which::Resume("s-1".to_owned());
        }),
        ("--resume", "last", |r| r.session = Which::Last),
        ("--output", "text", |_| {}),
        ("--output", "json", |r| r.output = Format::Json),
        ("--output", "stream-json", |r| r.output = Format::StreamJson),
        ("--timeout", "1.5", |r| {
            r.timeout = Some(Duration::from_millis(1500));
        }),
    ];
    for (flag, value, set) in table {
        let mut expected = words("go on");
        set(&mut expected);
        let attached = format!("{flag}={value}");
        assert_eq!(request(&["go", &attached, "on"]), expected, "{attached}");
        assert_eq!(request(&["go", "on", flag, value]), expected, "{flag}");
    }
    assert!(request(&["go", "--verbose"]).verbose);
}

#[test]
fn the_last_flag_of_a_name_wins() {
    let request = request(&["--effort", "low", "--effort=max", "go"]);
    assert_eq!(request.effort.as_deref(), Some("max"));
}

#[test]
fn what_means_nothing_is_one_line_that_says_why() {
    let table: &[(&[&str], &str)] = &[
        (&[], "error: a task is required"),
        (&["  "], "error: a task is required"),
        (&["--verbose"], "error: a task is required"),
        (&["--json", "x"], "error: unknown option '--json'"),
        (
            &["--max-turns=3", "x"],
            "error: unknown option '--max-turns'",
        ),
        (&["--atach", "f", "x"], "error: unknown option '--atach'"),
        (
            &["--verbose=1", "x"],
            "error: option '--verbose' takes no value",
        ),
        (&["-x", "x"], "error: unknown option '-x'"),
        (
            &["x", "--model"],
            "error: option '--model <provider/model>' argument missing",
        ),
        (
            &["--cwd", "--verbose", "x"],
            "error: option '--cwd <dir>' argument missing",
        ),
        (
            &["--model", "x", "x"],
            "error: --model: \"x\" is not of the form",
        ),
        (
            &["--model=/m", "x"],
            "error: --model: \"/m\" is not of the form",
        ),
        (
            &["--model=p/", "x"],
            "error: --model: \"p/\" is not of the form",
        ),
        (&["--effort=", "x"], "error: --effort: it needs a level"),
        (
            &["--permission=root", "x"],
            "error: --permission: there is no mode \"root\"",
        ),
        (&["--cwd=", "x"], "error: --cwd: it needs a directory"),
        (
            &["--session-id= ", "x"],
            "error: --session-id: it needs an id",
        ),
        (&["--session-id=last", "x"], "error: --session-id: \"last\""),
        (&["--resume=", "x"], "error: --resume: it needs an id"),
        (
            &["--resume=a", "--session-id=b", "x"],
            "error: --session-id: one of",
        ),
        (
            &["--output=xml", "x"],
            "error: --output: there is no format \"xml\"",
        ),
        (
            &["--timeout=0", "x"],
            "error: --timeout: \"0\" is no number",
        ),
        (
            &["--timeout", "-1", "x"],
            "error: --timeout: \"-1\" is no number",
        ),
        (
            &["--timeout=soon", "x"],
            "error: --timeout: \"soon\" is no number",
        ),
        (
            &["--timeout=NaN", "x"],
            "error: --timeout: \"NaN\" is no number",
        ),
        (
            &["--timeout=1e999", "x"],
            "error: --timeout: \"1e999\" is no number",
        ),
    ];
    for (given, says) in table {
        let error = parsed(given).expect_err("it is refused");
        assert!(error.starts_with(says), "{given:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
