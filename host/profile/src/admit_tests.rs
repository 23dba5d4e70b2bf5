use super::*;

const ONE: &str = "RWQBAgMEBQYHCHhlcoMy4DpjtkQrQu+Y7rHUvv0enFAyuD1w9k5fVRpQ";
/// Another key under the same id.
const TWIN: &str = "RWQBAgMEBQYHCPo+Db2qDCC2Iaeb4x+Hu14SO8JrVaFLWOqMJa7QZz2o";
const TWO: &str = "RWQREhMUFRYXGF/5v7c/jyyvumJt1ZvaDrSAO9Ji7fFA/27sY5c2kTIc";

const FILE: &str = "/home/me/weather.wasm";
const SITE: &str = "https://x.example/weather.wasm";

fn hex(letter: char) -> String {
    letter.to_string().repeat(64)
}

fn signed(key: &str) -> Option<Signed> {
    (!key.is_empty()).then(|| Signed {
        key: key.to_owned(),
        comment: "c".to_owned(),
    })
}

/// `a` of `version`, signed by `key` where there is one.
fn installed(version: &str, source: &str, key: &str) -> Installed {
    Installed {
        name: "acme:weather".into(),
        version: version.into(),
        source: source.into(),
        digest: hex('a'),
        signature: signed(key),
        ..Installed::default()
    }
}

/// `b` of `version`, signed by `key` where there is one.
fn came(version: &str, source: &str, key: &str) -> Candidate {
    Candidate {
        name: "acme:weather".into(),
        version: version.into(),
        source: source.into(),
        digest: hex('b'),
        signature: signed(key),
    }
}

fn trusting(required: bool, keys: &[&str]) -> Terms {
    Terms {
        policy: Policy {
            required,
            trusted: keys.iter().map(|key| Key::parse(key).unwrap()).collect(),
        },
        ..Terms::default()
    }
}

fn named(sha256: &str) -> Terms {
    Terms {
        sha256: Some(sha256.to_owned()),
        ..Terms::default()
    }
}

fn downgrading() -> Terms {
    Terms {
        allow_downgrade: true,
        ..Terms::default()
    }
}

fn updating(name: &str) -> Terms {
    Terms {
        updating: Some(name.to_owned()),
        ..Terms::default()
    }
}

fn calling_itself(name: &str) -> Candidate {
    Candidate {
        name: name.to_owned(),
        ..came("1.0.0", FILE, "")
    }
}

struct Row {
    before: Option<Installed>,
    candidate: Candidate,
    terms: Terms,
    /// What the remarks, or the refusal, say; nothing where there are none.
    says: Result<&'static [&'static str], &'static [&'static str]>,
}

fn row(
    before: Option<Installed>,
    candidate: Candidate,
    terms: Terms,
    says: Result<&'static [&'static str], &'static [&'static str]>,
) -> Row {
    Row {
        before,
        candidate,
        terms,
        says,
    }
}

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const ID: &str = "0807060504030201";
const ID_TWO: &str = "1817161514131211";

