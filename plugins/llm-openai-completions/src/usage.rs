//! The counts of a completion, made disjoint. Servers agree on the two totals and
//! on little else: what was read from a cache has a place of its own nearly
//! everywhere, and some count it the way other protocols do.

use adapter_support::{Model, Usage};
use guest_support::json::Json;

/// Where counts are, inside of `usage`; the first that is there counts.
const INPUT: &[&str] = &["prompt_tokens", "input_tokens"];
const OUTPUT: &[&str] = &["completion_tokens", "output_tokens"];
const CACHE_READ: &[&str] = &[
    "prompt_tokens_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "input_tokens_details.cached_tokens",
    "cached_tokens",
    "cache_read_input_tokens",
];
const CACHE_WRITE: &[&str] = &[
    "prompt_tokens_details.cache_write_tokens",
    "cache_creation_input_tokens",
];

/// Paths that a route declares, before the known ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    input: Option<String>,
    output: Option<String>,
    cache_read: Option<String>,
    cache_write: Option<String>,
}

impl Fields {
    /// The switch `usageFields`.
    pub(crate) fn of(model: &Model) -> Self {
        let written = model.compat.raw("usageFields").and_then(Json::parse);
        let path = |name: &str| {
            let path = written?.some(name)?.string()?;
            Some(path.into_owned()).filter(|path| !path.is_empty())
        };
        Self {
            input: path("inputTokens"),
            output: path("outputTokens"),
            cache_read: path("cacheReadTokens"),
            cache_write: path("cacheWriteTokens"),
        }
    }

    /// The counts of a `usage` object. The prompt's includes what a cache gave.
    pub(crate) fn read(&self, usage: Json<'_>) -> Usage {
        let count = |own: &Option<String>, known: &[&str]| {
            own.as_deref()
                .into_iter()
                .chain(known.iter().copied())
                .find_map(|path| at(usage, path))
                .unwrap_or(0)
        };
        let cache_read = count(&self.cache_read, CACHE_READ);
        let cache_write = count(&self.cache_write, CACHE_WRITE);
        Usage {
            input: count(&self.input, INPUT)
                .saturating_sub(cache_read)
                .saturating_sub(cache_write),
            output: count(&self.output, OUTPUT),
            cache_read,
            cache_write,
        }
    }
}

fn at(usage: Json<'_>, path: &str) -> Option<u64> {
    path.split('.').try_fold(usage, Json::some)?.whole()
}
