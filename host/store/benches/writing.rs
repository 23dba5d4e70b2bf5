//! Writing: durable events per second, flush latency, the first batch; each beside its floor in the same run.
//!
//! `cargo bench -p dsh-store --bench writing`. The disk is that of `DSH_BENCH_DIR`, else of the target directory.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dsh_session::{Event, Header, Session, rows};
use dsh_store::{Store, StoreConfig, Writer, frame};
use futures_util::future::join_all;

fn dir() -> tempfile::TempDir {
    let base = std::env::var_os("DSH_BENCH_DIR").map(PathBuf::from);
    let base = base.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    tempfile::tempdir_in(base).unwrap()
}

fn store(dir: &tempfile::TempDir, pack: bool) -> Store {
    Store::open(StoreConfig {
        pack_chunks: pack,
        write_batch_max_delay: Duration::from_secs(3600),
        ..StoreConfig::new(dir.path())
    })
    .unwrap()
}

fn session(id: &str) -> Session {
    Session::new(Header::new(id, 1)).unwrap()
}

/// Events of 308 bytes in the mean: seven chunks, then a call, a result, a message.
fn event(seq: u64) -> Arc<Event> {
    // Words and numbers about as compressible as a session's.
    let text = |count: u64| -> String {
        (0..count)
            .map(|i| {
                let n = (seq * 1_000 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                let word = WORDS[usize::try_from(n % 24).unwrap()];
                if n.is_multiple_of(5) {
                    format!("{word}{} ", n % 977)
                } else {
                    format!("{word} ")
                }
            })
            .collect()
    };
    let (kind, data) = match seq % 10 {
        7 => (
            "tool/call",
            format!(
                r#"{{"turn":1,"step":1,"callId":"c{seq}","name":"shell","arguments":"{}"}}"#,
                text(40)
            ),
        ),
        8 => (
            "tool/code-dispatch",
            format!(r#"{{"rootCallId":"c{seq}","content":"{}"}}"#, text(100)),
        ),
        9 => (
            "todo/write",
            format!(
                r#"{{"todos":[{{"content":"{}","status":"pending"}}]}}"#,
                text(100)
            ),
        ),
        _ => (
            "assistant/chunk",
            format!(
                r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{}"}}}}"#,
                text(4)
            ),
        ),
    };
    let line = format!(
        r#"{{"type":"{kind}","seq":{seq},"time":{},"data":{data}}}"#,
        1_700_000_000_000 + seq
    );
    Arc::new(Event::parse(&line).unwrap())
}

const WORDS: [&str; 24] = [
    "let", "the", "return", "error", "value", "main", "cargo", "test", "session", "because",
    "file", "into", "path", "src", "which", "would", "string", "impl", "self", "match", "None",
    "async", "read", "write",
];

const BATCH: u64 = 4_000;

fn durable(c: &mut Criterion) {
    let mut group = c.benchmark_group("durable");
    group
        .throughput(Throughput::Elements(BATCH))
        .sample_size(20);
    for pack in [false, true] {
        let name = if pack { "packed" } else { "unpacked" };
        let dir = dir();
        let writer = store(&dir, pack).create(&session("a")).unwrap();
        let mut next = 0;
        group.bench_function(name, |b| {
            b.iter_custom(|count| {
                let mut spent = Duration::ZERO;
                for _ in 0..count {
                    let events: Vec<_> = (next..next + BATCH).map(event).collect();
                    next += BATCH;
                    let start = Instant::now();
                    events
                        .into_iter()
                        .for_each(|event| writer.enqueue(event).unwrap());
                    writer.flush_blocking().unwrap();
                    spent += start.elapsed();
                }
                spent
            });
        });
        let events: Vec<_> = (0..BATCH).map(event).collect();
        let mut text = String::new();
        rows::write_batch(&events, pack, &mut text);
        let frame = frame::encode(text.as_bytes()).unwrap();
        let plain: usize = events.iter().map(|event| event.line().len() + 1).sum();
        println!(
            "{name}: {} B an event plain, {:.3} stored per plain byte",
            plain as u64 / BATCH,
            frame.len() as f64 / plain as f64
        );
        group.bench_function(format!("{name}-floor-zstd"), |b| {
            b.iter(|| frame::encode(text.as_bytes()).unwrap());
        });
        group.bench_function(format!("{name}-text"), |b| {
            b.iter(|| {
                let mut text = String::new();
                rows::write_batch(&events, pack, &mut text);
                text
            });
        });
    }
    group.finish();
}

fn flush(c: &mut Criterion) {
    let mut group = c.benchmark_group("flush");
    group.sample_size(20);
    for count in [1_u64, 4, 64] {
        group.throughput(Throughput::Elements(count));
        let dir = dir();
        let store = store(&dir, true);
        let writers: Vec<Writer> = (0..count)
            .map(|i| store.create(&session(&format!("s-{i}"))).unwrap())
            .collect();
        let mut next = 0;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        group.bench_function(BenchmarkId::new("sessions", count), |b| {
            b.iter(|| {
                writers
                    .iter()
                    .for_each(|writer| writer.enqueue(event(next)).unwrap());
                next += 1;
                runtime.block_on(async {
                    for flushed in join_all(writers.iter().map(Writer::flush)).await {
                        flushed.unwrap();
                    }
                });
            });
        });
        let files: Vec<File> = (0..count)
            .map(|i| {
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(dir.path().join(format!("floor-{i}")))
                    .unwrap()
            })
            .collect();
        let bytes = [7; 200];
        group.bench_function(BenchmarkId::new("floor-write-fdatasync", count), |b| {
            b.iter(|| {
                std::thread::scope(|scope| {
                    for some in files.chunks(files.len().div_ceil(16)) {
                        scope.spawn(move || {
                            for mut file in some {
                                file.write_all(&bytes).unwrap();
                                file.sync_data().unwrap();
                            }
                        });
                    }
                });
            });
        });
    }
    group.finish();
}

fn materialise(c: &mut Criterion) {
    let mut group = c.benchmark_group("materialise");
    group.sample_size(20);
    let dir = dir();
    let store = store(&dir, true);
    let mut next = 0;
    group.bench_function("first-batch", |b| {
        b.iter_custom(|count| {
            let mut spent = Duration::ZERO;
            for _ in 0..count {
                let writer = store.create(&session(&format!("m-{next}"))).unwrap();
                next += 1;
                writer.enqueue(event(0)).unwrap();
                let start = Instant::now();
                writer.flush_blocking().unwrap();
                spent += start.elapsed();
            }
            spent
        });
    });
    group.bench_function("floor-tmp-sync-link-syncdir", |b| {
        b.iter(|| {
            let (tmp, path) = (dir.path().join("floor.tmp"), dir.path().join("floor"));
            let mut file = File::create(&tmp).unwrap();
            file.write_all(&[7; 300]).unwrap();
            file.sync_data().unwrap();
            std::fs::hard_link(&tmp, &path).unwrap();
            File::open(dir.path()).unwrap().sync_all().unwrap();
            std::fs::remove_file(&tmp).unwrap();
            std::fs::remove_file(&path).unwrap();
        });
    });
    group.finish();
}

criterion_group!(benches, durable, flush, materialise);
criterion_main!(benches);
