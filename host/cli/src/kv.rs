//! `kv` of components: which map of `$DSH_HOME/plugins/data` a call means.

use std::path::PathBuf;

use async_trait::async_trait;
use dsh_plugin::api::{PluginError, code};
use dsh_plugin::port::{Kv, KvMap, KvScope};
use dsh_profile::{Error, PluginData, PluginMap, Reach};

/// The maps of one session.
pub(crate) struct SessionKv {
    pub(crate) data: PluginData,
    pub(crate) profile: String,
    pub(crate) cwd: PathBuf,
    pub(crate) session: String,
}

impl SessionKv {
    /// Runs file work where it may wait. What a change does last is one rename,
    /// so nothing is left half done where nobody waits for it any more.
    async fn on<T: Send + 'static>(
        &self,
        map: &KvMap,
        work: impl FnOnce(PluginMap) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, PluginError> {
        let reach = match map.scope {
            KvScope::Profile => Reach::Profile,
            KvScope::Project => Reach::Project(&self.cwd),
            KvScope::Session => Reach::Session(&self.session),
        };
        let map = self.data.map(&self.profile, &map.plugin, &map.row, reach);
        let done = tokio::task::spawn_blocking(move || work(map)).await;
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                let code = match &error {
                    Error::DataFull { .. } => code::LIMIT,
                    _ => code::UNAVAILABLE,
                };
                Err(PluginError::new(code, error.to_string()))
            }
            Err(_) => Err(PluginError::unavailable("durable map any more")),
        }
    }
}

#[async_trait]
impl Kv for SessionKv {
    async fn get(&self, map: KvMap, key: &str) -> Result<Option<Vec<u8>>, PluginError> {
        let key = key.to_owned();
        self.on(&map, move |map| map.get(&key)).await
    }

    async fn set(&self, map: KvMap, key: &str, value: Vec<u8>) -> Result<(), PluginError> {
        let (key, quota) = (key.to_owned(), map.quota);
        self.on(&map, move |map| map.set(&key, value, quota)).await
    }

    async fn swap(
        &self,
        map: KvMap,
        key: &str,
        old: Option<Vec<u8>>,
        value: Vec<u8>,
    ) -> Result<bool, PluginError> {
        let (key, quota) = (key.to_owned(), map.quota);
        let swap = move |map: PluginMap| map.swap(&key, old.as_deref(), value, quota);
        self.on(&map, swap).await
    }

    async fn remove(&self, map: KvMap, key: &str) -> Result<(), PluginError> {
        let key = key.to_owned();
        self.on(&map, move |map| map.remove(&key)).await
    }

    async fn keys(&self, map: KvMap, prefix: &str) -> Result<Vec<String>, PluginError> {
        let prefix = prefix.to_owned();
        self.on(&map, move |map| map.keys(&prefix)).await
    }
}
