//! `dsh-floor FILE.cwasm …`: loads machine code with wasmtime and does nothing
//! with it: what a benchmark of start-up compares with.

use std::process::ExitCode;

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    match dsh_plugin::floor::load(&files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dsh-floor: {error}");
            ExitCode::FAILURE
        }
    }
}
