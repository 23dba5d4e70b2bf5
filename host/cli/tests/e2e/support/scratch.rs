//! A home and a workspace that nothing else uses.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::run::Dsh;

/// Gone when it is dropped.
pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Outside `/tmp`, which a sandbox may write to or replace.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("e2e-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .expect("a scratch folder can be made in the target directory");
        for name in ["work", "user"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// `$DSH_HOME`; `dsh` makes it.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The working directory.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// `$HOME`, which is not `$DSH_HOME`.
    pub(crate) fn user(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        put(&self.work().join(path), text)
    }

    /// Writes a file of the home.
    pub(crate) fn write_home(&self, path: &str, text: &str) -> PathBuf {
        put(&self.home().join(path), text)
    }

    /// Writes a file beside both.
    pub(crate) fn write_beside(&self, path: &str, text: &str) -> PathBuf {
        put(&self.folder.path().join(path), text)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.work().join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// A `dsh` in this place, with no environment but what it needs.
    pub(crate) fn dsh(&self) -> Dsh {
        Dsh::new(self)
    }

    /// A patch that makes the scripted model the default one, and this its script.
    pub(crate) fn script(&self, script: &Value) -> PathBuf {
        let file = self.write_beside("script.json", &script.to_string());
        let file = Value::from(file.to_string_lossy());
        self.write_beside(
            "scripted.yml",
            &format!(
                "- id: agent-default-model\n  config: {{provider: scripted, model: script}}\n\
                 - id: llm-scripted\n  config: {{scriptFile: {file}}}\n"
            ),
        )
    }
}

fn put(path: &Path, text: &str) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_owned()
}

/// The root of the checkout. Asked for at run time, since a target directory may
/// be shared by several checkouts.
pub(crate) fn root() -> PathBuf {
    let cli = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    Path::new(&cli)
        .ancestors()
        .nth(2)
        .expect("host/cli lies in the checkout")
        .to_owned()
}
