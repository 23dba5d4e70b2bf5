//! The row's configuration and what follows from it: the route, the catalog, a
//! model's facts, a call's defaults (spec/llm.md §6.1).

use guest_support::json::{Json, Object, array, quote, text};
use guest_support::types::CallConfig;
use guest_support::{Error, error};

use crate::offload::Policy;

pub(crate) const PROVIDER: &str = "deepseek-official";
pub(crate) const EFFORTS: [(&str, &str); 4] = [
    ("off", "Off"),
    ("low", "Low"),
    ("high", "High"),
    ("max", "Max"),
];

const DEFAULT_EFFORT: &str = "high";
const CATALOG: [(&str, &str, bool); 3] = [
    ("deepseek-v4-flash", "DeepSeek-V4-Flash", false),
    ("deepseek-v4-pro", "DeepSeek-V4-Pro", false),
    (
        "deepseek-v4-flash-vision-exp",
        "DeepSeek-V4-Flash-Vision-Exp",
        true,
    ),
];

const MIB: u64 = 1 << 20;

/// What a model that sees takes of one picture, unless it says otherwise.
const BUDGET: Budget = Budget {
    pixels: 640_000,
    bytes: 1 << 20,
};

/// Pixels of one that it looks at with `imageDetail: low`.
const LOW_DETAIL: u32 = 262_144;

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
    /// Which pictures are looked at at all, by what they weigh as they are stored.
    pub(crate) files: Policy,
    /// Which of those go into a body, by their base64.
    pub(crate) inline: Policy,
}

/// What a model takes of one picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) pixels: u32,
    pub(crate) bytes: u32,
}

#[derive(Debug)]
struct Model {
    id: String,
    name: Option<String>,
    description: Option<String>,
    context_window: Option<u32>,
    max_tokens: Option<u32>,
    /// None where it reads text alone.
    pictures: Option<Budget>,
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
                    .map(|(id, name, sees)| Model::known(id, name, *sees))
                    .collect(),
            },
            idle_timeout_ms: config
                .some("streamIdleTimeoutMs")
                .and_then(Json::whole)
                .unwrap_or(300_000),
            retry_policy: config
                .some("retryPolicy")
                .map(|policy| policy.raw().to_owned()),
            files: policy(
                config,
                ("maxRequestFilesBytes", 128 * MIB),
                ("imageOffloadByteQuantum", 64 * MIB),
            )?,
            inline: policy(
                config,
                ("maxInlineRequestImageBytes", 20 * MIB),
                ("inlineImageOffloadByteQuantum", 10 * MIB),
            )?,
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
            .raw(
                "inputModalities",
                match model.and_then(|model| model.pictures) {
                    Some(_) => r#"["text","image"]"#,
                    None => r#"["text"]"#,
                },
            )
            .raw(
                "context",
                &Object::new().number("contextWindow", window.into()).build(),
            )
            .number("defaultMaxTokens", self.cap(id).into())
            .raw("reasoning", &reasoning)
            .build()
    }

    /// What a model takes of one picture; none of one that reads text alone.
    pub(crate) fn pictures(&self, id: &str) -> Option<Budget> {
        self.models.iter().find(|model| model.id == id)?.pictures
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
    fn known(id: &str, name: &str, sees: bool) -> Self {
        Self {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            description: None,
            context_window: None,
            max_tokens: None,
            pictures: sees.then_some(BUDGET),
        }
    }

    fn read(json: Json<'_>) -> Result<Self, String> {
        let id = text(json, "id")
            .filter(|id| !id.is_empty())
            .ok_or("a model needs an id")?;
        Ok(Self {
            name: text(json, "name"),
            description: text(json, "description"),
            context_window: whole(json, "contextWindow"),
            max_tokens: whole(json, "maxTokens"),
            pictures: budget(json, &id)?,
            id,
        })
    }
}

/// What a listed model takes of one picture.
fn budget(model: Json<'_>, id: &str) -> Result<Option<Budget>, String> {
    let modalities = model.some("inputModalities");
    let mut modalities = modalities.into_iter().flat_map(Json::items);
    if !modalities.any(|kind| kind.escaped() == Some("image")) {
        let limits = ["imagePixelBudget", "imageMaxBytes", "imageDetail"];
        return match limits.iter().find(|name| model.some(name).is_some()) {
            Some(name) => Err(format!(
                "the model {id} has {name} and takes no pictures; put image into its inputModalities, or take {name} out"
            )),
            None => Ok(None),
        };
    }
    let low = text(model, "imageDetail").as_deref() == Some("low");
    let detail = if low { LOW_DETAIL } else { BUDGET.pixels };
    Ok(Some(Budget {
        pixels: whole(model, "imagePixelBudget").unwrap_or(detail),
        bytes: whole(model, "imageMaxBytes").unwrap_or(BUDGET.bytes),
    }))
}

/// A bound on bytes with its quantum, each with the default, and that on their
/// number.
fn policy(config: Json<'_>, bytes: (&str, u64), quantum: (&str, u64)) -> Result<Policy, String> {
    let number = |(name, otherwise): (&str, u64)| {
        config.some(name).and_then(Json::whole).unwrap_or(otherwise)
    };
    let bounded = |most: (&str, u64), quantum: (&str, u64)| {
        let (limit, step) = (number(most), number(quantum));
        // A default quantum gives way to a bound that somebody set lower.
        let step = match config.some(quantum.0) {
            Some(_) => step,
            None => step.min(limit),
        };
        if step == 0 || limit == 0 || step > limit {
            return Err(format!(
                "{} is {step} and must be from 1 to {}, which is {limit}",
                quantum.0, most.0
            ));
        }
        Ok((limit, step))
    };
    let (images, image_quantum) = bounded(
        ("maxImagesPerRequest", 600),
        ("imageOffloadCountQuantum", 20),
    )?;
    let (bytes, byte_quantum) = bounded(bytes, quantum)?;
    Ok(Policy {
        images,
        bytes,
        image_quantum,
        byte_quantum,
    })
}

fn whole(json: Json<'_>, name: &str) -> Option<u32> {
    json.some(name)?.whole()?.try_into().ok()
}
