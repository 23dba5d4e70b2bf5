//! How a server speaks chat completions (spec/llm.md §7.6): what its profile's
//! `compat` says, and where that is silent what its address tells. An unknown
//! address is taken for one that speaks as OpenAI's own.
//!
//! Two switches are ours, for servers that name things their own way:
//! `reasoningField` is where a delta has its reasoning, before the known names, and
//! `usageFields` says where the counts are, `{inputTokens, outputTokens,
//! cacheReadTokens, cacheWriteTokens}`, each a path with dots inside of `usage`.

use adapter_support::profile::{Switch, Takes};
use adapter_support::{Model, Profile};

/// The formats in which thinking is asked for.
const FORMATS: &[&str] = &[
    "openai",
    "deepseek",
    "openrouter",
    "together",
    "zai",
    "qwen",
    "chat-template",
    "qwen-chat-template",
    "string-thinking",
    "ant-ling",
];

pub(crate) const SWITCHES: &[Switch] = &[
    Switch::flag("supportsStore"),
    Switch::flag("supportsDeveloperRole"),
    Switch::flag("supportsReasoningEffort"),
    Switch::flag("supportsUsageInStreaming"),
    Switch {
        name: "maxTokensField",
        takes: Takes::OneOf(&["max_completion_tokens", "max_tokens"]),
    },
    Switch::flag("requiresToolResultName"),
    Switch::flag("requiresAssistantAfterToolResult"),
    Switch::flag("requiresThinkingAsText"),
    Switch::flag("requiresReasoningContentOnAssistantMessages"),
    Switch {
        name: "thinkingFormat",
        takes: Takes::OneOf(FORMATS),
    },
    Switch {
        name: "chatTemplateKwargs",
        takes: Takes::Object,
    },
    Switch::flag("supportsStrictMode"),
    Switch {
        name: "cacheControlFormat",
        takes: Takes::OneOf(&["anthropic"]),
    },
    Switch::flag("supportsLongCacheRetention"),
    Switch {
        name: "reasoningField",
        takes: Takes::Text,
    },
    Switch {
        name: "usageFields",
        takes: Takes::Object,
    },
];

/// A server whose accent is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    AntLing,
    Cerebras,
    Chutes,
    CloudflareGateway,
    CloudflareWorkers,
    DeepSeek,
    Moonshot,
    Nvidia,
    OpenCode,
    OpenRouter,
    Together,
    Xai,
    Zai,
}

use Server::{
    AntLing, Cerebras, Chutes, CloudflareGateway, CloudflareWorkers, DeepSeek, Moonshot, Nvidia,
    OpenCode, OpenRouter, Together, Xai, Zai,
};

/// By a part of the host's name, or by the route's name.
const SERVERS: &[(Server, &[&str], &[&str])] = &[
    (AntLing, &["ant-ling.com", "api.tbox.cn"], &["ant-ling"]),
    (Cerebras, &["cerebras.ai"], &["cerebras"]),
    (Chutes, &["chutes.ai"], &["chutes"]),
    (
        CloudflareGateway,
        &["gateway.ai.cloudflare.com"],
        &["cloudflare-ai-gateway"],
    ),
    (
        CloudflareWorkers,
        &["api.cloudflare.com"],
        &["cloudflare-workers-ai"],
    ),
    (DeepSeek, &["deepseek.com"], &["deepseek"]),
    (
        Moonshot,
        &["api.moonshot."],
        &["moonshotai", "moonshotai-cn"],
    ),
    (Nvidia, &["integrate.api.nvidia.com"], &["nvidia"]),
    (OpenCode, &["opencode.ai"], &["opencode", "opencode-go"]),
    (OpenRouter, &["openrouter.ai"], &["openrouter"]),
    (
        Together,
        &["api.together.ai", "api.together.xyz"],
        &["together"],
    ),
    (Xai, &["api.x.ai"], &["xai"]),
    (
        Zai,
        &["api.z.ai", "open.bigmodel.cn"],
        &["zai", "zai-coding-cn"],
    ),
];

