use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::fence::Refusal;
use crate::observe::{Expect, Intent, Operation};
use crate::search::{Bounds, Cancel};
use crate::write::{Allowed, operation};
use dsh_plugin::port::Guard;

fn allowed(files: &Files, operation: Operation, path: &str) -> Result<Allowed, Error> {
    let intent = files.intent(operation, path)?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    let expect = runtime.block_on(files.policy.intent(&intent));
    Ok(Allowed::new(intent, expect))
}

/// A home, a workspace and a place outside, apart from `/tmp`'s own grant.
pub(crate) struct World {
    _temp: tempfile::TempDir,
    pub(crate) base: PathBuf,
    pub(crate) files: Files,
}

impl World {
    pub(crate) fn new(mode: Mode) -> Self {
        World::with(mode, Arc::new(crate::observe::Unguarded))
    }

    pub(crate) fn with(mode: Mode, policy: Arc<dyn WritePolicy>) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for dir in [
            "home/cache",
            "home/skills",
            "home/storages",
            "home/attachments/v1/objects/ab",
            "work",
            "out",
        ] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        for (file, content) in [
            ("home/.credentials.yaml", "key: sesame"),
            ("home/.env", "K=sesame"),
            ("home/cache/key", "sesame"),
            ("home/storages/session_projcache.json", "sesame"),
            ("home/attachments/v1/objects/ab/abcd", "sesame"),
            ("home/settings.yaml", "a: 1"),
            ("out/secret", "outside"),
            ("work/a.txt", "alpha\nbeta\n"),
        ] {
            std::fs::write(base.join(file), content).unwrap();
        }
        // The fence would be wide open below a real temporary directory.
        let fence = Fence {
            root: base.join("work"),
            home: base.join("home"),
            temps: vec![base.join("temp")],
            ..Fence::default()
        };
        let files = Files {
            fence,
            mode: Arc::new(move || mode),
            policy,
            observed: true,
        };
        World {
            _temp: temp,
            base,
            files,
        }
    }

    /// As the session's port does it: looks, asks the policy, changes.
    fn allowed(&self, operation: Operation, path: &str) -> Result<Allowed, Error> {
        allowed(&self.files, operation, path)
    }

    pub(crate) fn write(
        &self,
        path: &str,
        content: &[u8],
        guard: &Guard,
    ) -> Result<Metadata, Error> {
        let allowed = self.allowed(operation(guard), path)?;
        self.files.write(path, content, guard, &allowed)
    }

    pub(crate) fn remove(&self, path: &str) -> Result<(), Error> {
        let allowed = self.allowed(Operation::Remove, path)?;
        self.files.remove(path, &allowed)
    }

    pub(crate) fn rename(&self, path: &str, to: &str) -> Result<(), Error> {
        let from = self.allowed(Operation::Rename, path)?;
        let there = self.allowed(Operation::Rename, to)?;
        self.files.rename(path, to, (&from, &there))
    }

    pub(crate) fn read_for(
        &self,
        path: &str,
        guard: &Guard,
        offset: u64,
        limit: u32,
    ) -> Result<Slice, Error> {
        let allowed = self.allowed(operation(guard), path)?;
        self.files.read_for(path, guard, (offset, limit), &allowed)
    }

    pub(crate) fn path(&self, path: &str) -> String {
        self.base.join(path).to_str().unwrap().to_owned()
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.base.join(path)).unwrap()
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn a_workspace_that_was_granted_by_its_directories_ends_there_by_whatever_name() {
    let mut world = World::new(Mode::WorkspaceWrite);
    for (file, content) in [("work/src/in.txt", "in"), ("work/src/sub/deep.txt", "deep")] {
        std::fs::create_dir_all(world.base.join(file).parent().unwrap()).unwrap();
        std::fs::write(world.base.join(file), content).unwrap();
    }
    std::os::unix::fs::symlink(world.path("out"), world.path("work/src/out")).unwrap();
    std::os::unix::fs::symlink(world.path("work/src"), world.path("work/alias")).unwrap();
    world.files.fence = world.files.fence.within(&["src".to_owned()]);
    let files = &world.files;
    for path in [
        "src/in.txt",
        "src/sub/deep.txt",
        "alias/in.txt",
        "src/../src/in.txt",
    ] {
        files.read(path, 0, 10).unwrap();
    }
    for path in [
        "a.txt",
        "src/../a.txt",
        "src/out/secret",
        &world.path("out/secret"),
        "/etc/passwd",
        // Nor is told what is not there.
        "nothing",
        "/nowhere/at/all",
    ] {
        assert_eq!(code(files.read(path, 0, 10)), "FS_SANDBOX_DENIED", "{path}");
        assert_eq!(code(files.stat(path)), "FS_SANDBOX_DENIED", "{path}");
    }
    assert_eq!(code(files.list_dir(".")), "FS_SANDBOX_DENIED");
    for path in ["b.txt", "src/out/new", "src/../new"] {
        let written = world.write(path, b"x", &Guard::Overwrite);
        assert_eq!(code(written), "FS_SANDBOX_DENIED", "{path}");
    }
    world.write("src/new", b"x", &Guard::Absent).unwrap();
    assert_eq!(code(world.rename("src/new", "b.txt")), "FS_SANDBOX_DENIED");
    assert_eq!(code(world.rename("src", "srcs")), "FS_SANDBOX_DENIED");
    assert_eq!(code(world.remove("a.txt")), "FS_SANDBOX_DENIED");
    let found = |path| files.glob("**/*.txt", path, 10, Bounds::SHIPPED, Cancel::default());
    assert_eq!(code(found(None)), "FS_SANDBOX_DENIED");
    assert_eq!(found(Some("src")).unwrap().total, 2);
}

