//! Replacing text in text.

use guest_support::{Error, error, tool};

/// `content` with `old` replaced by `new`, and how often. `path` is for errors.
///
/// Models write LF. Where nothing matches and the file ends its lines with CR LF,
/// both texts are taken to mean that.
pub(crate) fn replace(
    path: &str,
    content: &str,
    old: &str,
    new: &str,
    all: bool,
) -> Result<(String, usize), Error> {
    if old.is_empty() {
        return Err(tool::invalid(
            "\"old_string\" must not be empty; use write to make a file",
        ));
    }
    if old == new {
        return Err(tool::invalid(
            "\"old_string\" and \"new_string\" are the same",
        ));
    }
    let (old, new, count) = match content.matches(old).count() {
        0 if content.contains("\r\n") && old.contains('\n') => {
            let (old, new) = (crlf(old), crlf(new));
            let count = content.matches(&old).count();
            (old, new, count)
        }
        count => (old.to_owned(), new.to_owned(), count),
    };
    match count {
        0 => {
            let message = format!(
                "{path} does not hold old_string; it must match to the character, indentation and line ends \
                 included. Read the file, then try again with its own text"
            );
            Err(error("FS_EDIT_NOT_FOUND", message))
        }
        2.. if !all => {
            let message = format!(
                "old_string stands {count} times in {path}; take more of the lines around the one that is meant, or \
                 set replace_all to change all of them"
            );
            Err(error("FS_AMBIGUOUS_EDIT", message))
        }
        count => Ok((content.replace(&old, &new), count)),
    }
}

fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(content: &str, old: &str, new: &str, all: bool) -> Result<(String, usize), String> {
        replace("/f", content, old, new, all).map_err(|error| error.code)
    }

    #[test]
    fn a_single_match_is_replaced() {
        assert_eq!(
            edit("alpha\nbeta\n", "alpha", "ALPHA", false),
            Ok(("ALPHA\nbeta\n".to_owned(), 1))
        );
        assert_eq!(edit("a b", " b", "", false), Ok(("a".to_owned(), 1)));
    }

    #[test]
    fn several_need_replace_all() {
        assert_eq!(
            edit("a a a", "a", "b", false),
            Err("FS_AMBIGUOUS_EDIT".to_owned())
        );
        assert_eq!(edit("a a a", "a", "b", true), Ok(("b b b".to_owned(), 3)));
        assert_eq!(edit("aaa", "aa", "b", false), Ok(("ba".to_owned(), 1)));
    }

    #[test]
    fn no_match_is_told() {
        assert_eq!(
            edit("abc", "x", "y", true),
            Err("FS_EDIT_NOT_FOUND".to_owned())
        );
        assert_eq!(
            edit("", "x", "y", false),
            Err("FS_EDIT_NOT_FOUND".to_owned())
        );
    }

    #[test]
    fn nothing_to_look_for_and_nothing_to_change_are_refused() {
        assert_eq!(edit("abc", "", "y", false), Err("INVALID_ARGS".to_owned()));
        assert_eq!(edit("abc", "b", "b", false), Err("INVALID_ARGS".to_owned()));
    }

    #[test]
    fn a_file_keeps_its_line_ends() {
        assert_eq!(
            edit("a\r\nb\r\nc", "a\nb", "x\ny", false),
            Ok(("x\r\ny\r\nc".to_owned(), 1))
        );
        assert_eq!(
            edit("a\r\nb\n", "b\n", "x\n", false),
            Ok(("a\r\nx\n".to_owned(), 1))
        );
    }
}
