//! How a command's end reads. The markers and their order are fixed: views parse
//! them back, and the exit is always last.

use crate::bindings::dsh::plugin::process::Output;
use crate::command::Asked;

/// The text that the model gets. `mode` is asked for only where the sandbox
/// refused something.
pub(crate) fn text(
    output: &Output,
    asked: &Asked,
    escalation: bool,
    mode: impl FnOnce() -> Option<String>,
) -> String {
    let mut text = stream(&output.stdout, output.stdout_spill.as_deref());
    let stderr = stream(&output.stderr, output.stderr_spill.as_deref());
    if !stderr.is_empty() {
        if !text.is_empty() {
            on_new_line(&mut text);
        }
        text.push_str("[stderr]\n");
        text.push_str(&stderr);
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let mut mark = |marker: &str| {
        on_new_line(&mut text);
        text.push_str(marker);
    };
    if output.denied {
        let mode = mode();
        let name = mode.as_deref().unwrap_or("the session's");
        mark(&format!("[sandbox: file access denied under {name} mode]"));
        if escalation && !asked.wider && mode.as_deref() != Some("danger-full-access") {
            mark(
                "[sandbox: escalation available: if the task needs it, repeat this command once, unchanged, with \
                 sandbox_permissions set to the narrowest wider mode that suffices, and a justification; a person decides]",
            );
        }
    }
    if output.timed_out {
        mark(&format!("[timed out after {}ms]", asked.timeout_ms));
    }
    match (output.signal, output.exit_code) {
        (Some(signal), _) => mark(&format!("[killed by signal: {}]", signal_name(signal))),
        (None, Some(code)) if code != 0 => mark(&format!("[exit code: {code}]")),
        _ => {}
    }
    text
}

fn on_new_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// A stream's text, and where the whole of it is if this is only its end.
fn stream(bytes: &[u8], spill: Option<&str>) -> String {
    let Some(path) = spill else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    // The cut may have left the end of a character in front.
    let start = bytes
        .iter()
        .take(3)
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count();
    let path = if path.is_empty() {
        "(unavailable)"
    } else {
        path
    };
    format!(
        "{}\n[output truncated; full output: {path}]",
        String::from_utf8_lossy(&bytes[start..])
    )
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return other.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
