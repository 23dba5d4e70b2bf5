use super::*;
use std::fs;

fn process(variables: &[(&str, &str)]) -> Environment {
    Environment::process(variables.iter().map(|(k, v)| ((*k).into(), (*v).into())))
}

#[test]
fn a_dotenv_line_is_read_as_nodes_reader_does() {
    let cases = [
        ("A=1", "1"),
        ("A = 1 ", "1"),
        ("export A=1", "1"),
        ("  A=1 # note", "1"),
        ("A=", ""),
        ("A='x # y'", "x # y"),
        ("A=\"x\\ny\"", "x\ny"),
        ("A='x\\ny'", "x\\ny"),
        ("A=`x\"'`", "x\"'"),
        ("A='two\nlines' # c\nB=2", "two\nlines"),
        ("A=\"open", "\"open"),
        ("A=x=y", "x=y"),
        ("A=1\r\nB=2\r\n", "1"),
        ("A=1\nA=2", "2"),
    ];
    for (text, value) in cases {
        assert_eq!(
            dotenv::parse(text).get("A").map(String::as_str),
            Some(value),
            "{text:?}"
        );
    }
    assert!(dotenv::parse("# A=1\nnonsense\n=x\nA B=1\n").is_empty());
    assert_eq!(dotenv::parse("A='two\nlines' # c\nB=2")["B"], "2");
}

#[test]
fn inherited_beats_project_beats_user() {
    let dir = tempfile::tempdir().unwrap();
    let (cwd, home) = (dir.path().join("w"), dir.path().join("h"));
    fs::create_dir_all(&cwd).unwrap();
    fs::create_dir_all(&home).unwrap();
    fs::write(cwd.join(".env"), "A=project\nB=project\n").unwrap();
    fs::write(home.join(".env"), "A=user\nB=user\nC=user\n").unwrap();
    let env = process(&[("A", "inherited")])
        .with_files(&cwd, &home)
        .unwrap();
    assert_eq!(
        (env.get("A"), env.get("B"), env.get("C"), env.get("D")),
        (Some("inherited"), Some("project"), Some("user"), None)
    );
    assert_eq!(env.source("B"), Some(Source::ProjectEnv));
    assert_eq!(env.get_in(Source::UserEnv, "A"), Some("user"));
    assert!(env.warnings().is_empty());
}

#[test]
fn an_empty_inherited_value_still_wins() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".env"), "A=project\n").unwrap();
    let env = process(&[("A", "")])
        .with_files(dir.path(), dir.path())
        .unwrap();
    assert_eq!(env.get("A"), Some(""));
}

#[test]
fn a_home_that_is_the_working_directory_is_read_once_as_the_project() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".env"), "A=1\n").unwrap();
    let env = process(&[])
        .with_files(dir.path(), &dir.path().join("."))
        .unwrap();
    assert_eq!(env.source("A"), Some(Source::ProjectEnv));
    assert_eq!(env.get_in(Source::UserEnv, "A"), None);
}

#[test]
fn a_bootstrap_name_in_a_file_aborts_with_file_and_variable() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "DSH_HOME",
        "dsh_sandbox",
        "XDG_CONFIG_HOME",
        "PATH",
        "Path",
        "LD_PRELOAD",
        "DEEPSEEK_BASE_URL",
        "https_proxy",
        "GIT_ASKPASS",
    ] {
        fs::write(dir.path().join(".env"), format!("OK=1\n{name}=x\n")).unwrap();
        let error = process(&[])
            .with_files(dir.path(), Path::new("/nonexistent"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(name) && error.contains(".env"), "{error}");
    }
    fs::write(dir.path().join(".env"), "DEEPSEEK_API_KEY=x\nPATHS=y\n").unwrap();
    assert!(
        process(&[])
            .with_files(dir.path(), Path::new("/nonexistent"))
            .is_ok()
    );
}

#[test]
fn an_unreadable_file_is_one_warning() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(".env")).unwrap();
    let env = process(&[])
        .with_files(dir.path(), Path::new("/nonexistent"))
        .unwrap();
    assert_eq!(env.warnings().len(), 1);
    assert!(env.warnings()[0].contains(".env"), "{:?}", env.warnings());
}

#[test]
fn debug_output_holds_no_value() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".env"), "KEY=sk-project\n").unwrap();
    let env = process(&[("KEY", "sk-inherited")])
        .with_files(dir.path(), Path::new("/nonexistent"))
        .unwrap();
    let shown = format!("{env:?}");
    assert!(!shown.contains("sk-"), "{shown}");
}
