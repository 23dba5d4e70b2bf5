use super::*;

/// Made by `tests/signatures/make.py`.
macro_rules! made {
    ($name:literal) => {
        include_str!(concat!("../tests/signatures/", $name))
    };
}

const DATA: &[u8] = include_bytes!("../tests/signatures/data");

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

#[test]
fn a_key_is_read_from_its_file_or_as_its_base64() {
    let file = made!("one.pub");
    let bare = file.lines().nth(1).unwrap();
    assert_eq!(key(file), key(bare));
    assert_eq!(key(&format!("  {bare}\r\n")), key(bare));
    assert_eq!(key(file).id().to_string(), "0807060504030201");
    assert!(file.lines().next().unwrap().ends_with("0807060504030201"));
}

#[test]
fn what_is_no_key_is_refused_with_the_reason() {
    let signature = made!("data.one.minisig");
    for (text, reason) in [
        ("", "one line of base64"),
        ("untrusted comment: x\n", "one line of base64"),
        ("RWQ", "42 bytes"),
        (
            "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO",
            "42 bytes",
        ),
        (
            &format!("AA{}", &made!("one.pub").lines().nth(1).unwrap()[2..]),
            "not Ed25519",
        ),
        (signature, "one line of base64"),
        (signature.lines().nth(1).unwrap(), "42 bytes"),
    ] {
        let error = Key::parse(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_signature_of_either_kind_verifies_and_its_comment_is_kept() {
    for (minisig, comment) in [
        (
            made!("data.one.minisig"),
            "timestamp:1700000000\tfile:data\tby one",
        ),
        (
            made!("data.legacy.minisig"),
            "timestamp:1700000000\tfile:data",
        ),
    ] {
        let signed = verify(DATA, minisig, &key(made!("one.pub"))).unwrap();
        assert_eq!(signed.comment, comment);
        assert_eq!(signed.key, made!("one.pub").lines().nth(1).unwrap());
    }
}

#[test]
fn a_signature_counts_for_its_bytes_its_comment_and_its_key_alone() {
    let minisig = made!("data.one.minisig");
    let one = key(made!("one.pub"));
    let other_comment = minisig.replace("by one", "by me");
    let upper = minisig.replace("trusted comment: t", "trusted comment: T");
    let cases: [(&[u8], &str, &Key, &str); 7] = [
        (b"what was signed", minisig, &one, "did not sign"),
        (b"", minisig, &one, "did not sign"),
        (DATA, &other_comment, &one, "did not sign"),
        (DATA, &upper, &one, "did not sign"),
        (
            DATA,
            minisig,
            &key(made!("two.pub")),
            "made with key 0807060504030201, and key 1817161514131211 is expected",
        ),
        // The id is the same, the key is not.
        (DATA, minisig, &key(made!("twin.pub")), "did not sign"),
        (DATA, made!("data.twin.minisig"), &one, "did not sign"),
    ];
    for (data, minisig, key, reason) in cases {
        let error = verify(data, minisig, key).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn every_byte_of_a_signature_matters() {
    let minisig = made!("data.one.minisig");
    let one = key(made!("one.pub"));
    let starts: Vec<usize> = [1, 3]
        .iter()
        .map(|line| minisig.lines().take(*line).map(|l| l.len() + 1).sum())
        .collect();
    for start in starts {
        let len = minisig[start..].find('\n').unwrap();
        for at in start..start + len {
            let mut changed = minisig.as_bytes().to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(verify(DATA, &changed, &one).is_err(), "byte {at}");
        }
    }
}

#[test]
fn what_is_no_signature_is_refused() {
    let cut: String = made!("data.one.minisig")
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    for text in ["", "\n\n\n\n", &cut, made!("one.pub"), "<html>404</html>"] {
        assert!(key_of(text).is_err(), "{text:?}");
        assert!(verify(DATA, text, &key(made!("one.pub"))).is_err());
    }
    assert_eq!(
        key_of(made!("data.two.minisig")).unwrap(),
        key(made!("two.pub")).id()
    );
}
