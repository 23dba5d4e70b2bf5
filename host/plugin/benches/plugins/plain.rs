//! The floor: plain wasmtime with the same engine configuration, the same
//! component, the same types and the same way of calling, and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{Engine, Store, StoreLimits, StoreLimitsBuilder};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package dsh:plain;
            world plain {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/work@0.1.0;
                import dsh:plugin/clock@0.1.0;
                import dsh:plugin/journal@0.1.0;
                export dsh:plugin/llm-adapter@0.1.0;
                export dsh:plugin/tool@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
            }
        ",
        world: "dsh:plain/plain",
        imports: {
            "dsh:plugin/clock.wait": async | trappable,
            "dsh:plugin/journal": async | trappable,
            default: trappable,
        },
        exports: { default: async },
    });
}

pub(crate) use bindings::dsh::plugin::types::{CallConfig, GenerateRequest};
use bindings::dsh::plugin::{clock, config, journal, log, types, work};
pub(crate) use bindings::exports::dsh::plugin::{dispatch, llm_adapter, tool};

/// A store's data.
pub(crate) struct State {
    limits: StoreLimits,
    appended: u32,
}

impl types::Host for State {}

impl log::Host for State {
    fn write(&mut self, _: log::Level, message: String) -> wasmtime::Result<()> {
        std::hint::black_box(message);
        Ok(())
    }
}

impl config::Host for State {
    fn get(&mut self) -> wasmtime::Result<String> {
        Ok("{}".to_owned())
    }

    fn about(&mut self) -> wasmtime::Result<String> {
        Ok("{}".to_owned())
    }
}

impl work::Host for State {
    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(false)
    }

    fn progress(&mut self, _: String) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<f64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Ok((now.as_secs_f64() * 1000.0).floor())
    }

    async fn wait(&mut self, _: u32) -> wasmtime::Result<Result<(), types::Error>> {
        Ok(Ok(()))
    }
}

impl journal::Host for State {
    async fn append(
        &mut self,
        events: Vec<journal::NewEvent>,
        _: Option<u32>,
    ) -> wasmtime::Result<Result<u32, types::Error>> {
        self.appended += u32::try_from(std::hint::black_box(events).len()).unwrap();
        Ok(Ok(self.appended))
    }
}

/// A component linked by plain wasmtime.
pub(crate) struct Plain {
    engine: Engine,
    pre: InstancePre<State>,
    tool: Option<tool::GuestIndices>,
    dispatch: Option<dispatch::GuestIndices>,
    adapter: llm_adapter::GuestIndices,
}

impl Plain {
    pub(crate) fn new(engine: &Engine, wasm: &[u8]) -> Self {
        Self::of(engine, &Component::new(engine, wasm).unwrap())
    }

    pub(crate) fn of(engine: &Engine, component: &Component) -> Self {
        let pre = link(engine, component);
        Self {
            engine: engine.clone(),
            tool: tool::GuestIndices::new(&pre).ok(),
            dispatch: dispatch::GuestIndices::new(&pre).ok(),
            adapter: llm_adapter::GuestIndices::new(&pre).unwrap(),
            pre,
        }
    }

    pub(crate) fn store(&self) -> Store<State> {
        let limits = StoreLimitsBuilder::new().memory_size(64 << 20).build();
        let mut store = Store::new(
            &self.engine,
            State {
                limits,
                appended: 0,
            },
        );
        store.limiter(|state| &mut state.limits);
        // Ticks are the host's; here nobody counts them.
        store.set_epoch_deadline(1 << 40);
        store
    }

    pub(crate) async fn tool(&self, store: &mut Store<State>) -> tool::Guest {
        let instance = self.pre.instantiate_async(&mut *store).await.unwrap();
        let found = self.tool.as_ref().unwrap();
        found.load(store, &instance).unwrap()
    }

    pub(crate) async fn dispatch(&self, store: &mut Store<State>) -> dispatch::Guest {
        let instance = self.pre.instantiate_async(&mut *store).await.unwrap();
        let found = self.dispatch.as_ref().unwrap();
        found.load(store, &instance).unwrap()
    }

    pub(crate) async fn adapter(&self, store: &mut Store<State>) -> llm_adapter::Guest {
        let instance = self.pre.instantiate_async(&mut *store).await.unwrap();
        self.adapter.load(store, &instance).unwrap()
    }

    /// One call of a tool on an instance of its own.
    pub(crate) async fn run(&self, name: &str, arguments: &str) -> String {
        let mut store = self.store();
        let guest = self.tool(&mut store).await;
        run(&guest, &mut store, name, arguments).await
    }
}

/// What a mount costs in plain wasmtime.
pub(crate) fn link(engine: &Engine, component: &Component) -> InstancePre<State> {
    let mut linker = Linker::<State>::new(engine);
    types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
    log::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
    config::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
    work::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
    clock::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
    journal::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
    linker.instantiate_pre(component).unwrap()
}

/// One call of a tool.
pub(crate) async fn run(
    guest: &tool::Guest,
    store: &mut Store<State>,
    name: &str,
    arguments: &str,
) -> String {
    let call = tool::Call {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        turn: 0,
        step: 0,
        more: None,
    };
    let outcome = guest.call_run(store, &call).await.unwrap();
    outcome.unwrap().content.concat()
}
