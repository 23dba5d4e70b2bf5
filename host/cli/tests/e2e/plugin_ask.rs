//! What a person is asked on a real terminal, and that nobody else is.

use std::process::{Command, Stdio};

use crate::support::{Scratch, counter, greedy};

/// Runs `dsh plugin` on a terminal of its own, which answers its question; gives the exit code and all that it showed.
fn on_terminal(scratch: &Scratch, words: &[&str], answer: &str) -> (i32, String) {
    // Nothing else here can open a terminal without unsafe code.
    const PLAY: &str = "
import os, pty, sys
answer, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(command[0], command)
shown = b''
asked = False
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    if not asked and b'[y/N] ' in shown:
        asked = True
        os.write(terminal, answer.encode())
_, status = os.waitpid(child, 0)
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 200)
";
    let output = Command::new("python3")
        .args(["-c", PLAY, answer, env!("CARGO_BIN_EXE_dsh"), "plugin"])
        .args(words)
        .current_dir(scratch.work())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scratch.user())
        .env("DSH_HOME", scratch.home())
        .stdin(Stdio::null())
        .output()
        .expect("python3 runs");
    let shown = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code().unwrap_or(-1), shown)
}

#[test]
fn a_yes_on_the_terminal_adds_it_and_anything_else_does_not() {
    for (answer, adds) in [
        ("y\n", true),
        ("Yes\n", true),
        ("n\n", false),
        ("\n", false),
        ("yess\n", false),
        ("\u{4}", false),
    ] {
        let scratch = Scratch::new();
        scratch.put("counter.wasm", &counter("1.0.0"));
        let (code, shown) = on_terminal(&scratch, &["add", "counter.wasm"], answer);
        assert_eq!(code, i32::from(!adds), "{answer:?}: {shown}");
        let question = shown
            .find("Add it? [y/N] ")
            .unwrap_or_else(|| panic!("{shown}"));
        for part in [
            "acme:counter 1.0.0",
            "sha256",
            "adds the tool c_count for the model to call",
            "signed    no",
            // How far it is, on a line that is taken away again.
            "compiling acme:counter (",
            "\r\u{1b}[K",
        ] {
            assert!(
                shown[..question].contains(part),
                "{part} comes before the question: {shown}"
            );
        }
        assert_eq!(
            scratch.lock_text().contains("acme:counter"),
            adds,
            "{answer:?}"
        );
        assert_eq!(shown.contains("dsh: nothing was added"), !adds);
    }
}

#[test]
fn an_interrupt_at_the_question_leaves_everything_as_it_was() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    let (code, _) = on_terminal(&scratch, &["add", "counter.wasm"], "\u{3}");
    assert_eq!(code, 130);
    assert!(scratch.lock_text().is_empty() && scratch.packages().is_empty());
}

#[test]
fn an_update_that_wants_more_asks_and_one_that_does_not_does_not() {
    let scratch = Scratch::new();
    scratch.with_counter();
    scratch.put("counter.wasm", &counter("1.0.1"));
    let (code, shown) = on_terminal(&scratch, &["update"], "");
    assert_eq!((code, shown.contains("[y/N]")), (0, false), "{shown}");
    scratch.put("counter.wasm", &greedy("1.1.0"));
    let (code, shown) = on_terminal(&scratch, &["update"], "n\n");
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("acme:counter stays at 1.0.1"), "{shown}");
    let (code, shown) = on_terminal(&scratch, &["update"], "y\n");
    assert_eq!(code, 0, "{shown}");
    let asked = shown.find("[y/N]").unwrap();
    assert!(
        shown[..asked].contains("appends todo/write to your sessions"),
        "{shown}"
    );
    assert!(scratch.lock_text().contains("version = \"1.1.0\""));
}

/// A piped `y` is no person's answer.
#[test]
fn without_a_terminal_it_refuses_shows_the_wants_and_both_ways_on() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    let yes = scratch.write("yes", "y\n");
    let dsh = scratch.dsh().stdin(std::fs::File::open(yes).unwrap());
    let path = scratch.work().join("counter.wasm");
    let path = path.to_string_lossy();
    let ended = dsh.args(["plugin", "add", "counter.wasm"]).run().refused(&[
        "adds the tool c_count",
        &format!("dsh plugin add --yes {path}"),
        &format!("dsh plugin add --grant tool-names=c_count {path}"),
    ]);
    assert!(
        ended
            .stderr
            .contains("Given what it wants, it\n  - adds the tool c_count"),
        "{ended:?}"
    );
    assert!(scratch.lock_text().is_empty() && scratch.packages().is_empty());
    // Both commands do what they say.
    scratch
        .plugin(["add", "--grant", "tool-names=c_count", &path])
        .done();
}
