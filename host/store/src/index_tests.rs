use std::fs;

use super::*;
use crate::storage::Disk;
use crate::testing::quick_dir;

fn of() -> Of<'static> {
    Of {
        root: Path::new("/root"),
        compression: Compression::Zstd,
    }
}

fn row(n: u64) -> Row {
    let mut header = Header::new(format!("s-{n}"), n);
    let revision = Revision(1, n, 30 + n, -5, i128::MAX);
    let odd = n.is_multiple_of(2);
    if odd {
        header.cwd = Some("/work/p".into());
        header.parent_session = Some("p".into());
        header.seed_length = Some(n);
        header.origin = Some(Origin::Subagent);
        header.delegation_depth = Some(0);
        header.agent_preset = Some("ä".into());
    }
    let path = PathBuf::from(format!("/root/p/s-{n}/session.jsonl.zstd"));
    let header = (!n.is_multiple_of(5)).then_some(header);
    let view = Overview {
        id: Overview::id_of(header.as_ref(), &path),
        path,
        bytes: 30 + n,
        modified_ms: -1,
        header,
        title: odd.then(|| "a title".into()),
        updated_at: 1_000_000 - n as i64,
        events: n,
        turns: 7,
        torn: odd,
        damage: n.is_multiple_of(3).then(|| Damage {
            class: DamageClass::Unsupported,
            stage: Stage::Interpret,
            offset: odd.then_some(9),
            seq: (!odd).then_some(8),
            reason: "because".to_owned(),
        }),
    };
    Row { revision, view }
}

fn head() -> Head {
    let token = Some(Revision(9, 8, 7, 6, 5));
    Head {
        root: token,
        projects: vec![("a".into(), None), ("p".into(), token)],
    }
}

fn saved(path: &Path, rows: &[Row]) {
    let rows: Vec<&Row> = rows.iter().collect();
    save(&Disk, path, of(), &head(), &rows).unwrap();
}

#[test]
fn an_index_gives_back_what_was_put_in_whole_or_block_by_block() {
    let dir = quick_dir();
    let path = dir.path().join("cache/index");
    let rows: Vec<Row> = (0..BLOCK as u64 * 2 + 3).map(row).collect();
    saved(&path, &rows);
    let mut reader = Reader::open(&Disk, &path, of()).unwrap();
    assert_eq!(reader.head, head());
    assert_eq!(reader.block().unwrap(), rows[..BLOCK]);
    assert!(!reader.at_end());
    assert_eq!(reader.rest(), rows[BLOCK..]);
    assert!(reader.at_end() && reader.block().is_none() && reader.sound());
    reader.rewind().unwrap();
    assert_eq!(reader.rest(), rows);
    assert_eq!(fs::read_dir(dir.path().join("cache")).unwrap().count(), 1);
}

#[test]
fn an_index_of_something_else_is_none() {
    let dir = quick_dir();
    let path = dir.path().join("index");
    assert!(Reader::open(&Disk, &path, of()).is_none());
    saved(&path, &[row(1)]);
    let plain = Of {
        compression: Compression::None,
        ..of()
    };
    let elsewhere = Of {
        root: Path::new("/other"),
        ..of()
    };
    assert!(Reader::open(&Disk, &path, plain).is_none());
    assert!(Reader::open(&Disk, &path, elsewhere).is_none());
    let mut bytes = fs::read(&path).unwrap();
    bytes[7] += 1;
    fs::write(&path, bytes).unwrap();
    assert!(Reader::open(&Disk, &path, of()).is_none());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(Reader::open(&Disk, &path, of()).is_none());
}

#[test]
fn no_flipped_or_missing_byte_makes_a_row_that_was_not_put_in() {
    let dir = quick_dir();
    let path = dir.path().join("index");
    let rows: Vec<Row> = (0..6).map(row).collect();
    saved(&path, &rows);
    let bytes = fs::read(&path).unwrap();
    let mut lost = 0;
    let mut check = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        match Reader::open(&Disk, &path, of()) {
            None => lost += 1,
            Some(mut reader) => {
                let found = reader.rest();
                assert!(found.is_empty() && !reader.sound(), "{} rows", found.len());
            }
        }
    };
    for at in 0..bytes.len() {
        check(&bytes[..at]);
        for bit in [0, 7] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            check(&flipped);
        }
    }
    assert!(lost > 0);
}

#[test]
fn a_leftover_of_a_dead_writer_is_swept_and_a_fresh_one_is_not() {
    let dir = quick_dir();
    let path = dir.path().join("index");
    let names = ["index.0123.tmp", "index.4567.tmp", "other.tmp"];
    for name in names {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let old = SystemTime::now() - std::time::Duration::from_secs(7200);
    for name in [names[0], names[2]] {
        fs::File::open(dir.path().join(name))
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    saved(&path, &[]);
    let there: Vec<bool> = names
        .iter()
        .map(|name| dir.path().join(name).exists())
        .collect();
    assert_eq!(there, [false, true, true]);
}

#[test]
fn writers_that_race_leave_the_whole_index_of_one_of_them() {
    let dir = quick_dir();
    let path = dir.path().join("index");
    let rows: Vec<Row> = (0..300).map(row).collect();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (path, rows) = (&path, &rows);
            scope.spawn(move || {
                for _ in 0..20 {
                    saved(path, &rows[..writer * 90]);
                    let mut reader = Reader::open(&Disk, path, of()).unwrap();
                    let found = reader.rest();
                    assert!(reader.sound() && found.len().is_multiple_of(90));
                    assert_eq!(found, rows[..found.len()]);
                }
            });
        }
    });
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_directory_that_just_changed_has_no_token() {
    let dir = quick_dir();
    assert_eq!(token(&Disk, dir.path()), None);
    let old = SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::open(dir.path())
        .unwrap()
        .set_modified(old)
        .unwrap();
    let before = token(&Disk, dir.path());
    assert!(before.is_some());
    fs::write(dir.path().join("new"), "").unwrap();
    assert_eq!(token(&Disk, dir.path()), None);
    assert_eq!(token(&Disk, &dir.path().join("absent")), None);
}