fn table() -> Vec<Row> {
    let ok = Terms::default;
    let some = |version, source, key| Some(installed(version, source, key));
    vec![
        // Something new.
        row(None, came("1.0.0", FILE, ""), ok(), Ok(&[])),
        row(None, came("1.0.0", SITE, ONE), ok(), Ok(&[])),
        row(None, came("1", FILE, ""), ok(), Err(&["\"1\"", "1.2.3"])),
        // 1. The digest.
        row(None, came("1.0.0", SITE, ""), named(B), Ok(&[])),
        row(
            None,
            came("1.0.0", SITE, ""),
            named(&B.to_uppercase()),
            Ok(&[]),
        ),
        row(
            None,
            came("1.0.0", SITE, ""),
            named(A),
            Err(&[SITE, A, B, "--sha256"]),
        ),
        row(None, came("1.0.0", SITE, ""), named(""), Err(&["--sha256"])),
        // 2. The name.
        row(
            None,
            calling_itself("dsh:tool-bash"),
            ok(),
            Err(&["dsh:tool-bash", "names of `dsh`"]),
        ),
        row(
            None,
            calling_itself("weather"),
            ok(),
            Err(&["namespace:name"]),
        ),
        row(
            None,
            calling_itself("Dsh:tool-bash"),
            ok(),
            Err(&["kebab-case"]),
        ),
        row(
            None,
            calling_itself("acme:weather"),
            updating("acme:weather"),
            Ok(&[]),
        ),
        row(
            some("1.0.0", FILE, ""),
            calling_itself("evil:weather"),
            updating("acme:weather"),
            Err(&["acme:weather", "evil:weather", "dsh plugin add"]),
        ),
        // 3. What the profile asks.
        row(
            None,
            came("1.0.0", FILE, ""),
            trusting(true, &[]),
            Err(&["signatures: required", "--key"]),
        ),
        row(None, came("1.0.0", FILE, ONE), trusting(true, &[]), Ok(&[])),
        row(
            None,
            came("1.0.0", FILE, ONE),
            trusting(true, &[TWO, ONE]),
            Ok(&[]),
        ),
        row(
            None,
            came("1.0.0", FILE, ONE),
            trusting(true, &[TWO]),
            Err(&[ID, ID_TWO, "trusted-keys"]),
        ),
        row(
            None,
            came("1.0.0", FILE, TWIN),
            trusting(false, &[ONE]),
            Err(&["trusted-keys"]),
        ),
        row(
            None,
            came("1.0.0", FILE, ""),
            trusting(false, &[ONE]),
            Ok(&[]),
        ),
        // 4. The same key.
        row(
            some("1.0.0", FILE, ONE),
            came("1.1.0", FILE, ONE),
            ok(),
            Ok(&[]),
        ),
        row(
            some("1.0.0", FILE, ONE),
            came("1.1.0", FILE, ""),
            ok(),
            Err(&["1.0.0", "1.1.0", ID, "remove acme:weather"]),
        ),
        row(
            some("1.0.0", FILE, ONE),
            came("1.1.0", FILE, TWO),
            ok(),
            Err(&[ID, ID_TWO, "remove acme:weather"]),
        ),
        row(
            some("1.0.0", FILE, ONE),
            came("1.1.0", FILE, TWIN),
            ok(),
            Err(&[ID, "remove acme:weather"]),
        ),
        row(
            some("1.0.0", FILE, ONE),
            came("1.1.0", FILE, ""),
            named(B),
            Err(&[ID]),
        ),
        row(
            some("1.0.0", FILE, ""),
            came("1.1.0", FILE, ONE),
            ok(),
            Ok(&[]),
        ),
        // 5. Older ones.
        row(
            some("1.2.0", FILE, ONE),
            came("1.1.9", FILE, ONE),
            ok(),
            Err(&["1.2.0", "1.1.9", "does not go back"]),
        ),
        row(
            some("1.2.0", FILE, ONE),
            came("1.1.9", FILE, ONE),
            downgrading(),
            Err(&["does not go back"]),
        ),
        row(
            some("1.2.0", FILE, ONE),
            came("1.2.0-rc.1", FILE, ONE),
            downgrading(),
            Err(&["does not go back"]),
        ),
        row(
            some("1.2.0", FILE, ""),
            came("1.1.9", FILE, ""),
            ok(),
            Err(&["1.2.0", "1.1.9", "--allow-downgrade"]),
        ),
        row(
            some("1.2.0", FILE, ""),
            came("1.1.9", FILE, ONE),
            ok(),
            Err(&["--allow-downgrade"]),
        ),
        row(
            some("1.2.0", FILE, ""),
            came("1.1.9", FILE, ""),
            downgrading(),
            Ok(&["1.1.9 is older than 1.2.0"]),
        ),
        row(
            some("1.10.0", FILE, ""),
            came("1.9.0", FILE, ""),
            ok(),
            Err(&["older"]),
        ),
        row(
            some("1.9.0", FILE, ""),
            came("1.10.0", FILE, ""),
            ok(),
            Ok(&[]),
        ),
        row(
            some("old", FILE, ""),
            came("1.0.0", FILE, ""),
            ok(),
            Err(&["--allow-downgrade"]),
        ),
        row(
            some("old", FILE, ONE),
            came("1.0.0", FILE, ONE),
            downgrading(),
            Err(&["does not go back"]),
        ),
        // 6. Other bytes of the same version.
        row(
            some("1.0.0", FILE, ""),
            came("1.0.0", FILE, ""),
            ok(),
            Ok(&["its version did not"]),
        ),
        row(
            some("1.0.0", SITE, ""),
            came("1.0.0", SITE, ""),
            ok(),
            Err(&[SITE, A, B, "--sha256"]),
        ),
        row(
            some("1.0.0", SITE, ONE),
            came("1.0.0", SITE, ONE),
            ok(),
            Err(&["pinned"]),
        ),
        row(
            some("1.0.0+x", SITE, ""),
            came("1.0.0+y", SITE, ""),
            ok(),
            Err(&["pinned"]),
        ),
        row(
            some("1.0.0", SITE, ""),
            came("1.0.0", SITE, ""),
            named(B),
            Ok(&["its version did not"]),
        ),
        row(
            some("1.0.0", SITE, ""),
            came("1.0.1", SITE, ""),
            ok(),
            Ok(&[]),
        ),
        // Another source.
        row(
            some("1.0.0", SITE, ""),
            came("1.0.0", "https://y.example/w.wasm", ""),
            ok(),
            Ok(&["its version did not", "it comes from https://y.example"]),
        ),
        row(
            some("1.0.0", FILE, ""),
            came("1.0.1", SITE, ""),
            ok(),
            Ok(&["it comes from https://x.example"]),
        ),
    ]
}

