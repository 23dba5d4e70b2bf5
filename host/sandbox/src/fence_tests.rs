use super::*;

fn fence() -> Fence {
    Fence {
        root: "/home/u/work".into(),
        home: "/home/u/.dsh".into(),
        temps: vec!["/tmp".into(), "/var/tmp/u".into()],
        ..Fence::default()
    }
}

#[test]
fn a_mode_writes_where_the_table_says() {
    use Mode::{DangerFullAccess as Full, ReadOnly as Read, WorkspaceWrite as Work};
    let table = [
        ("/home/u/work/a", Read, Err(Refusal::ReadOnly)),
        ("/tmp/a", Read, Err(Refusal::ReadOnly)),
        ("/home/u/work/a", Work, Ok(())),
        ("/home/u/work/deep/er/a", Work, Ok(())),
        ("/home/u/work", Work, Ok(())),
        ("/home/u/workshop/a", Work, Err(Refusal::Outside)),
        ("/home/u/wor", Work, Err(Refusal::Outside)),
        ("/home/u", Work, Err(Refusal::Outside)),
        ("/", Work, Err(Refusal::Outside)),
        ("/etc/passwd", Work, Err(Refusal::Outside)),
        ("/tmp/a", Work, Ok(())),
        ("/tmpfile", Work, Err(Refusal::Outside)),
        ("/var/tmp/u/a", Work, Ok(())),
        ("/var/tmp/a", Work, Err(Refusal::Outside)),
        ("/home/u/.dsh/settings.yaml", Work, Err(Refusal::Home)),
        ("/home/u/.dsh", Read, Err(Refusal::Home)),
        ("/etc/passwd", Full, Ok(())),
        ("/home/u/.dsh/settings.yaml", Full, Err(Refusal::Home)),
        ("/home/u/.dsh/new/file", Full, Err(Refusal::Home)),
        ("/home/u/.dshx", Full, Ok(())),
    ];
    for (path, mode, expected) in table {
        assert_eq!(
            fence().may_write(Path::new(path), mode),
            expected,
            "{path} under {mode}"
        );
    }
}

#[test]
fn home_is_outside_the_fence_even_inside_the_workspace_or_around_it() {
    let inside = Fence {
        root: "/w".into(),
        home: "/w/.dsh".into(),
        temps: vec![],
        ..Fence::default()
    };
    assert_eq!(
        inside.may_write(Path::new("/w/.dsh/x"), Mode::WorkspaceWrite),
        Err(Refusal::Home)
    );
    assert_eq!(
        inside.may_write(Path::new("/w/x"), Mode::WorkspaceWrite),
        Ok(())
    );
    let around = Fence {
        root: "/h/w".into(),
        home: "/h".into(),
        temps: vec![],
        ..Fence::default()
    };
    assert_eq!(
        around.may_write(Path::new("/h/w/x"), Mode::WorkspaceWrite),
        Err(Refusal::Home)
    );
}

#[test]
fn a_directory_that_holds_home_or_the_workspace_stays_where_it_is() {
    let fence = Fence {
        root: "/w/p".into(),
        home: "/w/p/deep/.dsh".into(),
        temps: vec!["/w".into()],
        ..Fence::default()
    };
    for mode in [Mode::WorkspaceWrite, Mode::DangerFullAccess] {
        assert_eq!(
            fence.may_move(Path::new("/w/p/deep"), mode),
            Err(Refusal::Home)
        );
        assert_eq!(fence.may_move(Path::new("/w/p/other"), mode), Ok(()));
    }
    let apart = Fence {
        root: "/w/p".into(),
        home: "/h".into(),
        temps: vec!["/w".into()],
        ..Fence::default()
    };
    assert_eq!(
        apart.may_move(Path::new("/w/p"), Mode::WorkspaceWrite),
        Err(Refusal::Root)
    );
}

