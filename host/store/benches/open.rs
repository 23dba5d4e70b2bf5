//! Opening one long session, packed and not, and reopening it by its checkpoint; each beside what cannot be avoided, in
//! the same run and on as many threads. `DSH_BENCH_EVENTS` names another number of events than 1,000,000.
//!
//! - `floor_decode`: every frame is decoded and its checksum checked, and nothing else.
//! - `floor_envelopes`: and each line's envelope is read by serde_json, its data left as text.
//! - `floor_read`: the checkpoint and the last 64 KiB of the log are read.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use dsh_store::{Store, StoreConfig, Target, frame};
use serde_json::value::RawValue;

#[path = "support/one.rs"]
mod one;

fn events() -> u64 {
    let written = std::env::var("DSH_BENCH_EVENTS").ok();
    written
        .and_then(|count| count.parse().ok())
        .unwrap_or(1_000_000)
}

/// What every line has, events and rows alike.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
    seq: Option<u64>,
    seq0: Option<u64>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Decodes all frames but the header's, on all cores, and gives each text to `each`.
fn decode(path: &Path, each: &(dyn Fn(&[u8]) + Sync)) {
    let bytes = fs::read(path).expect("read");
    let frames = frame::scan(&bytes).complete;
    let next = AtomicUsize::new(1);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut decoder = zstd::bulk::Decompressor::new().expect("a context");
                let mut text = Vec::with_capacity(1 << 20);
                loop {
                    let first = next.fetch_add(64, Ordering::Relaxed);
                    let Some(frames) = frames.get(first..frames.len().min(first + 64)) else {
                        return;
                    };
                    for frame in frames {
                        text.clear();
                        decoder
                            .decompress_to_buffer(&bytes[frame.start..frame.end], &mut text)
                            .expect("a sound frame");
                        each(&text);
                    }
                }
            });
        }
    });
}

fn envelopes(text: &[u8]) {
    for line in text.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()) {
        let read: Envelope<'_> = serde_json::from_slice(line).expect("an envelope");
        black_box((
            read.r#type.len(),
            read.seq,
            read.seq0,
            read.data.get().len(),
        ));
    }
}

fn opening(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("sessions");
    let store = Store::open(StoreConfig::new(&root)).expect("a store");
    for (id, packed) in [("unpacked", false), ("packed", true)] {
        let path = one::one(&root, id, events(), packed);
        let mut group = c.benchmark_group(format!("open_{}_{id}", events()));
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(5));
        group.bench_function("floor_decode", |b| {
            b.iter(|| {
                decode(&path, &|text| {
                    let _ = black_box(text.len());
                });
            });
        });
        group.bench_function("floor_envelopes", |b| b.iter(|| decode(&path, &envelopes)));
        group.bench_function("open", |b| {
            b.iter(|| {
                let found = store.inspect(&Target::Id(id.to_owned())).expect("opened");
                assert_eq!(found.damage, None);
                found.log.len()
            });
        });
        // The first one reads the log as a whole and leaves a checkpoint.
        drop(store.resume(id, 0).expect("resumed"));
        let checkpoint = path.with_file_name("checkpoint");
        assert!(checkpoint.exists() || events() < 100_000);
        group.bench_function("floor_read", |b| {
            b.iter(|| {
                let sidecar = fs::read(&checkpoint).unwrap_or_default();
                let mut file = File::open(&path).expect("opened");
                let length = file.metadata().expect("there").len();
                let from = length.saturating_sub(64 * 1024);
                file.seek(SeekFrom::Start(from)).expect("there");
                let mut tail = Vec::new();
                file.read_to_end(&mut tail).expect("read");
                (sidecar.len(), tail.len())
            });
        });
        group.bench_function("reopen", |b| {
            b.iter_custom(|count| {
                let mut took = Duration::ZERO;
                for _ in 0..count {
                    let begun = std::time::Instant::now();
                    let (session, writer) = store.resume(id, 0).expect("resumed");
                    took += begun.elapsed();
                    black_box(session.surface().nodes().len());
                    drop(writer);
                }
                took
            });
        });
        group.finish();
    }
}

criterion_group!(benches, opening);
criterion_main!(benches);
