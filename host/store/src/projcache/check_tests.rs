use std::path::Path;

use dsh_check::Level;
use dsh_session::Header;
use dsh_session::projection::Rows;

use super::*;
use crate::testing::quick_dir;

fn at(dir: &Path) -> PathBuf {
    dir.join(CACHE_DIR).join(CACHE_FILE)
}

/// A cache with one session's record.
fn sound() -> (tempfile::TempDir, ProjectionCache) {
    let dir = quick_dir();
    let cache = ProjectionCache::at(dir.path());
    cache.put(&Header::new("a", 1), &Rows::default()).unwrap();
    (dir, cache)
}

#[track_caller]
fn unusable(cache: &ProjectionCache, why: &str) {
    let error = cache.read().unwrap_err();
    assert_eq!(error.code(), "PROJECTION_CACHE_UNUSABLE", "{error}");
    assert!(error.to_string().contains(why), "{error}");
    let put = cache.put(&Header::new("b", 1), &Rows::default());
    assert_eq!(put.unwrap_err().code(), error.code());
    let found = cache.check();
    assert_eq!(found.level, Level::Warning);
    for word in [&*cache.path().to_string_lossy(), why, "move it away"] {
        assert!(found.what.contains(word), "{word}: {found:?}");
    }
}

#[test]
fn a_pipe_a_device_or_a_directory_in_its_place_is_neither_waited_for_nor_read() {
    let dir = quick_dir();
    let cache = ProjectionCache::at(dir.path());
    std::fs::create_dir(dir.path().join(CACHE_DIR)).unwrap();
    let path = at(dir.path());
    let bits = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, bits).unwrap();
    unusable(&cache, "no regular file");
    // Nor with somebody who has it open and says nothing.
    let held = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path);
    unusable(&cache, "no regular file");
    drop(held);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    unusable(&cache, "no regular file");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    unusable(&cache, "no regular file");
    assert!(path.is_dir());
}

#[test]
fn a_file_that_is_too_large_is_refused_and_left_alone() {
    let (dir, cache) = sound();
    let file = std::fs::OpenOptions::new().write(true).open(at(dir.path()));
    file.unwrap().set_len(LARGEST_FILE + 1).unwrap();
    unusable(&cache, "more than 67108864 bytes");
    let left = std::fs::metadata(at(dir.path())).unwrap().len();
    assert_eq!(left, LARGEST_FILE + 1);
}

#[test]
fn a_check_says_what_the_file_is_and_what_to_do_and_makes_nothing() {
    let dir = quick_dir();
    let none = ProjectionCache::at(dir.path());
    assert_eq!(none.check().level, Level::Ok);
    assert!(!dir.path().join(CACHE_DIR).exists());

    let (dir, cache) = sound();
    let found = cache.check();
    assert_eq!(found.level, Level::Ok);
    assert!(found.what.contains("1 sessions"), "{found:?}");
    let text = std::fs::read_to_string(at(dir.path())).unwrap();
    for (broken, why) in [
        (String::new(), ""),
        ("garbage".to_owned(), ""),
        (text[..text.len() / 2].to_owned(), ""),
        (
            text.replace("\"version\": 3", "\"version\": 99"),
            "its version is 99",
        ),
        (text.replace("session_projcache", "other"), "not a file of"),
    ] {
        std::fs::write(at(dir.path()), &broken).unwrap();
        unusable(&cache, why);
        assert_eq!(std::fs::read_to_string(at(dir.path())).unwrap(), broken);
    }
}
