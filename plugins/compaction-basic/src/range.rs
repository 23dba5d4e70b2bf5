//! Which nodes of the surface become a summary (spec/loop.md §10.3): all but the
//! newest ones, cut where no call is parted from its result.

/// A node: the event that put it there, its price, and the calls that it opens
/// less those that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) seq: u32,
    pub(crate) tokens: u32,
    pub(crate) calls: i32,
}

/// First and last of the nodes before the newest `retain` tokens; none where
/// nothing is left to summarise. At least the last node stays.
pub(crate) fn choose(nodes: &[Node], retain: u64) -> Result<Option<(u32, u32)>, String> {
    let mut kept = 0;
    let newest = nodes.iter().rposition(|node| {
        kept += u64::from(node.tokens);
        kept >= retain
    });
    let Some(newest) = newest else {
        return Ok(None);
    };
    // Where the calls before a cut are all answered before it.
    let mut balance = 0_i64;
    let mut cut = 0;
    for (at, node) in nodes[..newest].iter().enumerate() {
        balance += i64::from(node.calls);
        if balance < 0 {
            return Err(format!(
                "node {} answers a tool call that nobody made",
                node.seq
            ));
        }
        if balance == 0 {
            cut = at + 1;
        }
    }
    Ok((cut > 0).then(|| (nodes[0].seq, nodes[cut - 1].seq)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seqs from 10 on, 10 tokens each.
    fn nodes(calls: &[i32]) -> Vec<Node> {
        let node = |(at, calls): (usize, &i32)| Node {
            seq: 10 + at as u32,
            tokens: 10,
            calls: *calls,
        };
        calls.iter().enumerate().map(node).collect()
    }

    #[test]
    fn what_is_worth_the_retained_tokens_stays() {
        let four = nodes(&[0, 0, 0, 0]);
        for (retain, range) in [
            (0, Some((10, 12))),
            (10, Some((10, 12))),
            (11, Some((10, 11))),
            (20, Some((10, 11))),
            (30, Some((10, 10))),
            (31, None),
            (40, None),
            (41, None),
        ] {
            assert_eq!(choose(&four, retain), Ok(range), "{retain}");
        }
        assert_eq!(choose(&nodes(&[0]), 0), Ok(None), "the last node stays");
        assert_eq!(choose(&[], 0), Ok(None));
    }

    /// §17 "tool pairing cut".
    #[test]
    fn a_cut_moves_back_to_where_no_call_is_open() {
        // user, two calls, result, result, answer
        let one = nodes(&[0, 2, -1, -1, 0]);
        for (retain, range) in [
            (0, Some((10, 13))),
            (20, Some((10, 10))),
            (30, Some((10, 10))),
            (40, Some((10, 10))),
            (50, None),
        ] {
            assert_eq!(choose(&one, retain), Ok(range), "{retain}");
        }
        // A call that is not answered yet keeps what comes behind it.
        assert_eq!(choose(&nodes(&[0, 1, 0, 0]), 0), Ok(Some((10, 10))));
        assert_eq!(choose(&nodes(&[1, -1]), 0), Ok(None));
    }

    #[test]
    fn an_answer_to_nothing_is_told() {
        assert!(
            choose(&nodes(&[0, -1, 0]), 0)
                .unwrap_err()
                .contains("node 11")
        );
    }
}
