//! Whose signature is on what came, and whether it may be installed.
//!
//! A signature counts only where somebody said which key to hold it against: `--key`, the key of the version that is
//! installed, or a trusted key of the profile. One that nobody can check is said to be there, and counts for nothing.

use dsh_profile::signature::{self, Key};
use dsh_profile::{Admitted, Installed, Policy, Signed, Terms, admit};

use super::Stop;
use super::look::Candidate;
use super::text::shown;
use crate::arguments::usage;
use crate::words::Words;

/// What there is of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signature {
    /// None came.
    None,
    /// By the key of this id, which nobody vouches for.
    Unchecked(String),
    /// Verified.
    By(Signed, String),
}

impl Signature {
    pub(super) fn signed(&self) -> Option<&Signed> {
        match self {
            Self::By(signed, _) => Some(signed),
            _ => None,
        }
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::None => "no".to_owned(),
            Self::Unchecked(id) => format!(
                "by key {id}, which was not checked: give its author's public key with --key"
            ),
            Self::By(signed, id) if signed.comment.is_empty() => format!("by key {id}"),
            Self::By(signed, id) => format!("by key {id} ({})", shown(&signed.comment, 120)),
        }
    }
}

/// `--key`: a public key, or a file with one.
pub(super) fn key(words: &Words) -> Result<Option<Key>, Stop> {
    let Some(given) = words.value("--key") else {
        return Ok(None);
    };
    let path = std::path::Path::new(given);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage(format_args!("--key: cannot read {given}: {error}")))?;
        return Key::parse(&text)
            .map(Some)
            .map_err(|error| usage(format_args!("--key {given}: {error}")).into());
    }
    // Base64 has slashes too, so what is a key is one before it is a path.
    Key::parse(given).map(Some).map_err(|error| {
        if path.extension().is_some() || given.starts_with(['.', '/', '~']) {
            usage(format_args!("--key: there is no file {given}")).into()
        } else {
            usage(format_args!("--key: {error}")).into()
        }
    })
}

/// `--sha256`, in lower case.
pub(super) fn sha256(words: &Words) -> Result<Option<String>, Stop> {
    let Some(given) = words.value("--sha256") else {
        return Ok(None);
    };
    let text = given
        .strip_prefix("sha256:")
        .unwrap_or(given)
        .to_ascii_lowercase();
    if dsh_profile::is_digest(&text) {
        Ok(Some(text))
    } else {
        Err(usage(format_args!(
            "--sha256: {given:?} is no SHA-256, which is 64 hex digits (sha256sum FILE)"
        ))
        .into())
    }
}

/// Holds the signature that came against the key that is meant.
pub(super) fn check(
    bytes: &[u8],
    came: Option<&str>,
    key: Option<&Key>,
    before: Option<&Installed>,
    policy: &Policy,
    source: &str,
) -> Result<Signature, Stop> {
    let source = shown(source, 300);
    let Some(came) = came else {
        return match key {
            Some(key) => Err(Stop::of(format_args!(
                "{source}: a signature by key {} is asked for with --key, and there is none beside it ({source}.minisig)",
                key.id()
            ))),
            None => Ok(Signature::None),
        };
    };
    let faulty = |error: &dyn std::fmt::Display| {
        Stop::of(format_args!(
            "{source}.minisig: {}",
            shown(&error.to_string(), 600)
        ))
    };
    let id = signature::key_of(came).map_err(|error| faulty(&error))?;
    let installed = match before.and_then(|before| before.signature.as_ref()) {
        Some(signed) => Some(Key::parse(&signed.key).map_err(|error| faulty(&error))?),
        None => None,
    };
    let trusted = policy.trusted.iter().find(|key| key.id() == id).cloned();
    match key.cloned().or(installed).or(trusted) {
        None => Ok(Signature::Unchecked(id.to_string())),
        Some(key) => signature::verify(bytes, came, &key)
            .map(|signed| Signature::By(signed, key.id().to_string()))
            .map_err(|error| match before.filter(|before| before.signature.is_some()) {
                Some(before) => faulty(&format_args!(
                    "{error}; {} {} is signed by key {}, and only that key may sign what takes its place (else decide anew: dsh plugin remove {}, then add it)",
                    before.name, before.version, key.id(), before.name
                )),
                None => faulty(&format_args!("{error}; do not use it unless you know why")),
            }),
    }
}

/// Whether it may be installed.
pub(super) fn admitted(
    candidate: &Candidate,
    source: &str,
    signature: &Signature,
    before: Option<&Installed>,
    terms: &Terms,
) -> Result<Admitted, Stop> {
    let came = dsh_profile::Candidate {
        name: candidate.name().to_owned(),
        version: candidate.version().to_owned(),
        source: source.to_owned(),
        digest: candidate.given.clone(),
        signature: signature.signed().cloned(),
    };
    admit(before, &came, terms).map_err(|refusal| {
        let text = refusal.to_string();
        if text.contains(source) {
            Stop::of(text)
        } else {
            Stop::of(format_args!("{source}: {text}"))
        }
    })
}
