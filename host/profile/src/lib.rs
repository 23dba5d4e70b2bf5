//! What a profile is made of, and how its layers become rows.
//!
//! A profile is a list of *rows*. A row mounts one thing: a component, or a
//! part of the host under a name that a person can configure and switch off.
//! Rows come from *layers*: the bundles that ship inside this crate
//! (`profiles/*.yml`), then the plugins that the profile has installed, then the
//! person's patch files. One function applies all
//! layers in one pass ([`Profile::compose`] gives the [`Tree`]); the dump prints
//! that tree ([`Tree::dump`]), and [`Tree::rows`] evaluates it into what the
//! host mounts ([`Composition`]).
//!
//! Installed plugins stand in a profile's [`Lock`], their bytes in [`Packages`].
//! Whether one may be installed is decided by [`admit()`], over what [`signature`]
//! verified and what the profile asks ([`Policy`]); a [`Change`] puts it in place,
//! and may be stopped anywhere.
//!
//! Beside the rows stand the things that feed them: `$DSH_HOME` and its
//! profile directories ([`Home`], [`Profile`]), the layered environment
//! ([`Environment`]), the settings document ([`Settings`]), the credentials
//! ([`CredentialStore`]), and the launcher's argument grammar ([`launch`]).
//!
//! Promises: nothing here prints, mounts, or speaks to the network; nothing that
//! exists in `$DSH_HOME` is overwritten; a row that cannot be used is left out
//! and named in [`Composition::problems`], while a file that cannot be read as
//! what it claims to be is an [`Error`] with its place; no `Debug` output holds
//! a secret.

#![forbid(unsafe_code)]

mod admit;
mod bundle;
mod change;
mod check;
mod credentials;
mod data;
mod disk;
mod entry;
mod environment;
mod error;
mod evaluate;
mod expression;
mod file;
mod home;
pub mod launch;
mod layer;
mod lock;
mod packages;
mod plugin_layer;
mod policy;
mod providers;
mod route;
mod row;
mod script;
mod settings;
mod shape;
pub mod signature;
mod tree;
mod yaml;

pub use admit::{Admitted, Candidate, Refusal, Terms, admit};
pub use change::Change;
pub use check::{check_home, check_installed};
pub use credentials::{Changed, CredentialFile, CredentialStore, Secret};
pub use data::{PluginData, PluginMap, Reach};
pub use environment::{Environment, Source};
pub use error::Error;
pub use evaluate::Inputs;
pub use home::{Home, Profile, for_profile};
pub use lock::{Damaged, Installed, Lock, LockedRow, Pin, is_digest, is_plugin_name, is_row_id};
pub use packages::{Packages, Swept, digest};
pub use policy::Policy;
pub use providers::Unserved;
pub use row::{Composition, Endpoint, Implementation, Problem, Row};
pub use settings::Settings;
pub use signature::Signed;
pub use tree::{Scope, Tree, Warning};
