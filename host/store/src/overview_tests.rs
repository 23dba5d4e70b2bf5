use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::testing::quick_dir;
use crate::{Store, StoreConfig, frame};

const CREATED: u64 = 1_700_000_000_000;

/// A root with an index beside it.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: quick_dir() }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("sessions")
    }

    fn index(&self) -> PathBuf {
        self.dir.path().join("cache/sessions.index")
    }

    fn store(&self) -> Store {
        let mut config = StoreConfig::new(self.root());
        config.index = Some(self.index());
        Store::open(config).unwrap()
    }

    /// A store that has to read everything.
    fn plain(&self) -> Store {
        Store::open(StoreConfig::new(self.root())).unwrap()
    }

    fn header(id: &str, cwd: &str, created: u64) -> Header {
        let mut header = Header::new(id, created);
        header.cwd = Some(cwd.into());
        header
    }

    fn path(&self, header: &Header) -> PathBuf {
        layout::log_path(&self.root(), header, Compression::Zstd).unwrap()
    }

    /// Writes a log of one frame a line.
    fn put(&self, header: &Header, lines: &[String]) -> PathBuf {
        let path = self.path(header);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut bytes = frame::encode(format!("{}\n", header.line()).as_bytes()).unwrap();
        for line in lines {
            bytes.extend(frame::encode(format!("{line}\n").as_bytes()).unwrap());
        }
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Sessions 0.. of several projects, each newer than the one before.
    fn fill(&self, count: u64) {
        for n in 0..count {
            let id = format!("session-{n:04}");
            let header = Place::header(&id, &format!("/work/p{}", n % 5), CREATED + n * 1000);
            self.put(
                &header,
                &[turn(0, 1), prompt(1, CREATED + n * 1000 + 5, "do it")],
            );
        }
        self.settle();
    }

    /// Lets the directories look as if they had changed long ago, as they mostly have.
    fn settle(&self) {
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        let mut dirs = vec![self.root()];
        dirs.extend(
            fs::read_dir(self.root())
                .unwrap()
                .map(|e| e.unwrap().path()),
        );
        for dir in dirs {
            fs::File::open(dir).unwrap().set_modified(long_ago).unwrap();
        }
    }
}

fn turn(seq: u64, turn: u64) -> String {
    format!(
        "{{\"type\":\"turn/start\",\"seq\":{seq},\"time\":{CREATED},\"data\":{{\"turn\":{turn}}}}}"
    )
}

fn prompt(seq: u64, time: u64, text: &str) -> String {
    format!(
        "{{\"type\":\"user/message\",\"seq\":{seq},\"time\":{time},\"data\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"source\":{{\"kind\":\"user\"}},\"role\":\"user\",\"id\":\"u{seq}\"}},\"surfaceOp\":\"append\"}}"
    )
}

fn title(seq: u64, text: &str) -> String {
    format!(
        "{{\"type\":\"session/title\",\"seq\":{seq},\"time\":{CREATED},\"data\":{{\"title\":\"{text}\",\"messageSeqs\":[],\"source\":{{\"kind\":\"user\"}}}}}}"
    )
}

fn ids(views: &[Overview]) -> Vec<&str> {
    views.iter().filter_map(|view| view.id.as_deref()).collect()
}

#[test]
fn a_row_sums_up_its_log() {
    let place = Place::new();
    let header = Place::header("s", "/work/p", CREATED);
    let lines = [
        turn(0, 1),
        prompt(1, CREATED + 9, "one two three four five six"),
        turn(2, 2),
    ];
    place.put(&header, &lines);
    let row = &place.store().overview(Only::All).unwrap()[0];
    assert_eq!(row.title.as_deref(), Some("one two three four five"));
    assert_eq!((row.events, row.turns, row.blank()), (3, 2, false));
    assert_eq!(row.updated_at, CREATED as i64 + 9);
    let mut read = header.clone();
    read.delegation_depth = Some(0);
    assert_eq!(row.header.as_ref(), Some(&read));
    assert_eq!((row.torn, &row.damage), (false, &None));

    let named = [&lines[..], &[title(3, "first"), title(4, "second")]].concat();
    place.put(&header, &named);
    let row = &place.store().overview(Only::All).unwrap()[0];
    assert_eq!(row.title.as_deref(), Some("second"));
}

