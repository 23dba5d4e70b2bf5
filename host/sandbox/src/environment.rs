//! What a command finds in its environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// An environment, by name.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// The inherited environment without what looks like a secret and without all
/// `DSH_*` (spec/cli.md §5), then what was given on purpose, later over earlier.
pub(crate) fn environment<'a>(
    inherited: &[(OsString, OsString)],
    given: impl IntoIterator<Item = &'a (String, String)>,
) -> Environment {
    let kept = inherited.iter().filter(|(name, _)| !is_scrubbed(name));
    let mut environment: Environment = kept.cloned().collect();
    environment.extend(
        given
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    environment
}

fn is_scrubbed(name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_uppercase();
    let has = |word: &str| name.windows(word.len()).any(|part| part == word.as_bytes());
    name.starts_with(b"DSH_") || ["KEY", "PASSWORD", "SECRET", "TOKEN"].into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_our_own_names_are_not_inherited_and_what_is_given_is_kept() {
        let inherited = [
            ("PATH", "/bin"),
            ("DEEPSEEK_API_KEY", "x"),
            ("npm_config_authtoken", "x"),
            ("Db_Password", "x"),
            ("MY_SECRETS", "x"),
            ("MONKEY", "x"),
            ("DSH_HOME", "inherited"),
            ("dsh_lower", "x"),
            ("ADSH_X", "kept"),
            ("PAGER", "less"),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let given = [("PAGER", "cat"), ("DSH_HOME", "/h"), ("GIVEN_TOKEN", "t")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let made = environment(&inherited, &given);
        let seen: Vec<_> = made
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        let expected = [
            ("ADSH_X", "kept"),
            ("DSH_HOME", "/h"),
            ("GIVEN_TOKEN", "t"),
            ("PAGER", "cat"),
            ("PATH", "/bin"),
        ];
        assert_eq!(seen, expected);
    }
}
