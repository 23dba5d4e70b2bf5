use super::*;

#[test]
fn a_route_has_defaults_for_all_but_its_name() {
    let route = Route::parse(r#"{"provider":"p"}"#).unwrap();
    assert_eq!((&*route.provider, &*route.name), ("p", "p"));
    assert_eq!((route.base_url, route.credential), (None, None));
    assert_eq!(route.idle_timeout, Duration::from_secs(300));
    assert_eq!(route.retry_policy, RetryPolicy::default());
    let route = Route::parse(
        r#"{"provider":"p","name":"P","baseURL":"http://x","credential":"K","idleTimeoutMs":80,
            "retryPolicy":{"mode":"always"},"models":[{"id":"m","name":"M"}]}"#,
    )
    .unwrap();
    assert_eq!(route.idle_timeout, Duration::from_millis(80));
    assert_eq!(route.retry_policy.mode(), "always");
    assert_eq!(
        route.catalog().unwrap()[0].as_str(),
        r#"{"id":"m","name":"M"}"#
    );
}

#[test]
fn a_route_that_cannot_be_is_an_invalid_adapter() {
    for text in [
        "nope",
        "{}",
        r#"{"provider":""}"#,
        r#"{"provider":7}"#,
        r#"{"provider":"p","name":" "}"#,
        r#"{"provider":"p","idleTimeoutMs":0}"#,
        r#"{"provider":"p","idleTimeoutMs":2147483648}"#,
        r#"{"provider":"p","retryPolicy":{"mode":"x"}}"#,
    ] {
        assert_eq!(
            Route::parse(text).unwrap_err().code(),
            "INVALID_ADAPTER",
            "{text}"
        );
    }
}

#[test]
fn a_catalog_has_unique_named_models_of_its_own_provider() {
    for models in [
        r#"[{}]"#,
        r#"[{"id":""}]"#,
        r#"[{"id":"a"},{"id":"a"}]"#,
        r#"[{"id":"a","name":""}]"#,
        r#"[{"id":"a","description":1}]"#,
        r#"[{"id":"a","provider":"other"}]"#,
    ] {
        let route = Route::parse(&format!(r#"{{"provider":"p","models":{models}}}"#)).unwrap();
        assert_eq!(
            route.catalog().unwrap_err().code(),
            "INVALID_CATALOG",
            "{models}"
        );
    }
}
