//! Whether the default model can be asked: who serves it, and with which key.
//! Nothing is sent.

use dsh_check::{Finding, did_you_mean};

/// A route of a mounted adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The row.
    pub row: String,
    /// The route's name, which is the provider's.
    pub provider: String,
    /// The credential's name; none for a route without a wire.
    pub credential: Option<String>,
}

/// Looks for the route of the default model and for its credential. `place`
/// says where a credential of that name is found, in words; an error is a line.
pub fn check(
    default: Option<(&str, &str)>,
    served: &[Served],
    place: impl Fn(&str) -> Result<Option<String>, String>,
) -> Vec<Finding> {
    let Some((provider, model)) = default else {
        return vec![Finding::wrong(
            "row agent-default-model: `provider` and `model` are needed; set both in its config \
             or in settings.yaml",
        )];
    };
    let Some(route) = served.iter().find(|route| route.provider == provider) else {
        let known: Vec<&str> = served.iter().map(|route| route.provider.as_str()).collect();
        let known = if known.is_empty() {
            "no row serves one".to_owned()
        } else {
            format!(
                "there are {}{}",
                known.join(", "),
                did_you_mean(provider, known.iter().copied())
            )
        };
        return vec![Finding::wrong(format_args!(
            "row agent-default-model: no mounted row serves the provider {provider:?} ({known}); \
             set another one in its config or in settings.yaml"
        ))];
    };
    let mut found = vec![Finding::ok(format_args!(
        "the default model is {provider}/{model}, served by row {}",
        route.row
    ))];
    let Some(name) = &route.credential else {
        return found;
    };
    found.push(match place(name) {
        Ok(Some(place)) => Finding::ok(format_args!("its credential {name} is in {place}")),
        Ok(None) => Finding::wrong(format_args!(
            "row {}: its credential {name} is nowhere; run: dsh credentials set {name}, or export {name}",
            route.row
        )),
        Err(error) => Finding::wrong(error),
    });
    found
}

#[cfg(test)]
mod tests {
    use dsh_check::Level;

    use super::*;

    fn served() -> [Served; 1] {
        [Served {
            row: "llm".to_owned(),
            provider: "p".to_owned(),
            credential: Some("P_KEY".to_owned()),
        }]
    }

    fn worst(found: &[Finding]) -> (Level, &str) {
        let worst = found.iter().max_by_key(|one| one.level).unwrap();
        (worst.level, &worst.what)
    }

    #[test]
    fn a_default_model_needs_a_row_that_serves_it_and_a_key() {
        let none = |_: &str| Ok(None);
        let (level, what) = (Level::Wrong, |found: &[Finding]| worst(found).1.to_owned());
        assert!(what(&check(None, &served(), none)).contains("agent-default-model"));
        let other = check(Some(("q", "m")), &served(), none);
        assert_eq!(worst(&other).0, level);
        assert!(what(&other).contains("\"q\" (there are p)"), "{other:?}");
        assert!(what(&check(Some(("q", "m")), &[], none)).contains("no row serves one"));
        let keyless = check(Some(("p", "m")), &served(), none);
        assert!(what(&keyless).contains("export P_KEY"), "{keyless:?}");
        let refused = check(Some(("p", "m")), &served(), |_| Err("chmod 600".to_owned()));
        assert_eq!(worst(&refused), (level, "chmod 600"));
        let found = check(Some(("p", "m")), &served(), |_| Ok(Some("here".to_owned())));
        assert!(found.iter().all(|one| one.level == Level::Ok), "{found:?}");
    }
}
