use super::*;
use crate::lock::Signed;

const ONE: &str = include_str!("../tests/signatures/one.pub");
const TWO: &str = include_str!("../tests/signatures/two.pub");

fn base64(text: &str) -> &str {
    text.lines().nth(1).unwrap()
}

fn read(text: &str) -> Result<Policy, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile.yml");
    std::fs::write(&path, text).unwrap();
    Policy::read(&path)
}

#[test]
fn a_profile_says_what_it_asks() {
    let none = Policy::read(Path::new("/nowhere/profile.yml")).unwrap();
    assert_eq!(none, Policy::default());
    assert_eq!(read("bundles: [base]\n").unwrap(), none);
    assert_eq!(read("signatures: optional\n").unwrap(), none);
    let text = format!(
        "signatures: required\ntrusted-keys:\n  - {}\n  - {}\n",
        base64(ONE),
        base64(TWO)
    );
    let policy = read(&text).unwrap();
    assert!(policy.required);
    let keys: Vec<_> = policy.trusted.iter().map(Key::as_str).collect();
    assert_eq!(keys, [base64(ONE), base64(TWO)]);
}

#[test]
fn what_cannot_be_asked_is_refused_with_its_line() {
    for (text, line, says) in [
        (
            "bundles: [base]\nsignatures: yes\n",
            2,
            "`required` or `optional`",
        ),
        ("signatures: true\n", 1, "`required` or `optional`"),
        (
            "bundles: []\nsignature: required\n",
            2,
            "no member \"signature\"",
        ),
        (
            "bundles: []\n\nsignatures: sigstore\n",
            3,
            "cannot be checked in full",
        ),
        ("trusted-keys: RWQ\n", 1, "a list"),
        ("trusted-keys:\n  - 3\n", 2, "a list"),
        ("trusted-keys:\n  - RWQ\n", 2, "42 bytes"),
        ("signatures: [\n", 1, ""),
    ] {
        match read(text) {
            Err(Error::Document {
                line: at, message, ..
            }) => assert!(
                at == line && message.contains(says),
                "{text:?}: {at} {message}"
            ),
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn what_is_installed_is_asked_again() {
    let signed = |key: &str| {
        let key = base64(key).to_owned();
        Some(Signed {
            key,
            comment: String::new(),
        })
    };
    let key = |text| Key::parse(text).unwrap();
    let cases = [
        (false, vec![], None, None),
        (false, vec![], signed(ONE), None),
        (true, vec![], signed(ONE), None),
        (true, vec![], None, Some("not signed")),
        (false, vec![key(TWO)], None, None),
        (true, vec![key(TWO)], signed(TWO), None),
        (true, vec![key(TWO)], signed(ONE), Some("0807060504030201")),
        (false, vec![key(TWO)], signed(ONE), Some("trusted-keys")),
    ];
    for (required, trusted, signature, says) in cases {
        let policy = Policy { required, trusted };
        let plugin = Installed {
            name: "acme:x".into(),
            signature,
            ..Installed::default()
        };
        match (policy.objection(&plugin), says) {
            (None, None) => {}
            (Some(line), Some(says)) => {
                assert!(
                    line.contains(says) && line.contains("remove acme:x"),
                    "{line}"
                );
            }
            other => panic!("{policy:?}: {other:?}"),
        }
    }
}
