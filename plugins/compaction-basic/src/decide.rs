//! Whether to summarise, and what.

use crate::range::{Node, choose};
use crate::settings::Settings;

/// Why it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Pressure,
    Overflow,
    Manual,
}

/// How things stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) why: Why,
    pub(crate) tokens: u32,
    pub(crate) window: Option<u32>,
    /// Summaries so far, on this occasion.
    pub(crate) round: u32,
    /// Recoveries from overflow since the last response.
    pub(crate) recoveries: u32,
    /// Provider and model of the last request, where they are known.
    pub(crate) route: Option<&'a (String, String)>,
}

/// Why nothing can be done, with its code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

fn fault(code: &'static str, message: impl Into<String>) -> Fault {
    Fault {
        code,
        message: message.into(),
    }
}

/// The nodes to summarise, first and last. The surface is asked for only where
/// it matters, as this runs before every step.
pub(crate) fn decide(
    settings: &Settings,
    facts: Facts<'_>,
    surface: impl FnOnce() -> Vec<Node>,
) -> Result<Option<(u32, u32)>, Fault> {
    if !settings.auto && facts.why != Why::Manual {
        return Ok(None);
    }
    let policy = settings.of(facts.route);
    let corrupt = |why: String| fault("SURFACE_CORRUPT", why);
    let (threshold, retain) = match facts.why {
        Why::Manual if facts.round > 0 => return Ok(None),
        Why::Overflow
            if facts.round > 0 || u64::from(facts.recoveries) >= policy.overflow_retries =>
        {
            return Ok(None);
        }
        Why::Manual | Why::Overflow => return choose(&surface(), 0).map_err(corrupt),
        Why::Pressure => {
            let window = facts.window.ok_or_else(|| unknown(facts.route))?;
            let sizes = policy.sizes(window);
            sizes.map_err(|why| fault("INVALID", why))?
        }
    };
    if u64::from(facts.tokens) < threshold {
        return Ok(None);
    }
    let range = if u64::from(facts.round) > policy.retries {
        None
    } else {
        // A range starts at the first node, which after a round is the summary of
        // that round: alone it only gets written again, and no shorter.
        choose(&surface(), retain)
            .map_err(corrupt)?
            .filter(|(first, last)| facts.round == 0 || first != last)
    };
    // All of it is new: there is nothing to do, and nothing to tell.
    if range.is_none() && facts.round > 0 {
        return Err(fault(
            "STILL_TOO_LONG",
            format!(
                "{} tokens are left after {} summaries, at a threshold of {threshold}",
                facts.tokens, facts.round
            ),
        ));
    }
    Ok(range)
}

