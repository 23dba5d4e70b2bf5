//! What a change did, for people's views: the lines that differ, each group with
//! three lines around it.

use std::ops::Range;

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// Lines that may differ for the change to be looked at closely; above it, one
/// hunk covers all from the first difference to the last.
const CLOSE: usize = 400;

/// A change: lines of the old text, and lines of the new in their place.
type Change = (Range<usize>, Range<usize>);

/// Old and new text of each hunk, lines joined by LF.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<(String, String)> {
    let (old, new) = (lines(old), lines(new));
    let mut hunks: Vec<Change> = Vec::new();
    for (a, b) in changes(&old, &new) {
        let start = a.start.min(CONTEXT);
        let end = (old.len() - a.end).min(CONTEXT);
        let hunk = (a.start - start..a.end + end, b.start - start..b.end + end);
        match hunks.last_mut() {
            Some(last) if last.0.end >= hunk.0.start => {
                last.0.end = hunk.0.end;
                last.1.end = hunk.1.end;
            }
            _ => hunks.push(hunk),
        }
    }
    hunks
        .into_iter()
        .map(|(a, b)| (old[a].join("\n"), new[b].join("\n")))
        .collect()
}

/// Lines as they stand but for their LF.
fn lines(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        Vec::new()
    } else {
        text.split('\n').collect()
    }
}

/// What differs, in order.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = old.iter().zip(new).take_while(same).count();
    let end = old[start..]
        .iter()
        .rev()
        .zip(new[start..].iter().rev())
        .take_while(same)
        .count();
    let (a, b) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    if a.is_empty() && b.is_empty() {
        return Vec::new();
    }
    let kept = common(a, b).unwrap_or_default();
    let mut changes = Vec::new();
    let mut from = (0, 0);
    for (x, y) in kept.into_iter().chain([(a.len(), b.len())]) {
        if from != (x, y) {
            changes.push((start + from.0..start + x, start + from.1..start + y));
        }
        from = (x + 1, y + 1);
    }
    changes
}

/// Pairs of lines that a shortest edit keeps (Myers, 1986); none where more than
/// `CLOSE` lines differ.
fn common(a: &[&str], b: &[&str]) -> Option<Vec<(usize, usize)>> {
    let most = CLOSE.min(a.len() + b.len()) as isize;
    // Diagonal k, of the points (x, x - k), is kept at `at(k)`.
    let at = |k: isize| (k + most + 1) as usize;
    let comes_down = |reach: &[isize], d: isize, k: isize| {
        k == -d || (k != d && reach[at(k - 1)] < reach[at(k + 1)])
    };
    let (ends, end) = (
        (a.len() as isize, b.len() as isize),
        a.len() as isize - b.len() as isize,
    );
    // How far into `a` the edits so far lead, on each diagonal; and that before each round.
    let mut reach = vec![0isize; 2 * most as usize + 3];
    let mut rounds = Vec::new();
    for d in 0..=most {
        rounds.push(reach.clone());
        for k in (-d..=d).step_by(2) {
            let down = comes_down(&reach, d, k);
            let mut x = if down {
                reach[at(k + 1)]
            } else {
                reach[at(k - 1)] + 1
            };
            while x < ends.0 && x - k < ends.1 && a[x as usize] == b[(x - k) as usize] {
                x += 1;
            }
            reach[at(k)] = x;
        }
        if end.abs() <= d && reach[at(end)] >= ends.0 {
            break;
        }
        if d == most {
            return None;
        }
    }
    let mut pairs = Vec::new();
    let (mut x, mut y) = ends;
    for (d, reach) in rounds.iter().enumerate().rev() {
        let k = x - y;
        let before = if comes_down(reach, d as isize, k) {
            k + 1
        } else {
            k - 1
        };
        let (start_x, start_y) = (reach[at(before)], reach[at(before)] - before);
        while x > start_x && y > start_y {
            x -= 1;
            y -= 1;
            pairs.push((x as usize, y as usize));
        }
        (x, y) = (start_x, start_y);
    }
    pairs.reverse();
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies hunks to the lines of `old`, each at its first fitting place.
    fn apply(old: &str, hunks: &[(String, String)]) -> String {
        let mut rest = old.to_owned();
        let mut done = String::new();
        for (from, to) in hunks {
            let (before, after) = rest
                .split_once(from.as_str())
                .expect("a hunk's old text is there");
            done = done + before + to;
            rest = after.to_owned();
        }
        done + &rest
    }

    #[test]
    fn a_changed_line_has_three_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let found = hunks(old, &old.replace('5', "five"));
        assert_eq!(
            found,
            [(
                "2\n3\n4\n5\n6\n7\n8".to_owned(),
                "2\n3\n4\nfive\n6\n7\n8".to_owned()
            )]
        );
        assert_eq!(
            hunks("mode=a\nlevel=b\n", "mode=c\nlevel=b\n"),
            [("mode=a\nlevel=b".to_owned(), "mode=c\nlevel=b".to_owned())]
        );
    }

    #[test]
    fn changes_near_each_other_share_a_hunk() {
        let old: String = (1..=30).map(|n| format!("line {n}\n")).collect();
        let near = old.replace("line 10\n", "x\n").replace("line 16\n", "y\n");
        assert_eq!(hunks(&old, &near).len(), 1);
        let far = old
            .replace("line 10\n", "x\n")
            .replace("line 18\n", "y\nz\n")
            .replace("line 30\n", "");
        let found = hunks(&old, &far);
        assert_eq!(found.len(), 3);
        assert_eq!(apply(&old, &found).trim_end(), far.trim_end());
    }

    #[test]
    fn nothing_changed_is_no_hunk() {
        assert_eq!(hunks("a\nb\n", "a\nb\n"), []);
        assert_eq!(hunks("", ""), []);
    }

    #[test]
    fn a_new_text_and_an_emptied_one_are_one_hunk() {
        assert_eq!(hunks("", "a\nb\n"), [(String::new(), "a\nb".to_owned())]);
        assert_eq!(hunks("a\nb\n", ""), [("a\nb".to_owned(), String::new())]);
    }

    #[test]
    fn hunks_lead_from_old_to_new_whatever_they_are() {
        // A small generator, so that the cases are many and the same each time.
        let mut seed = 7u32;
        let mut next = move |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..500 {
            let lines = |next: &mut dyn FnMut(u32) -> u32| -> Vec<u32> {
                (0..next(30)).map(|_| next(8)).collect()
            };
            let (old, new) = (lines(&mut next), lines(&mut next));
            let text = |lines: &[u32]| lines.iter().map(u32::to_string).collect::<Vec<_>>();
            let (old, new) = (text(&old), text(&new));
            let (a, b): (Vec<_>, Vec<_>) = (
                old.iter().map(String::as_str).collect(),
                new.iter().map(String::as_str).collect(),
            );
            let mut made: Vec<&str> = Vec::new();
            let mut from = 0;
            for (x, y) in changes(&a, &b) {
                made.extend(&a[from..x.start]);
                made.extend(&b[y]);
                from = x.end;
            }
            made.extend(&a[from..]);
            assert_eq!(made, b, "{a:?}");
        }
    }

    #[test]
    fn texts_without_much_in_common_are_one_hunk() {
        let old: String = (0..2000).map(|n| format!("a{n}\n")).collect();
        let new: String = (0..2000).map(|n| format!("b{n}\n")).collect();
        assert_eq!(hunks(&old, &new).len(), 1);
    }
}