#[test]
fn a_slice_comes_with_the_version_of_its_file() {
    let world = World::new(Mode::ReadOnly);
    let all = world.files.read("a.txt", 0, 1000).unwrap();
    assert_eq!(
        (all.content.as_slice(), all.metadata.size),
        (b"alpha\nbeta\n".as_slice(), 11)
    );
    assert_eq!(
        all.metadata,
        world.files.stat(&world.path("work/a.txt")).unwrap()
    );
    assert_eq!(
        world.files.read("./x/../a.txt", 0, 9).unwrap_err().code(),
        "FS_NOT_FOUND"
    );
    assert_eq!(
        world.files.read("../work/a.txt", 6, 4).unwrap().content,
        b"beta"
    );
    assert_eq!(world.files.read("a.txt", 11, 4).unwrap().content, b"");
    assert_eq!(
        world
            .files
            .read("a.txt", u64::MAX, u32::MAX)
            .unwrap()
            .content,
        b""
    );
}

#[test]
fn the_version_changes_with_the_content_and_not_with_the_mode() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(Mode::ReadOnly);
    let before = world.files.stat("a.txt").unwrap().version;
    std::fs::set_permissions(
        world.path("work/a.txt"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    assert_eq!(world.files.stat("a.txt").unwrap().version, before);
    std::fs::write(world.path("work/a.txt"), "alpha\nbeta\nmore").unwrap();
    assert_ne!(world.files.stat("a.txt").unwrap().version, before);
}

#[test]
fn reads_are_free_but_secrets_are_reached_by_no_way() {
    let world = World::new(Mode::DangerFullAccess);
    let root = &world.files.fence.root;
    assert_eq!(
        world
            .files
            .read(&world.path("out/secret"), 0, 99)
            .unwrap()
            .content,
        b"outside"
    );
    assert!(
        world
            .files
            .read(&world.path("home/settings.yaml"), 0, 99)
            .is_ok()
    );

    symlink(world.base.join("home/.credentials.yaml"), root.join("link")).unwrap();
    symlink(world.base.join("home"), root.join("dir")).unwrap();
    std::fs::hard_link(world.base.join("home/.credentials.yaml"), root.join("hard")).unwrap();
    std::fs::hard_link(world.base.join("home/cache/key"), root.join("hardkey")).unwrap();
    let views = world.base.join("home/storages/session_projcache.json");
    symlink(&views, root.join("AGENTS.md")).unwrap();
    std::fs::hard_link(&views, root.join("hardviews")).unwrap();
    for path in [
        world.path("home/.credentials.yaml"),
        world.path("home/skills/../.env"),
        world.path("home/cache/key"),
        "../home/.env".to_owned(),
        "link".to_owned(),
        "dir/.env".to_owned(),
        "hard".to_owned(),
        "hardkey".to_owned(),
        world.path("home/storages/session_projcache.json"),
        "dir/storages/session_projcache.json".to_owned(),
        world.path("home/attachments/v1/objects/ab/abcd"),
        "dir/attachments/v1/objects/ab/abcd".to_owned(),
        "AGENTS.md".to_owned(),
        "hardviews".to_owned(),
        format!(
            "/proc/self/root{}",
            world.path("home/storages/session_projcache.json")
        ),
        format!("/proc/self/root{}", world.path("home/.env")),
        "/proc/self/environ".to_owned(),
        format!("/proc/{}/environ", std::process::id()),
        "/proc/thread-self/maps".to_owned(),
    ] {
        assert_eq!(
            code(world.files.read(&path, 0, 99)),
            "FS_SANDBOX_DENIED",
            "{path}"
        );
        assert_eq!(code(world.files.stat(&path)), "FS_SANDBOX_DENIED", "{path}");
    }
    std::fs::hard_link(world.base.join("out/secret"), root.join("twice")).unwrap();
    assert!(world.files.read("twice", 0, 99).is_ok());
    assert!(world.files.read("/proc/cpuinfo", 0, 99).is_ok());
}

#[test]
fn an_open_descriptor_of_ours_is_not_a_way_in() {
    use std::os::fd::AsRawFd;
    let world = World::new(Mode::ReadOnly);
    let open = File::open(world.base.join("home/.env")).unwrap();
    let path = format!("/proc/self/fd/{}", open.as_raw_fd());
    assert_eq!(code(world.files.read(&path, 0, 99)), "FS_SANDBOX_DENIED");
    symlink(&path, world.base.join("work/magic")).unwrap();
    assert_ne!(world.files.read("magic", 0, 99).unwrap_err().code(), "");
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_waited_for() {
    let world = World::new(Mode::ReadOnly);
    let fifo = world.base.join("work/fifo");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    for path in ["fifo", ".", "/dev/null", "/dev/zero", "/"] {
        assert_eq!(
            code(world.files.read(path, 0, 99)),
            "FS_NOT_REGULAR_FILE",
            "{path}"
        );
    }
    for (path, expected) in [
        ("a.txt/", "FS_NOT_DIRECTORY"),
        ("a.txt/x", "FS_NOT_DIRECTORY"),
        ("none", "FS_NOT_FOUND"),
        ("", "FS_NOT_FOUND"),
        ("a\0b", "FS_NOT_FOUND"),
        (&"x".repeat(5000), "FS_IO_ERROR"),
    ] {
        assert_eq!(code(world.files.read(path, 0, 99)), expected, "{path:?}");
    }
    symlink("loop", world.base.join("work/loop")).unwrap();
    assert_eq!(code(world.files.read("loop", 0, 99)), "FS_IO_ERROR");
}

#[test]
fn a_directory_is_listed_in_order_with_the_kind_of_each_entry() {
    let world = World::new(Mode::ReadOnly);
    std::fs::create_dir(world.base.join("work/sub")).unwrap();
    symlink("a.txt", world.base.join("work/link")).unwrap();
    let entries = world.files.list_dir(".").unwrap();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.kind))
        .collect();
    let expected = [
        ("a.txt", FileKind::File),
        ("link", FileKind::Symlink),
        ("sub", FileKind::Directory),
    ];
    assert_eq!(seen, expected);
    assert_eq!(code(world.files.list_dir("a.txt")), "FS_NOT_DIRECTORY");
    assert_eq!(
        code(world.files.list_dir(&world.path("home/cache"))),
        "FS_SANDBOX_DENIED"
    );
}

