//! Listing 10,000 sessions: by headers, by whole logs, and through the index, beside what the same files cost when they
//! are only opened, read and closed, or only looked at. `DSH_BENCH_SESSIONS` names another number of sessions.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use dsh_store::{Only, Store, StoreConfig};

#[path = "support/many.rs"]
mod many;

fn sessions() -> usize {
    let written = std::env::var("DSH_BENCH_SESSIONS").ok();
    written
        .and_then(|count| count.parse().ok())
        .unwrap_or(10_000)
}

/// Every log below a root, by plain means.
fn logs(root: &Path) -> Vec<PathBuf> {
    let below = |dir: &Path| -> Vec<PathBuf> {
        fs::read_dir(dir)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
            .collect()
    };
    let dirs = below(root);
    let dirs = dirs.iter().flat_map(|project| below(project));
    dirs.map(|dir| dir.join("session.jsonl.zstd")).collect()
}

fn listing(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("sessions");
    many::many(&root, sessions());
    let logs = logs(&root);
    let store = Store::open(StoreConfig::new(&root)).expect("a store");

    let mut group = c.benchmark_group(format!("list_{}", logs.len()));
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    group.bench_function("floor_open_read_close", |b| {
        let mut bytes = [0; 512];
        b.iter(|| {
            for path in &logs {
                let mut file = File::open(path).expect("opened");
                black_box(file.read(&mut bytes).expect("read"));
            }
        });
    });
    group.bench_function("floor_stat", |b| {
        b.iter(|| {
            for path in &logs {
                black_box(fs::metadata(path).expect("there"));
            }
        });
    });
    group.bench_function("headers", |b| b.iter(|| store.list().expect("listed")));
    group.bench_function("whole_logs_no_index", |b| {
        b.iter(|| store.overview(Only::All).expect("listed"));
    });
    let mut config = StoreConfig::new(&root);
    config.index = Some(dir.path().join("cache/sessions.index"));
    let indexed = Store::open(config).expect("a store");
    // Twice, since directories that were just made are not trusted the first time.
    std::thread::sleep(Duration::from_secs(3));
    indexed.overview(Only::All).expect("listed");
    group.bench_function("index_all", |b| {
        b.iter(|| indexed.overview(Only::All).expect("listed"));
    });
    group.bench_function("index_first_page_of_20", |b| {
        b.iter(|| indexed.page(20).expect("listed"));
    });
    group.finish();
}

criterion_group!(benches, listing);
criterion_main!(benches);
