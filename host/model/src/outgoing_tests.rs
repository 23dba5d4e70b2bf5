use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use dsh_http::{Origin, Reach};

use super::*;

struct Keys {
    values: HashMap<&'static str, &'static str>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Credentials for Keys {
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure> {
        self.asked.lock().unwrap().push(reference.to_owned());
        Ok(self.values.get(reference).map(|value| Secret::new(*value)))
    }
}

fn gateway() -> (Gateway, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let values = HashMap::from([
        ("KEY", " sk-1 "),
        ("OTHER", "sk-2"),
        ("BAD", "a b"),
        ("BLANK", " "),
    ]);
    let keys = Keys {
        values,
        asked: Arc::clone(&asked),
    };
    let gateway = Gateway {
        client: Client::new(),
        credentials: Box::new(keys),
        user_agent: String::from("dsh/0 {credential}"),
        anonymous_user_id: Box::new(|| String::from("anon")),
    };
    (gateway, asked)
}

fn grant(credential: Option<&str>) -> RouteGrant {
    RouteGrant {
        provider: String::from("p"),
        origins: vec![Allowed {
            origin: Origin::parse("https://api.example").unwrap(),
            reach: Reach::Public,
        }],
        credential: credential.map(String::from),
    }
}

fn request(url: &str, headers: &[(&str, &str)]) -> HttpRequest {
    HttpRequest {
        method: String::from("POST"),
        url: url.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        body: vec![
            Part::Bytes(b"{credential}".to_vec()),
            Part::Bytes(b"!".to_vec()),
        ],
        timeout_ms: Some(5),
    }
}

#[test]
fn blanks_are_filled_in_header_values_by_their_exact_texts_and_once() {
    let (gateway, _) = gateway();
    let headers = [
        ("authorization", "Bearer {credential}"),
        ("user-agent", "{user-agent}"),
        ("x-user", "{anonymous-user-id}{"),
        (
            "x-other",
            "{secret:KEY} {Credential} {credential } {{credential}}",
        ),
    ];
    let request = request("https://api.example/{credential}", &headers);
    let outgoing = gateway
        .outgoing("p", Some(&grant(Some("KEY"))), request)
        .unwrap();
    let sent: Vec<(&str, bool)> = outgoing
        .request
        .headers
        .iter()
        .map(|header| (&*header.value, header.secret))
        .collect();
    assert_eq!(
        sent,
        [
            ("Bearer sk-1", true),
            ("dsh/0 {credential}", false),
            ("anon{", false),
            ("{secret:KEY} {Credential} {credential } {sk-1}", true),
        ]
    );
    assert_eq!(outgoing.request.url, "https://api.example/{credential}");
    assert_eq!(&outgoing.request.body[..], b"{credential}!");
    assert_eq!(outgoing.policy.timeout, Some(Duration::from_millis(5)));
    assert!(!format!("{outgoing:?}").contains("sk-1"));
}

#[test]
fn a_wrong_destination_is_refused_before_the_credential_is_looked_up() {
    let (gateway, asked) = gateway();
    let headers = [("authorization", "Bearer {credential}")];
    for (url, code) in [
        ("https://evil.example/", "DENIED"),
        ("http://api.example/", "DENIED"),
        ("https://api.example:8443/", "DENIED"),
        ("https://api.example@evil.example/", "INVALID_REQUEST"),
        ("nonsense", "INVALID_REQUEST"),
    ] {
        let failure = gateway
            .outgoing("p", Some(&grant(Some("KEY"))), request(url, &headers))
            .unwrap_err();
        assert_eq!(failure.code, code, "{url}");
    }
    let failure = gateway
        .outgoing("p", None, request("https://api.example", &headers))
        .unwrap_err();
    assert_eq!(failure.code, "DENIED");
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn only_the_granted_credential_is_asked_for_and_only_where_it_is_wanted() {
    let (gateway, asked) = gateway();
    let url = "https://api.example/";
    gateway
        .outgoing("p", Some(&grant(Some("KEY"))), request(url, &[("x", "y")]))
        .unwrap();
    assert!(asked.lock().unwrap().is_empty());
    let twice = [("a", "{credential}"), ("b", "{credential}")];
    gateway
        .outgoing("p", Some(&grant(Some("KEY"))), request(url, &twice))
        .unwrap();
    assert_eq!(*asked.lock().unwrap(), ["KEY"]);
}

#[test]
fn a_credential_that_is_missing_or_no_key_fails_by_its_name_only() {
    let (gateway, _) = gateway();
    let wants = [("authorization", "Bearer {credential}")];
    for (reference, code) in [
        (None, "MISSING_CREDENTIAL"),
        (Some("NONE"), "MISSING_CREDENTIAL"),
        (Some("BLANK"), "INVALID_CREDENTIAL"),
        (Some("BAD"), "INVALID_CREDENTIAL"),
    ] {
        let failure = gateway
            .outgoing(
                "p",
                Some(&grant(reference)),
                request("https://api.example", &wants),
            )
            .unwrap_err();
        assert_eq!(failure.code, code, "{reference:?}");
        assert!(failure.message.contains(reference.unwrap_or("credential")));
        assert!(!failure.message.contains("a b"));
    }
}

#[test]
fn the_tag_of_a_credential_changes_with_it_and_does_not_show_it() {
    let (gateway, _) = gateway();
    let tag = |reference| gateway.credential_tag(Some(&grant(Some(reference))));
    let (one, other) = (tag("KEY").unwrap(), tag("OTHER").unwrap());
    assert_ne!(one, other);
    assert!(one.starts_with(r#"{"credentialTag":""#) && !one.contains("sk"));
    assert_eq!(tag("NONE"), None);
}
