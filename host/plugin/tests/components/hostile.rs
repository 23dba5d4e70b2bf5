//! Components that attack while they start: the numbers are those of the
//! hostile list.

use dsh_plugin::{CallError, Error};
use serde_json::{Value, json};

use crate::support::{engine, load_text, mount_text};

/// A component with this core module, instantiated so often.
fn starting(module: &str, times: usize) -> String {
    let instances = "(core instance (instantiate $attack))\n".repeat(times);
    format!("(component\n(core module $attack {module})\n{instances}")
        + r#"
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $p (export "sections" (func $f)))
        (export "dsh:plugin/prompt@0.1.0" (instance $p)))"#
}

async fn attempt(module: &str, times: usize, limits: Value) -> CallError {
    match mount_text(&starting(module, times), limits)
        .await
        .err()
        .unwrap()
    {
        Error::Asking { source, .. } => *source,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn h8_a_start_function_that_never_returns_is_stopped() {
    let limits = json!({"cpu": "50ms"});
    let error = attempt("(func $s (loop (br 0))) (start $s)", 1, limits).await;
    assert!(matches!(error, CallError::Cpu { .. }), "{error}");
}

#[tokio::test]
async fn h1_a_memory_that_begins_beyond_the_cap_is_refused() {
    let error = attempt("(memory 65536)", 1, json!({})).await;
    assert!(matches!(error, CallError::Memory { .. }), "{error}");
}

/// 16 pages are allowed; it traps unless growing by one more says -1.
#[tokio::test]
async fn h1_growing_to_one_page_beyond_the_cap_fails() {
    let module = r"(memory 16)
        (func $s (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable)))
        (start $s)";
    let error = attempt(module, 1, json!({"memory": "1MiB"})).await;
    assert!(has_started(&error), "{error}");
}

#[tokio::test]
async fn h2_a_cap_is_for_all_memories_together() {
    let error = attempt("(memory 100)", 4, json!({"memory": "24MiB"})).await;
    assert!(matches!(error, CallError::Memory { .. }), "{error}");
    let error = attempt("(memory 100)", 4, json!({"memory": "25MiB"})).await;
    assert!(has_started(&error), "{error}");
}

#[tokio::test]
async fn h3_a_table_beyond_the_cap_is_refused() {
    let error = attempt("(table 1000000 funcref)", 1, json!({})).await;
    assert!(matches!(error, CallError::Tables { .. }), "{error}");
    // Of all tables together.
    let error = attempt("(table 600 funcref)", 2, json!({"tables": 1000})).await;
    assert!(
        matches!(error, CallError::Tables { limit: 1000, .. }),
        "{error}"
    );
    let error = attempt("(table 600 funcref)", 2, json!({"tables": 1200})).await;
    assert!(has_started(&error), "{error}");
    let module = r"(table 1 funcref)
        (func $s
            (if (i32.ne (table.grow (ref.null func) (i32.const 10000000)) (i32.const -1))
                (then unreachable)))
        (start $s)";
    let error = attempt(module, 1, json!({})).await;
    assert!(has_started(&error), "{error}");
}

#[tokio::test]
async fn h4_hundreds_of_instances_or_memories_are_refused() {
    let error = attempt("(memory 0)", 900, json!({})).await;
    assert!(
        matches!(
            error,
            CallError::Parts {
                what: "memory",
                limit: 8,
                ..
            }
        ),
        "{error}"
    );
    let error = attempt("", 900, json!({})).await;
    assert!(
        matches!(
            error,
            CallError::Parts {
                what: "instance",
                limit: 64,
                ..
            }
        ),
        "{error}"
    );
    let error = attempt("", 900, json!({"instances": 1000})).await;
    assert!(has_started(&error), "{error}");
}

/// A component with this start function over a resource of its own, in terms of
/// `new`, `rep` and `drop`.
async fn attempt_on_handles(start: &str) -> CallError {
    let text = format!(
        r#"(component
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core func $rep (canon resource.rep $r))
        (core func $drop (canon resource.drop $r))
        (core module $attack
            (import "r" "new" (func $new (param i32) (result i32)))
            (import "r" "rep" (func $rep (param i32) (result i32)))
            (import "r" "drop" (func $drop (param i32)))
            (func $s (local i32) {start})
            (start $s))
        (core instance (instantiate $attack (with "r" (instance
            (export "new" (func $new)) (export "rep" (func $rep)) (export "drop" (func $drop))))))
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $p (export "sections" (func $f)))
        (export "dsh:plugin/prompt@0.1.0" (instance $p)))"#
    );
    match mount_text(&text, json!({})).await.err().unwrap() {
        Error::Asking { source, .. } => *source,
        other => panic!("{other}"),
    }
}

