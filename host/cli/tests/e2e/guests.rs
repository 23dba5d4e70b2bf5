//! The smoke guests: a tool in C, in JavaScript and in Python, each mounted by
//! a patch and called by the model.

use serde_json::{Value, json};

use crate::support::{Ended, Record, Scratch, data, root};

type Results = Vec<(String, Option<String>)>;

/// What the guest's tool gave back to a call with each of these arguments.
fn results_of(guest: &str, tool: &str, arguments: &[Value]) -> Results {
    let (ended, results) = call(guest, tool, arguments, "{}");
    ended.answered("Called.");
    results
}

fn call(guest: &str, tool: &str, arguments: &[Value], limits: &str) -> (Ended, Results) {
    let (ended, record) = record(guest, tool, arguments, limits);
    let results = record.results();
    (ended, results)
}

fn record(guest: &str, tool: &str, arguments: &[Value], limits: &str) -> (Ended, Record) {
    let component = root().join(format!("target/guests/{guest}.wasm"));
    assert!(
        component.exists(),
        "{} is not there; run `cargo xtask guests`",
        component.display()
    );
    let scratch = Scratch::new();
    let calls: Vec<Value> = arguments
        .iter()
        .map(|arguments| json!({"name": tool, "arguments": arguments}))
        .collect();
    let scripted = scratch.script(&json!([{"calls": calls}, {"text": "Called."}]));
    let component = Value::from(component.to_string_lossy());
    let row = format!("id: guest, component: {component}, config: {{unit: x}}, limits: {limits}");
    let patch = scratch.write_beside("guest.yml", &format!("- insert: [{{{row}}}]\n"));
    let dsh = scratch.dsh().headless().patch(scripted).patch(patch);
    let ended = dsh.args(["Call it"]).run();
    (ended, scratch.record())
}

#[test]
fn a_tool_in_c_is_called() {
    let arguments = json!({"text": "one\ntwo"});
    let expected = format!("{} bytes, 1 line ends", arguments.to_string().len());
    let results = results_of("c", "c_count", &[arguments]);
    assert_eq!(results, [(expected, None)]);
}

#[test]
fn a_tool_in_javascript_is_called() {
    let results = results_of("js", "js_words", &[json!({"text": "a longer word"})]);
    let expected = "3 words, the longest is \"longer\"".to_owned();
    assert_eq!(results, [(expected, None)]);
}

/// Its engine asks for clocks, randomness, files and an environment as it starts.
#[test]
fn a_tool_in_javascript_is_called_whose_engine_imports_wasi() {
    let results = results_of("js-wasi", "js_words", &[json!({"text": "a longer word"})]);
    let expected = "3 words, the longest is \"longer\"".to_owned();
    assert_eq!(results, [(expected, None)]);
}

#[test]
fn a_tool_in_python_is_called_and_its_error_reaches_the_model_with_its_code() {
    let arguments = [json!({"numbers": [1, 2, 39]}), json!({"numbers": []})];
    let results = results_of("python", "py_sum", &arguments);
    assert_eq!(results[0], ("the sum is 42".to_owned(), None));
    assert!(results[1].0.contains("there is nothing to add up"));
    assert_eq!(results[1].1.as_deref(), Some("INVALID"));
}

/// Three times it hands over more than it may; the fourth call is not made.
#[test]
fn a_row_that_keeps_failing_is_put_out_of_use_and_reported_and_the_run_goes_on() {
    let call_with = json!({"text": "x".repeat(10_000)});
    let arguments = vec![call_with; 4];
    let (ended, record) = record("js", "js_words", &arguments, "{output: 4KiB}");
    let results = record.results();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Called.\n"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .starts_with("dsh: row guest: out of use after 3 failures"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let told = record
        .events()
        .iter()
        .find(|event| event.kind.as_str() == "dsh/row-quarantined")
        .expect("the log says so as well");
    assert!(
        told.ignorable,
        "whoever does not know it may still open the log"
    );
    let told = data(told);
    assert_eq!(told["row"], "guest");
    assert_eq!(told["failures"], 3);
    assert!(
        told["reason"].as_str().unwrap().contains("4096 bytes"),
        "{told}"
    );
    let codes: Vec<_> = results
        .into_iter()
        .map(|(_, code)| code.unwrap_or_default())
        .collect();
    assert_eq!(codes[3], "PLUGIN_QUARANTINED");
    assert!(
        codes[..3]
            .iter()
            .all(|code| *code == codes[0] && *code != codes[3]),
        "{codes:?}"
    );
}
