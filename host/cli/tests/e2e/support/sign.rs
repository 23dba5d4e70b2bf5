//! A minisign key of the test's own.

use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData, SigningKey};

/// Signs as `minisign -l` does.
pub(crate) struct Signer {
    id: [u8; 8],
    key: KeyPair,
}

impl Signer {
    /// A new key whose id is eight times this.
    pub(crate) fn new(id: u8) -> Self {
        Self {
            id: [id; 8],
            key: KeyPair::generate_for(&PKCS_ED25519).expect("a key can be made"),
        }
    }

    /// As people see it.
    pub(crate) fn id(&self) -> String {
        format!("{:016X}", u64::from_le_bytes(self.id))
    }

    /// The public key, in base64.
    pub(crate) fn public(&self) -> String {
        base64(&[b"Ed", &self.id[..], self.key.der_bytes()].concat())
    }

    /// The text of a `.minisig` over bytes.
    pub(crate) fn sign(&self, bytes: &[u8], comment: &str) -> String {
        let signature = self.key.sign(bytes).expect("it can sign");
        let all = [&signature[..], comment.as_bytes()].concat();
        let global = self.key.sign(&all).expect("it can sign");
        format!(
            "untrusted comment: of a test\n{}\ntrusted comment: {comment}\n{}\n",
            base64(&[b"Ed", &self.id[..], &signature].concat()),
            base64(&global)
        )
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .fold(0, |bits, byte| bits << 8 | usize::from(*byte))
            << (8 * (3 - three.len()));
        for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            text.push(if index > three.len() {
                '='
            } else {
                char::from(LETTERS[bits >> shift & 63])
            });
        }
    }
    text
}
