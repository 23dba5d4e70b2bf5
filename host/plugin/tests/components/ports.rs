use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_plugin::CallContext;
use dsh_plugin::api::PluginError;
use dsh_plugin::port::{
    Answer, Attachments, Charge, Command, DirEntry, FileKind, Guard, Inbox, Journal, Kv, KvMap,
    Level, Llm, Log, Matches, Metadata, NewEvent, Output, Paths, Picture, Pictures, PortSet,
    Process, Progress, Question, Sender, SessionView, Slice, Spill, SurfaceView, Target, Workspace,
};
use serde_json::json;

use crate::support::{all, engine, guest_with, mount, row, run, try_mount};

/// Writes down what reaches it.
#[derive(Default)]
struct Fake {
    seen: Mutex<Vec<String>>,
    /// Tokens that `llm` says were spent.
    spent: AtomicU64,
}

impl Fake {
    fn saw(&self, what: String) {
        self.seen.lock().unwrap().push(what);
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Log for Fake {
    fn write(&self, row: &str, level: Level, message: &str) {
        self.saw(format!("{row} {level:?} {message}"));
    }
}

impl Progress for Fake {
    fn progress(&self, row: &str, update: String) {
        self.saw(format!("{row} {update}"));
    }
}

#[async_trait]
impl SessionView for Fake {
    fn header(&self) -> String {
        "{}".to_owned()
    }
    fn length(&self) -> u32 {
        42
    }
    fn events(&self, first: u32, limit: u32, kinds: &[String]) -> Result<Vec<String>, PluginError> {
        let asked = format!("{first} {limit} {}", kinds.len());
        Ok(vec![asked, "{}".to_owned()])
    }
    fn last(&self, _: &[String], _: Option<u32>) -> Result<Option<String>, PluginError> {
        Ok(None)
    }
    fn surface(&self) -> Result<SurfaceView, PluginError> {
        Ok(SurfaceView::default())
    }
    fn messages(&self, _: u32, _: u32) -> Result<Vec<String>, PluginError> {
        Ok(vec![])
    }
    fn measure(&self) -> Result<Charge, PluginError> {
        Ok(Charge::default())
    }
    fn estimate(&self, _: &[String]) -> Vec<u32> {
        vec![]
    }
    async fn projection(&self, key: &str) -> Result<Option<String>, PluginError> {
        tokio::task::yield_now().await;
        Ok(Some(format!("view of {key}")))
    }
}

#[async_trait]
impl Journal for Fake {
    async fn append(
        &self,
        row: &str,
        events: Vec<NewEvent>,
        at: Option<u32>,
    ) -> Result<u32, PluginError> {
        self.saw(format!("{row} {} {at:?}", events[0].kind));
        Ok(7)
    }
}

fn metadata() -> Metadata {
    Metadata {
        kind: FileKind::File,
        size: 3,
        version: "v1".to_owned(),
    }
}

#[async_trait]
impl Workspace for Fake {
    fn root(&self) -> String {
        "/root".to_owned()
    }
    fn within(&self, roots: &[String]) -> Option<Arc<dyn Workspace>> {
        self.saw(format!("within {roots:?}"));
        Some(Arc::new(Self::default()))
    }
    async fn stat(&self, _: &str) -> Result<Metadata, PluginError> {
        Ok(metadata())
    }
    async fn read(&self, path: &str, offset: u64, limit: u32) -> Result<Slice, PluginError> {
        // As one that waits for a disk.
        tokio::task::yield_now().await;
        Ok(Slice {
            content: format!("{path} {offset} {limit}").into_bytes(),
            metadata: metadata(),
        })
    }
    async fn read_for(
        &self,
        path: &str,
        _: Guard,
        offset: u64,
        limit: u32,
    ) -> Result<Slice, PluginError> {
        Workspace::read(self, path, offset, limit).await
    }
    async fn list_dir(&self, _: &str) -> Result<Vec<DirEntry>, PluginError> {
        Ok(vec![])
    }
    async fn write(
        &self,
        path: &str,
        content: Vec<u8>,
        guard: Guard,
    ) -> Result<Metadata, PluginError> {
        self.saw(format!("{path} {} {guard:?}", content.len()));
        Ok(metadata())
    }
    async fn remove(&self, _: &str) -> Result<(), PluginError> {
        Ok(())
    }
    async fn rename(&self, _: &str, _: &str) -> Result<(), PluginError> {
        Ok(())
    }
    async fn glob(&self, _: &str, _: Option<&str>, _: u32) -> Result<Paths, PluginError> {
        Ok(Paths::default())
    }
    async fn grep(
        &self,
        _: &str,
        _: Option<&str>,
        _: Option<&str>,
        _: u32,
    ) -> Result<Matches, PluginError> {
        Ok(Matches::default())
    }
}

#[async_trait]
impl Spill for Fake {
    async fn store(&self, name: &str, content: Vec<u8>) -> Result<String, PluginError> {
        Ok(format!("/spill/{name} {}", content.len()))
    }
}

#[async_trait]
impl Attachments for Fake {
    async fn put(
        &self,
        content: Vec<u8>,
        media_type: &str,
        name: Option<&str>,
    ) -> Result<String, PluginError> {
        Ok(format!("{} {media_type} {name:?}", content.len()))
    }
    async fn read(&self, attachment: &str) -> Result<Vec<u8>, PluginError> {
        Ok(format!("bytes of {attachment}").into_bytes())
    }
}

#[async_trait]
impl Pictures for Fake {
    async fn render(
        &self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<Picture, PluginError> {
        tokio::task::yield_now().await;
        Ok(Picture {
            id: format!("{attachment} {max_pixels:?} {max_bytes:?}"),
            media_type: "image/png".to_owned(),
            bytes: 4,
            width: 3,
            height: 2,
            alpha: true,
        })
    }
}

#[async_trait]
impl Process for Fake {
    async fn run(&self, command: Command) -> Result<Output, PluginError> {
        Ok(Output {
            stdout: format!("{} {}", command.program, command.arguments[0]).into_bytes(),
            ..Output::default()
        })
    }
}

impl Inbox for Fake {
    fn send(
        &self,
        sender: Sender<'_>,
        draft: String,
        target: Target,
        wake: bool,
    ) -> Result<String, PluginError> {
        let Sender {
            row,
            sources,
            wakes,
        } = sender;
        self.saw(format!(
            "{row} {sources:?} {wakes} {draft} {target:?} {wake}"
        ));
        Ok("id".to_owned())
    }
    fn pending(&self, row: &str) -> Vec<String> {
        vec![format!("{row}'s"), "{}".to_owned()]
    }
    fn cancel(&self, row: &str, id: &str) -> bool {
        row == "prober" && id == "id"
    }
}

/// As a map that has one key.
#[async_trait]
impl Kv for Fake {
    async fn get(&self, map: KvMap, key: &str) -> Result<Option<Vec<u8>>, PluginError> {
        self.saw(format!(
            "get {} {} {:?} {key}",
            map.plugin, map.row, map.scope
        ));
        Ok(Some(b"two".to_vec()))
    }
    async fn set(&self, map: KvMap, key: &str, value: Vec<u8>) -> Result<(), PluginError> {
        self.saw(format!("set {} {key} {}", map.quota, value.len()));
        Ok(())
    }
    async fn swap(
        &self,
        _: KvMap,
        _: &str,
        old: Option<Vec<u8>>,
        _: Vec<u8>,
    ) -> Result<bool, PluginError> {
        Ok(old.as_deref() == Some(b"one"))
    }
    async fn remove(&self, _: KvMap, key: &str) -> Result<(), PluginError> {
        self.saw(format!("remove {key}"));
        Ok(())
    }
    async fn keys(&self, _: KvMap, _: &str) -> Result<Vec<String>, PluginError> {
        Ok(vec!["a".to_owned(), "b".to_owned()])
    }
}

#[async_trait]
impl Llm for Fake {
    async fn ask(&self, row: &str, question: Question) -> Result<Answer, PluginError> {
        let Question {
            purpose,
            config,
            prefix,
            system,
            messages,
            timeout_ms,
        } = question;
        self.saw(format!(
            "{row} {purpose} {config} {prefix:?} {system:?} {messages:?} {timeout_ms:?}"
        ));
        if messages == ["never"] {
            std::future::pending::<()>().await;
        }
        Ok(Answer {
            content: vec![r#"{"type":"text"}"#.to_owned()],
            finish: r#"{"kind":"stop"}"#.to_owned(),
            usage: None,
            config: "{}".to_owned(),
        })
    }

    fn spent(&self, _: &str) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }
}

fn with_ports() -> (CallContext, Arc<Fake>) {
    let fake = Arc::new(Fake::default());
    let ports = PortSet {
        log: Some(fake.clone()),
        progress: Some(fake.clone()),
        session: Some(fake.clone()),
        journal: Some(fake.clone()),
        workspace: Some(fake.clone()),
        spill: Some(fake.clone()),
        attachments: Some(fake.clone()),
        pictures: Some(fake.clone()),
        process: Some(fake.clone()),
        inbox: Some(fake.clone()),
        kv: Some(fake.clone()),
        llm: Some(fake.clone()),
        ..PortSet::default()
    };
    (
        CallContext {
            ports: Arc::new(ports),
            ..CallContext::default()
        },
        fake,
    )
}

#[tokio::test]
async fn each_import_reaches_its_port() {
    let mounted = mount().await;
    let (ctx, fake) = with_ports();
    for (tool, argument, expected) in [
        ("length", "", "42"),
        ("projection", "title", "view of title"),
        ("events", "", "0 10 0,{}"),
        ("root", "", "/root"),
        ("read", "a/b", "a/b 0 100"),
        ("write", "c", "v1"),
        ("spill", "text", "/spill/name 4"),
        ("attach", "abc", r#"3 image/png Some("n")"#),
        ("attached", "sha256:1", "bytes of sha256:1"),
        (
            "picture",
            "sha256:1",
            r#"Picture { id: "sha256:1 Some(1) None", media-type: "image/png", bytes: 4, width: 3, height: 2, alpha: true }"#,
        ),
        ("exec", "allowed", "allowed -x"),
        ("append", "todo/write", "7"),
        ("progress", r#"{"done":1}"#, ""),
        ("send", "{}", "id"),
        ("pending", "", "prober's,{}"),
        ("take-back", "id", "true"),
        ("take-back", "other", "false"),
        ("kv", "k", "true two a,b"),
        ("ask", "m", r#"{"type":"text"} {"kind":"stop"}"#),
    ] {
        assert_eq!(
            run(&mounted, &ctx, tool, argument).await,
            expected,
            "{tool}"
        );
    }
    assert_eq!(
        fake.seen(),
        [
            "c 3 Absent",
            "prober todo/write None",
            r#"prober {"done":1}"#,
            "prober [] 2 {} NextStep true",
            "set 1048576 k 3",
            "get prober prober Session k",
            "remove k",
            r#"prober probe {"maxTokens":9} Some((3, 5)) Some("system") ["m"] Some(1000)"#,
        ]
    );
}

#[tokio::test]
async fn a_row_that_has_used_up_its_tokens_is_refused_before_it_asks() {
    let mounted = mount().await;
    let (ctx, fake) = with_ports();
    for (spent, refused) in [(0, false), (99, false), (100, true), (5000, true)] {
        fake.spent.store(spent, Ordering::Relaxed);
        let asked = fake.seen().len();
        let answer = run(&mounted, &ctx, "ask", "m").await;
        assert_eq!(answer.contains("LIMIT"), refused, "{spent}: {answer}");
        assert_eq!(fake.seen().len() == asked, refused, "{spent}");
    }
}

#[tokio::test]
async fn a_title_is_proposed_with_what_a_model_says() {
    let title = mount().await.title().unwrap();
    let (ctx, fake) = with_ports();
    let none = title.propose(&ctx, vec![], None).await.unwrap();
    assert_eq!((none, fake.seen().len()), (None, 0));
    let prompts = vec!["p".to_owned()];
    let proposed = title.propose(&ctx, prompts, Some("now ".to_owned())).await;
    assert_eq!(proposed.unwrap().as_deref(), Some(r#"now {"type":"text"}"#));
}

#[tokio::test]
async fn giving_up_a_call_drops_the_question() {
    let title = mount().await.title().unwrap();
    let (ctx, fake) = with_ports();
    let asking = title.propose(&ctx, vec!["never".to_owned()], None);
    let cancel = async {
        while fake.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        ctx.cancel.cancel();
    };
    let (proposed, ()) = tokio::join!(asking, cancel);
    assert_eq!(proposed.unwrap_err().code(), "CANCELLED");
}

#[tokio::test]
async fn a_call_without_ports_answers_unavailable_or_traps() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    for (tool, argument) in [
        ("read", "a"),
        ("write", "a"),
        ("spill", "a"),
        ("attach", "a"),
        ("attached", "a"),
        ("picture", "a"),
        ("exec", "allowed"),
        ("append", "todo/write"),
        ("send", "{}"),
        ("kv", "k"),
    ] {
        let told = run(&mounted, &ctx, tool, argument).await;
        assert!(told.starts_with("UNAVAILABLE: "), "{tool}: {told}");
    }
    for tool in ["length", "root", "pending"] {
        let told = run(&mounted, &ctx, tool, "").await;
        assert!(told.contains("this call has none"), "{tool}: {told}");
    }
}

#[tokio::test]
async fn a_grants_parameters_bound_what_its_import_does() {
    let mut grants = all();
    grants["workspace"] = json!(true);
    let mounted = try_mount("{}", grants).await.unwrap();
    let (ctx, fake) = with_ports();
    assert_eq!(run(&mounted, &ctx, "read", "a").await, "a 0 100");
    for (tool, argument) in [
        ("write", "a"),
        ("exec", "other"),
        ("append", "goal/change"),
        ("append", "acme/seen"),
        ("append", "turn/start"),
        ("append", "user/message"),
        ("append", "assistant/message"),
        ("append", "tool/result"),
        ("append", "approval/decided"),
        ("append", "request/header"),
        ("append", "dsh/row-quarantined"),
        ("kv-profile", "k"),
    ] {
        let told = run(&mounted, &ctx, tool, argument).await;
        assert!(told.starts_with("DENIED: row prober"), "{tool}: {told}");
    }
    assert!(fake.seen().is_empty());
    assert!(
        run(&mounted, &ctx, "read-odd", "a")
            .await
            .starts_with("INVALID: 0.5")
    );
}

#[tokio::test]
async fn a_plugin_appends_the_kinds_of_its_namespace_that_its_manifest_names() {
    let manifest = json!({
        "plugin": {"name": "acme:prober", "version": "1.0.0"}, "events": {"appends": ["acme/seen"]},
    });
    let component = engine().load_bytes(guest_with(&manifest)).await.unwrap();
    let mounted = engine()
        .mount(dsh_plugin::Row {
            component,
            ..row("{}", all(), json!({})).await
        })
        .await
        .unwrap();
    let (ctx, _) = with_ports();
    assert_eq!(run(&mounted, &ctx, "append", "acme/seen").await, "7");
    assert!(
        run(&mounted, &ctx, "append", "acme/other")
            .await
            .starts_with("DENIED")
    );
    assert!(
        run(&mounted, &ctx, "about", "")
            .await
            .contains(r#""plugin":"acme:prober""#)
    );
}

#[tokio::test]
async fn a_workspace_that_was_granted_by_its_directories_is_narrowed_to_them() {
    let mut grants = all();
    grants["workspace"] = json!({"read": ["src"]});
    let mounted = try_mount("{}", grants).await.unwrap();
    let (ctx, fake) = with_ports();
    assert_eq!(run(&mounted, &ctx, "read", "a").await, "a 0 100");
    assert_eq!(fake.seen(), [r#"within ["src"]"#]);
}

#[tokio::test]
async fn a_key_of_kv_names_something_and_is_no_value() {
    let mounted = mount().await;
    let (ctx, _) = with_ports();
    let told = run(&mounted, &ctx, "kv", &"k".repeat(1025)).await;
    assert!(told.starts_with("INVALID: a key of 1025 bytes"), "{told}");
}

#[tokio::test]
async fn what_is_spilled_ends_at_the_grants_quota() {
    let mut grants = all();
    grants["spill"] = json!({"quota": 10});
    let mounted = try_mount("{}", grants).await.unwrap();
    let (ctx, _) = with_ports();
    assert_eq!(
        run(&mounted, &ctx, "spill", "1234567").await,
        "/spill/name 7"
    );
    let told = run(&mounted, &ctx, "spill", "1234").await;
    assert!(
        told.starts_with("LIMIT: row prober may keep 10 bytes"),
        "{told}"
    );
    assert_eq!(run(&mounted, &ctx, "spill", "123").await, "/spill/name 3");
}

#[tokio::test]
async fn what_is_attached_ends_at_the_grants_quota() {
    let mut grants = all();
    grants["attachments"] = json!({"quota": 10});
    let mounted = try_mount("{}", grants).await.unwrap();
    let (ctx, _) = with_ports();
    let put = async |text| run(&mounted, &ctx, "attach", text).await;
    assert!(put("1234567").await.starts_with("7 "));
    let told = put("1234").await;
    assert!(
        told.starts_with("LIMIT: row prober may attach 10 bytes"),
        "{told}"
    );
    assert!(put("123").await.starts_with("3 "));
}

#[tokio::test]
async fn h14_of_a_flood_of_messages_a_thousand_are_kept_and_each_is_cut() {
    let mounted = mount().await;
    let (ctx, fake) = with_ports();
    run(&mounted, &ctx, "chatter", "").await;
    let seen = fake.seen();
    assert_eq!(seen.len(), 1001);
    assert!(
        seen[..1000]
            .iter()
            .all(|line| line.starts_with("prober Info ") && line.len() <= 4096 + 12)
    );
    assert_eq!(
        seen[1000],
        "prober Warn 500 more messages of this call were dropped"
    );
}

#[tokio::test]
async fn a_crash_is_in_the_log_with_what_the_component_said() {
    let mounted = mount().await;
    let (ctx, fake) = with_ports();
    let told = run(&mounted, &ctx, "panic", "").await;
    assert!(told.contains("it was told to panic"), "{told}");
    assert!(
        fake.seen()
            .iter()
            .any(|line| line.starts_with("prober Error crashed in tool.run: "))
    );
}

#[tokio::test]
async fn clock_and_randomness_are_real_where_they_are_granted() {
    let mounted = mount().await;
    let ctx = CallContext::default();
    let now: f64 = run(&mounted, &ctx, "now", "").await.parse().unwrap();
    assert!(now > 1.7e12 && now.fract() == 0.0);
    let (one, other) = (
        run(&mounted, &ctx, "uuid", "").await,
        run(&mounted, &ctx, "uuid", "").await,
    );
    assert!(one.ends_with(" 16") && one != other);
}
