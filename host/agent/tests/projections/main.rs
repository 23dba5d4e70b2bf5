//! The official projections, as components: `cargo xtask plugins` builds them.

mod conformance;
mod estimates;
mod hostile;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use dsh_agent::projection::{ComponentUnit, Unit};
use dsh_plugin::port::Watch;
use dsh_plugin::{Component, Engine, EngineConfig, Grants, Limits, Mounted, Row};

fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors()
        .nth(2)
        .expect("host/agent lies in the checkout")
}

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        Engine::new(EngineConfig {
            cache_dir: None,
            host_version: "1".to_owned(),
            home: None,
        })
        .expect("an engine")
    })
}

fn bytes(path: &Path) -> &'static [u8] {
    let bytes = std::fs::read(path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; run `cargo xtask plugins` first",
            path.display()
        )
    });
    bytes.leak()
}

/// An official component, with the machine code that its build made.
async fn official(name: &str) -> Arc<Component> {
    let file = |end: &str| -> PathBuf {
        root()
            .join("target/components")
            .join(format!("{name}.{end}"))
    };
    let (wasm, code) = (bytes(&file("wasm")), bytes(&file("cwasm")));
    engine().load_embedded(wasm, code).await.unwrap()
}

async fn mounted(id: &str, component: Arc<Component>, config: &str) -> Mounted {
    let row = Row {
        id: id.to_owned(),
        component,
        config: config.to_owned(),
        grants: Grants::default(),
        limits: Limits::default(),
    };
    engine().mount(row).await.unwrap()
}

/// What a mounted row folds.
fn units(mounted: &Mounted, config: &str, watch: Option<Arc<dyn Watch>>) -> Vec<Arc<dyn Unit>> {
    let units = ComponentUnit::all(mounted, config, "s", watch);
    units.into_iter().map(|unit| Arc::new(unit) as _).collect()
}
