//! The row's configuration and what follows from it: the route, the catalog, a
//! model's facts, a call's defaults (spec/llm.md §6.1).
//!
//! A model that can see is listed as one that reads text, until requests can
//! carry pictures: the host then puts a placeholder where a picture was.

use guest_support::json::{Json, Object, array, quote, text};
use guest_support::types::CallConfig;
use guest_support::{Error, error};

pub(crate) const PROVIDER: &str = "deepseek-official";
pub(crate) const EFFORTS: [(&str, &str); 4] = [
    ("off", "Off"),
    ("low", "Low"),
    ("high", "High"),
    ("max", "Max"),
];

const DEFAULT_EFFORT: &str = "high";
const CATALOG: [(&str, &str); 3] = [
    ("deepseek-v4-flash", "DeepSeek-V4-Flash"),
    ("deepseek-v4-pro", "DeepSeek-V4-Pro"),
    (
        "deepseek-v4-flash-vision-exp",
        "DeepSeek-V4-Flash-Vision-Exp",
    ),
];

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) base_url: String,
    credential: String,
    /// `enabled` or `disabled`, for every call.
    pub(crate) thinking: Option<String>,
    pub(crate) effort: Option<String>,
    max_tokens: u32,
    context_window: u32,
    models: Vec<Model>,
    idle_timeout_ms: u64,
    retry_policy: Option<String>,
}

#[derive(Debug)]
struct Model {
    id: String,
    name: Option<String>,
    description: Option<String>,
    context_window: Option<u32>,
    max_tokens: Option<u32>,
}

impl Settings {
    /// Reads the configuration, whose shape its schema has checked, and checks
    /// what the schema cannot say.
    pub(crate) fn read(config: &str) -> Result<Self, String> {
        let config = Json::parse(config).ok_or("the configuration is not JSON")?;
        let settings = Self {
            base_url: text(config, "baseURL")
                .unwrap_or_else(|| "https://api.deepseek.com".to_owned()),
            credential: text(config, "apiKeyEnv").unwrap_or_else(|| "DEEPSEEK_API_KEY".to_owned()),
            thinking: text(config, "thinking"),
            effort: text(config, "reasoningEffort"),
            max_tokens: whole(config, "maxTokens").unwrap_or(256_000),
            context_window: whole(config, "defaultContextWindow").unwrap_or(1_000_000),
            models: match config.some("models") {
                Some(models) => models.items().map(Model::read).collect::<Result<_, _>>()?,
                None => CATALOG
                    .iter()
                    .map(|(id, name)| Model::known(id, name))
                    .collect(),
            },
            idle_timeout_ms: config
                .some("streamIdleTimeoutMs")
                .and_then(Json::whole)
                .unwrap_or(300_000),
            retry_policy: config
                .some("retryPolicy")
                .map(|policy| policy.raw().to_owned()),
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(thinking) = &self.thinking
            && !["enabled", "disabled"].contains(&thinking.as_str())
        {
            return Err(format!(
                "thinking must be enabled or disabled, not {thinking}"
            ));
        }
        if let Some(effort) = &self.effort
            && !self.efforts().any(|(id, _)| id == effort)
        {
            let known: Vec<_> = self.efforts().map(|(id, _)| id).collect();
            return Err(format!(
                "reasoningEffort must be one of {}, not {effort}",
                known.join(", ")
            ));
        }
        for (at, model) in self.models.iter().enumerate() {
            if self.models[..at].iter().any(|other| other.id == model.id) {
                return Err(format!("the model {} is listed twice", model.id));
            }
        }
        Ok(())
    }

    /// The efforts that this deployment allows.
    fn efforts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let off_only = self.thinking_disabled();
        EFFORTS
            .into_iter()
            .filter(move |(id, _)| !off_only || *id == "off")
    }

    fn default_effort(&self) -> &str {
        match &self.effort {
            Some(effort) => effort,
            None if self.thinking_disabled() => "off",
            None => DEFAULT_EFFORT,
        }
    }

    pub(crate) fn thinking_disabled(&self) -> bool {
        self.thinking.as_deref() == Some("disabled")
    }

    /// The one route, as the contract's `list-routes` wants it.
    pub(crate) fn route(&self) -> String {
        let models = self.models.iter().map(|model| self.model_info(&model.id));
        Object::new()
            .string("provider", PROVIDER)
            .string("name", "DeepSeek")
            .string("baseURL", &self.base_url)
            .string("credential", &self.credential)
            .number("idleTimeoutMs", self.idle_timeout_ms)
            .maybe("retryPolicy", self.retry_policy.as_deref())
            .raw("models", &array(models))
            .build()
    }

    /// What is known of a model. One that is not in the catalog is served with
    /// the deployment's defaults.
    pub(crate) fn model_info(&self, id: &str) -> String {
        let model = self.models.iter().find(|model| model.id == id);
        let window = model
            .and_then(|model| model.context_window)
            .unwrap_or(self.context_window);
        let efforts = self
            .efforts()
            .map(|(id, name)| Object::new().string("id", id).string("name", name).build());
        let reasoning = Object::new()
            .raw("efforts", &array(efforts))
            .string("defaultEffort", self.default_effort())
            .build();
        let description = model
            .and_then(|model| model.description.as_deref())
            .map(quote);
        Object::new()
            .string("id", id)
            .string(
                "name",
                model.and_then(|model| model.name.as_deref()).unwrap_or(id),
            )
            .maybe("description", description.as_deref())
            .raw("inputModalities", "[\"text\"]")
            .raw(
                "context",
                &Object::new().number("contextWindow", window.into()).build(),
            )
            .number("defaultMaxTokens", self.cap(id).into())
            .raw("reasoning", &reasoning)
            .build()
    }

    fn cap(&self, id: &str) -> u32 {
        let model = self.models.iter().find(|model| model.id == id);
        model
            .and_then(|model| model.max_tokens)
            .unwrap_or(self.max_tokens)
    }

    /// Fills the defaults in; returns which.
    pub(crate) fn complete(&self, config: &mut CallConfig) -> Result<Vec<String>, Error> {
        let mut defaulted = Vec::new();
        match &config.reasoning_effort {
            Some(effort) => self.check_effort(effort)?,
            None => {
                config.reasoning_effort = Some(self.default_effort().to_owned());
                defaulted.push("reasoningEffort".to_owned());
            }
        }
        if config.max_tokens.is_none() {
            config.max_tokens = Some(self.cap(&config.model));
            defaulted.push("maxTokens".to_owned());
        }
        Ok(defaulted)
    }

    /// Refuses an effort that this deployment does not allow.
    pub(crate) fn check_effort(&self, effort: &str) -> Result<(), Error> {
        if self.efforts().any(|(id, _)| id == effort) {
            return Ok(());
        }
        let known: Vec<_> = self.efforts().map(|(id, _)| id).collect();
        let message = format!(
            "{PROVIDER} has the reasoning efforts {}, not {effort}",
            known.join(", ")
        );
        Err(error("UNSUPPORTED_REASONING_EFFORT", message))
    }
}

impl Model {
    fn known(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            description: None,
            context_window: None,
            max_tokens: None,
        }
    }

    fn read(json: Json<'_>) -> Result<Self, String> {
        Ok(Self {
            id: text(json, "id")
                .filter(|id| !id.is_empty())
                .ok_or("a model needs an id")?,
            name: text(json, "name"),
            description: text(json, "description"),
            context_window: whole(json, "contextWindow"),
            max_tokens: whole(json, "maxTokens"),
        })
    }
}

fn whole(json: Json<'_>, name: &str) -> Option<u32> {
    json.some(name)?.whole()?.try_into().ok()
}
