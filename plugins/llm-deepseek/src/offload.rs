//! Which pictures a request leaves out, the oldest first, so that it keeps within
//! its bounds (spec/llm.md §6.7). More go than have to, in whole quanta: the next
//! requests then leave the same ones out, and the provider's cache holds.

/// What the pictures of a request may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) images: u64,
    pub(crate) bytes: u64,
    /// How many go at a time.
    pub(crate) image_quantum: u64,
    /// How many bytes go at a time.
    pub(crate) byte_quantum: u64,
}

/// How many of these pictures, oldest first, are left out.
pub(crate) fn left_out(lengths: &[u64], policy: &Policy) -> usize {
    let excess = |all: u64, most: u64, quantum: u64| {
        all.saturating_sub(most)
            .div_ceil(quantum)
            .saturating_mul(quantum)
    };
    let images = excess(lengths.len() as u64, policy.images, policy.image_quantum);
    let bytes = excess(lengths.iter().sum(), policy.bytes, policy.byte_quantum);
    let (mut gone, mut freed) = (0u64, 0u64);
    for length in lengths {
        let enough = match policy.byte_quantum {
            _ if bytes == 0 => true,
            1 => freed >= bytes,
            _ => freed > bytes,
        };
        if gone >= images && enough {
            break;
        }
        gone += 1;
        freed += length;
    }
    usize::try_from(gone).unwrap_or(lengths.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_oldest_go_in_whole_quanta() {
        let raw = Policy {
            images: 600,
            bytes: 128 * MIB,
            image_quantum: 20,
            byte_quantum: 64 * MIB,
        };
        let inline = Policy {
            bytes: 20 * MIB,
            byte_quantum: 10 * MIB,
            ..raw
        };
        let exact = Policy {
            images: 4,
            bytes: 10,
            image_quantum: 1,
            byte_quantum: 1,
        };
        for (what, lengths, policy, expected) in [
            ("none", vec![], raw, 0),
            ("as many as may be", vec![1; 600], raw, 0),
            ("one too many", vec![1; 601], raw, 20),
            ("a quantum too many", vec![1; 620], raw, 20),
            ("more than a quantum", vec![1; 621], raw, 40),
            ("as large as may be", vec![MIB; 128], raw, 0),
            // 64 MiB have to go, and the walk stops once more than that has.
            (
                "a byte too large",
                [vec![MIB; 128], vec![1]].concat(),
                raw,
                65,
            ),
            ("much too large", vec![MIB; 193], raw, 129),
            ("inline, as large as may be", vec![MIB; 20], inline, 0),
            ("inline, too large", vec![MIB; 21], inline, 11),
            (
                "inline, one that is too large by itself",
                vec![31 * MIB],
                inline,
                1,
            ),
            ("both", [vec![1; 590], vec![MIB; 21]].concat(), inline, 600),
            ("exact bytes", vec![3, 3, 3, 3], exact, 1),
            ("exact bytes and number", vec![2, 2, 2, 2, 2, 2], exact, 2),
            ("exact, the newest alone fits", vec![11, 1], exact, 1),
        ] {
            assert_eq!(left_out(&lengths, &policy), expected, "{what}");
        }
    }

    #[test]
    fn what_is_left_is_within_the_bounds_where_each_is() {
        let mut state = 7u64;
        let mut next = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most + 1
        };
        for _ in 0..500 {
            let (images, bytes) = (next(10), next(1000));
            let policy = Policy {
                images,
                bytes,
                image_quantum: next(images),
                byte_quantum: next(bytes),
            };
            let lengths: Vec<u64> = (0..next(30)).map(|_| next(bytes)).collect();
            let left = &lengths[left_out(&lengths, &policy)..];
            assert!(left.len() as u64 <= policy.images, "{lengths:?} {policy:?}");
            assert!(
                left.iter().sum::<u64>() <= policy.bytes,
                "{lengths:?} {policy:?}"
            );
        }
    }
}
