//! SHA-1 (FIPS 180-4), with which upstream's log tells contents apart. Nothing
//! is trusted because of it: whoever can forge one can write the file.

/// As 40 hexadecimal digits.
pub(crate) fn hex(data: &[u8]) -> String {
    let mut state: [u32; 5] = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let (blocks, rest) = data.as_chunks::<64>();
    for block in blocks {
        compress(&mut state, block);
    }
    let mut tail = rest.to_vec();
    tail.push(0x80);
    tail.resize(if rest.len() < 56 { 56 } else { 120 }, 0);
    tail.extend_from_slice(&(data.len() as u64 * 8).to_be_bytes());
    for block in tail.as_chunks::<64>().0 {
        compress(&mut state, block);
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

fn compress(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..80 {
        let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.iter().enumerate() {
        let (mix, constant) = match at / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn it_is_the_published_function() {
        let many = "a".repeat(1_000_000);
        for (text, digest) in [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
            (many.as_str(), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        ] {
            assert_eq!(hex(text.as_bytes()), digest);
        }
    }

    #[test]
    fn it_gives_the_digests_that_upstream_logged() {
        let logged = [
            (
                "Root snapshot instruction.\n",
                "2e18766c26603608f321508caae00ea8f4434d59",
            ),
            (
                "Nested snapshot instruction.\n",
                "c446df9a85c7e73a3055f394a4822a19ac9ead5a",
            ),
        ];
        for (text, digest) in logged {
            assert_eq!(hex(text.as_bytes()), digest);
        }
    }

    #[test]
    fn every_length_of_a_tail_ends() {
        for length in 50..70 {
            assert_eq!(hex(&vec![b'x'; length]).len(), 40);
        }
    }
}
