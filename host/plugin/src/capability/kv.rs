//! `kv`: a small durable map of the row's own. Granted by `kv`, with its quota
//! and its scopes. A translator may use it too (`wit/host.wit`).

use std::sync::Arc;

use super::Phase;
use crate::api::{PluginError, code};
use crate::contract::v0_1::{kv, types};
use crate::instance::State;
use crate::port::{Kv, KvMap, KvScope};

super::capability!(kv, "kv");

/// Bytes of a key: it names something, it is no value.
const KEY: usize = 1 << 10;

/// A map, and what is behind it.
type Place = (Arc<dyn Kv>, KvMap);

type Answer<T> = wasmtime::Result<Result<T, types::Error>>;

impl State {
    /// The port, and the map that the row means, if it may.
    fn map(
        &self,
        function: &'static str,
        scope: kv::Scope,
        key: &str,
        value: usize,
    ) -> wasmtime::Result<Result<Place, PluginError>> {
        self.require(Phase::Translate, function)?;
        self.takes(key.len() + value)?;
        let scope = match scope {
            kv::Scope::Profile => KvScope::Profile,
            kv::Scope::Project => KvScope::Project,
            kv::Scope::Session => KvScope::Session,
        };
        let grant = &self.row.grants.kv;
        if !grant.scopes.contains(&scope) {
            let message = format!(
                "row {} may not use the scope {}: its grant `kv` must name it in `scopes`",
                self.row.id,
                scope.as_str()
            );
            return Ok(Err(PluginError::new(code::DENIED, message)));
        }
        if key.len() > KEY {
            let message = format!("a key of {} bytes, and {KEY} are allowed", key.len());
            return Ok(Err(PluginError::new(code::INVALID, message)));
        }
        let Some(port) = self.ctx.ports.kv.clone() else {
            return Ok(Err(PluginError::unavailable("durable map")));
        };
        let map = KvMap {
            plugin: self.row.plugin.clone(),
            row: self.row.id.clone(),
            scope,
            quota: grant.quota,
        };
        Ok(Ok((port, map)))
    }
}

macro_rules! map {
    ($map:expr) => {
        match $map? {
            Ok(map) => map,
            Err(error) => return Ok(Err(error.into())),
        }
    };
}

impl kv::Host for State {
    async fn get(&mut self, scope: kv::Scope, key: String) -> Answer<Option<Vec<u8>>> {
        let (port, map) = map!(self.map("kv.get", scope, &key, 0));
        Ok(self.answer(port.get(map, &key)).await.map_err(Into::into))
    }

    async fn set(&mut self, scope: kv::Scope, key: String, value: Vec<u8>) -> Answer<()> {
        let (port, map) = map!(self.map("kv.set", scope, &key, value.len()));
        let done = self.answer(port.set(map, &key, value)).await;
        Ok(done.map_err(Into::into))
    }

    async fn swap(
        &mut self,
        scope: kv::Scope,
        key: String,
        old: Option<Vec<u8>>,
        value: Vec<u8>,
    ) -> Answer<bool> {
        let bytes = old.as_ref().map_or(0, Vec::len) + value.len();
        let (port, map) = map!(self.map("kv.swap", scope, &key, bytes));
        let done = self.answer(port.swap(map, &key, old, value)).await;
        Ok(done.map_err(Into::into))
    }

    async fn remove(&mut self, scope: kv::Scope, key: String) -> Answer<()> {
        let (port, map) = map!(self.map("kv.remove", scope, &key, 0));
        let done = self.answer(port.remove(map, &key)).await;
        Ok(done.map_err(Into::into))
    }

    async fn keys(&mut self, scope: kv::Scope, prefix: String) -> Answer<Vec<String>> {
        let (port, map) = map!(self.map("kv.keys", scope, &prefix, 0));
        Ok(self
            .answer(port.keys(map, &prefix))
            .await
            .map_err(Into::into))
    }
}
