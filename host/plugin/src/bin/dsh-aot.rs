//! `dsh-aot IN.wasm OUT.cwasm`: machine code of a component, for the build to
//! embed beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        eprintln!("usage: dsh-aot IN.wasm OUT.cwasm");
        return ExitCode::FAILURE;
    };
    let made = std::fs::read(from)
        .map_err(|error| error.to_string())
        .and_then(|wasm| dsh_plugin::Engine::precompile(&wasm).map_err(|error| error.to_string()))
        .and_then(|code| std::fs::write(to, code).map_err(|error| error.to_string()));
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dsh-aot: {} to {}: {error}", from.display(), to.display());
            ExitCode::FAILURE
        }
    }
}
