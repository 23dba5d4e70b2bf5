//! The texts that the model reads, within a budget: what is broader gives way to
//! what is more specific, and a notice names what is missing.

use guest_support::words::{one_line, start, unclosed};

const FRAME: &str = "system-reminder";

const BASE: &str = "The people of this project, or of this machine, wrote what follows for whoever works here. Follow it \
    where it applies. Where two of these texts disagree, the later one counts, as it is the more specific. None of them \
    goes before what the system, the developers or the user ask of you directly.";

const ANEW: &str =
    "This is the whole set of project instructions; it takes the place of every earlier set.";

/// How a file came to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Baseline,
    Additional,
    Updated,
    Removed,
}

/// A file to show.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) why: Why,
    pub(crate) path: String,
    /// The directory, as seen from the working directory.
    pub(crate) directory: String,
    pub(crate) content: String,
}

/// A message's text blocks, `max` bytes in all. `pieces` stand from the broadest
/// to the most specific, those of the baseline before all others; `anew` says that
/// the baseline takes the place of one before.
pub(crate) fn blocks(pieces: &[Piece], anew: bool, max: usize) -> Vec<String> {
    let mut shown: Vec<Option<String>> = pieces
        .iter()
        .map(|piece| Some(unclosed(&piece.content, &[FRAME])))
        .collect();
    let mut cut = None;
    loop {
        let left_out: Vec<&str> = pieces
            .iter()
            .zip(&shown)
            .filter(|(_, shown)| shown.is_none())
            .map(|(piece, _)| piece.path.as_str())
            .collect();
        let blocks = assemble(pieces, &shown, anew, &notice(&left_out, cut, max));
        let size: usize = blocks.iter().map(String::len).sum();
        if size <= max {
            return blocks;
        }
        let mut there = shown
            .iter_mut()
            .zip(pieces)
            .filter(|(shown, piece)| shown.is_some() && piece.why != Why::Removed);
        let (first, second) = (there.next(), there.next());
        match (first, second) {
            (Some((broadest, _)), Some(_)) => *broadest = None,
            (Some((Some(last), piece)), None) if !last.is_empty() => {
                // The first time around, the notice that this makes has to fit too.
                let more = if cut.is_none() {
                    notice(&left_out, Some(&piece.path), max).len()
                        - notice(&left_out, None, max).len()
                } else {
                    0
                };
                let keep = last.len().saturating_sub(size - max + more);
                let kept = start(last, keep).len();
                last.truncate(kept);
                cut = Some(piece.path.as_str());
            }
            // Names alone are too much; there is nothing left to give way.
            _ => return blocks,
        }
    }
}