#[test]
fn an_index_says_what_reading_says() {
    let place = Place::new();
    place.fill(40);
    let header = Place::header("broken", "/work/p1", CREATED);
    place.put(&header, &[turn(0, 1), turn(7, 2)]);
    let torn = place.put(
        &Place::header("torn", "/work/p2", CREATED),
        &[turn(0, 1), turn(1, 2)],
    );
    let bytes = fs::read(&torn).unwrap();
    fs::write(&torn, &bytes[..bytes.len() - 3]).unwrap();
    place.settle();

    let read = place.plain().overview(Only::All).unwrap();
    assert_eq!(read.iter().filter(|row| row.damage.is_some()).count(), 1);
    assert_eq!(read.iter().filter(|row| row.torn).count(), 1);
    assert_eq!(read[0].id.as_deref(), Some("session-0039"));
    let store = place.store();
    for _ in 0..3 {
        assert_eq!(store.overview(Only::All).unwrap(), read);
        assert_eq!(store.page(read.len()).unwrap().rows, read);
    }
}

#[test]
fn a_log_is_read_again_exactly_when_it_changed() {
    let place = Place::new();
    place.fill(10);
    let store = place.store();
    store.overview(Only::All).unwrap();
    let written = fs::metadata(place.index()).unwrap().modified().unwrap();
    // A row that only the index can have told of: the log is not what it was, but its revision is.
    let lister = store.lister();
    let mut reader = lister.reader().unwrap();
    let head = reader.head.clone();
    let mut rows = reader.rest();
    for row in &mut rows {
        row.view.title = Some("remembered".into());
    }
    let all: Vec<&Row> = rows.iter().collect();
    index::save(&**lister.storage, &place.index(), lister.of(), &head, &all).unwrap();

    let header = Place::header("session-0003", "/work/p3", CREATED + 3000);
    place.put(
        &header,
        &[turn(0, 1), prompt(1, CREATED + 9_999_999, "changed")],
    );
    let views = store.overview(Only::All).unwrap();
    assert_eq!(views[0].title.as_deref(), Some("changed"));
    assert_eq!(ids(&views)[0], "session-0003");
    let told = views
        .iter()
        .filter(|v| v.title.as_deref() == Some("remembered"));
    assert_eq!(told.count(), 9);
    assert!(fs::metadata(place.index()).unwrap().modified().unwrap() >= written);
}

#[test]
fn a_removed_session_leaves_list_and_index() {
    let place = Place::new();
    place.fill(10);
    let store = place.store();
    store.overview(Only::All).unwrap();
    fs::remove_dir_all(place.root().join("--work-p4--/session-0009")).unwrap();
    assert_eq!(
        store.page(1).unwrap().rows[0].id.as_deref(),
        Some("session-0008")
    );
    assert_eq!(store.overview(Only::All).unwrap().len(), 9);
    let rows = store.lister().reader().unwrap().rest();
    assert_eq!(rows.len(), 9);

    fs::remove_dir_all(place.root()).unwrap();
    assert_eq!(store.page(5).unwrap().rows, []);
    assert_eq!(store.overview(Only::All).unwrap(), []);
    assert!(store.lister().reader().unwrap().rest().is_empty());
}

