//! Whether a plugin may be installed, or take the place of the one that is.
//!
//! A pure decision over plain values: what is installed, what came, and what the
//! person and the profile asked for. A signature counts only as the [`Signed`]
//! that [`crate::signature::verify`] gave. The rules, in the order in which they
//! are asked:
//!
//! 1. The bytes are those that were named with `--sha256`.
//! 2. The name is one that a plugin may have, and that of what is updated.
//! 3. Where the profile requires signatures, it is signed; where it has trusted
//!    keys, by one of them.
//! 4. What was signed stays signed, by the same key.
//! 5. What was signed never goes back to an older version, as an old release may
//!    have the hole that the new one closed. What was not signed may, when asked.
//! 6. A version means the same bytes. A remote source that gives others under the
//!    same version is refused, unless the person names the new digest; a file on
//!    this machine is most likely being worked on, so there it is a remark.

use crate::lock::{FIRST_PARTY, Installed, Signed, is_plugin_name};
use crate::policy::Policy;
use crate::signature::Key;
use semver::Version;
use std::cmp::Ordering;

/// What came from a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The name in its manifest.
    pub name: String,
    /// The version in its manifest.
    pub version: String,
    /// As it will be stored: an absolute path or an `https://` URL.
    pub source: String,
    /// SHA-256 of the bytes that the source gave.
    pub digest: String,
    /// Its signature, where one was verified.
    pub signature: Option<Signed>,
}

/// What the person and the profile ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The profile's.
    pub policy: Policy,
    /// `--sha256`, in hex of either case.
    pub sha256: Option<String>,
    /// `--allow-downgrade`.
    pub allow_downgrade: bool,
    /// The plugin that is being updated.
    pub updating: Option<String>,
}

/// A candidate that may be installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admitted {
    /// These very bytes are installed already.
    pub same: bool,
    /// What whoever decides should know: sentences without a full stop.
    pub remarks: Vec<String>,
}

/// Why not. Displays as one line that says what was expected, what came, and what
/// to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not the bytes that were named.
    #[error(
        "{from} gave bytes with the digest {found}, and --sha256 says {expected}; do not use them unless you know why they differ"
    )]
    Digest {
        /// The source.
        from: String,
        /// `--sha256`.
        expected: String,
        /// What came.
        found: String,
    },
    /// A name of ours, or none.
    #[error(
        "it calls itself {name:?}; {reason}; its author has to name it `namespace:name` in its manifest"
    )]
    Name {
        /// As its manifest says.
        name: String,
        /// The rule.
        reason: &'static str,
    },
    /// The source gives another plugin.
    #[error(
        "the source of {expected} gives a plugin that calls itself {found}; install that with `dsh plugin add`, and remove {expected} if it took its place"
    )]
    OtherPlugin {
        /// What is updated.
        expected: String,
        /// What came.
        found: String,
    },
    /// The profile requires a signature.
    #[error(
        "{name} {version} has no signature that was verified, and the profile requires one (`signatures: required` in profile.yml); give its author's key with --key, and its .minisig beside it"
    )]
    Unsigned {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// Signed by a key that the profile does not trust.
    #[error(
        "{name} {version} is signed by key {found}, and the profile trusts {expected} alone (trusted-keys in profile.yml)"
    )]
    Untrusted {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// Ids of the trusted keys.
        expected: String,
        /// The key's id.
        found: String,
    },
    /// It was signed, and is not now.
    #[error(
        "{name} {before} is signed by key {expected}, and {after} has no signature by it; ask its author, or decide anew: `dsh plugin remove {name}`, then add it"
    )]
    SignatureLost {
        /// Its name.
        name: String,
        /// The installed version.
        before: String,
        /// What came.
        after: String,
        /// The key's id.
        expected: String,
    },
    /// It was signed by another key.
    #[error(
        "{name} {before} is signed by key {expected}, and {after} by key {found}; ask its author, or decide anew: `dsh plugin remove {name}`, then add it with --key"
    )]
    OtherKey {
        /// Its name.
        name: String,
        /// The installed version.
        before: String,
        /// What came.
        after: String,
        /// The installed one's key, by id.
        expected: String,
        /// What came, by id.
        found: String,
    },
    /// An older version of a signed plugin.
    #[error(
        "{name} {before} is installed and signed, and {after} is older; a signed plugin does not go back, unless you decide anew: `dsh plugin remove {name}`, then add it"
    )]
    SignedDowngrade {
        /// Its name.
        name: String,
        /// The installed version.
        before: String,
        /// What came.
        after: String,
    },
    /// An older version.
    #[error(
        "{name} {before} is installed, and {after} is older; add --allow-downgrade if that is what you want"
    )]
    Downgrade {
        /// Its name.
        name: String,
        /// The installed version.
        before: String,
        /// What came.
        after: String,
    },
    /// A version that is none, so nobody can tell which is older.
    #[error("{name} says its version is {version:?}, and it must be like 1.2.3 (semver.org)")]
    Version {
        /// Its name.
        name: String,
        /// As its manifest says.
        version: String,
    },
    /// Other bytes under the same version.
    #[error(
        "{from} gave other bytes for {name} {version} than before: {expected} was pinned, {found} came; a version should not change, so ask its author, or accept exactly these with --sha256 {found}"
    )]
    Moved {
        /// The source.
        from: String,
        /// Its name.
        name: String,
        /// The version of both.
        version: String,
        /// The pinned digest.
        expected: String,
        /// What came.
        found: String,
    },
}

