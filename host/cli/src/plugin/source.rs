//! Where a plugin comes from, read from what a person wrote. A pure function of the text and the working directory.
//!
//! A path or an `https://` address: nothing else can be had by this version. `http://` is refused also for this machine,
//! since a file is named by its path. What upstream's `dsh plugin add` took (npm and git packages) is told what it is.

use std::path::{Component, Path, PathBuf};

/// Where a component's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A file; absolute.
    File(PathBuf),
    /// An `https://` address.
    Https(String),
}

impl Source {
    /// Reads what was written; a path is relative to `cwd`.
    pub(super) fn read(text: &str, cwd: &Path) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("a source cannot be empty; give a path or an https:// address".to_owned());
        }
        if let Some(rest) = scheme(text, "https://") {
            return https(text, rest);
        }
        if scheme(text, "http://").is_some() {
            return Err(format!(
                "{text}: http:// can be read and changed on its way; give the https:// address, or download it and give its path"
            ));
        }
        for (prefix, what) in [
            ("oci://", "a registry (oci://)"),
            ("ftp://", "ftp"),
            ("npm:", "an npm package"),
        ] {
            if scheme(text, prefix).is_some() {
                return Err(no_way(text, what));
            }
        }
        if is_git(text) {
            return Err(no_way(text, "a git repository"));
        }
        let path = match scheme(text, "file:").or_else(|| scheme(text, "link:")) {
            Some(rest) => rest
                .strip_prefix("//")
                .map_or(rest, |rest| rest.strip_prefix("localhost").unwrap_or(rest)),
            None => text,
        };
        let given = Path::new(path);
        let looks_like_path = path.len() != text.len()
            || given.is_absolute()
            || path.starts_with('.')
            || path.starts_with('~')
            || given
                .extension()
                .is_some_and(|extension| extension.eq_ignore_ascii_case("wasm"))
            || cwd.join(given).exists();
        if !looks_like_path && is_npm(path) {
            return Err(no_way(text, "the name of an npm package"));
        }
        if path.starts_with('~') {
            return Err(format!(
                "{text}: `~` is opened by a shell, and was quoted here; write the whole path"
            ));
        }
        let path = plain(&cwd.join(given));
        match path.to_str() {
            Some(text) if super::text::shown(text, usize::MAX) == text => Ok(Self::File(path)),
            _ => Err(format!(
                "{}: a path that is no text, or holds characters that nobody sees, cannot be kept in the lock; rename it",
                super::text::shown(&path.to_string_lossy(), 300)
            )),
        }
    }

    /// As it is kept in the lock and shown.
    pub(super) fn text(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Https(url) => url.clone(),
        }
    }
}

fn https(text: &str, rest: &str) -> Result<Source, String> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(format!("{text}: there is no host in this address"));
    }
    if authority.contains('@') {
        return Err("the address has a user name or a password in it, which the lock would keep; give one without".to_owned());
    }
    if rest.contains('#') {
        return Err(format!(
            "{text}: leave out what follows `#`; a digest is given by --sha256"
        ));
    }
    Ok(Source::Https(text.to_owned()))
}

/// What follows a scheme, in either case.
fn scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let head = text.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme)
        .then(|| &text[scheme.len()..])
}

fn is_git(text: &str) -> bool {
    [
        "github:",
        "gitlab:",
        "bitbucket:",
        "gist:",
        "git:",
        "git+",
        "git@",
        "ssh://",
    ]
    .iter()
    .any(|prefix| scheme(text, prefix).is_some())
}

/// `name`, `name@version`, `@scope/name`, `owner/repo`: what npm would look up.
fn is_npm(text: &str) -> bool {
    !text.contains(['\\', ' ']) && text.trim_start_matches('@').matches('/').count() <= 1
}

fn no_way(text: &str, what: &str) -> String {
    format!(
        "{text} is {what}, and plugins of this dsh are WebAssembly components: give the path or the https:// address of a .wasm file"
    )
}

/// Without `.` and `..`, so that the lock tells one place in one way.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Source, String> {
        Source::read(text, Path::new("/work/here"))
    }

    #[test]
    fn paths_are_taken_in_upstreams_forms_and_made_absolute() {
        for (text, path) in [
            ("weather.wasm", "/work/here/weather.wasm"),
            ("./weather.wasm", "/work/here/weather.wasm"),
            ("../x/./weather", "/work/x/weather"),
            ("/opt/weather", "/opt/weather"),
            ("file:./weather.wasm", "/work/here/weather.wasm"),
            ("file:weather", "/work/here/weather"),
            ("file:///opt/weather.wasm", "/opt/weather.wasm"),
            ("link:../weather", "/work/weather"),
            ("sub/dir/weather", "/work/here/sub/dir/weather"),
        ] {
            assert_eq!(read(text), Ok(Source::File(path.into())), "{text}");
        }
    }

    #[test]
    fn an_https_address_stays_as_it_was_written() {
        for text in ["https://x.example/w.wasm", "HTTPS://x.example:8443/w?v=1"] {
            assert_eq!(read(text), Ok(Source::Https(text.into())));
        }
    }

    #[test]
    fn what_cannot_be_had_is_told_what_it_is_and_what_to_do() {
        for (text, part) in [
            ("", "cannot be empty"),
            ("http://x.example/w.wasm", "https://"),
            ("http://127.0.0.1/w.wasm", "give its path"),
            ("https://", "no host"),
            ("https://me:pw@x.example/w", "a user name or a password"),
            ("https://x.example/w#abc", "--sha256"),
            ("@acme/dsh-weather", "npm package"),
            ("dsh-weather", "npm package"),
            ("dsh-weather@1.2.3", "npm package"),
            ("acme/weather", "npm package"),
            ("npm:weather", "npm package"),
            ("github:acme/weather", "git repository"),
            ("git+https://x.example/w.git", "git repository"),
            ("git@github.com:acme/weather.git", "git repository"),
            ("oci://ghcr.io/acme/weather:1", "registry"),
            ("~/weather.wasm", "whole path"),
            ("./a\u{202e}.wasm", "a\\u{202e}.wasm: a path that"),
            ("./a\u{1b}[31m.wasm", "a\\u{1b}[31m.wasm: a path that"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.contains(part) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
        assert!(
            !read("https://me:pw@x.example/w")
                .unwrap_err()
                .contains("pw")
        );
    }
}
