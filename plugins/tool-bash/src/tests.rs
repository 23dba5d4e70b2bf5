use serde_json::{Value, json};

use super::*;
use crate::command::{Settings, listing, read};

const SETTINGS: Settings = Settings {
    timeout_ms: 60_000,
    escalation: true,
};

fn ask(arguments: &Value) -> Asked {
    read(&arguments.to_string(), &SETTINGS)
        .map_err(|error| error.message)
        .unwrap()
}

fn refused(arguments: &Value) -> String {
    read(&arguments.to_string(), &SETTINGS)
        .err()
        .unwrap()
        .message
}

fn output() -> Output {
    Output {
        exit_code: Some(0),
        signal: None,
        timed_out: false,
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdout_spill: None,
        stderr_spill: None,
        denied: false,
    }
}

fn shown(output: &Output) -> String {
    let asked = ask(&json!({"command": "true", "description": "d", "timeoutMs": 400}));
    text(output, &asked, true, || Some("read-only".to_owned()))
}

#[test]
fn a_call_becomes_a_fresh_shell() {
    let asked = ask(&json!({"command": "ls", "description": "List", "workdir": "src"}));
    assert_eq!(asked.command.program, "bash");
    assert_eq!(asked.command.arguments, ["-c", "ls"]);
    assert_eq!(asked.command.cwd.as_deref(), Some("src"));
    assert_eq!(asked.command.timeout_ms, Some(60_000));
    assert_eq!(asked.command.max_output, 64_000);
    assert!(
        asked
            .command
            .env
            .contains(&("TERM".to_owned(), "dumb".to_owned()))
    );
    assert_eq!(asked.command.more, None);
}

#[test]
fn a_time_limit_is_capped_and_must_be_one() {
    let limit =
        |ms: Value| ask(&json!({"command": "x", "description": "d", "timeoutMs": ms})).timeout_ms;
    assert_eq!(limit(json!(400)), 400);
    assert_eq!(limit(json!(0.5)), 1);
    assert_eq!(limit(json!(1e12)), 600_000);
    assert!(refused(&json!({"command": "x", "timeoutMs": 0})).contains("above 0"));
    assert_eq!(Settings::read("{}").timeout_ms, 120_000);
    assert_eq!(
        Settings::read(r#"{"timeoutMs":5,"escalation":false}"#),
        Settings {
            timeout_ms: 5,
            escalation: false
        }
    );
}

#[test]
fn a_wider_mode_needs_its_justification() {
    let both = json!({"command": "x", "sandbox_permissions": "workspace-write", "justification": "because"});
    let more: Value = serde_json::from_str(&ask(&both).command.more.unwrap()).unwrap();
    assert_eq!(
        more,
        json!({"sandbox": "workspace-write", "justification": "because"})
    );
    for one in [
        json!({"command": "x", "sandbox_permissions": "workspace-write"}),
        json!({"command": "x", "justification": "b"}),
    ] {
        assert!(refused(&one).contains("both or none"));
    }
}

#[test]
fn the_schema_offers_what_works() {
    let tool: Value = serde_json::from_str(&listing(&SETTINGS)).unwrap();
    assert_eq!(tool["name"], "bash");
    assert_eq!(
        tool["parameters"]["required"],
        json!(["command", "description"])
    );
    let names: Vec<_> = tool["parameters"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        names,
        [
            "command",
            "description",
            "justification",
            "sandbox_permissions",
            "timeoutMs",
            "workdir"
        ]
    );
    assert!(
        tool["parameters"]["properties"]["timeoutMs"]["description"]
            .as_str()
            .unwrap()
            .contains("60000")
    );
    assert_eq!(tool.get("concurrent"), None);
    let plain = listing(&Settings {
        escalation: false,
        ..SETTINGS
    });
    assert!(!plain.contains("sandbox_permissions"));
}

#[test]
fn output_reads_as_printed() {
    assert_eq!(shown(&output()), "(no output)");
    assert_eq!(
        shown(&Output {
            stdout: b"out\n".to_vec(),
            ..output()
        }),
        "out\n"
    );
    assert_eq!(
        shown(&Output {
            stdout: b"out".to_vec(),
            stderr: b"err".to_vec(),
            ..output()
        }),
        "out\n[stderr]\nerr"
    );
    assert_eq!(
        shown(&Output {
            stderr: b"err\n".to_vec(),
            ..output()
        }),
        "[stderr]\nerr\n"
    );
}

#[test]
fn the_end_is_told_last() {
    let failed = Output {
        stdout: b"out\n".to_vec(),
        stderr: b"err\n".to_vec(),
        exit_code: Some(3),
        ..output()
    };
    assert_eq!(shown(&failed), "out\n[stderr]\nerr\n[exit code: 3]");
    assert_eq!(
        shown(&Output {
            exit_code: Some(1),
            ..output()
        }),
        "(no output)\n[exit code: 1]"
    );
    let late = Output {
        exit_code: None,
        signal: Some(15),
        timed_out: true,
        ..output()
    };
    assert_eq!(
        shown(&late),
        "(no output)\n[timed out after 400ms]\n[killed by signal: SIGTERM]"
    );
    assert_eq!(
        shown(&Output {
            exit_code: None,
            signal: Some(63),
            ..output()
        }),
        "(no output)\n[killed by signal: 63]"
    );
}

#[test]
fn a_cut_stream_names_the_whole() {
    let cut = Output {
        stdout: b"\x84\x9fend\n".to_vec(),
        stdout_spill: Some("/s/1".to_owned()),
        exit_code: Some(1),
        ..output()
    };
    assert_eq!(
        shown(&cut),
        "end\n\n[output truncated; full output: /s/1]\n[exit code: 1]"
    );
    let lost = Output {
        stderr: b"x".to_vec(),
        stderr_spill: Some(String::new()),
        ..output()
    };
    assert_eq!(
        shown(&lost),
        "[stderr]\nx\n[output truncated; full output: (unavailable)]"
    );
}

#[test]
fn a_denial_comes_before_the_rest_and_says_what_may_be_done() {
    let denied = Output {
        stderr: b"no".to_vec(),
        denied: true,
        exit_code: Some(1),
        ..output()
    };
    let text_of = |mode: Option<&str>, arguments: Value, escalation| {
        text(&denied, &ask(&arguments), escalation, || {
            mode.map(str::to_owned)
        })
    };
    let plain = json!({"command": "x"});
    let lines: Vec<_> = text_of(Some("read-only"), plain.clone(), true)
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        lines[..3],
        [
            "[stderr]",
            "no",
            "[sandbox: file access denied under read-only mode]"
        ]
    );
    assert!(lines[3].starts_with("[sandbox: escalation available"));
    assert_eq!(lines[4..], ["[exit code: 1]"]);
    let wider =
        json!({"command": "x", "sandbox_permissions": "workspace-write", "justification": "b"});
    assert!(!text_of(Some("read-only"), wider, true).contains("escalation"));
    assert!(!text_of(Some("read-only"), plain.clone(), false).contains("escalation"));
    assert!(text_of(None, plain, true).contains("under the session's mode]"));
}
