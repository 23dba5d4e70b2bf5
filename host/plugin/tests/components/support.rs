//! The guest, an engine, and rows to mount.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use dsh_plugin::api::ToolCall;
use dsh_plugin::{
    CallContext, Component, Engine, EngineConfig, Error, Grants, Limits, Mounted, Row,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::prober;

/// The guest's bytes, built once for all tests.
pub(crate) fn guest() -> &'static [u8] {
    static GUEST: OnceLock<Vec<u8>> = OnceLock::new();
    GUEST.get_or_init(|| {
        let file = prober::file(Path::new(env!("CARGO_MANIFEST_DIR")));
        std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    })
}

/// The guest with a manifest.
pub(crate) fn guest_with(manifest: &Value) -> Vec<u8> {
    with_section(guest(), "dsh:manifest", manifest.to_string().as_bytes())
}

/// A component with one more custom section.
pub(crate) fn with_section(component: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut body = vec![];
    leb128(&mut body, name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    let mut whole = component.to_vec();
    whole.push(0);
    leb128(&mut whole, body.len());
    whole.extend(body);
    whole
}

fn leb128(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
}

pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(new_engine)
}

pub(crate) fn new_engine() -> Engine {
    Engine::new(EngineConfig {
        cache_dir: None,
        host_version: "9.9.9".to_owned(),
        home: None,
    })
    .unwrap()
}

pub(crate) fn engine_in(cache: &Path) -> Engine {
    Engine::new(EngineConfig {
        cache_dir: Some(cache.to_owned()),
        host_version: "9.9.9".to_owned(),
        home: None,
    })
    .unwrap()
}

pub(crate) async fn component() -> Arc<Component> {
    static COMPONENT: OnceCell<Arc<Component>> = OnceCell::const_new();
    let load = || async { engine().load_bytes(guest().to_vec()).await.unwrap() };
    Arc::clone(COMPONENT.get_or_init(load).await)
}

/// All that the guest imports and exports.
pub(crate) fn all() -> Value {
    json!({
        "clock": true, "random": true, "session": true, "journal": ["todo/write"], "workspace": {"write": true},
        "inbox": {"wake": 2}, "kv": {"scopes": ["session"]}, "spill": true, "attachments": true, "pictures": true, "llm": {"tokens": 100}, "process": ["allowed"], "route": {"provider": "prober"}, "decide": ["agent/pre-step", "test/e", "test/panic"],
    })
}

pub(crate) async fn row(config: &str, grants: Value, limits: Value) -> Row {
    let component = component().await;
    Row {
        id: "prober".to_owned(),
        limits: Limits::of(&component, &limits).unwrap(),
        component,
        config: config.to_owned(),
        grants: Grants::parse(&grants).unwrap(),
    }
}

pub(crate) async fn try_mount(config: &str, grants: Value) -> Result<Mounted, Error> {
    engine().mount(row(config, grants, json!({})).await).await
}

/// The guest with all grants and these limits.
pub(crate) async fn mount_with(limits: Value) -> Mounted {
    engine()
        .mount(row("{}", all(), limits).await)
        .await
        .unwrap()
}

pub(crate) async fn mount() -> Mounted {
    mount_with(json!({})).await
}

pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        turn: 0,
        step: 0,
        more: None,
    }
}

/// Calls a tool and gives back its text, or its error's.
pub(crate) async fn run(
    mounted: &Mounted,
    ctx: &CallContext,
    name: &str,
    arguments: &str,
) -> String {
    match mounted.call_tool(ctx, call(name, arguments)).await {
        Ok(outcome) => outcome.content.concat(),
        Err(error) => error.to_string(),
    }
}

/// A component of WebAssembly text.
pub(crate) async fn load_text(engine: &Engine, text: &str) -> Result<Arc<Component>, Error> {
    engine.load_bytes(wat::parse_str(text).unwrap()).await
}

/// Mounts a component of text that needs no grant.
pub(crate) async fn mount_text(text: &str, limits: Value) -> Result<Mounted, Error> {
    let component = load_text(engine(), text).await?;
    let limits = Limits::of(&component, &limits).unwrap();
    let row = Row {
        id: "text".to_owned(),
        component,
        config: "{}".to_owned(),
        grants: Grants::none(),
        limits,
    };
    engine().mount(row).await
}
