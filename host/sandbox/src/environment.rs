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

/// What the loader and the C library take from the environment before `main`,
/// and refuse where a program has more rights than its caller (glibc's
/// `unsecvars.h`; musl knows some of them). `MALLOC_*` and `LD_*` besides.
const LOADER: [&str; 11] = [
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "LOCPATH",
    "NIS_PATH",
    "NLSPATH",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "TZDIR",
];

/// The runner's own environment, and what is only the command's: a component
/// chooses a command's environment, and must not have its code or its file
/// names taken by the runner, which is not confined yet.
pub(crate) fn split(environment: &Environment) -> (Environment, Environment) {
    let all = environment.clone().into_iter();
    all.partition(|(name, _)| !is_loader(name))
}

fn is_loader(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"LD_")
        || name.starts_with(b"MALLOC_")
        || LOADER.iter().any(|known| name == known.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_reads_is_the_command_s_alone() {
        let names = [
            "PATH",
            "LD_PRELOAD",
            "LD_DEBUG_OUTPUT",
            "GLIBC_TUNABLES",
            "OLD_X",
            "MALLOC_TRACE",
        ];
        let environment = names.map(|name| (name.into(), "x".into())).into();
        let (runner, command) = split(&environment);
        let names = |environment: Environment| environment.into_keys().collect::<Vec<_>>();
        assert_eq!(names(runner), ["OLD_X", "PATH"]);
        assert_eq!(
            names(command),
            [
                "GLIBC_TUNABLES",
                "LD_DEBUG_OUTPUT",
                "LD_PRELOAD",
                "MALLOC_TRACE"
            ]
        );
    }

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
