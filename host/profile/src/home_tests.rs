use super::*;

fn home_in(dir: &tempfile::TempDir) -> Home {
    Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn home_is_dsh_home_or_below_the_persons() {
    let cases = [
        (None, "/u/.dsh"),
        (Some(""), "/u/.dsh"),
        (Some("  "), "/u/.dsh"),
        (Some("~"), "/u"),
        (Some("~/x"), "/u/x"),
        (Some("~\\x"), "/u/x"),
        (Some("~x"), "/w/~x"),
        (Some("/abs"), "/abs"),
        (Some("rel/x"), "/w/rel/x"),
    ];
    for (set, path) in cases {
        let home =
            Home::resolve(set.map(OsStr::new), Some(OsStr::new("/u")), Path::new("/w")).unwrap();
        assert_eq!(home.path(), Path::new(path), "{set:?}");
    }
}

#[test]
fn a_home_that_is_needed_and_unknown_is_an_error() {
    for set in [None, Some(""), Some("~/x")] {
        for user in [None, Some(OsStr::new(""))] {
            assert!(matches!(
                Home::resolve(set.map(OsStr::new), user, Path::new("/w")),
                Err(Error::NoHome)
            ));
        }
    }
    assert!(Home::resolve(Some(OsStr::new("/abs")), None, Path::new("/w")).is_ok());
}

#[test]
fn headless_makes_itself_once_and_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_in(&dir);
    let profile = Profile::open(&home, "headless").unwrap();
    let (own, patch) = (profile.dir().join(MANIFEST), profile.dir().join(PATCH));
    let text = fs::read_to_string(&own).unwrap();
    assert!(text.ends_with("\nbundles: [base, headless]\n"), "{text}");
    let text = fs::read_to_string(&patch).unwrap();
    assert!(text.contains("dsh --profile headless --dump-config"));
    assert_eq!(fs::read_dir(profile.dir()).unwrap().count(), 2);

    let fresh = profile.compose(Scope::All(&[])).unwrap();
    assert!(fresh.warnings().is_empty());
    assert_eq!(
        fresh.dump(),
        profile.compose(Scope::Bundles).unwrap().dump()
    );

    fs::write(&own, "bundles: [base]\n").unwrap();
    fs::remove_file(&patch).unwrap();
    let again = Profile::open(&home, "headless").unwrap();
    assert_eq!(again.bundles, ["base"]);
    assert!(!patch.exists());
}

#[test]
fn a_patch_that_a_person_wrote_first_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let patch = dir.path().join("profiles/headless").join(PATCH);
    write(&patch, "- id: tool-todo\n  disabled: true\n");
    let profile = Profile::open(&home_in(&dir), "headless").unwrap();
    assert!(profile.dir().join(MANIFEST).exists());
    assert!(fs::read_to_string(&patch).unwrap().contains("tool-todo"));
}

#[test]
fn processes_that_start_at_once_agree() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_in(&dir);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert_eq!(
                    Profile::open(&home, "headless").unwrap().bundles,
                    ["base", "headless"]
                );
            });
        }
    });
}

#[test]
fn looking_for_a_profile_makes_none() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Profile::find(&home_in(&dir), "headless").unwrap().is_none());
    assert!(Profile::find(&home_in(&dir), "..").is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    Profile::open(&home_in(&dir), "headless").unwrap();
    let found = Profile::find(&home_in(&dir), "headless").unwrap().unwrap();
    assert_eq!(found.bundles, ["base", "headless"]);
}

#[test]
fn another_missing_profile_is_an_error_that_says_how_to_make_it() {
    let dir = tempfile::tempdir().unwrap();
    let error = Profile::open(&home_in(&dir), "nope")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("profile \"nope\" does not exist; ") && error.contains("profile.yml"),
        "{error}"
    );
    assert!(!dir.path().join("profiles").exists());
}

#[test]
fn names_that_leave_the_directory_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "",
        " ",
        ".",
        "..",
        "node_modules",
        "a/b",
        "a\\b",
        "/etc",
        "../x",
        "a\0b",
    ] {
        assert!(
            matches!(
                Profile::open(&home_in(&dir), name),
                Err(Error::ProfileName { .. })
            ),
            "{name:?}"
        );
    }
}