/// Forged, dropped twice, used after it was dropped. One of another instance is
/// a number like any other.
#[tokio::test]
async fn h11_a_handle_that_is_not_held_is_refused() {
    for start in [
        "(call $drop (i32.const 7))",
        "(drop (call $rep (i32.const 7)))",
        "(call $drop (i32.const -1))",
        "(local.set 0 (call $new (i32.const 1))) (call $drop (local.get 0)) (call $drop (local.get 0))",
        "(local.set 0 (call $new (i32.const 1))) (call $drop (local.get 0)) (drop (call $rep (local.get 0)))",
    ] {
        let error = attempt_on_handles(start).await;
        assert!(
            matches!(&error, CallError::Trap { reason, .. } if reason.contains("handle")),
            "{start}: {error}"
        );
    }
}

/// They are the host's memory, of which no limit of the component's knows.
#[tokio::test]
async fn h11_handles_are_held_in_bounds() {
    let error = attempt_on_handles("(loop (drop (call $new (i32.const 1))) (br 0))").await;
    assert!(
        matches!(
            error,
            CallError::Parts {
                what: "handle",
                limit: 1000,
                ..
            }
        ),
        "{error}"
    );
}

/// What is written in little and would take long to compile, or much to hold.
#[tokio::test]
async fn h15_what_unfolds_beyond_measure_is_refused_before_it_is_compiled() {
    for depth in [64, 20_000] {
        // It is as it was written, or refused; whatever it is, it is soon.
        let _ = engine().load_bytes(nested(depth)).await;
    }
    // A million types and one, of three bytes each.
    let mut types = leb128(1_000_001);
    types.extend([0x60, 0, 0].repeat(1_000_001));
    let mut module = b"\0asm\x01\0\0\0\x01".to_vec();
    module.extend(leb128(types.len()));
    module.extend(types);
    let mut component = b"\0asm\x0d\0\x01\0\x01".to_vec();
    component.extend(leb128(module.len()));
    component.extend(module);
    let error = engine().load_bytes(component).await.unwrap_err();
    assert!(error.to_string().contains("types"), "{error}");
    // A function of more locals than there may be, in a few bytes.
    let locals =
        "(component (core module (func (local".to_owned() + &" i64".repeat(50_001) + "))))";
    let error = load_text(engine(), &locals).await.unwrap_err();
    assert!(error.to_string().contains("locals"), "{error}");
}

/// Components in components.
fn nested(depth: usize) -> Vec<u8> {
    let header = b"\0asm\x0d\0\x01\0";
    // From the inside out, each in a section of the next.
    let mut reversed: Vec<u8> = header.iter().rev().copied().collect();
    for _ in 0..depth {
        let length = leb128(reversed.len());
        reversed.extend(length.iter().rev());
        reversed.push(4);
        reversed.extend(header.iter().rev());
    }
    reversed.reverse();
    reversed
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut out = vec![];
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
    out
}

/// These components export nothing that could be called: one that started is
/// refused for that.
fn has_started(error: &CallError) -> bool {
    error.to_string().contains("does not fit the contract")
}
