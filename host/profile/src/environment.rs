//! The environment in its layers, frozen at start (spec/cli.md §1.3).
//!
//! A `.env` file adds what the inherited environment does not set and may never
//! decide how `dsh` itself, the loader or a child's interpreter starts: a file in
//! a cloned repository that sets such a name stops the start instead of being
//! half-obeyed. Every value keeps its layer, so that a consumer can refuse one
//! from the project.

mod dotenv;

use crate::{Error, file};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

/// The layer that a value comes from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The inherited environment.
    Process,
    /// `.credentials.yaml` (credentials only, never the environment).
    File,
    /// `<cwd>/.env`.
    ProjectEnv,
    /// `$DSH_HOME/.env`.
    UserEnv,
}

impl Source {
    /// As upstream spells it: `env`, `file`, `project-env`, `user-env`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "env",
            Self::File => "file",
            Self::ProjectEnv => "project-env",
            Self::UserEnv => "user-env",
        }
    }
}

type Variables = BTreeMap<String, String>;

/// A frozen snapshot of the environment in its layers. `Debug` shows names, no values.
#[derive(Clone, Default)]
pub struct Environment {
    process: Variables,
    project: Variables,
    user: Variables,
    warnings: Vec<String>,
}

impl Environment {
    /// Of the inherited variables alone. What is not Unicode is left out.
    pub fn process(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let process = variables
            .into_iter()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect();
        Self {
            process,
            ..Self::default()
        }
    }

    /// Adds `<cwd>/.env` and `<home>/.env`; the second is skipped where the two are one
    /// directory. A missing file is fine, an unreadable one is a line in
    /// [`Environment::warnings`].
    ///
    /// # Errors
    /// [`Error::Bootstrap`] for a name that only the inherited environment may set.
    pub fn with_files(mut self, cwd: &Path, home: &Path) -> Result<Self, Error> {
        self.project = self.read(&cwd.join(".env"))?;
        let one = cwd == home
            || matches!((cwd.canonicalize(), home.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if !one {
            self.user = self.read(&home.join(".env"))?;
        }
        Ok(self)
    }

    fn read(&mut self, path: &Path) -> Result<Variables, Error> {
        let text = match file::read_optional(path) {
            Ok(None) => return Ok(Variables::new()),
            Ok(Some(text)) => text,
            Err(error) => {
                self.warnings
                    .push(format!("{error}; its variables are not used"));
                return Ok(Variables::new());
            }
        };
        let variables = dotenv::parse(&text);
        match variables.keys().find(|name| bootstrap_only(name)) {
            Some(name) => Err(Error::Bootstrap {
                path: path.to_owned(),
                name: name.clone(),
            }),
            None => Ok(variables),
        }
    }

    /// The value that wins: inherited, then project, then user.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_in(self.source(name)?, name)
    }

    /// The value of one layer alone.
    #[must_use]
    pub fn get_in(&self, source: Source, name: &str) -> Option<&str> {
        let layer = match source {
            Source::Process => &self.process,
            Source::ProjectEnv => &self.project,
            Source::UserEnv => &self.user,
            Source::File => return None,
        };
        layer.get(name).map(String::as_str)
    }

    /// The layer that [`Environment::get`] takes the value from.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<Source> {
        [Source::Process, Source::ProjectEnv, Source::UserEnv]
            .into_iter()
            .find(|s| self.get_in(*s, name).is_some())
    }

    /// A line for each `.env` file that is there but cannot be read.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("process", &self.process.len())
            .field("project", &self.project.keys())
            .field("user", &self.user.keys())
            .field("warnings", &self.warnings)
            .finish()
    }
}

/// Whether only the inherited environment may set it; compared without case.
fn bootstrap_only(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["DSH_", "XDG_", "DYLD_", "BASH_FUNC_"];
    const NAMES: &str = "PATH HOME USERPROFILE SHELL NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS LD_PRELOAD \
        LD_LIBRARY_PATH LD_AUDIT BASH_ENV ENV SHELLOPTS BASHOPTS PERL5OPT PERL5LIB PYTHONSTARTUP PYTHONPATH \
        PYTHONHOME RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS GIT_SSH GIT_SSH_COMMAND \
        GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_ASKPASS SSH_ASKPASS GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM \
        GIT_CONFIG_COUNT EDITOR VISUAL PAGER BROWSER DEEPSEEK_BASE_URL DEEPSEEK_SEARCH_BASE_URL SSL_CERT_FILE \
        SSL_CERT_DIR HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY REQUESTS_CA_BUNDLE CURL_CA_BUNDLE \
        NODE_TLS_REJECT_UNAUTHORIZED";
    let name = name.to_ascii_uppercase();
    PREFIXES.iter().any(|p| name.starts_with(p)) || NAMES.split_whitespace().any(|n| n == name)
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