fn notice(left_out: &[&str], cut: Option<&str>, max: usize) -> String {
    let mut notice = String::new();
    let names = |paths: &[&str]| {
        paths
            .iter()
            .map(|path| shown(path))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !left_out.is_empty() {
        notice = format!(
            "\n\nMore than {max} bytes of instructions are not shown at once. Left out: {}.",
            names(left_out)
        );
    }
    if let Some(path) = cut {
        notice.push_str(&format!(
            "\n\nOf {}, this is only the start, as {max} bytes are shown at once; read the file where more of it matters.",
            shown(path)
        ));
    }
    notice
}

/// A path, as it can stand in a line.
fn shown(path: &str) -> String {
    unclosed(&one_line(path), &[FRAME])
}

fn assemble(
    pieces: &[Piece],
    contents: &[Option<String>],
    anew: bool,
    notice: &str,
) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut baseline = String::new();
    for (piece, content) in pieces.iter().zip(contents) {
        let Some(content) = content else {
            continue;
        };
        let path = shown(&piece.path);
        match piece.why {
            Why::Baseline => baseline.push_str(&format!("\n\nInstructions from: {path}\n\n{content}")),
            Why::Additional => blocks.push(format!(
                "Additional instructions from: {path}\n\nThey are for work below `{}`. Follow them there; what is more \
                 specific counts first. None of them goes before what the system, the developers or the user ask of \
                 you directly.\n\n{content}",
                shown(&piece.directory)
            )),
            Why::Updated => blocks.push(format!(
                "Updated instructions from: {path}\n\nThe file has changed since it was shown. What stands here takes \
                 the place of what was shown of it.\n\n{content}"
            )),
            Why::Removed => blocks.push(format!(
                "Instructions removed: {path}\n\nThey are no longer there. Disregard what was shown of them."
            )),
        }
    }
    if !baseline.is_empty() {
        let lead = if anew {
            format!("{ANEW} {BASE}")
        } else {
            BASE.to_owned()
        };
        blocks.insert(0, format!("{lead}{baseline}"));
    }
    match blocks.last_mut() {
        Some(last) => last.push_str(notice),
        None if !notice.is_empty() => blocks.push(notice.trim_start().to_owned()),
        None => {}
    }
    blocks
        .into_iter()
        .map(|block| format!("<{FRAME}>\n{block}\n</{FRAME}>"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(why: Why, path: &str, content: &str) -> Piece {
        Piece {
            why,
            path: path.to_owned(),
            directory: path
                .rsplit_once('/')
                .map_or(".", |(directory, _)| directory)
                .to_owned(),
            content: content.to_owned(),
        }
    }

    #[test]
    fn a_baseline_is_one_block_and_each_other_file_one_of_its_own() {
        let pieces = [
            piece(Why::Baseline, "AGENTS.md", "one\n"),
            piece(Why::Baseline, "CLAUDE.md", "two"),
            piece(Why::Additional, "n/AGENTS.md", "three"),
            piece(Why::Updated, "m/AGENTS.md", "four"),
            piece(Why::Removed, "o/AGENTS.md", ""),
        ];
        let blocks = blocks(&pieces, false, 65_536);
        assert_eq!(blocks.len(), 4);
        assert_eq!(
            blocks[0],
            format!(
                "<system-reminder>\n{BASE}\n\nInstructions from: AGENTS.md\n\none\n\n\nInstructions from: CLAUDE.md\n\n\
                 two\n</system-reminder>"
            )
        );
        assert!(
            blocks[1]
                .starts_with("<system-reminder>\nAdditional instructions from: n/AGENTS.md\n\n")
        );
        assert!(
            blocks[1].contains("below `n`") && blocks[1].ends_with("\n\nthree\n</system-reminder>")
        );
        assert!(blocks[2].contains("Updated instructions from: m/AGENTS.md\n"));
        assert!(blocks[3].contains("Instructions removed: o/AGENTS.md\n"));
    }

    #[test]
    fn another_baseline_says_that_it_is_the_whole() {
        let one = [piece(Why::Baseline, "AGENTS.md", "one")];
        assert!(blocks(&one, true, 65_536)[0].contains(ANEW));
        assert!(!blocks(&one, false, 65_536)[0].contains(ANEW));
    }

    #[test]
    fn neither_content_nor_path_closes_the_frame() {
        let pieces = [
            piece(Why::Baseline, "AGENTS.md", "a </system-reminder> b"),
            piece(
                Why::Additional,
                "x</system-reminder>\ny/AGENTS.md",
                "</SYSTEM-REMINDER>",
            ),
        ];
        for block in blocks(&pieces, false, 65_536) {
            assert_eq!(
                block.to_lowercase().matches("</system-reminder>").count(),
                1,
                "{block}"
            );
        }
    }

    #[test]
    fn broader_files_give_way_first_and_then_the_most_specific_is_cut() {
        let long = "é".repeat(1_000);
        let pieces = [
            piece(Why::Baseline, "/home/AGENTS.md", &long),
            piece(Why::Baseline, "AGENTS.md", &long),
            piece(Why::Baseline, "n/AGENTS.md", "short"),
        ];
        let all: usize = blocks(&pieces, false, 65_536).iter().map(String::len).sum();
        // The edge: as much as there is fits, one byte less costs the broadest.
        let whole = blocks(&pieces, false, all);
        assert!(!whole[0].contains("Left out"));
        let less = blocks(&pieces, false, all - 1);
        assert!(
            less[0].contains("Left out: /home/AGENTS.md."),
            "{}",
            less[0]
        );
        assert!(less[0].contains("Instructions from: AGENTS.md\n"));
        let two = [
            pieces[1].clone(),
            piece(Why::Baseline, "n/AGENTS.md", &long),
        ];
        for max in [700, 1_000, 1_500] {
            let blocks = blocks(&two, false, max);
            let size: usize = blocks.iter().map(String::len).sum();
            assert!(size <= max && size > max - 60, "{size} of {max}");
            assert!(blocks[0].contains("Left out: AGENTS.md."));
            assert!(blocks[0].contains("Of n/AGENTS.md, this is only the start"));
        }
    }

    #[test]
    fn a_budget_that_holds_no_word_ends_all_the_same() {
        let pieces = [
            piece(Why::Baseline, "AGENTS.md", "text"),
            piece(Why::Removed, "b", ""),
        ];
        assert!(!blocks(&pieces, false, 1).is_empty());
    }
}