#[test]
fn a_refusal_names_the_place_that_was_really_reached() {
    let world = World::new(Mode::ReadOnly);
    symlink(
        world.base.join("home/.env"),
        world.base.join("work/innocent"),
    )
    .unwrap();
    let error = world.files.read("innocent", 0, 9).unwrap_err();
    let Error::Denied { path, reason } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (path, reason),
        (world.base.join("home/.env"), Refusal::Secret)
    );
}

/// Notes what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<(PathBuf, bool)>>);

#[async_trait::async_trait]
impl WritePolicy for Notes {
    fn observed(&self, path: &Path, version: Option<&str>) {
        self.0
            .lock()
            .unwrap()
            .push((path.to_path_buf(), version.is_some()));
    }

    async fn intent(&self, _: &Intent) -> Expect {
        Expect::Any
    }
}

#[test]
fn what_a_listener_reads_nobody_has_read_and_what_it_changes_is_told() {
    let notes = Arc::new(Notes::default());
    let mut world = World::with(Mode::WorkspaceWrite, notes.clone());
    world.files.observed = false;
    world.files.read("a.txt", 0, 1).unwrap();
    world.files.read("new", 0, 1).unwrap_err();
    assert!(notes.0.lock().unwrap().is_empty());
    world
        .write("new", b"x", &dsh_plugin::port::Guard::Overwrite)
        .unwrap();
    let told = vec![(world.base.join("work/new"), true)];
    assert_eq!(*notes.0.lock().unwrap(), told);
}

