//! All that a crash may leave of a [`Disk`]: the states of the model in [`crate::memory`], one by one.
//!
//! A file whose data is pending is varied alone (torn at every byte of its last 8 KiB and every 512 B before, sectors
//! missing, sizes ahead of data, operations lost, reordered and done twice) beside all names and beside none of the pending
//! ones; names are varied in all subsets beside a few variants of the data. The product of everything with
//! everything would only repeat those.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::memory::{Disk, Ino, Node, Op, ROOT, Tree, write};
use crate::random::Random;

const SECTOR: usize = 512;
const PAGE: usize = 4096;
/// So many bytes at the end of a write are torn at every byte.
const FINE: usize = 8 * 1024;
/// Up to so many sectors, or operations, all subsets are taken.
const ALL_SUBSETS: usize = 5;

/// Calls `each` with the states. One may come several times.
pub fn states(disk: &Disk, random: &mut Random, each: &mut dyn FnMut(&Tree)) {
    let mut names: Vec<&Op> = Vec::new();
    let mut data: BTreeMap<Ino, Vec<&Op>> = BTreeMap::new();
    for (op, _) in &disk.pending {
        match op.file() {
            Some(ino) => data.entry(ino).or_default().push(op),
            None => names.push(op),
        }
    }
    let variants: Vec<(Ino, Variants)> = data
        .iter()
        .map(|(ino, ops)| (*ino, Variants::of(disk, *ino, ops, random)))
        .collect();

    for subset in subsets(names.len(), random) {
        let tree = with_names(&disk.durable, &names, &subset);
        for few in 0..3 {
            let mut tree = tree.clone();
            for (ino, variants) in &variants {
                variants.few(few, random).clone_into_tree(&mut tree, *ino);
            }
            each(&tree);
        }
    }
    for all_names in [true, false] {
        let tree = with_names(&disk.durable, &names, &vec![all_names; names.len()]);
        for (ino, varied) in &variants {
            let mut tree = tree.clone();
            for (other, variants) in &variants {
                if other != ino {
                    variants.few(1, random).clone_into_tree(&mut tree, *other);
                }
            }
            if !tree.reaches(*ino) {
                continue;
            }
            for variant in &varied.0 {
                variant.clone_into_tree(&mut tree, *ino);
                each(&tree);
            }
        }
    }
}

/// One possible content of a file.
struct Content(Arc<Vec<u8>>);

impl Content {
    fn clone_into_tree(&self, tree: &mut Tree, ino: Ino) {
        *tree.file(ino) = self.0.clone();
    }
}

/// The possible contents of a file; the first is that all pending is lost, the second that all of it is there.
struct Variants(Vec<Content>);

impl Variants {
    fn few(&self, which: usize, random: &mut Random) -> &Content {
        match which {
            0 | 1 => &self.0[which],
            _ => &self.0[random.below(self.0.len())],
        }
    }

    fn of(disk: &Disk, ino: Ino, ops: &[&Op], random: &mut Random) -> Variants {
        let before = match disk.durable.nodes.get(&ino) {
            Some(Node::File(bytes)) => bytes.to_vec(),
            _ => Vec::new(),
        };
        // What the file was, one operation after another.
        let mut versions = vec![before];
        for op in ops {
            let mut next = versions.last().cloned().unwrap_or_default();
            apply(&mut next, op);
            versions.push(next);
        }
        let mut found = Found(Vec::new());
        found.push(versions[0].clone());
        found.push(versions[ops.len()].clone());
        for (at, op) in ops.iter().enumerate() {
            found.push(versions[at].clone());
            // Done twice: a second time after all.
            let mut again = versions[ops.len()].clone();
            apply(&mut again, op);
            found.push(again);
            if let Op::Write(_, offset, bytes) = op {
                found.torn(&versions[at], *offset, bytes);
            }
        }
        found.mixed(&versions, random);
        Variants(found.0)
    }
}

struct Found(Vec<Content>);

fn apply(file: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write(_, at, bytes) => write(file, *at, bytes),
        Op::Truncate(_, len) => file.resize(*len, 0),
        _ => {}
    }
}