#[test]
fn upstreams_manifest_is_read_and_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = dir.path().join("profiles/headless/package.json");
    let text = r#"{"name": "dsh-profile-headless", "dsh": {"profile": {"bundles":
        ["@deepseek-ai/dsh-base", "@deepseek-ai/dsh-headless", "acme-plugin"]}}}"#;
    write(&manifest, text);
    let profile = Profile::open(&home_in(&dir), "headless").unwrap();
    assert_eq!(profile.bundles, ["base", "headless"]);
    assert_eq!(profile.problems.len(), 1);
    assert!(
        profile.problems[0].message.contains("acme-plugin"),
        "{:?}",
        profile.problems
    );
    assert_eq!(fs::read_to_string(&manifest).unwrap(), text);
    assert_eq!(fs::read_dir(profile.dir()).unwrap().count(), 1);
}

#[test]
fn an_early_headless_manifest_is_read_as_the_present_one() {
    let dir = tempfile::tempdir().unwrap();
    let listed = r#"{"dsh":{"profile":{"bundles":["@deepseek-ai/dsh-base","@deepseek-ai/dsh-web-app","@deepseek-ai/dsh-headless"]}}}"#;
    for (name, problems) in [("headless", 0), ("mine", 1)] {
        write(
            &dir.path().join("profiles").join(name).join("package.json"),
            listed,
        );
        let profile = Profile::open(&home_in(&dir), name).unwrap();
        assert_eq!(
            (profile.bundles.len(), profile.problems.len()),
            (2, problems),
            "{name}"
        );
    }
}

#[test]
fn our_manifest_wins_over_upstreams_and_one_without_the_member_has_no_bundles() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("profiles/mine");
    write(&at.join("package.json"), "{\"name\": \"x\"}");
    assert!(
        Profile::open(&home_in(&dir), "mine")
            .unwrap()
            .bundles
            .is_empty()
    );
    write(
        &at.join(MANIFEST),
        "bundles: [base, '@deepseek-ai/dsh-base']\n",
    );
    assert_eq!(
        Profile::open(&home_in(&dir), "mine").unwrap().bundles,
        ["base"]
    );
}

#[test]
fn a_broken_manifest_names_its_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("profiles/mine");
    for (file, text, line) in [
        (MANIFEST, "", 1),
        (MANIFEST, "\n- base\n", 2),
        (MANIFEST, "a: 1\nbundles: base\n", 2),
        (MANIFEST, "bundles:\n  - base\n  - 7\n", 3),
        (MANIFEST, "bundles: [base\nx: y\n", 2),
        ("package.json", "{\n\"a\": ,\n}", 2),
        (
            "package.json",
            r#"{"dsh":{"profile":{"bundles":"base"}}}"#,
            1,
        ),
    ] {
        let _ = fs::remove_dir_all(&at);
        write(&at.join(file), text);
        match Profile::open(&home_in(&dir), "mine").unwrap_err() {
            Error::Document {
                path, line: found, ..
            } => assert_eq!((path, found), (at.join(file), line), "{text:?}"),
            other => panic!("{text:?}: {other}"),
        }
    }
}

#[test]
fn layers_come_in_order_and_the_later_wins() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_in(&dir);
    let profile = Profile::open(&home, "headless").unwrap();
    let model = |name: &str| {
        format!("- id: agent-default-model\n  config: {{provider: p, model: {name}}}\n")
    };
    let one = dir.path().join("one.yml");
    let two = dir.path().join("two.yml");
    for (path, name) in [
        (&profile.dir().join(PATCH), "profile"),
        (&home.path().join(PATCH), "machine"),
        (&one, "one"),
        (&two, "two"),
    ] {
        fs::write(path, model(name)).unwrap();
    }
    let winner = |scope: Scope<'_>| {
        let dump = profile.compose(scope).unwrap().dump();
        let at = dump.find("provider: p\n").map(|at| &dump[at..]);
        at.map(|rest| rest.lines().nth(1).unwrap().trim().to_owned())
    };
    let both = [one.clone(), two.clone()];
    assert_eq!(winner(Scope::All(&both)).unwrap(), "model: two");
    assert_eq!(winner(Scope::All(&both[..1])).unwrap(), "model: one");
    assert_eq!(winner(Scope::All(&[])).unwrap(), "model: machine");
    assert_eq!(winner(Scope::Bundles), None);
}

