//! The row's configuration, with what is different for single models.

use guest_support::json::{Json, text};

/// How much of the newest messages stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Retain {
    /// A part of the window.
    Ratio(f64),
    Tokens(u64),
}

/// What holds for one model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy {
    pub(crate) threshold_ratio: f64,
    pub(crate) retain: Retain,
    /// Provider and model of who writes the summary; none for the conversation's own.
    pub(crate) writer: Option<(String, String)>,
    pub(crate) max_tokens: u64,
    pub(crate) retries: u64,
    pub(crate) overflow_retries: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) auto: bool,
    default: Policy,
    /// By provider and model.
    special: Vec<(String, String, Policy)>,
}

impl Settings {
    /// Reads the row's configuration; or what is wrong with it. The host has
    /// checked members and types against the schema.
    pub(crate) fn read(config: &str) -> Result<Self, String> {
        let config = Json::parse(config).ok_or("the configuration is not JSON")?;
        let start = Policy {
            threshold_ratio: 0.8,
            retain: Retain::Ratio(0.16),
            writer: None,
            max_tokens: 8192,
            retries: 1,
            overflow_retries: 1,
        };
        let default = start.with(config)?;
        let mut special: Vec<(String, String, Policy)> = Vec::new();
        let policies = config.some("modelPolicies");
        for (at, policy) in policies.into_iter().flat_map(Json::items).enumerate() {
            let wrong = |why: String| format!("modelPolicies[{at}]: {why}");
            let name = |member: &str| {
                let text = text(policy, member).filter(|text| !text.is_empty());
                text.ok_or_else(|| wrong(format!("{member} must be a name")))
            };
            let (provider, model) = (name("provider")?, name("model")?);
            if special
                .iter()
                .any(|(p, m, _)| *p == provider && *m == model)
            {
                return Err(wrong(format!("{provider}/{model} has two policies")));
            }
            special.push((provider, model, default.with(policy).map_err(wrong)?));
        }
        Ok(Self {
            auto: config.some("auto").and_then(Json::bool).unwrap_or(true),
            default,
            special,
        })
    }

    /// Whether the model matters.
    pub(crate) fn knows_models(&self) -> bool {
        !self.special.is_empty()
    }

    /// What holds for a model.
    pub(crate) fn of(&self, route: Option<&(String, String)>) -> &Policy {
        let own = self
            .special
            .iter()
            .find(|(provider, model, _)| route.is_some_and(|(p, m)| p == provider && m == model));
        own.map_or(&self.default, |(_, _, policy)| policy)
    }
}

impl Policy {
    /// This policy, with what these members say.
    fn with(&self, members: Json<'_>) -> Result<Self, String> {
        let ratio = |name: &str| match members.some(name) {
            None => Ok(None),
            Some(value) => value
                .number()
                .filter(|ratio| (0.0..=1.0).contains(ratio))
                .map(Some)
                .ok_or_else(|| format!("{name} must be a number from 0 to 1")),
        };
        let number = |name: &str, least: u64| match members.some(name) {
            None => Ok(None),
            Some(value) => value
                .whole()
                .filter(|number| *number >= least)
                .map(Some)
                .ok_or_else(|| format!("{name} must be a whole number from {least} on")),
        };
        let retain = match (ratio("retainRatio")?, number("retainTokens", 0)?) {
            (Some(_), Some(_)) => {
                return Err("only one of retainRatio and retainTokens may be set".to_owned());
            }
            (Some(ratio), None) => Retain::Ratio(ratio),
            (None, Some(tokens)) => Retain::Tokens(tokens),
            (None, None) => self.retain,
        };
        let named = |member: &str| text(members, member).filter(|text| !text.is_empty());
        let writer = match (named("summarizationProvider"), named("summarizationModel")) {
            (Some(provider), Some(model)) => Some((provider, model)),
            (None, None) => self.writer.clone(),
            _ => {
                return Err(
                    "summarizationProvider and summarizationModel must be set together".to_owned(),
                );
            }
        };
        let policy = Self {
            threshold_ratio: ratio("thresholdRatio")?.unwrap_or(self.threshold_ratio),
            retain,
            writer,
            max_tokens: number("maxTokens", 1)?.unwrap_or(self.max_tokens),
            retries: number("compactionRetries", 0)?.unwrap_or(self.retries),
            overflow_retries: number("maxOverflowRetries", 0)?.unwrap_or(self.overflow_retries),
        };
        if policy.threshold_ratio == 0.0 {
            return Err("thresholdRatio must be above 0".to_owned());
        }
        if let Retain::Ratio(ratio) = policy.retain
            && ratio >= policy.threshold_ratio
        {
            return Err(format!(
                "retainRatio ({ratio}) must be below thresholdRatio ({})",
                policy.threshold_ratio
            ));
        }
        Ok(policy)
    }

