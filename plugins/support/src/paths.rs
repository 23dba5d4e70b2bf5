//! Paths as texts. What a path really leads to is the host's to find out; here
//! they are only put together and shown.

/// `path` below `base` where it is relative; without `.`, `..` and doubled slashes.
pub fn join(base: &str, path: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The directory above; none above the root.
pub fn parent(path: &str) -> Option<&str> {
    let at = path.rfind('/')?;
    match at {
        0 if path.len() == 1 => None,
        0 => Some("/"),
        at => Some(&path[..at]),
    }
}

/// The last part of a path.
pub fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether `path` is `directory` or below it.
pub fn is_below(directory: &str, path: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `path` as seen from `base`, both absolute and without `..`; empty where they are the same.
pub fn relative(base: &str, path: &str) -> String {
    let of: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let shared = of.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", of.len() - shared);
    up.chain(to[shared..].iter().copied())
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_told_apart() {
        assert_eq!(join("/w", "a//./b/../c"), "/w/a/c");
        assert_eq!(join("/w", "/x/"), "/x");
        assert_eq!(join("/w", "../../.."), "/");
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/"), None);
        assert_eq!(name("/a/b"), "b");
        assert!(is_below("/a", "/a/b") && is_below("/a", "/a") && is_below("/", "/a"));
        assert!(!is_below("/a", "/ab") && !is_below("/a/b", "/a"));
    }

    #[test]
    fn a_path_is_seen_from_another() {
        assert_eq!(relative("/w/a", "/w/a"), "");
        assert_eq!(relative("/w/a", "/w/a/b/c"), "b/c");
        assert_eq!(relative("/w/a", "/w"), "..");
        assert_eq!(relative("/w/a", "/x"), "../../x");
        assert_eq!(relative("/", "/x"), "x");
    }
}