/// The accent in force for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) store: bool,
    pub(crate) developer_role: bool,
    pub(crate) reasoning_effort: bool,
    pub(crate) usage_in_streaming: bool,
    pub(crate) max_tokens_field: &'static str,
    pub(crate) tool_result_name: bool,
    pub(crate) assistant_after_tool_result: bool,
    pub(crate) thinking_as_text: bool,
    pub(crate) reasoning_content_always: bool,
    pub(crate) thinking: &'static str,
    pub(crate) strict: bool,
    pub(crate) cache_control: bool,
    pub(crate) long_cache: bool,
    /// The address is OpenAI's own.
    pub(crate) openai: bool,
}

impl Dialect {
    pub(crate) fn of(profile: &Profile, model: &Model) -> Self {
        let host = host(model.base_url(profile));
        let known = SERVERS.iter().find(|(_, hosts, routes)| {
            routes.contains(&profile.provider.as_str())
                || hosts.iter().any(|part| host.contains(part))
        });
        let server = known.map(|(server, ..)| *server);
        let is = |servers: &[Server]| server.is_some_and(|server| servers.contains(&server));
        let flag = |name: &str, default: bool| model.compat.flag(name).unwrap_or(default);
        let as_openai = !is(&[
            Cerebras,
            Xai,
            Together,
            Chutes,
            DeepSeek,
            Zai,
            Moonshot,
            OpenCode,
            CloudflareGateway,
            CloudflareWorkers,
            Nvidia,
            AntLing,
        ]);
        let caps_max_tokens = is(&[
            Chutes,
            Moonshot,
            CloudflareGateway,
            Together,
            Nvidia,
            AntLing,
        ]);
        let max_tokens_field = match model.compat.text("maxTokensField").as_deref() {
            Some("max_tokens") => "max_tokens",
            None if caps_max_tokens => "max_tokens",
            _ => "max_completion_tokens",
        };
        let thinking = model.compat.text("thinkingFormat");
        let thinking = FORMATS
            .iter()
            .find(|format| thinking.as_deref() == Some(**format))
            .copied()
            .unwrap_or(match server {
                Some(DeepSeek) => "deepseek",
                Some(Zai) => "zai",
                Some(Together) => "together",
                Some(AntLing) => "ant-ling",
                Some(OpenRouter) => "openrouter",
                _ => "openai",
            });
        let relays_anthropic = is(&[OpenRouter]) && model.id.starts_with("anthropic/");
        Self {
            store: flag("supportsStore", as_openai),
            developer_role: flag("supportsDeveloperRole", as_openai),
            reasoning_effort: flag(
                "supportsReasoningEffort",
                !is(&[
                    Xai,
                    Zai,
                    Moonshot,
                    Together,
                    CloudflareGateway,
                    Nvidia,
                    AntLing,
                ]),
            ),
            usage_in_streaming: flag("supportsUsageInStreaming", true),
            max_tokens_field,
            tool_result_name: flag("requiresToolResultName", false),
            assistant_after_tool_result: flag("requiresAssistantAfterToolResult", false),
            thinking_as_text: flag("requiresThinkingAsText", false),
            reasoning_content_always: flag(
                "requiresReasoningContentOnAssistantMessages",
                is(&[DeepSeek]),
            ),
            thinking,
            strict: flag(
                "supportsStrictMode",
                !is(&[Moonshot, Together, CloudflareGateway, Nvidia]),
            ),
            cache_control: model.compat.text("cacheControlFormat").is_some() || relays_anthropic,
            long_cache: flag(
                "supportsLongCacheRetention",
                !is(&[
                    Together,
                    CloudflareWorkers,
                    CloudflareGateway,
                    Nvidia,
                    AntLing,
                ]),
            ),
            openai: host == "api.openai.com",
        }
    }
}

/// The host of a URL.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or("");
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    rest.split_once(':').map_or(rest, |(host, _)| host)
}
