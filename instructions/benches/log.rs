//! Instructions of appending, reading and deriving, for [`dsh_instructions::COUNT`] events each, beside a copy of as many
//! bytes.

use std::hint::black_box;

use dsh_instructions::{COUNT, derived, drafts, lines, message, session};
use dsh_session::{Digest, Draft, Json, Session, Stretch, StretchScanner};
use gungraun::{library_benchmark, library_benchmark_group, main};

fn nothing_but_bytes() -> Vec<u8> {
    vec![7; 300]
}

#[library_benchmark]
#[bench::events(setup = nothing_but_bytes)]
fn floor_copy_300_bytes(source: Vec<u8>) -> Vec<Box<[u8]>> {
    (0..COUNT)
        .map(|_| black_box(&source).clone().into_boxed_slice())
        .collect()
}

fn to_append() -> (Session, Vec<Draft>) {
    (session(), drafts())
}

#[library_benchmark]
#[bench::events(setup = to_append)]
fn append(input: (Session, Vec<Draft>)) -> Session {
    let (mut session, drafts) = input;
    for draft in drafts {
        session.append(draft, 5).expect("appended");
    }
    session
}

#[library_benchmark]
#[bench::lines(setup = lines)]
fn scan(text: String) -> Option<Stretch> {
    StretchScanner::new("s").read(black_box(text.as_bytes()), true)
}

fn one_line() -> String {
    message(1).data.as_str().to_owned()
}

#[library_benchmark]
#[bench::data(setup = one_line)]
fn normalise(text: String) -> Json {
    Json::normalise(black_box(&text)).expect("JSON")
}

fn one_more() -> (Session, Draft) {
    (derived(), message(COUNT))
}

#[library_benchmark]
#[bench::append(setup = one_more)]
fn derive_after_one_append(input: (Session, Draft)) -> (Session, Digest) {
    let (mut session, draft) = input;
    session.append(draft, 0).expect("appended");
    let digest = session.digest().expect("derived");
    (session, digest)
}

fn one_other() -> (Session, Draft) {
    let session = derived();
    let nodes = session.surface().nodes();
    let old = nodes[nodes.len() - 3];
    let draft = message(COUNT).replace(old, old).sources(vec![old]);
    (session, draft)
}

#[library_benchmark]
#[bench::replace(setup = one_other)]
fn derive_after_one_replace_near_the_end(input: (Session, Draft)) -> (Session, Digest) {
    let (mut session, draft) = input;
    session.append(draft, 0).expect("appended");
    let digest = session.digest().expect("derived");
    (session, digest)
}

library_benchmark_group!(
    name = log,
    benchmarks = [
        floor_copy_300_bytes,
        append,
        scan,
        normalise,
        derive_after_one_append,
        derive_after_one_replace_near_the_end
    ]
);
main!(library_benchmark_groups = log);