    /// The tokens from which on it compacts, and those that stay.
    pub(crate) fn sizes(&self, window: u32) -> Result<(u64, u64), String> {
        let part = |ratio: f64| (f64::from(window) * ratio).floor() as u64;
        let threshold = part(self.threshold_ratio);
        let retain = match self.retain {
            Retain::Ratio(ratio) => part(ratio),
            Retain::Tokens(tokens) => tokens,
        };
        if retain >= threshold {
            return Err(format!(
                "{retain} tokens would stay of the {threshold} from which on a conversation is compacted; lower retainTokens"
            ));
        }
        Ok((threshold, retain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str, route: &str) -> Policy {
        let settings = Settings::read(config).unwrap();
        let (provider, model) = route.split_once('/').unwrap();
        let route = (provider.to_owned(), model.to_owned());
        settings.of(Some(&route)).clone()
    }

    #[test]
    fn the_defaults_are_upstreams() {
        let policy = of("{}", "p/m");
        assert_eq!(policy.sizes(128_000), Ok((102_400, 20_480)));
        // Rounded down.
        assert_eq!(policy.sizes(999), Ok((799, 159)));
        assert_eq!(
            (policy.max_tokens, policy.retries, policy.overflow_retries),
            (8192, 1, 1)
        );
        assert_eq!(policy.writer, None);
        assert!(Settings::read("{}").unwrap().auto);
    }

    #[test]
    fn a_models_policy_lies_over_the_rows() {
        let config = r#"{"thresholdRatio":0.5,"maxTokens":100,"modelPolicies":[
            {"provider":"p","model":"m","retainTokens":7,"summarizationProvider":"q","summarizationModel":"n"}]}"#;
        let special = of(config, "p/m");
        assert_eq!(special.sizes(100), Ok((50, 7)));
        assert_eq!(special.writer, Some(("q".into(), "n".into())));
        assert_eq!(special.max_tokens, 100);
        // Only where both names are exactly those.
        for other in ["p/n", "q/m"] {
            assert_eq!(of(config, other).sizes(100), Ok((50, 16)));
        }
    }

    #[test]
    fn an_empty_name_means_the_conversations_own_model() {
        let policy = of(
            r#"{"summarizationProvider":"","summarizationModel":""}"#,
            "p/m",
        );
        assert_eq!(policy.writer, None);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (config, why) in [
            (r#"{"retainRatio":0.8}"#, "must be below thresholdRatio"),
            (r#"{"thresholdRatio":0.1}"#, "must be below thresholdRatio"),
            (r#"{"thresholdRatio":0,"retainTokens":1}"#, "above 0"),
            (r#"{"retainRatio":0.1,"retainTokens":5}"#, "only one of"),
            (r#"{"summarizationModel":"m"}"#, "set together"),
            (
                r#"{"summarizationProvider":"p","summarizationModel":""}"#,
                "set together",
            ),
            (r#"{"maxTokens":0}"#, "maxTokens must be"),
            (r#"{"thresholdRatio":1.5}"#, "thresholdRatio must be"),
            (
                r#"{"modelPolicies":[{"provider":"p"}]}"#,
                "modelPolicies[0]: model must be",
            ),
            (
                r#"{"modelPolicies":[{"provider":"p","model":"m","retainRatio":1}]}"#,
                "modelPolicies[0]: retainRatio",
            ),
            (
                r#"{"modelPolicies":[{"provider":"p","model":"m"},{"provider":"p","model":"m"}]}"#,
                "two policies",
            ),
        ] {
            let error = Settings::read(config).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let policy = of(r#"{"retainTokens":90}"#, "p/m");
        assert!(
            policy
                .sizes(100)
                .unwrap_err()
                .contains("lower retainTokens")
        );
        assert_eq!(policy.sizes(200), Ok((160, 90)));
    }
}
