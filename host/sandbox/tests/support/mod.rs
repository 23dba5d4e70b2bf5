//! A home, a workspace and a place outside, none of them below `/tmp`, which
//! the sandbox opens; and every runner that this machine has.

#![allow(dead_code, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_plugin::port::{Command, Output};
use dsh_sandbox::{
    Error, Escalation, Mode, OutputSink, RunnerKind, Sandbox, SandboxConfig, SessionConfig,
    SessionSandbox, Unguarded,
};

pub struct World {
    temp: tempfile::TempDir,
    pub base: PathBuf,
    pub kind: RunnerKind,
    pub root: PathBuf,
    pub env: Vec<(String, String)>,
    pub escalation: Option<Arc<dyn Escalation>>,
    pub output: Option<Arc<dyn OutputSink>>,
}

impl World {
    pub fn new(kind: RunnerKind) -> Self {
        let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let base = temp.path().canonicalize().unwrap();
        for dir in [
            "home/cache",
            "home/profiles/p",
            "home/storages",
            "work",
            "out",
            "ostemp",
        ] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        for (file, content) in [
            ("home/.credentials.yaml", "sesame"),
            ("home/.env", "sesame"),
            ("home/cache/key", "sesame"),
            ("home/storages/session_projcache.json", "sesame"),
            ("home/profiles/p/dsh.lock", "sesame"),
            ("home/settings.yaml", "plain"),
            ("out/file", "outside"),
        ] {
            std::fs::write(base.join(file), content).unwrap();
        }
        let root = base.join("work");
        World {
            temp,
            base,
            kind,
            root,
            env: Vec::new(),
            escalation: None,
            output: None,
        }
    }

    pub fn sandbox(&self) -> Sandbox {
        Sandbox::new(self.config())
    }

    pub fn config(&self) -> SandboxConfig {
        SandboxConfig {
            dsh_home: self.base.join("home"),
            temp_dir: self.base.join("ostemp"),
            helper: env!("CARGO_BIN_EXE_sandbox-helper").into(),
            force: Some(self.kind),
            guard_home: true,
            inherited_env: std::env::vars_os().collect(),
        }
    }

    pub fn session(&self, mode: Mode) -> SessionSandbox {
        self.session_in(&self.sandbox(), mode)
    }

    pub fn session_in(&self, sandbox: &Sandbox, mode: Mode) -> SessionSandbox {
        sandbox.session(SessionConfig {
            session_id: "session-1".to_owned(),
            root: self.root.clone(),
            mode: Arc::new(move || mode),
            env: self.env.clone(),
            policy: Arc::new(Unguarded),
            escalation: self.escalation.clone(),
            output: self.output.clone(),
        })
    }

    pub async fn bash(&self, mode: Mode, script: impl AsRef<str>) -> Result<Output, Error> {
        self.session(mode).run_in(mode, bash(script.as_ref())).await
    }

    pub fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.base.join(path)).ok()
    }

    pub fn path(&self, path: &str) -> String {
        self.base.join(path).to_str().unwrap().to_owned()
    }
}

pub fn bash(script: &str) -> Command {
    Command {
        program: "bash".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        cwd: None,
        env: Vec::new(),
        stdin: None,
        timeout_ms: Some(60_000),
        max_output: 64_000,
        more: None,
    }
}

/// The runners of this machine; says which it has not, and why.
pub fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for kind in [RunnerKind::Bwrap, RunnerKind::Landlock] {
        let world = World::new(kind);
        match world.sandbox().runner() {
            Ok(_) => worlds.push(world),
            Err(error) => eprintln!("skipped under {}: {error}", kind.as_str()),
        }
    }
    worlds
}

pub fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Processes whose arguments hold this word, seen from outside.
pub fn processes(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|arg| arg == word.as_bytes())
        })
        .count()
}

/// Waits for a condition; a test that waits in vain fails after a minute.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < patience, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