#[test]
fn what_may_take_which_place() {
    for (number, row) in table().into_iter().enumerate() {
        let answer = admit(row.before.as_ref(), &row.candidate, &row.terms);
        match (&answer, row.says) {
            (Ok(admitted), Ok(remarks)) => {
                assert_eq!(
                    admitted.remarks.len(),
                    remarks.len(),
                    "{number}: {answer:?}"
                );
                for (remark, says) in admitted.remarks.iter().zip(remarks) {
                    assert!(remark.contains(says), "{number}: {remark}");
                }
            }
            (Err(refusal), Err(says)) => {
                let line = refusal.to_string();
                assert!(!line.contains('\n'), "{line}");
                for says in says {
                    assert!(line.contains(says), "{number}: {line}");
                }
            }
            _ => panic!("{number}: {answer:?}"),
        }
    }
}

#[test]
fn the_bytes_that_are_installed_are_the_same_and_nothing_to_remark() {
    let candidate = Candidate {
        digest: hex('a'),
        ..came("1.0.0", SITE, "")
    };
    let admitted = admit(
        Some(&installed("1.0.0", SITE, "")),
        &candidate,
        &Terms::default(),
    );
    assert_eq!(
        admitted.unwrap(),
        Admitted {
            same: true,
            remarks: Vec::new()
        }
    );
    // Of a core module, what the source gave is what counts.
    let made = Installed {
        digest: hex('c'),
        fetched: Some(hex('a')),
        ..installed("1.0.0", SITE, "")
    };
    assert!(
        admit(Some(&made), &candidate, &Terms::default())
            .unwrap()
            .same
    );
    // The same bytes without their signature are still a signature lost.
    let signed = installed("1.0.0", SITE, ONE);
    assert!(matches!(
        admit(Some(&signed), &candidate, &Terms::default()),
        Err(Refusal::SignatureLost { .. })
    ));
}

/// The refusal of what came in the place of what is installed.
fn refused(before: Option<&Installed>, candidate: &Candidate, terms: &Terms) -> Refusal {
    admit(before, candidate, terms).unwrap_err()
}

#[test]
fn h49_a_source_that_gives_other_bytes_for_a_pinned_version_is_refused() {
    let pinned = installed("1.0.0", SITE, "");
    let moved = came("1.0.0", SITE, "");
    let refusal = refused(Some(&pinned), &moved, &Terms::default());
    assert!(
        matches!(refusal, Refusal::Moved { expected, found, .. } if expected == A && found == B)
    );
}

#[test]
fn h50_bytes_of_another_digest_than_the_one_that_was_named_are_refused() {
    let refusal = refused(None, &came("1.0.0", SITE, ONE), &named(A));
    assert!(
        matches!(refusal, Refusal::Digest { expected, found, .. } if expected == A && found == B)
    );
}

#[test]
fn h51_a_signature_by_another_key_is_refused_even_under_the_same_id() {
    let before = installed("1.0.0", SITE, ONE);
    for key in [TWO, TWIN] {
        let refusal = refused(Some(&before), &came("1.1.0", SITE, key), &Terms::default());
        assert!(matches!(refusal, Refusal::OtherKey { .. }), "{refusal:?}");
    }
}

#[test]
fn h52_a_signed_plugin_does_not_go_back_to_an_older_version_whatever_is_asked() {
    let before = installed("1.2.0", SITE, ONE);
    let terms = Terms {
        sha256: Some(B.to_owned()),
        ..downgrading()
    };
    let refusal = refused(Some(&before), &came("1.1.0", SITE, ONE), &terms);
    assert!(matches!(refusal, Refusal::SignedDowngrade { .. }));
}

#[test]
fn h55_a_name_of_the_first_party_is_refused() {
    for name in ["dsh:tool-bash", "dsh:anything"] {
        let refusal = refused(None, &calling_itself(name), &Terms::default());
        assert!(matches!(refusal, Refusal::Name { .. }));
    }
}
