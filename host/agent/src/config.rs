//! A call's configuration in the log's shape and as calls have it.

use dsh_model::CallConfig;
use dsh_session::{Json, Value};

/// `{provider, model, reasoningEffort?, temperature?, maxTokens?, stop?, …}`.
pub(crate) fn write(config: &CallConfig) -> Json {
    let more = config
        .more
        .as_deref()
        .and_then(|more| Json::normalise(more).ok());
    Json::object(|object| {
        object
            .str("provider", &config.provider)
            .str("model", &config.model);
        object.opt_str("reasoningEffort", config.reasoning_effort.as_deref());
        if let Some(temperature) = config.temperature {
            object.f64("temperature", temperature);
        }
        if let Some(max_tokens) = config.max_tokens {
            object.u64("maxTokens", u64::from(max_tokens));
        }
        if let Some(stop) = &config.stop {
            object.array("stop", |list| {
                for item in stop {
                    list.str(item);
                }
            });
        }
        for (key, value) in more.iter().flat_map(|more| more.value().entries()) {
            object.value(&key.decode(), value);
        }
    })
}

/// Reads it back; none where a member is not what it should be.
pub(crate) fn read(config: Value<'_>) -> Option<CallConfig> {
    if !config.is_object() {
        return None;
    }
    let mut read = CallConfig::default();
    let mut more = Vec::new();
    for (key, value) in config.entries() {
        match &*key.decode() {
            "provider" => read.provider = value.text()?.into_owned(),
            "model" => read.model = value.text()?.into_owned(),
            "reasoningEffort" => read.reasoning_effort = Some(value.text()?.into_owned()),
            "temperature" => read.temperature = Some(value.f64()?),
            "maxTokens" => read.max_tokens = Some(u32::try_from(value.u64()?).ok()?),
            "stop" => {
                let items = value
                    .items()
                    .map(|item| item.text().map(std::borrow::Cow::into_owned));
                read.stop = Some(items.collect::<Option<_>>()?);
            }
            _ => more.push((key, value)),
        }
    }
    if !more.is_empty() {
        let more = Json::object(|object| {
            for (key, value) in more {
                object.value(&key.decode(), value);
            }
        });
        read.more = Some(more.as_str().to_owned());
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_survives_the_way_into_the_log_and_back() {
        let text = r#"{"provider":"p","model":"m","reasoningEffort":"high","temperature":0.5,"maxTokens":9,"stop":["a"],"later":{"x":1}}"#;
        let json = Json::normalise(text).unwrap();
        assert_eq!(write(&read(json.value()).unwrap()).as_str(), text);
    }

    #[test]
    fn what_is_no_configuration_is_not_guessed_at() {
        for text in [
            "null",
            r#"{"provider":1}"#,
            r#"{"maxTokens":-1}"#,
            r#"{"stop":[1]}"#,
        ] {
            assert!(
                read(Json::normalise(text).unwrap().value()).is_none(),
                "{text}"
            );
        }
    }
}