#[test]
fn what_a_listener_reads_is_not_what_a_link_of_the_project_chose() {
    let mut world = World::new(Mode::WorkspaceWrite);
    let work = world.base.join("work");
    std::fs::create_dir_all(work.join("sub")).unwrap();
    std::fs::write(work.join("sub/.env"), "K=1").unwrap();
    for (name, target) in [
        ("fine", "a.txt"),
        ("out", "../out/secret"),
        ("dir", "../out"),
        ("env", "sub/.env"),
        ("twice", "out"),
    ] {
        symlink(target, work.join(name)).unwrap();
    }
    let refused = ["out", "dir/secret", "env", "twice"];
    // A tool's call is somebody's asking.
    for path in refused {
        world.files.read(path, 0, 9).unwrap();
    }
    world.files.observed = false;
    for path in refused {
        let error = world.files.read(path, 0, 9).unwrap_err();
        assert_eq!(error.code(), "FS_SANDBOX_DENIED", "{path}");
    }
    world.files.read("fine", 0, 9).unwrap();
    // The project may be wider than the workspace.
    std::fs::create_dir(world.base.join(".git")).unwrap();
    world.files.read("out", 0, 9).unwrap();
    world.files.read("env", 0, 9).unwrap_err();
}

#[test]
fn every_read_and_change_is_observed_by_canonical_path() {
    let notes = Arc::new(Notes::default());
    let world = World::with(Mode::WorkspaceWrite, notes.clone());
    symlink("a.txt", world.base.join("work/link")).unwrap();
    world.files.read("link", 0, 1).unwrap();
    world.files.read("new", 0, 1).unwrap_err();
    world
        .write("new", b"x", &dsh_plugin::port::Guard::Overwrite)
        .unwrap();
    world.rename("new", "newer").unwrap();
    world.remove("newer").unwrap();
    let work = |name: &str| world.base.join("work").join(name);
    let expected = vec![
        (work("a.txt"), true),
        (work("new"), false),
        (work("new"), true),
        (work("new"), false),
        (work("newer"), true),
        (work("newer"), false),
    ];
    assert_eq!(*notes.0.lock().unwrap(), expected);
}