impl Found {
    fn push(&mut self, content: Vec<u8>) {
        self.0.push(Content(Arc::new(content)));
    }

    /// A write of which only the beginning is there.
    fn torn(&mut self, base: &[u8], offset: usize, bytes: &[u8]) {
        let coarse = bytes.len().saturating_sub(FINE);
        let cuts = (0..coarse).step_by(SECTOR).chain(coarse..bytes.len());
        for cut in cuts {
            let mut file = base.to_vec();
            write(&mut file, offset, &bytes[..cut]);
            self.push(file);
        }
    }

    /// Each sector as some version had it, and a size that is some version's, or is between, or is ahead of all.
    fn mixed(&mut self, versions: &[Vec<u8>], random: &mut Random) {
        let shortest = versions.iter().map(Vec::len).min().unwrap_or(0);
        let longest = versions.iter().map(Vec::len).max().unwrap_or(0);
        let all = versions.len() - 1;
        let (first, last) = (shortest / SECTOR, longest.div_ceil(SECTOR));
        let sectors = last - first;
        for subset in subsets(sectors, random) {
            let choices: Vec<usize> = subset
                .iter()
                .map(|there| if *there { all } else { 0 })
                .collect();
            self.sizes(versions, first, &choices, longest, random);
        }
        if all > 1 {
            for _ in 0..8 {
                let choices: Vec<usize> =
                    (0..sectors).map(|_| random.below(versions.len())).collect();
                self.sizes(versions, first, &choices, longest, random);
            }
        }
    }

    fn sizes(
        &mut self,
        versions: &[Vec<u8>],
        first: usize,
        choices: &[usize],
        longest: usize,
        random: &mut Random,
    ) {
        let shortest = versions.iter().map(Vec::len).min().unwrap_or(0);
        let mut file = versions[0].clone();
        file.resize(longest, 0);
        for (at, version) in choices.iter().enumerate() {
            let start = (first + at) * SECTOR;
            let end = (start + SECTOR).min(longest);
            for (place, byte) in file.iter_mut().enumerate().take(end).skip(start) {
                *byte = versions[*version].get(place).copied().unwrap_or(0);
            }
        }
        let between = shortest + random.below(longest - shortest + 1);
        let lengths = [
            longest,
            versions[random.below(versions.len())].len(),
            between,
            longest.next_multiple_of(SECTOR),
            longest.next_multiple_of(PAGE),
        ];
        for length in lengths {
            let mut file = file.clone();
            file.resize(length, 0);
            self.push(file);
        }
    }
}

/// All subsets of so many things; of many, none, all, each one missing, each one alone, each beginning, and some others.
fn subsets(count: usize, random: &mut Random) -> Vec<Vec<bool>> {
    if count == 0 {
        // What is lost and what is there are the same.
        return vec![Vec::new()];
    }
    if count <= ALL_SUBSETS {
        let mut all: Vec<Vec<bool>> = (0..1_usize << count)
            .map(|bits| (0..count).map(|at| bits >> at & 1 == 1).collect())
            .collect();
        let last = all.len() - 1;
        all.swap(1, last);
        return all;
    }
    let mut all = vec![vec![false; count], vec![true; count]];
    for at in 0..count {
        all.push((0..count).map(|other| other != at).collect());
        all.push((0..count).map(|other| other == at).collect());
        all.push((0..count).map(|other| other < at).collect());
    }
    for _ in 0..16 {
        all.push((0..count).map(|_| random.percent(50)).collect());
    }
    all
}

/// The durable tree with some of the pending changes of names.
fn with_names(durable: &Tree, names: &[&Op], there: &[bool]) -> Tree {
    let mut tree = durable.clone();
    for (op, _) in names.iter().zip(there).filter(|(_, there)| **there) {
        tree.apply(op);
    }
    tree
}

impl Tree {
    /// Whether a file has a name that can be reached.
    fn reaches(&self, ino: Ino) -> bool {
        let mut open = vec![ROOT];
        while let Some(dir) = open.pop() {
            if let Some(Node::Dir(names)) = self.nodes.get(&dir) {
                if names.values().any(|found| *found == ino) {
                    return true;
                }
                open.extend(names.values());
            }
        }
        false
    }
}