#[test]
fn the_default_dump_works_when_a_persons_layer_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let profile = Profile::open(&home_in(&dir), "headless").unwrap();
    fs::write(profile.dir().join(PATCH), "{ not yaml").unwrap();
    assert!(profile.compose(Scope::All(&[])).is_err());
    assert!(profile.compose(Scope::Bundles).is_ok());
}

#[test]
fn a_patch_file_that_is_missing_is_fatal_and_a_persons_own_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let profile = Profile::open(&home_in(&dir), "headless").unwrap();
    fs::remove_file(profile.dir().join(PATCH)).unwrap();
    assert!(profile.compose(Scope::All(&[])).is_ok());
    let error = profile
        .compose(Scope::All(&["/nonexistent/p.yml".into()]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot read /nonexistent/p.yml"), "{error}");
}

#[test]
fn the_anonymous_id_is_made_once_and_mended() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_in(&dir);
    let path = dir.path().join(".anonymous-user-id");
    let id = home.anonymous_user_id();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{id}\n"));
    assert_eq!(home.anonymous_user_id(), id);

    let other = "6F9619FF-8B86-4011-B42D-00C04FC964FF";
    fs::write(&path, other).unwrap();
    assert_eq!(home.anonymous_user_id(), other);

    for broken in ["", "nonsense", "6F9619FF8B864011B42D00C04FC964FF", "x\ny"] {
        fs::write(&path, broken).unwrap();
        let mended = home.anonymous_user_id();
        assert_eq!(fs::read_to_string(&path).unwrap().trim(), mended);
        assert_ne!(mended, broken);
    }
}

#[test]
fn a_home_that_cannot_be_written_still_gives_an_anonymous_id() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let home = Home::resolve(Some(file.as_os_str()), None, Path::new("/")).unwrap();
    assert_eq!(home.anonymous_user_id().len(), 36);
}

#[test]
fn a_profile_that_is_made_runs_tasks_and_is_made_once() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_in(&dir);
    for name in ["mine", "headless"] {
        let (profile, made) = Profile::open_or_make(&home, name).unwrap();
        assert!(made);
        assert_eq!(profile.bundles, ["base", "headless"]);
        profile.compose(Scope::All(&[])).unwrap();
        let patch = fs::read_to_string(profile.dir().join(PATCH)).unwrap();
        assert!(patch.contains(&format!("--profile {name} ")), "{patch}");
        let (_, made) = Profile::open_or_make(&home, name).unwrap();
        assert!(!made);
    }
    assert!(matches!(
        Profile::open_or_make(&home, "../x"),
        Err(Error::ProfileName { .. })
    ));
    assert!(!dir.path().join("x").exists());
}

#[test]
fn a_profile_of_upstream_is_opened_and_has_a_lock_beside_its_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_in(&dir);
    let manifest = dir.path().join("profiles/theirs").join(UPSTREAM);
    write(
        &manifest,
        r#"{"dsh":{"profile":{"bundles":["@deepseek-ai/dsh-base"]}}}"#,
    );
    let (profile, made) = Profile::open_or_make(&home, "theirs").unwrap();
    assert!(!made);
    assert_eq!(profile.policy().unwrap(), Policy::default());
    let mut change = profile.change().unwrap();
    let digest = change.packages().put(b"x").unwrap();
    change.lock().put(Installed {
        name: "acme:x".into(),
        version: "1.0.0".into(),
        source: "/x".into(),
        digest,
        contract: "0.1.0".into(),
        ..Installed::default()
    });
    change.commit().unwrap();
    assert!(!profile.dir().join(MANIFEST).exists());
    assert_eq!(profile.lock().unwrap().plugins.len(), 1);
}

#[test]
fn commands_in_a_text_are_for_the_profile_that_it_is_about() {
    let text = "x; run `dsh plugin add /x`, or `dsh plugin remove a:b`";
    for (name, wanted) in [
        ("headless", text),
        (
            "work",
            "x; run `dsh plugin --profile work add /x`, or `dsh plugin --profile work remove a:b`",
        ),
        (
            "it's",
            "x; run `dsh plugin --profile 'it'\\''s' add /x`, or `dsh plugin --profile 'it'\\''s' remove a:b`",
        ),
    ] {
        assert_eq!(for_profile(name, text), wanted);
    }
}

#[test]
fn a_file_that_cannot_be_written_whole_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    // Its draft's name is too long for any file system, as a full disk is too small.
    let path = dir.path().join(format!("{}.yml", "x".repeat(250)));
    assert!(write_new(&path, "bundles: []").is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
