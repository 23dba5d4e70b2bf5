//! `$DSH_HOME`, and the directory of a profile in it.
//!
//! A profile is `profiles/NAME/`: `profile.yml` with its bundles, and
//! `cordis.patch.yml`, the person's own layer. A profile that upstream made has
//! a `package.json` instead of the first; it is read and never written. Only
//! `headless` makes itself, and nothing that exists is ever overwritten.

mod manifest;

use crate::layer::Layer;
use crate::lock::Installed;
use crate::{Error, Policy, Problem, Scope, Tree, bundle, file};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PATCH: &str = "cordis.patch.yml";
const MANIFEST: &str = "profile.yml";
/// What a profile that upstream made has in its place.
const UPSTREAM: &str = "package.json";

/// The one that makes itself on first use.
const HEADLESS: &str = "headless";

const MANIFEST_TEMPLATE: &str = "\
# The bundles that this profile starts from, in order. They bring its rows;
# what you want otherwise goes into cordis.patch.yml beside this file.
bundles: [base, headless]
";

const PATCH_TEMPLATE: &str = "\
# Your own layer of this profile: a list of patches, applied over its bundles.
# `dsh --profile NAME --dump-config` shows the rows and who set them.
#
# Change a row (its `config` is replaced whole):
#
#   - id: agent-default-model
#     config:
#       provider: deepseek-official
#       model: deepseek-v4-pro
#
# Switch one off:
#
#   - id: tool-todo
#     disabled: true
#
# Add one:
#
#   - insert:
#       - id: my-tool
#         component: ./my-tool.wasm
#         grants: {workspace: {}}
";

/// `$DSH_HOME`: where profiles, sessions, settings and credentials are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// `$DSH_HOME` (blank is unset; `~`, `~/x` and `~\x` mean the person's home;
    /// relative to `cwd`), else `~/.dsh`. Both are from the inherited environment
    /// alone, never from a `.env` file.
    ///
    /// # Errors
    /// [`Error::NoHome`] where the person's home is needed and not known.
    pub fn resolve(
        dsh_home: Option<&OsStr>,
        user_home: Option<&OsStr>,
        cwd: &Path,
    ) -> Result<Self, Error> {
        let user = || {
            user_home
                .filter(|h| !h.is_empty())
                .map(|h| cwd.join(h))
                .ok_or(Error::NoHome)
        };
        let set = dsh_home.filter(|h| h.to_str().is_none_or(|text| !text.trim().is_empty()));
        let path = match set {
            None => user()?.join(".dsh"),
            Some(set) => match set.to_str().and_then(below_tilde) {
                Some("") => user()?,
                Some(below) => user()?.join(below),
                None => cwd.join(set),
            },
        };
        Ok(Self { path })
    }

    /// The directory, absolute where `cwd` was. It need not exist yet.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The random id of this home that a provider may be told (spec/llm.md §6.3):
    /// `.anonymous-user-id`, made on first use. Where it cannot be written the id
    /// is good for one run, so ask once and keep it.
    #[must_use]
    pub fn anonymous_user_id(&self) -> String {
        let path = self.path.join(".anonymous-user-id");
        let stored = || {
            let text = file::read(&path).ok()?;
            let id = text.trim();
            let valid = id.len() == 36 && uuid::Uuid::try_parse(id).is_ok();
            valid.then(|| id.to_owned())
        };
        if let Some(id) = stored() {
            return id;
        }
        let id = uuid::Uuid::new_v4().to_string();
        let line = format!("{id}\n");
        if path.exists() {
            // Not an id: nothing of anyone's is lost.
            let _ = fs::write(&path, line);
        } else {
            let _ = fs::create_dir_all(&self.path);
            let _ = write_new(&path, &line);
        }
        // Another process may have been first.
        stored().unwrap_or(id)
    }
}

/// What follows `~`, `~/` or `~\`.
fn below_tilde(text: &str) -> Option<&str> {
    let below = text.strip_prefix('~')?;
    if below.is_empty() {
        return Some("");
    }
    below
        .strip_prefix(['/', '\\'])
        .map(|b| b.trim_start_matches(['/', '\\']))
}

