use std::path::PathBuf;

/// Why a profile, or something that feeds it, cannot be used. Each message is
/// one line that says what was tried, on what, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `DSH_HOME` nor a home directory is known.
    #[error("no home directory: set DSH_HOME to the directory that dsh may use")]
    NoHome,
    /// A file or directory cannot be read or made.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried, as a verb: `read`, `make`, `write`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file is not the YAML (or JSON) document that it has to be.
    #[error("{path}:{line}: {message}", path = path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// 1-based line.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// An item of a patch file has the wrong shape (spec/cli.md §2.3).
    #[error("{layer}:{line}: item {item}: {message}")]
    Item {
        /// The layer's label: the bundle's name or the file's path.
        layer: String,
        /// 1-based position in the file's list.
        item: usize,
        /// 1-based line.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Two rows carry one id.
    #[error(
        "duplicate loader entry id: {id} (from {first} and from {second}); give one of the two rows another id"
    )]
    DuplicateRow {
        /// The id.
        id: String,
        /// Label of the layer that the first comes from.
        first: String,
        /// Label of the layer that the second comes from.
        second: String,
    },
    /// Not a name that a profile may have (spec/cli.md §1.5).
    #[error("{name:?} is not a profile's name: {reason}")]
    ProfileName {
        /// The name as given.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// There is no such profile, and it is none that makes itself.
    #[error("profile {name:?} does not exist; make {file} with the line `bundles: [base, headless]`, or use --profile headless", file = file.display())]
    ProfileMissing {
        /// The profile's name.
        name: String,
        /// The manifest that would make it exist.
        file: PathBuf,
    },
    /// A `.env` file sets a name that only the inherited environment may set
    /// (spec/cli.md §1.3).
    #[error("{path} sets {name}, which decides how dsh itself starts and is taken from the inherited environment only; remove the line and export it in the shell instead", path = path.display())]
    Bootstrap {
        /// The file.
        path: PathBuf,
        /// The variable.
        name: String,
    },
    /// The credentials document may be read by others than its owner.
    #[error("{path} is readable by others (mode {mode:03o}); run: chmod 600 {path}", path = path.display())]
    CredentialsMode {
        /// The document.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Not a name that a credential reference may have.
    #[error(
        "{0:?} is not the name of a credential: letters, digits and _ are allowed, not starting with a digit"
    )]
    CredentialName(String),
    /// The inherited environment gives this credential, and would go on winning over what is written.
    #[error(
        "{0} is set in the environment that dsh was started from, which wins over .credentials.yaml; unset it there first (unset {0}), or change it there"
    )]
    CredentialInherited(String),
    /// Another process holds the document's lock, or died with it.
    #[error("{path} is there: another process is changing the credentials, or one died while it did; if none runs: rm {path}", path = .0.display())]
    CredentialsBusy(PathBuf),
    /// The document is a link, which a change would replace by a file.
    #[error("{path} is a symbolic link, and dsh does not write through one; change the file that it leads to, or put a file in its place", path = .0.display())]
    CredentialsLink(PathBuf),
    /// The document is laid out so that one name cannot be changed alone.
    #[error("{path} is laid out in a way in which {name} cannot be changed without changing more; change it by hand: a line `  {name}: …` below `refs:`", path = path.display())]
    CredentialsLayout {
        /// The document.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// The lock cannot hold what it should.
    #[error("dsh.lock cannot hold plugin {plugin}: {reason}")]
    Unlockable {
        /// The plugin's name.
        plugin: String,
        /// What of it, and why.
        reason: String,
    },
    /// Another process is changing what this one would change.
    #[error("{path} is held by {holder}, which is changing plugins; wait until it is done, or end it", path = path.display())]
    Busy {
        /// The file that is locked.
        path: PathBuf,
        /// As it says of itself.
        holder: String,
    },
    /// The bytes of an installed plugin are not there.
    #[error("the package {path} is missing", path = path.display())]
    PackageMissing {
        /// Where they would be.
        path: PathBuf,
    },
    /// The bytes of an installed plugin are not those that were installed.
    #[error("the package {path} is damaged: its digest is {found}, and {expected} is expected", path = path.display())]
    PackageDamaged {
        /// Where they are.
        path: PathBuf,
        /// What the lock pins.
        expected: String,
        /// What is there.
        found: String,
    },
    /// What a plugin kept is not what it wrote.
    #[error("{path}, where a plugin keeps its data, is damaged; remove it, and what the plugin kept there with it", path = path.display())]
    DataDamaged {
        /// The map's file.
        path: PathBuf,
    },
    /// A plugin would keep more than it may.
    #[error("{path} would hold {needed} bytes, and the grant `kv` allows {quota}", path = path.display())]
    DataFull {
        /// The map's file.
        path: PathBuf,
        /// Bytes of all keys and values.
        needed: u64,
        /// Bytes allowed.
        quota: u64,
    },
    /// Not a minisign public key.
    #[error("this is not a minisign public key: {reason}")]
    Key {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// Not a signature, or not the one that is expected.
    #[error("the signature cannot be accepted: {reason}")]
    Signature {
        /// Why.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: std::io::Error,
    ) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source,
        }
    }
}