#[test]
fn a_page_has_new_and_working_sessions_and_says_when_an_older_one_may_be_missing() {
    let place = Place::new();
    let count = HOT as u64 + 100;
    place.fill(count);
    let store = place.store();
    store.overview(Only::All).unwrap();
    let page = store.page(3).unwrap();
    let newest = |n: u64| format!("session-{:04}", count - n);
    assert_eq!(ids(&page.rows), [newest(1), newest(2), newest(3)]);
    assert!(!page.complete);

    // New sessions, in a project of their own and beside others.
    let late = CREATED + 99_999_999;
    place.put(&Place::header("new", "/work/new", late + 1), &[]);
    assert_eq!(ids(&store.page(1).unwrap().rows), ["new"]);
    place.settle();
    store.overview(Only::All).unwrap();
    place.put(&Place::header("beside", "/work/p0", late), &[]);
    assert_eq!(ids(&store.page(2).unwrap().rows), ["new", "beside"]);

    // One that came among those that are looked at anew.
    place.settle();
    store.overview(Only::All).unwrap();
    let working = Place::header("session-0200", "/work/p0", CREATED);
    place.put(&working, &[turn(0, 1), prompt(1, late + 2, "go on")]);
    assert_eq!(
        ids(&store.page(3).unwrap().rows),
        ["session-0200", "new", "beside"]
    );

    // One beyond those, resumed by a program that tells nobody: the page misses it and says that it may.
    let old = Place::header("session-0007", "/work/p2", CREATED);
    place.put(&old, &[turn(0, 1), prompt(1, late + 3, "back")]);
    store.overview(Only::Cwd("/work/new")).unwrap();
    let page = store.page(1).unwrap();
    assert_eq!(
        (ids(&page.rows), page.complete),
        (vec!["session-0200"], false)
    );
    assert_eq!(ids(&store.overview(Only::All).unwrap())[0], "session-0007");
    assert_eq!(ids(&store.page(1).unwrap().rows), ["session-0007"]);
    let all = store.page(usize::MAX).unwrap();
    assert!(all.complete);
    assert_eq!(all.rows, place.plain().overview(Only::All).unwrap());
}

#[test]
fn one_cwd_is_listed_alone_and_remembered_beside_the_others() {
    let place = Place::new();
    place.fill(10);
    // Another working directory of the same project directory, and a log there that has no header.
    place.put(&Place::header("twin", "/work:p1", CREATED), &[]);
    let dir = place.root().join("--work-p1--/headless");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("session.jsonl.zstd"), b"").unwrap();
    place.settle();
    let store = place.store();
    let views = store.overview(Only::Cwd("/work/p1")).unwrap();
    assert_eq!(ids(&views), ["headless", "session-0006", "session-0001"]);
    assert_eq!(store.overview(Only::All).unwrap().len(), 12);
    store.overview(Only::Cwd("/work/p1")).unwrap();
    assert_eq!(store.lister().reader().unwrap().rest().len(), 12);
    assert_eq!(store.overview(Only::Cwd("/nowhere")).unwrap(), []);
    assert_eq!(
        store.page(12).unwrap().rows,
        place.plain().overview(Only::All).unwrap()
    );
}

#[test]
fn what_hangs_on_other_files_is_not_remembered() {
    let place = Place::new();
    place.fill(2);
    // The same log under another name of its project: sound as long as that name is the same directory.
    let aliased = Place::header("alias", "/work/p9", CREATED);
    place.put(&aliased, &[]);
    fs::rename(
        place.root().join("--work-p9--"),
        place.root().join("--moved--"),
    )
    .unwrap();
    symlink("--moved--", place.root().join("--work-p9--")).unwrap();
    let store = place.store();
    let damages = |views: Vec<Overview>| views.iter().filter(|v| v.damage.is_some()).count();
    // Both names lead to it.
    assert_eq!(damages(store.overview(Only::All).unwrap()), 2);
    fs::remove_file(place.root().join("--work-p9--")).unwrap();
    let views = store.overview(Only::All).unwrap();
    assert_eq!(views.len(), 3);
    let damage = views.iter().find_map(|view| view.damage.as_ref()).unwrap();
    assert_eq!(damage.class, DamageClass::Identity);
}