/// Decides. `before` is what is installed under the candidate's name, or under
/// that of what is updated.
///
/// # Errors
/// The first rule that is broken.
pub fn admit(
    before: Option<&Installed>,
    candidate: &Candidate,
    terms: &Terms,
) -> Result<Admitted, Refusal> {
    named_digest(candidate, terms)?;
    name(candidate, terms)?;
    let version = Version::parse(&candidate.version).map_err(|_| Refusal::Version {
        name: candidate.name.clone(),
        version: candidate.version.clone(),
    })?;
    signature(candidate, &terms.policy)?;
    let mut admitted = Admitted::default();
    let Some(before) = before else {
        return Ok(admitted);
    };
    same_key(before, candidate)?;
    let pinned = before.fetched.as_ref().unwrap_or(&before.digest);
    if *pinned == candidate.digest {
        admitted.same = true;
        return Ok(admitted);
    }
    match Version::parse(&before.version).map(|old| version.cmp_precedence(&old)) {
        Ok(Ordering::Greater) => {}
        Ok(Ordering::Equal) => {
            let named = terms.sha256.is_some();
            if is_remote(&candidate.source) && candidate.source == before.source && !named {
                return Err(Refusal::Moved {
                    from: candidate.source.clone(),
                    name: candidate.name.clone(),
                    version: candidate.version.clone(),
                    expected: pinned.clone(),
                    found: candidate.digest.clone(),
                });
            }
            admitted.remarks.push(format!(
                "its bytes changed, and its version did not: it is {} as before",
                candidate.version
            ));
        }
        Ok(Ordering::Less) | Err(_) => {
            downgrade(before, candidate, terms)?;
            admitted.remarks.push(format!(
                "{} is older than {}, which is installed",
                candidate.version, before.version
            ));
        }
    }
    if candidate.source != before.source {
        admitted.remarks.push(format!(
            "it comes from {}, and came from {} before",
            candidate.source, before.source
        ));
    }
    Ok(admitted)
}

fn named_digest(candidate: &Candidate, terms: &Terms) -> Result<(), Refusal> {
    match &terms.sha256 {
        Some(expected) if !expected.eq_ignore_ascii_case(&candidate.digest) => {
            Err(Refusal::Digest {
                from: candidate.source.clone(),
                expected: expected.to_ascii_lowercase(),
                found: candidate.digest.clone(),
            })
        }
        _ => Ok(()),
    }
}

fn name(candidate: &Candidate, terms: &Terms) -> Result<(), Refusal> {
    let name = &candidate.name;
    let namespace = name.split_once(':').map_or("", |(namespace, _)| namespace);
    if !is_plugin_name(name) {
        return Err(Refusal::Name {
            name: name.clone(),
            reason: if namespace == FIRST_PARTY {
                "names of `dsh` are those of its own components"
            } else {
                "a plugin's name is `namespace:name` in kebab-case"
            },
        });
    }
    match &terms.updating {
        Some(expected) if expected != name => Err(Refusal::OtherPlugin {
            expected: expected.clone(),
            found: name.clone(),
        }),
        _ => Ok(()),
    }
}

fn signature(candidate: &Candidate, policy: &Policy) -> Result<(), Refusal> {
    let (name, version) = (candidate.name.clone(), candidate.version.clone());
    match &candidate.signature {
        None if policy.required => Err(Refusal::Unsigned { name, version }),
        Some(signed) if !policy.trusts(&signed.key) => Err(Refusal::Untrusted {
            name,
            version,
            expected: policy
                .trusted
                .iter()
                .map(|key| key.id().to_string())
                .collect::<Vec<_>>()
                .join(", "),
            found: id(&signed.key),
        }),
        _ => Ok(()),
    }
}

fn same_key(before: &Installed, candidate: &Candidate) -> Result<(), Refusal> {
    let Some(old) = &before.signature else {
        return Ok(());
    };
    let (name, was, after) = (
        candidate.name.clone(),
        before.version.clone(),
        candidate.version.clone(),
    );
    match &candidate.signature {
        None => Err(Refusal::SignatureLost {
            name,
            before: was,
            after,
            expected: id(&old.key),
        }),
        // Whole keys are compared, as an id can be made to measure.
        Some(new) if new.key != old.key => Err(Refusal::OtherKey {
            name,
            before: was,
            after,
            expected: id(&old.key),
            found: id(&new.key),
        }),
        Some(_) => Ok(()),
    }
}

fn downgrade(before: &Installed, candidate: &Candidate, terms: &Terms) -> Result<(), Refusal> {
    let (name, was, after) = (
        candidate.name.clone(),
        before.version.clone(),
        candidate.version.clone(),
    );
    if before.signature.is_some() {
        return Err(Refusal::SignedDowngrade {
            name,
            before: was,
            after,
        });
    }
    if terms.allow_downgrade {
        return Ok(());
    }
    Err(Refusal::Downgrade {
        name,
        before: was,
        after,
    })
}

/// How a key is named to people; two that share an id are told apart by more.
fn id(key: &str) -> String {
    Key::parse(key).map_or_else(|_| "(damaged)".to_owned(), |key| key.id().to_string())
}

fn is_remote(source: &str) -> bool {
    source.contains("://")
}

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
