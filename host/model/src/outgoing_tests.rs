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
        pictures: Arc::new(NoPictures),
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

#[tokio::test]
async fn blanks_are_filled_in_header_values_by_their_exact_texts_and_once() {
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
        .await
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

#[tokio::test]
async fn a_wrong_destination_is_refused_before_the_credential_is_looked_up() {
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
            .await
            .unwrap_err();
        assert_eq!(failure.code, code, "{url}");
    }
    let failure = gateway
        .outgoing("p", None, request("https://api.example", &headers))
        .await
        .unwrap_err();
    assert_eq!(failure.code, "DENIED");
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn only_the_granted_credential_is_asked_for_and_only_where_it_is_wanted() {
    let (gateway, asked) = gateway();
    let url = "https://api.example/";
    gateway
        .outgoing("p", Some(&grant(Some("KEY"))), request(url, &[("x", "y")]))
        .await
        .unwrap();
    assert!(asked.lock().unwrap().is_empty());
    let twice = [("a", "{credential}"), ("b", "{credential}")];
    gateway
        .outgoing("p", Some(&grant(Some("KEY"))), request(url, &twice))
        .await
        .unwrap();
    assert_eq!(*asked.lock().unwrap(), ["KEY"]);
}

#[tokio::test]
async fn a_credential_that_is_missing_or_no_key_fails_by_its_name_only() {
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
            .await
            .unwrap_err();
        assert_eq!(failure.code, code, "{reference:?}");
        assert!(failure.message.contains(reference.unwrap_or("credential")));
        assert!(!failure.message.contains("a b"));
    }
}

#[tokio::test]
async fn the_tag_of_a_credential_changes_with_it_and_does_not_show_it() {
    let (gateway, _) = gateway();
    let tag = |reference| gateway.credential_tag(Some(&grant(Some(reference))));
    let (one, other) = (tag("KEY").unwrap(), tag("OTHER").unwrap());
    assert_ne!(one, other);
    assert!(one.starts_with(r#"{"credentialTag":""#) && !one.contains("sk"));
    assert_eq!(tag("NONE"), None);
}

/// Pictures of as many bytes as their id says, and how often each was read.
#[derive(Default)]
struct Album(Mutex<Vec<String>>);

#[async_trait]
impl Pictures for Album {
    async fn bytes(&self, variant: &str) -> Result<Bytes, LlmFailure> {
        self.0.lock().unwrap().push(variant.to_owned());
        match variant.parse() {
            Ok(size) => Ok(vec![0xfb; size].into()),
            Err(_) => Err(LlmFailure::new("UNSUPPORTED_CONTENT", "gone")),
        }
    }
}

#[tokio::test]
async fn pictures_stand_in_the_body_where_their_parts_are_and_each_is_read_once() {
    let album = Album::default();
    let text = |text: &str| Part::Bytes(text.into());
    let parts = vec![
        text("["),
        Part::PictureBase64("1".into()),
        text("|"),
        Part::Picture("2".into()),
        Part::PictureBase64("3".into()),
        Part::PictureBase64("1".into()),
        Part::PictureBase64("0".into()),
        text("]"),
    ];
    let whole = body(parts, &album).await.unwrap();
    assert_eq!(&whole[..], b"[+w==|\xfb\xfb+/v7+w==]");
    assert_eq!(*album.0.lock().unwrap(), ["1", "2", "3", "0"]);
}

#[tokio::test]
async fn a_picture_that_is_gone_or_one_too_many_is_a_failure_of_the_request() {
    let album = Album::default();
    let gone = body(vec![Part::Picture("x".into())], &album).await;
    assert_eq!(gone.unwrap_err().code, "UNSUPPORTED_CONTENT");
    let many = vec![Part::PictureBase64((1 << 20).to_string()); 97];
    let failure = body(many, &album).await.unwrap_err();
    assert_eq!(failure.code, "INVALID_REQUEST");
}

#[tokio::test]
async fn no_picture_is_read_for_a_destination_that_was_not_granted() {
    let album = Arc::new(Album::default());
    let (gateway, _) = gateway();
    let gateway = Gateway {
        pictures: Arc::clone(&album) as Arc<dyn Pictures>,
        ..gateway
    };
    let mut request = request("https://evil.example/", &[]);
    request.body = vec![Part::Picture("1".into())];
    let refused = gateway.outgoing("p", Some(&grant(None)), request).await;
    assert_eq!(refused.unwrap_err().code, "DENIED");
    assert!(album.0.lock().unwrap().is_empty());
}