#[test]
fn a_bad_session_hides_no_other() {
    let place = Place::new();
    place.fill(3);
    let root = place.root();
    fs::write(root.join("--work-p0--/flat.jsonl"), "").unwrap();
    fs::create_dir_all(root.join("--work-p0--/dir/session.jsonl.zstd")).unwrap();
    fs::create_dir_all(root.join("--work-p0--/other")).unwrap();
    fs::write(root.join("--work-p0--/other/session.jsonl"), "").unwrap();
    fs::create_dir_all(root.join("--work-p0--/empty")).unwrap();
    fs::create_dir_all(root.join("--work-p0--/locked")).unwrap();
    fs::write(root.join("--work-p0--/locked/lock"), "").unwrap();
    let twin = Place::header("session-0001", "/work/p1", CREATED);
    let path = place.root().join("--work-p2--/session-0001");
    fs::create_dir_all(&path).unwrap();
    fs::copy(place.path(&twin), path.join("session.jsonl.zstd")).unwrap();
    for _ in 0..2 {
        let views = place.store().overview(Only::All).unwrap();
        let sound = views.iter().filter(|view| view.damage.is_none());
        assert_eq!(sound.count(), 2);
        let damaged = views.iter().filter(|view| view.damage.is_some());
        let mut damaged: Vec<_> = damaged.filter_map(|view| view.id.as_deref()).collect();
        damaged.sort_unstable();
        assert_eq!(
            damaged,
            ["dir", "flat", "other", "session-0001", "session-0001"]
        );
    }
}

#[test]
fn last_is_the_newest_that_a_person_started_there() {
    let place = Place::new();
    let store = place.store();
    assert_eq!(store.last(None).unwrap(), None);
    place.fill(10);
    let mut child = Place::header("child", "/work/p2", CREATED + 50_000);
    child.origin = Some(dsh_session::Origin::Subagent);
    place.put(&child, &[]);
    assert_eq!(store.last(None).unwrap().as_deref(), Some("session-0009"));
    assert_eq!(
        store.last(Some("/work/p2")).unwrap().as_deref(),
        Some("session-0007")
    );
    assert_eq!(store.last(Some("/work/other")).unwrap(), None);
    // A prompt makes a session newer, a title does not.
    let lines = |extra| [turn(0, 1), prompt(1, CREATED + 1005, "do it"), extra];
    let header = Place::header("session-0001", "/work/p1", CREATED + 1000);
    place.put(&header, &lines(title(2, "renamed")));
    assert_eq!(store.last(None).unwrap().as_deref(), Some("session-0009"));
    place.put(&header, &lines(prompt(2, CREATED + 60_000, "again")));
    assert_eq!(store.last(None).unwrap().as_deref(), Some("session-0001"));
}

#[test]
fn a_pipe_or_a_device_of_a_log_s_name_is_not_waited_for_and_costs_its_own_row() {
    let place = Place::new();
    let fine = Place::header("fine", "/w", CREATED);
    place.put(&fine, &[]);
    let (pipe, device) = (
        place.put(&Place::header("pipe", "/w", CREATED), &[]),
        place.put(&Place::header("device", "/w", CREATED), &[]),
    );
    fs::remove_file(&pipe).unwrap();
    let bits = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, bits).unwrap();
    fs::remove_file(&device).unwrap();
    symlink("/dev/zero", &device).unwrap();
    for store in [place.plain(), place.store()] {
        let rows = store.overview(Only::All).unwrap();
        let damaged = |id: &str| {
            let row = rows.iter().find(|row| row.id.as_deref() == Some(id));
            row.unwrap().damage.is_some()
        };
        assert_eq!(rows.len(), 3);
        assert!(
            !damaged("fine") && damaged("pipe") && damaged("device"),
            "{rows:?}"
        );
    }
}
