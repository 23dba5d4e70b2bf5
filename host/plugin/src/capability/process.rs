//! `process`: commands, always under the session's sandbox mode. Granted by
//! `process`: any program, or the named ones.

use super::Phase;
use crate::api::{PluginError, code};
use crate::contract::v0_1::{process, types};
use crate::instance::State;
use crate::port::{Command, Output};

super::capability!(process, "process");

impl From<process::Command> for Command {
    fn from(command: process::Command) -> Self {
        Self {
            program: command.program,
            arguments: command.arguments,
            cwd: command.cwd,
            env: command.env,
            stdin: command.stdin,
            timeout_ms: command.timeout_ms,
            max_output: command.max_output,
            more: command.more,
        }
    }
}

impl From<Output> for process::Output {
    fn from(output: Output) -> Self {
        Self {
            exit_code: output.exit_code,
            signal: output.signal,
            timed_out: output.timed_out,
            stdout: output.stdout,
            stderr: output.stderr,
            stdout_spill: output.stdout_spill,
            stderr_spill: output.stderr_spill,
            denied: output.denied,
        }
    }
}

impl process::Host for State {
    async fn run(
        &mut self,
        command: process::Command,
    ) -> wasmtime::Result<Result<process::Output, types::Error>> {
        self.require(Phase::Work, "process.run")?;
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        let env = command.env.iter();
        self.takes(
            command.program.len()
                + texts(&command.arguments)
                + env
                    .map(|(name, value)| name.len() + value.len())
                    .sum::<usize>()
                + command.stdin.as_ref().map_or(0, Vec::len),
        )?;
        if !self.row.grants.programs.allows(&command.program) {
            let message = format!(
                "row {} may not run {}: its grant `process` must name it",
                self.row.id, command.program
            );
            return Ok(Err(PluginError::new(code::DENIED, message).into()));
        }
        let Some(port) = self.ctx.ports.process.clone() else {
            return Ok(Err(PluginError::unavailable("way to run commands").into()));
        };
        Ok(self
            .answer(port.run(command.into()))
            .await
            .map(Into::into)
            .map_err(Into::into))
    }
}
