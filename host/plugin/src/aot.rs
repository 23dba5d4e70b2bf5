//! The head of embedded machine code: for which engine it was made, and of
//! which component.
//!
//! ```text
//! magic 8 | engine's fingerprint 64 (hex) | component's SHA-256 64 (hex) | padding 24 | machine code
//! ```
//!
//! 160 bytes, so that what follows stays aligned for the ELF reader if the
//! whole is.

use std::hash::{Hash, Hasher};

const MAGIC: &[u8; 8] = b"dsh-aot1";
const HEX: usize = 64;
pub(crate) const HEAD: usize = 160;

/// Names the engine's version, configuration and CPU features: machine code of
/// one engine runs on another with the same fingerprint.
pub(crate) fn fingerprint(engine: &wasmtime::Engine) -> String {
    struct Feed(blake3::Hasher);

    impl Hasher for Feed {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        fn finish(&self) -> u64 {
            0
        }
    }

    let mut feed = Feed(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut feed);
    feed.0.finalize().to_hex().to_string()
}

/// Puts the head before machine code.
pub(crate) fn pack(fingerprint: &str, digest: &str, code: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(HEAD + code.len());
    packed.extend_from_slice(MAGIC);
    packed.extend_from_slice(fingerprint.as_bytes());
    packed.extend_from_slice(digest.as_bytes());
    packed.resize(HEAD, 0);
    packed.extend_from_slice(code);
    packed
}

/// The component's digest and the machine code, if they were made for this
/// engine.
pub(crate) fn unpack<'a>(packed: &'a [u8], fingerprint: &str) -> Option<(&'a str, &'a [u8])> {
    let (head, code) = packed.split_at_checked(HEAD)?;
    let rest = head.strip_prefix(MAGIC)?;
    let (made_for, rest) = rest.split_at(HEX);
    if made_for != fingerprint.as_bytes() {
        return None;
    }
    Some((std::str::from_utf8(&rest[..HEX]).ok()?, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_given_back_to_the_engine_that_it_was_made_for_alone() {
        let mine = "a".repeat(HEX);
        let digest = "d".repeat(HEX);
        let packed = pack(&mine, &digest, b"code");
        assert_eq!(
            unpack(&packed, &mine),
            Some((digest.as_str(), &b"code"[..]))
        );
        assert_eq!(unpack(&packed, &"b".repeat(HEX)), None);
        assert_eq!(unpack(&packed[..HEAD - 1], &mine), None);
        assert_eq!(unpack(b"", &mine), None);
    }

    #[test]
    fn one_configuration_has_one_fingerprint() {
        let one = fingerprint(&crate::engine::wasmtime_engine().unwrap());
        assert_eq!(one.len(), HEX);
        assert_eq!(one, fingerprint(&crate::engine::wasmtime_engine().unwrap()));
    }
}
