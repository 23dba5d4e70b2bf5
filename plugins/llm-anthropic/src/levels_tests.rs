//! What a level of thinking makes of a request.

use super::*;

#[test]
fn thinking_and_temperature_exclude_each_other() {
    let thinks = |more: Value| {
        let mut model = json!({"id": "m", "contextWindow": 200_000, "maxTokens": 8192, "reasoningEfforts": {"off": null, "low": "lo", "high": "hi"}});
        for (key, value) in more.as_object().unwrap() {
            model[key] = value.clone();
        }
        json!({"models": [model]})
    };
    let always = json!({"reasoningEfforts": {"low": "lo"}});
    let adaptive = json!({"compat": {"forceAdaptiveThinking": true}});
    let cold = json!({"compat": {"supportsTemperature": false}});
    let off = json!({"type": "disabled"});
    let budget = json!({"type": "enabled", "budget_tokens": 2048, "display": "summarized"});
    for (more, effort, thinking, output, temperature, cap) in [
        (
            json!({}),
            json!(null),
            Some(off.clone()),
            None,
            Some(0.5),
            3000,
        ),
        (
            json!({}),
            json!("off"),
            Some(off.clone()),
            None,
            Some(0.5),
            3000,
        ),
        (json!({}), json!("low"), Some(budget), None, None, 5048),
        (always, json!(null), None, None, Some(0.5), 3000),
        (
            adaptive.clone(),
            json!(null),
            Some(off.clone()),
            None,
            Some(0.5),
            3000,
        ),
        (
            adaptive,
            json!("high"),
            Some(json!({"type": "adaptive", "display": "summarized"})),
            Some(json!({"effort": "hi"})),
            None,
            3000,
        ),
        (cold, json!("off"), Some(off), None, None, 3000),
        (
            json!({"reasoningEfforts": false}),
            json!(null),
            None,
            None,
            Some(0.5),
            3000,
        ),
    ] {
        let options = json!({"temperature": 0.5, "maxTokens": 3000, "reasoningEffort": effort});
        let body = asked(&thinks(more.clone()), &options).unwrap().body;
        let found = (
            body.get("thinking").cloned(),
            body.get("output_config").cloned(),
            body.get("temperature").and_then(Value::as_f64),
            body["max_tokens"].as_u64().unwrap(),
        );
        assert_eq!(
            found,
            (thinking, output, temperature, cap),
            "{more} {effort}"
        );
    }
    let mut profile = thinks(json!({}));
    profile["thinkingBudgets"] = json!({"low": 4000});
    let body = asked(
        &profile,
        &json!({"maxTokens": 3000, "reasoningEffort": "low"}),
    )
    .unwrap()
    .body;
    assert_eq!(body["thinking"]["budget_tokens"], 4000);
    assert_eq!(body["max_tokens"], 7000);
}

#[test]
fn every_model_of_the_catalogue_can_be_asked_at_each_of_its_levels() {
    use adapter_support::Protocol;
    let catalogue: Value = serde_json::from_str(Messages::CATALOGUE).unwrap();
    let providers: Vec<_> = catalogue.as_object().unwrap().keys().collect();
    assert!(providers.len() > 1, "{providers:?}");
    let config: Value = providers
        .iter()
        .map(|provider| ((*provider).clone(), json!({})))
        .collect();
    let config = json!({"providers": config}).to_string();
    let mut adapter: Adapter<Messages> = Adapter::new(&config).unwrap();
    for route in adapter.list_routes() {
        let route: Value = serde_json::from_str(&route).unwrap();
        assert_eq!(route.get("problem"), None, "{route}");
        for model in route["models"].as_array().unwrap() {
            let efforts = model["reasoning"]["efforts"].as_array();
            let levels = efforts
                .into_iter()
                .flatten()
                .map(|level| level["id"].clone());
            for level in levels.chain([Value::Null]) {
                let mut request =
                    generate(&json!({"model": model["id"], "reasoningEffort": level}));
                request.config.provider = route["provider"].as_str().unwrap().to_owned();
                request.messages.push(user("Hi").to_string());
                let which = format!("{} {} {level}", route["provider"], model["id"]);
                request.config = adapter.prepare(request.config).expect(&which).config;
                let attempt = adapter.open(&request, &mut Rendered).expect(&which);
                let Action::Send(http) = adapter.next(attempt).unwrap() else {
                    panic!("{which}")
                };
                adapter.close(attempt);
                let [Part::Bytes(body)] = &http.body[..] else {
                    panic!("{which}")
                };
                let body: Value = serde_json::from_slice(body).unwrap();
                let thinking = &body["thinking"];
                let thinks = !level.is_null() && level != "off";
                let expected = match thinking["type"].as_str() {
                    Some("enabled") => thinks && thinking["budget_tokens"].as_u64() >= Some(1024),
                    Some("adaptive") => thinks && body["output_config"]["effort"].is_string(),
                    _ => !thinks,
                };
                assert!(expected, "{which}: {body}");
                assert!(body["max_tokens"].as_u64() > thinking["budget_tokens"].as_u64());
            }
        }
    }
}
