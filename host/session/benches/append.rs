//! Appending in memory (validate, number, fold the surface), and deriving what the model sees after one more event;
//! beside a copy of as many bytes as a stored event has on average.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dsh_session::{Draft, Header, Json, Kind, Seq, Session};

const COUNT: u64 = 10_000;

fn json(text: &str) -> Json {
    Json::normalise(text).expect("JSON")
}

fn message(index: u64) -> Draft {
    let text = format!(
        r#"{{"content":[{{"type":"text","text":"{}"}}],"source":{{"kind":"user"}},"role":"user","id":"u{index}"}}"#,
        "alpha beta gamma delta ".repeat(10)
    );
    Draft::new(Kind::UserMessage, json(&text)).append()
}

/// Nine chunks, then a message of them, again and again, as a log has them.
fn drafts() -> Vec<Draft> {
    let chunk = json(
        r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":" some words of an answer"}}"#,
    );
    let said = json(
        r#"{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"text","text":"some words of an answer some words of an answer"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"a"}}"#,
    );
    let draft = |index| {
        if index % 10 == 9 {
            let sources = (index - 9..index).map(Seq).collect();
            Draft::new(Kind::AssistantMessage, said.clone())
                .append()
                .sources(sources)
        } else {
            Draft::new(Kind::AssistantChunk, chunk.clone())
        }
    };
    (0..COUNT).map(draft).collect()
}

fn session() -> Session {
    Session::new(Header::new("s", 0)).expect("a session")
}

fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("append");
    group.throughput(Throughput::Elements(COUNT));
    let source = vec![7u8; 300];
    group.bench_function("floor_copy_300_bytes", |b| {
        b.iter(|| {
            let mut copies = Vec::with_capacity(COUNT as usize);
            for _ in 0..COUNT {
                copies.push(black_box(&source).clone().into_boxed_slice());
            }
            copies
        });
    });
    let drafts = drafts();
    group.bench_function("append", |b| {
        b.iter_batched(
            || (session(), drafts.clone()),
            |(mut session, drafts)| {
                for draft in drafts {
                    session.append(draft, 5).expect("appended");
                }
                session
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// A conversation of 25,000 messages, all derived.
fn long() -> Session {
    let mut session = session();
    for index in 0..25_000 {
        session.append(message(index), 0).expect("appended");
    }
    session.messages().expect("derived");
    session
}

fn derive(c: &mut Criterion) {
    let mut group = c.benchmark_group("derive_25000");
    let mut session = long();
    let mut index = 0;
    group.bench_function("after_one_append", |b| {
        b.iter(|| {
            index += 1;
            session.append(message(index), 0).expect("appended");
            session.digest().expect("derived")
        });
    });
    let mut session = long();
    group.bench_function("after_one_replace_near_the_end", |b| {
        b.iter(|| {
            index += 1;
            let nodes = session.surface().nodes();
            let old = nodes[nodes.len() - 3];
            let draft = message(index).replace(old, old).sources(vec![old]);
            session.append(draft, 0).expect("appended");
            session.digest().expect("derived")
        });
    });
    let mut session = long();
    group.sample_size(10);
    group.bench_function("after_one_replace_in_the_middle", |b| {
        b.iter(|| {
            index += 1;
            let nodes = session.surface().nodes();
            let old = nodes[nodes.len() / 2];
            let draft = message(index).replace(old, old).sources(vec![old]);
            session.append(draft, 0).expect("appended");
            session.digest().expect("derived")
        });
    });
    group.bench_function("from_nothing", |b| {
        b.iter_batched(
            || {
                let events = session.log().to_vec().expect("in memory");
                Session::with_seed(Header::new("s", 0), events, 0).expect("a session")
            },
            |mut session| session.digest().expect("derived"),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, append, derive);
criterion_main!(benches);
