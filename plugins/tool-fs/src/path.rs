//! How a path that a model wrote is shown back: absolute, without `.` and `..`.
//! The host resolves for itself, links included; nothing is decided by this.

/// `path`, below `root` where it is relative.
pub(crate) fn shown(root: &str, path: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{root}/{path}")
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

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_path_is_shown_absolute() {
        assert_eq!(shown("/w", "a.txt"), "/w/a.txt");
        assert_eq!(shown("/w/", "./b/../a//c"), "/w/a/c");
        assert_eq!(shown("/w", "../x"), "/x");
        assert_eq!(shown("/w", "/etc/./y"), "/etc/y");
        assert_eq!(shown("/w", "../../.."), "/");
    }
}