/// A profile's directory, with the bundles that it lists.
#[derive(Debug, Clone)]
pub struct Profile {
    name: String,
    dir: PathBuf,
    home: PathBuf,
    bundles: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl Profile {
    /// Opens a profile. `headless` makes itself on first use.
    ///
    /// # Errors
    /// A name that no profile may have, a profile that does not exist, a manifest
    /// that cannot be read as one. A bundle that is not known is no error but a
    /// problem of the composition.
    pub fn open(home: &Home, name: &str) -> Result<Self, Error> {
        check_name(name)?;
        let dir = home.path().join("profiles").join(name);
        let own = dir.join(MANIFEST);
        if name == HEADLESS && !own.exists() && !dir.join(UPSTREAM).exists() {
            make(&dir, name)?;
        }
        Self::read(home, name)
    }

    /// Opens a profile, and makes it where there is none, so that it runs tasks as
    /// `headless` does. Also whether it was made now.
    ///
    /// # Errors
    /// As [`Profile::open`].
    pub fn open_or_make(home: &Home, name: &str) -> Result<(Self, bool), Error> {
        if let Some(found) = Self::find(home, name)? {
            return Ok((found, false));
        }
        make(&home.path().join("profiles").join(name), name)?;
        Ok((Self::open(home, name)?, true))
    }

    /// Opens a profile where there is one; makes nothing.
    ///
    /// # Errors
    /// As [`Profile::open`], but for a profile that does not exist.
    pub fn find(home: &Home, name: &str) -> Result<Option<Self>, Error> {
        match Self::read(home, name) {
            Err(Error::ProfileMissing { .. }) => Ok(None),
            read => read.map(Some),
        }
    }

    /// `headless` as it would make itself; nothing is made.
    #[must_use]
    pub fn fresh(home: &Home) -> Self {
        Self {
            name: HEADLESS.to_owned(),
            dir: home.path().join("profiles").join(HEADLESS),
            home: home.path().to_owned(),
            bundles: ["base", "headless"]
                .into_iter()
                .filter_map(bundle::canonical)
                .collect(),
            problems: Vec::new(),
        }
    }

    fn read(home: &Home, name: &str) -> Result<Self, Error> {
        check_name(name)?;
        let dir = home.path().join("profiles").join(name);
        let own = dir.join(MANIFEST);
        let upstream = dir.join(UPSTREAM);
        let listed = match (manifest::own(&own)?, name) {
            (Some(listed), _) => listed,
            (None, _) => match manifest::upstream(&upstream, name)? {
                Some(listed) => listed,
                None => {
                    let name = name.to_owned();
                    return Err(Error::ProfileMissing { name, file: own });
                }
            },
        };
        let mut profile = Self {
            name: name.to_owned(),
            dir,
            home: home.path().to_owned(),
            bundles: Vec::new(),
            problems: Vec::new(),
        };
        for listed in listed {
            match bundle::canonical(&listed) {
                Some(known) if profile.bundles.contains(&known) => {}
                Some(known) => profile.bundles.push(known),
                None => profile.problems.push(Problem {
                    row: None,
                    message: format!(
                        "profile {name}: no bundle {listed} in dsh (it has base and headless); left out"
                    ),
                }),
            }
        }
        Ok(profile)
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `$DSH_HOME` that it is in.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// What it asks of plugins.
    ///
    /// # Errors
    /// A `profile.yml` that asks for what is not known or cannot be checked.
    pub fn policy(&self) -> Result<Policy, Error> {
        Policy::read(&self.dir.join(MANIFEST))
    }

    /// All layers of `scope`, applied in one pass: bundles in order, installed
    /// plugins in the lock's order, the profile's `cordis.patch.yml`, `$DSH_HOME/cordis.patch.yml`, each `--patch` file.
    ///
    /// # Errors
    /// A layer that cannot be read as a list of patches, with its place; a
    /// `--patch` file that is missing.
    pub fn compose(&self, scope: Scope<'_>) -> Result<Tree, Error> {
        let mut layers = Vec::new();
        let (mut installed, mut problems) = (Vec::new(), self.problems.clone());
        for name in &self.bundles {
            layers.extend(bundle::layer(name)?);
        }
        if let Scope::All(patches) = scope {
            installed = self.usable(&mut problems);
            layers.extend(installed.iter().map(Layer::of_plugin));
            layers.extend(Layer::read_optional(&self.dir.join(PATCH))?);
            layers.extend(Layer::read_optional(&self.home.join(PATCH))?);
            for patch in patches {
                layers.push(Layer::read(patch)?);
            }
        }
        let mut tree = Tree::compose(layers, problems)?;
        tree.installed = installed;
        tree.profile.clone_from(&self.name);
        Ok(tree)
    }

    /// The installed plugins that may be used. Whatever is wrong with the lock, or
    /// with a plugin, costs a line and what it is about.
    fn usable(&self, problems: &mut Vec<Problem>) -> Vec<Installed> {
        let mut say = |message: String| {
            let message = for_profile(&self.name, &message);
            problems.push(Problem { row: None, message });
        };
        let lock = match self.lock() {
            Ok(lock) => lock,
            Err(error) => {
                say(format!("{error}; all installed plugins are left out"));
                return Vec::new();
            }
        };
        lock.faults().map(str::to_owned).for_each(&mut say);
        if lock.plugins.is_empty() {
            return Vec::new();
        }
        let policy = match self.policy() {
            Ok(policy) => policy,
            Err(error) => {
                say(format!("{error}; all installed plugins are left out"));
                return Vec::new();
            }
        };
        let mut plugins = lock.plugins;
        plugins.retain(|plugin| {
            let objection = policy.objection(plugin);
            if let Some(objection) = &objection
                && !plugin.disabled
            {
                say(format!("plugin {}: {objection}; left out", plugin.name));
            }
            objection.is_none()
        });
        plugins
    }
}

/// Writes the files of a new profile.
fn make(dir: &Path, name: &str) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|e| Error::io("make", dir, e))?;
    write_new(&dir.join(PATCH), &PATCH_TEMPLATE.replace("NAME", name))?;
    write_new(&dir.join(MANIFEST), MANIFEST_TEMPLATE)
}