fn unknown(route: Option<&(String, String)>) -> Fault {
    let model = route.map_or_else(
        || "the model".to_owned(),
        |(provider, model)| format!("{provider}/{model}"),
    );
    fault(
        "CONTEXT_WINDOW_UNKNOWN",
        format!(
            "the context window of {model} is not known, so a long conversation is summarised only after the provider refused it; say it in the models of the provider's row, or set `auto: false`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(why: Why) -> Facts<'static> {
        Facts {
            why,
            tokens: 0,
            window: Some(1000),
            round: 0,
            recoveries: 0,
            route: None,
        }
    }

    fn surface() -> Vec<Node> {
        let node = |seq| Node {
            seq,
            tokens: 100,
            calls: 0,
        };
        (0..8).map(node).collect()
    }

    fn settings(config: &str) -> Settings {
        Settings::read(config).unwrap()
    }

    /// §17 "threshold edge (= threshold triggers)".
    #[test]
    fn the_threshold_itself_triggers() {
        let settings = settings("{}");
        for (tokens, range) in [(799, None), (800, Some((0, 5))), (801, Some((0, 5)))] {
            let facts = Facts {
                tokens,
                ..facts(Why::Pressure)
            };
            assert_eq!(decide(&settings, facts, surface), Ok(range), "{tokens}");
        }
    }

    #[test]
    fn below_the_threshold_the_surface_is_not_looked_at() {
        let asked = decide(&settings("{}"), facts(Why::Pressure), || panic!("it is"));
        assert_eq!(asked, Ok(None));
    }

    #[test]
    fn pressure_has_one_more_round_and_then_says_that_it_was_not_enough() {
        let at = |round, config: &str| {
            let facts = Facts {
                tokens: 900,
                round,
                ..facts(Why::Pressure)
            };
            decide(&settings(config), facts, surface)
        };
        assert_eq!(at(0, "{}"), Ok(Some((0, 5))));
        assert_eq!(at(1, "{}"), Ok(Some((0, 5))));
        assert_eq!(at(2, "{}").unwrap_err().code, "STILL_TOO_LONG");
        assert_eq!(
            at(1, r#"{"compactionRetries":0}"#).unwrap_err().code,
            "STILL_TOO_LONG"
        );
        // Where nothing can go there is nothing to tell, unless something went.
        let all = r#"{"retainTokens":799}"#;
        let short = |round| {
            let facts = Facts {
                tokens: 900,
                round,
                ..facts(Why::Pressure)
            };
            decide(&settings(all), facts, || surface()[..3].to_vec())
        };
        assert_eq!(short(0), Ok(None));
        assert_eq!(short(1).unwrap_err().code, "STILL_TOO_LONG");
    }

    #[test]
    fn a_summary_alone_is_not_summarised_again_in_the_next_round() {
        let at = |round, nodes: usize| {
            let facts = Facts {
                tokens: 900,
                round,
                ..facts(Why::Pressure)
            };
            decide(&settings("{}"), facts, || surface()[..nodes].to_vec())
        };
        assert_eq!(at(0, 3), Ok(Some((0, 0))), "a long message may be alone");
        assert_eq!(at(1, 3).unwrap_err().code, "STILL_TOO_LONG");
        assert_eq!(at(1, 4), Ok(Some((0, 1))), "with what came after it");
    }

    #[test]
    fn an_overflow_takes_all_but_the_last_node_and_once_until_an_answer() {
        let at = |round, recoveries, config: &str| {
            let facts = Facts {
                round,
                recoveries,
                window: None,
                ..facts(Why::Overflow)
            };
            decide(&settings(config), facts, surface)
        };
        assert_eq!(
            at(0, 0, "{}"),
            Ok(Some((0, 6))),
            "whatever the measure says"
        );
        assert_eq!(at(1, 0, "{}"), Ok(None));
        assert_eq!(at(0, 1, "{}"), Ok(None));
        assert_eq!(at(0, 1, r#"{"maxOverflowRetries":2}"#), Ok(Some((0, 6))));
        assert_eq!(at(0, 0, r#"{"auto":false}"#), Ok(None));
    }

    #[test]
    fn by_hand_all_but_the_last_node_goes_also_where_nothing_goes_by_itself() {
        let at = |round| {
            let facts = Facts {
                round,
                window: None,
                ..facts(Why::Manual)
            };
            decide(&settings(r#"{"auto":false}"#), facts, surface)
        };
        assert_eq!(at(0), Ok(Some((0, 6))));
        assert_eq!(at(1), Ok(None));
    }

    #[test]
    fn an_unknown_window_is_told_with_the_models_name() {
        let route = ("p".to_owned(), "m".to_owned());
        let facts = Facts {
            window: None,
            route: Some(&route),
            ..facts(Why::Pressure)
        };
        let fault = decide(&settings("{}"), facts, surface).unwrap_err();
        assert_eq!(fault.code, "CONTEXT_WINDOW_UNKNOWN");
        assert!(fault.message.contains("p/m"), "{}", fault.message);
        assert_eq!(
            decide(&settings(r#"{"auto":false}"#), facts, surface),
            Ok(None)
        );
    }
}