#[test]
fn only_secrets_of_home_and_process_state_are_not_read() {
    let table = [
        ("/home/u/.dsh/.credentials.yaml", Err(Refusal::Secret)),
        ("/home/u/.dsh/.credentials.yaml.lock", Err(Refusal::Secret)),
        ("/home/u/.dsh/.credentials.yaml.a1b2", Err(Refusal::Secret)),
        ("/home/u/.dsh/.tmpA1b2C3", Err(Refusal::Secret)),
        ("/home/u/.dsh/.env", Err(Refusal::Secret)),
        ("/home/u/.dsh/settings.yaml.lock", Err(Refusal::Secret)),
        ("/home/u/.dsh/profiles/p/dsh.lock", Err(Refusal::Secret)),
        ("/home/u/.dsh/cache/key", Err(Refusal::Secret)),
        ("/home/u/.dsh/cache", Err(Refusal::Secret)),
        ("/home/u/.dsh/storages", Err(Refusal::Secret)),
        (
            "/home/u/.dsh/storages/session_projcache.json",
            Err(Refusal::Secret),
        ),
        ("/home/u/.dsh/skills/storages/a.md", Ok(())),
        ("/home/u/.dsh/attachments", Err(Refusal::Secret)),
        (
            "/home/u/.dsh/attachments/v1/objects/ab/abcd",
            Err(Refusal::Secret),
        ),
        ("/home/u/.dsh/skills/attachments/a.md", Ok(())),
        ("/home/u/.dsh/plugins/data", Err(Refusal::Secret)),
        ("/home/u/.dsh/plugins/data/a/kv", Err(Refusal::Secret)),
        ("/home/u/.dsh/plugins/sha256/ab", Ok(())),
        ("/home/u/.dsh/skills/plugins/data", Ok(())),
        ("/home/u/.dsh", Ok(())),
        ("/home/u/.dsh/settings.yaml", Ok(())),
        ("/home/u/.dsh/sessions/--w--/s/session.jsonl.zstd", Ok(())),
        ("/home/u/.dsh/sessions/--w--/s/lock", Err(Refusal::Secret)),
        ("/home/u/.dsh/skills/locksmith.md", Ok(())),
        ("/home/u/.dsh/skills/cache/a.md", Ok(())),
        ("/home/u/work/.env", Ok(())),
        ("/home/u/work/Cargo.lock", Ok(())),
        ("/etc/shadow", Ok(())),
        ("/proc/self/environ", Err(Refusal::ProcessState)),
        ("/proc/thread-self/mem", Err(Refusal::ProcessState)),
        ("/proc/1/environ", Err(Refusal::ProcessState)),
        ("/proc/cpuinfo", Ok(())),
        ("/proc/sys/kernel/pid_max", Ok(())),
    ];
    for (path, expected) in table {
        assert_eq!(fence().may_read(Path::new(path)), expected, "{path}");
    }
}

#[test]
fn what_does_not_exist_yet_is_resolved_as_far_as_it_does() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::create_dir(temp.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", temp.path().join("link")).unwrap();
    let real = temp.path().canonicalize().unwrap().join("real/a/b");
    assert_eq!(canonical(&temp.path().join("link/a/b")), real);
}

#[test]
fn who_was_granted_directories_uses_nothing_beside_them() {
    let fence = Fence {
        root: "/w".into(),
        only: Some(vec!["/w/src".into(), "/usr/share".into()]),
        ..fence()
    };
    for (path, granted) in [
        ("/w/src", true),
        ("/w/src/a/b", true),
        ("/usr/share/doc", true),
        ("/w", false),
        ("/w/srcs", false),
        ("/w/other", false),
        ("/usr", false),
        ("/etc/passwd", false),
        ("/tmp/x", false),
        ("/", false),
    ] {
        let path = Path::new(path);
        assert_eq!(fence.may_read(path).is_ok(), granted, "{}", path.display());
        // A grant widens nothing: the mode's own places hold as well.
        let writable = granted && path.starts_with("/w");
        let written = fence.may_write(path, Mode::WorkspaceWrite);
        assert_eq!(written.is_ok(), writable, "{}", path.display());
    }
    let src = Path::new("/w/src");
    assert_eq!(
        fence.may_move(src, Mode::WorkspaceWrite),
        Err(Refusal::NotGranted)
    );
    fence
        .may_move(&src.join("a"), Mode::WorkspaceWrite)
        .unwrap();
}

#[test]
fn a_link_leads_what_nobody_asked_for_neither_out_of_the_project_nor_to_credentials() {
    let table = [
        // asked, reached, where the directory that was asked in really is
        ("/p/AGENTS.md", "/p/AGENTS.md", "/p", Ok(())),
        ("/p/CLAUDE.md", "/p/AGENTS.md", "/p", Ok(())),
        ("/p/a/AGENTS.md", "/p/AGENTS.md", "/p/a", Ok(())),
        (
            "/p/AGENTS.md",
            "/home/u/.ssh/id",
            "/p",
            Err(Refusal::LedOut),
        ),
        ("/p/AGENTS.md", "/project/a", "/p", Err(Refusal::LedOut)),
        // A folder of the project that is itself such a link.
        ("/p/a/AGENTS.md", "/q/AGENTS.md", "/q", Err(Refusal::LedOut)),
        ("/p/AGENTS.md", "/p/.env", "/p", Err(Refusal::LedToSecret)),
        (
            "/p/AGENTS.md",
            "/p/a/.env.local",
            "/p",
            Err(Refusal::LedToSecret),
        ),
        (
            "/p/AGENTS.md",
            "/p/.credentials.yaml",
            "/p",
            Err(Refusal::LedToSecret),
        ),
        ("/p/AGENTS.md", "/p/.environment", "/p", Ok(())),
        // By its own name, somebody meant it.
        ("/p/.env", "/p/.env", "/p", Ok(())),
        // A person's own places: what stands in a folder, wherever that is.
        ("/h/AGENTS.md", "/h/mine.md", "/h", Ok(())),
        (
            "/h/AGENTS.md",
            "/dots/AGENTS.md",
            "/h",
            Err(Refusal::LedOut),
        ),
        ("/h/skills/s/SKILL.md", "/src/s/SKILL.md", "/src/s", Ok(())),
        ("/h/AGENTS.md", "/h/.env", "/h", Err(Refusal::LedToSecret)),
    ];
    for (asked, reached, directory, expected) in table {
        let answer = may_volunteer(
            Path::new(asked),
            Path::new(reached),
            Path::new("/p"),
            Path::new(directory),
        );
        assert_eq!(answer, expected, "{asked} → {reached}");
    }
}