/// A text whose commands (`dsh plugin …`) are for this profile. Without a name they
/// are for `headless`.
#[must_use]
pub fn for_profile(name: &str, text: &str) -> String {
    if name == HEADLESS {
        return text.to_owned();
    }
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name = if name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    };
    text.replace("`dsh plugin ", &format!("`dsh plugin --profile {name} "))
}

fn check_name(name: &str) -> Result<(), Error> {
    let reason = if name.trim().is_empty() {
        "it is empty"
    } else if name.contains(['/', '\\', '\0']) {
        "it must not contain / or \\"
    } else if matches!(name, "." | ".." | "node_modules") {
        "it is reserved"
    } else {
        return Ok(());
    };
    Err(Error::ProfileName {
        name: name.to_owned(),
        reason,
    })
}

/// Writes a whole file where there is none yet. Two processes may do it at once:
/// a link appears complete or not at all.
fn write_new(path: &Path, text: &str) -> Result<(), Error> {
    static DRAFTS: AtomicU32 = AtomicU32::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = path.with_extension(format!("{}-{number}.draft", std::process::id()));
    let written = fs::write(&draft, text).and_then(|()| match fs::hard_link(&draft, path) {
        // A file system without links.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => write_or_take_away(path, text),
        linked => linked,
    });
    let _ = fs::remove_file(&draft);
    match written {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(Error::io("write", path, e)),
        _ => Ok(()),
    }
}

/// On a full disk nothing is left, as a file that exists is never written again.
fn write_or_take_away(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

#[cfg(test)]
#[path = "home_tests.rs"]
mod tests;
