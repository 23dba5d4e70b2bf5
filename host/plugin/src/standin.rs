//! What a component's toolchain imports unasked: WASI.
//!
//! CPython, JavaScript engines, Go and Rust's `wasm32-wasip2` import files,
//! sockets, an environment, clocks and randomness whether a program uses them or
//! not. None of that is a grant's to give by default, and refusing the component
//! for it would refuse most languages. So every `wasi:*` import of version 0.2 is
//! met by something that is there and gives nothing away: files, sockets and the
//! environment answer with their own errors, or that there are none; clocks
//! stand at the time of the session's newest event; random bytes come of the
//! session, the row and the call. What an ungranted component does with them
//! depends on nothing else, so that it is deterministic rather than broken. What
//! it writes to stdout and stderr goes to `log`.
//!
//! Three grants make them real: `clock`, `random`, `env` with names, and `dir`
//! with folders, each not before the component works ([`Phase::Work`]; time also
//! while it translates), since what it offers must depend on its configuration
//! alone. Requests have no grant of WASI's yet: `wasi:http` is met by functions
//! that trap when they are called, so that an engine which could send but does
//! not runs.
//!
//! Only what a component imports is linked, and its state is made when it is first
//! touched: a component without WASI pays for an empty pointer.
//!
//! [`Phase::Work`]: crate::capability::Phase

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random, sockets};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_io::IoView;

use crate::call::CallContext;
use crate::capability::Phase;
use crate::component::Interface;
use crate::instance::State;

mod absent;
mod clock;
mod console;
mod folders;
mod opening;
mod random_bytes;

pub(crate) use folders::{Folder, open as open_folders};

use clock::Standing;
use console::{Console, Pipe};
use random_bytes::Generator;

/// The packages of WASI 0.2 that are met.
const PACKAGES: [&str; 7] = [
    "cli",
    "clocks",
    "filesystem",
    "http",
    "io",
    "random",
    "sockets",
];

/// `package` and `interface` of a WASI import of version 0.2.
fn parts(import: &Interface) -> Option<(&str, &str)> {
    let (path, version) = import.name().strip_prefix("wasi:")?.split_once('@')?;
    let patch = version.strip_prefix("0.2.")?;
    let sound = !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit());
    let (package, interface) = path.split_once('/')?;
    (sound && PACKAGES.contains(&package)).then_some((package, interface))
}

/// Whether an import is met without a grant.
pub(crate) fn meets(import: &Interface) -> bool {
    parts(import).is_some()
}

/// Links stand-ins for what one component imports.
#[derive(Default)]
pub(crate) struct StandIns {
    /// By package and interface: two patch versions of one are one.
    linked: HashSet<String>,
}

impl StandIns {
    /// Links one import, for which [`meets`] holds.
    pub(crate) fn link(
        &mut self,
        linker: &mut Linker<State>,
        import: &Interface,
        component: &wasmtime::component::Component,
    ) -> wasmtime::Result<()> {
        use wasmtime_wasi::cli::WasiCli;
        use wasmtime_wasi::filesystem::WasiFilesystem;
        use wasmtime_wasi::sockets::WasiSockets;

        let Some((package, interface)) = parts(import) else {
            return Ok(());
        };
        let name = match (package, interface) {
            // All of it together.
            ("io", "error" | "poll" | "streams") => "io".to_owned(),
            _ => format!("{package}/{interface}"),
        };
        if !self.linked.insert(name.clone()) {
            return Ok(());
        }
        type Own = HasSelf<State>;
        let own: fn(&mut State) -> &mut State = |state| state;
        let l = linker;
        match name.as_str() {
            "io" => wasmtime_wasi_io::add_to_linker_async(l),
            "clocks/wall-clock" => clocks::wall_clock::add_to_linker::<_, Own>(l, own),
            "clocks/monotonic-clock" => clocks::monotonic_clock::add_to_linker::<_, Own>(l, own),
            "random/random" => random::random::add_to_linker::<_, Own>(l, own),
            "random/insecure" => random::insecure::add_to_linker::<_, Own>(l, own),
            "random/insecure-seed" => random::insecure_seed::add_to_linker::<_, Own>(l, own),
            "cli/environment" => cli::environment::add_to_linker::<_, Own>(l, own),
            "cli/exit" => cli::exit::add_to_linker::<_, Own>(l, own),
            "cli/stdin" => cli::stdin::add_to_linker::<_, WasiCli>(l, State::cli_counted),
            "cli/stdout" => cli::stdout::add_to_linker::<_, WasiCli>(l, State::cli_counted),
            "cli/stderr" => cli::stderr::add_to_linker::<_, WasiCli>(l, State::cli_counted),
            "cli/terminal-input" => {
                cli::terminal_input::add_to_linker::<_, WasiCli>(l, State::cli_counted)
            }
            "cli/terminal-output" => {
                cli::terminal_output::add_to_linker::<_, WasiCli>(l, State::cli_counted)
            }
            "cli/terminal-stdin" => {
                cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, State::cli_counted)
            }
            "cli/terminal-stdout" => {
                cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, State::cli_counted)
            }
            "cli/terminal-stderr" => {
                cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, State::cli_counted)
            }
            "filesystem/types" => opening::link(l),
            "filesystem/preopens" => {
                filesystem::preopens::add_to_linker::<_, WasiFilesystem>(l, State::files_counted)
            }
            "sockets/network" => sockets::network::add_to_linker::<_, WasiSockets>(
                l,
                &sockets::network::LinkOptions::default(),
                State::sockets_counted,
            ),
            "sockets/instance-network" => {
                sockets::instance_network::add_to_linker::<_, WasiSockets>(
                    l,
                    State::sockets_counted,
                )
            }
            "sockets/tcp" => {
                sockets::tcp::add_to_linker::<_, WasiSockets>(l, State::sockets_counted)
            }
            "sockets/tcp-create-socket" => sockets::tcp_create_socket::add_to_linker::<
                _,
                WasiSockets,
            >(l, State::sockets_counted),
            "sockets/udp" => {
                sockets::udp::add_to_linker::<_, WasiSockets>(l, State::sockets_counted)
            }
            "sockets/udp-create-socket" => sockets::udp_create_socket::add_to_linker::<
                _,
                WasiSockets,
            >(l, State::sockets_counted),
            "sockets/ip-name-lookup" => {
                sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(l, State::sockets_counted)
            }
            // Requests, and what a later 0.2 may add.
            _ => absent::link(l, import.name(), component),
        }
    }
}

