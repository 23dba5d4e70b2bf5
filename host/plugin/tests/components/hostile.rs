//! Components that attack while they start: the numbers are those of the
//! hostile list.

use dsh_plugin::{CallError, Error};
use serde_json::{Value, json};

use crate::support::mount_text;

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

/// These components export nothing that could be called: one that started is
/// refused for that.
fn has_started(error: &CallError) -> bool {
    error.to_string().contains("does not fit the contract")
}
