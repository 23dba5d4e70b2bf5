//! The smoke guests: a tool in C, in JavaScript and in Python, each mounted by
//! a patch and called by the model.

use serde_json::{Value, json};

use crate::support::{Scratch, root};

fn result_of(guest: &str, tool: &str, arguments: &Value) -> (String, Option<String>) {
    let component = root().join(format!("target/guests/{guest}.wasm"));
    assert!(
        component.exists(),
        "{} is not there; run `cargo xtask guests`",
        component.display()
    );
    let scratch = Scratch::new();
    let scripted = scratch.script(&json!([
        {"calls": [{"name": tool, "arguments": arguments}]},
        {"text": "Called."},
    ]));
    let component = Value::from(component.to_string_lossy());
    let patch = scratch.write_beside(
        "guest.yml",
        &format!(
            "- insert:\n    - id: guest\n      component: {component}\n      config: {{unit: x}}\n"
        ),
    );
    let ended = scratch
        .dsh()
        .headless()
        .patch(scripted)
        .patch(patch)
        .args(["Call it"])
        .run();
    ended.answered("Called.");
    scratch.record().results().remove(0)
}

#[test]
fn a_tool_in_c_is_called() {
    let arguments = json!({"text": "one\ntwo"});
    let (text, code) = result_of("c", "c_count", &arguments);
    assert_eq!(
        text,
        format!("{} bytes, 1 line ends", arguments.to_string().len())
    );
    assert_eq!(code, None);
}

#[test]
fn a_tool_in_javascript_is_called() {
    let (text, code) = result_of("js", "js_words", &json!({"text": "a longer word"}));
    assert_eq!(text, "3 words, the longest is \"longer\"");
    assert_eq!(code, None);
}

#[test]
fn a_tool_in_python_is_called() {
    let (text, code) = result_of("python", "py_sum", &json!({"numbers": [1, 2, 39]}));
    assert_eq!(text, "the sum is 42");
    assert_eq!(code, None);
}

#[test]
fn a_guests_error_reaches_the_model_with_its_code() {
    let (text, code) = result_of("python", "py_sum", &json!({"numbers": []}));
    assert!(text.contains("there is nothing to add up"), "{text}");
    assert_eq!(code.as_deref(), Some("INVALID"));
}