/// What stand-ins keep of an instance.
pub(crate) struct Wasi {
    /// Behind a lock for being shared between threads, which it never is at once.
    held: Mutex<Held>,
    console: Arc<Mutex<Console>>,
    clock: Arc<Standing>,
    random: Generator,
}

struct Held {
    ctx: WasiCtx,
    table: ResourceTable,
}

impl Wasi {
    fn new(state: &State) -> Self {
        let row = &state.row;
        let console = Console::new(&row.id, &state.ctx, row.limits.log_lines);
        let console = Arc::new(Mutex::new(console));
        let mut builder = WasiCtx::builder();
        builder
            .stdout(Pipe::stdout(&console))
            .stderr(Pipe::stderr(&console));
        if state.phase >= Phase::Work {
            for folder in &row.folders {
                let perms = if folder.write {
                    FsPerms::ReadWrite
                } else {
                    FsPerms::ReadOnly
                };
                // It is held open: what goes wrong now is the machine's running
                // out of something, and the component sees no folder.
                if let Err(error) = builder.preopened_dir(folder.held(), &folder.path, perms) {
                    let said = format!("cannot open the folder {}: {error:#}", folder.path);
                    state.log(crate::port::Level::Warn, &said);
                }
            }
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(row.limits.handles).unwrap_or(usize::MAX));
        Self {
            held: Mutex::new(Held {
                ctx: builder.build(),
                table,
            }),
            console,
            clock: Arc::default(),
            random: Generator::new(&row.id, state.ctx.seed),
        }
    }

    /// Another call begins on the instance.
    pub(crate) fn begin(&mut self, row: &str, ctx: &CallContext, lines: u64) {
        self.random = Generator::new(row, ctx.seed);
        self.console().begin(ctx, lines);
    }

    /// What is left of a call's lines is written; how many were dropped.
    pub(crate) fn close(&self) -> u64 {
        self.console().close()
    }

    /// What it last wrote to stderr, on one line.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.console().last_words()
    }

    fn held(&mut self) -> &mut Held {
        self.held.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&mut self) -> &mut ResourceTable {
        &mut self.held().table
    }

    fn console(&self) -> std::sync::MutexGuard<'_, Console> {
        self.console.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The stand-ins' own, made when it is first needed. Every call of one comes
    /// through here, and is counted; the bound is looked at once a tick.
    fn standing(&mut self) -> &mut Wasi {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.wasi.is_none() {
            self.wasi = Some(Box::new(Wasi::new(self)));
        }
        self.wasi.as_mut().expect("it was made just now")
    }

    fn cli_counted(&mut self) -> wasmtime_wasi::cli::WasiCliCtxView<'_> {
        wasmtime_wasi::cli::WasiCliView::cli(self)
    }

    fn files_counted(&mut self) -> wasmtime_wasi::filesystem::WasiFilesystemCtxView<'_> {
        wasmtime_wasi::filesystem::WasiFilesystemView::filesystem(self)
    }

    fn sockets_counted(&mut self) -> wasmtime_wasi::sockets::WasiSocketsCtxView<'_> {
        wasmtime_wasi::sockets::WasiSocketsView::sockets(self)
    }
}

impl IoView for State {
    fn table(&mut self) -> &mut ResourceTable {
        self.standing().table()
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Held { ctx, table } = self.standing().held();
        WasiCtxView { ctx, table }
    }
}

#[cfg(test)]
#[path = "standin_tests.rs"]
mod tests;
