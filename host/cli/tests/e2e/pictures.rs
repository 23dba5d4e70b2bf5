//! Pictures that people attach and tools show: in the log, in the store, on the
//! wire (spec/llm.md §6.7).

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use dsh_session::Kind;
use mock_provider::{Mock, Protocol, Speech};
use serde_json::{Value, json};

use crate::support::{Scratch, data, root, say};

const VISION: &str = "deepseek-official/deepseek-v4-flash-vision-exp";

fn sample(name: &str) -> Vec<u8> {
    fs::read(root().join("host/picture/samples").join(name)).unwrap()
}

/// Puts a sample into the working directory.
fn placed(scratch: &Scratch, sample_name: &str, name: &str) -> PathBuf {
    let path = scratch.work().join(name);
    fs::write(&path, sample(sample_name)).unwrap();
    path
}

fn objects(scratch: &Scratch) -> PathBuf {
    scratch.home().join("attachments/v1/objects")
}

fn object(scratch: &Scratch, attachment: &Value) -> PathBuf {
    let id = attachment["attachmentId"].as_str().unwrap();
    let hex = id.strip_prefix("sha256:").unwrap();
    objects(scratch).join(&hex[..2]).join(hex)
}

/// The messages of each request, but for the system's.
fn sent(mock: &Mock) -> Vec<Vec<Value>> {
    let conversation = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).unwrap();
        let messages = body["messages"].as_array().unwrap().iter();
        messages
            .filter(|message| message["role"] != "system")
            .cloned()
            .collect()
    };
    let requests = mock.requests();
    requests.iter().map(|one| conversation(&one.body)).collect()
}

/// The parts of the first message that has any.
fn parts(messages: &[Value]) -> &[Value] {
    let listed = messages
        .iter()
        .find_map(|message| message["content"].as_array());
    listed.expect("a message in parts")
}

fn url(media_type: &str, file: &Path) -> Value {
    let base64 = BASE64.encode(fs::read(file).unwrap());
    json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{base64}")}})
}

/// The attachments of the first message that a person sent.
fn attachments(scratch: &Scratch) -> Vec<Value> {
    let record = scratch.record();
    let message = data(record.of(&Kind::UserMessage)[0]);
    let blocks = message["content"].as_array().unwrap().clone();
    let images = blocks.into_iter().filter(|block| block["type"] == "image");
    images.map(|block| block["attachment"].clone()).collect()
}

#[test]
fn what_is_attached_is_stored_named_in_the_log_and_sent_in_its_place() {
    let scratch = Scratch::new();
    let photo = placed(&scratch, "turned.jpg", "photo.jpg");
    placed(&scratch, "palette.png", "wrong-name.txt");
    let mock = Mock::start(vec![say("Two pictures.").answer()]);
    let ended = scratch
        .dsh()
        .provider(&mock)
        .headless()
        .args(["--model", VISION, "--attach"])
        .arg(&photo)
        .args(["--attach=wrong-name.txt", "Look"])
        .run();
    ended.answered("Two pictures.");

    let attached = attachments(&scratch);
    assert_eq!(attached.len(), 2, "{attached:?}");
    assert_eq!(attached[0]["name"], "photo.jpg");
    // The way up that the file says is applied.
    assert_eq!(
        (&attached[0]["width"], &attached[0]["height"]),
        (&json!(12), &json!(24))
    );
    assert_eq!(attached[1]["mediaType"], "image/png");
    let files: Vec<PathBuf> = attached.iter().map(|one| object(&scratch, one)).collect();
    for (file, attachment) in files.iter().zip(&attached) {
        assert_eq!(
            fs::metadata(file).unwrap().len(),
            attachment["bytes"].as_u64().unwrap()
        );
    }
    // No byte of them is in the log.
    let log = scratch.record();
    for event in log.events() {
        assert!(!event.data.as_str().contains("base64"), "{event:?}");
    }

    let sent = sent(&mock);
    let id = |at: usize| attached[at]["attachmentId"].as_str().unwrap();
    assert_eq!(
        parts(&sent[0]),
        [
            json!({"type": "text", "text": "Look"}),
            json!({"type": "text", "text": format!("\n[Image {}, 12x24]", id(0))}),
            url("image/jpeg", &files[0]),
            json!({"type": "text", "text": format!("\n[Image {}, 24x12]", id(1))}),
            url("image/png", &files[1]),
        ]
    );
}

#[test]
fn a_session_that_goes_on_or_is_forked_keeps_its_pictures_and_outlives_them() {
    let scratch = Scratch::new();
    placed(&scratch, "palette.png", "a.png");
    let mock = Mock::start(vec![
        say("One.").answer(),
        say("Two.").answer(),
        say("Three.").answer(),
        say("Four.").answer(),
    ]);
    let run = |words: &[&str]| {
        let dsh = scratch.dsh().provider(&mock).headless();
        dsh.args(["--model", VISION])
            .args(words.iter().copied())
            .run()
    };
    run(&["--session-id", "s1", "--attach", "a.png", "First"]).answered("One.");
    let file = object(&scratch, &attachments(&scratch)[0]);
    let shown = url("image/png", &file);
    run(&["--resume", "s1", "Second"]).answered("Two.");
    let forked = scratch.sessions_command(["fork", "s1"]);
    assert_eq!(forked.code, Some(0), "{forked:?}");
    let fork = forked.stdout.trim().to_owned();
    run(&["--resume", &fork, "Third"]).answered("Three.");
    for messages in &sent(&mock) {
        assert!(parts(messages).contains(&shown), "{messages:?}");
    }

    fs::remove_file(&file).unwrap();
    run(&["--resume", "s1", "Fourth"]).answered("Four.");
    let last = sent(&mock).pop().unwrap();
    let said = Value::from(last).to_string();
    assert!(said.contains("not shown, because the attachment"), "{said}");
    assert!(said.contains("is gone"), "{said}");
    assert!(!said.contains("image_url"), "{said}");
}

#[test]
fn a_model_that_reads_text_only_gets_a_note_and_a_line_says_so() {
    let scratch = Scratch::new();
    placed(&scratch, "plain.jpg", "a.jpg");
    let mock = Mock::start(vec![say("I see nothing.").answer()]);
    let dsh = scratch.dsh().provider(&mock).headless();
    let ended = dsh.args(["--attach", "a.jpg", "Look"]).run();
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "I see nothing.\n"));
    assert_eq!(
        ended.stderr,
        "dsh: deepseek-official/deepseek-v4-flash takes text only: it gets a note in the place of \
         each attached picture; name a model that takes pictures with --model\n"
    );
    let first = attachments(&scratch)[0]["attachmentId"].as_str().unwrap()[..15].to_owned();
    let said = sent(&mock)[0][0]["content"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("Look[Image ") && said.contains(&first),
        "{said}"
    );
}

#[test]
fn a_file_that_cannot_be_attached_ends_the_run_before_there_is_a_session() {
    let scratch = Scratch::new();
    scratch.write("notes.png", "just words");
    placed(&scratch, "vast.png", "vast.png");
    fs::write(scratch.work().join("cut.jpg"), &sample("plain.jpg")[..600]).unwrap();
    fs::write(scratch.work().join("empty.png"), b"").unwrap();
    let large = fs::File::create(scratch.work().join("large.png")).unwrap();
    large.set_len((32 << 20) + 1).unwrap();
    let bits = rustix::fs::Mode::from_bits_truncate(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, scratch.work().join("fifo.png"), bits).unwrap();
    let mock = Mock::start(vec![]);
    for (file, said) in [
        ("absent.png", "cannot open it"),
        (".", "it is not a file"),
        ("fifo.png", "it is not a file"),
        ("/dev/zero", "it is not a file"),
        ("notes.png", "it is text"),
        ("empty.png", "it is empty"),
        ("cut.jpg", "it ends before its picture does"),
        ("vast.png", "100000x100000 pixels"),
        ("large.png", "33554433 bytes"),
    ] {
        let dsh = scratch.dsh().provider(&mock).headless();
        let ended = dsh.args(["--attach", file, "Look"]).run();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended.stderr.contains(&format!("--attach {file}: ")),
            "{ended:?}"
        );
        assert!(ended.stderr.contains(said), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    assert!(scratch.listed().is_empty());
    assert!(mock.requests().is_empty());
}

#[test]
fn a_tool_shows_a_picture_to_a_model_that_sees_and_says_why_not_to_another() {
    for (model, sees) in [
        (VISION, true),
        ("deepseek-official/deepseek-v4-flash", false),
    ] {
        let scratch = Scratch::new();
        let path = placed(&scratch, "palette.png", "red.png");
        scratch.write("notes.txt", "words");
        let look = |file: &str| json!({"file_path": file});
        let mock = Mock::start(vec![
            say("")
                .call("read_image", &look("red.png"))
                .call("read_image", &look("notes.txt"))
                .call("read_image", &look("absent.png"))
                .answer(),
            say("Seen.").answer(),
        ]);
        let dsh = scratch.dsh().provider(&mock).headless();
        dsh.args(["--model", model, "Look"]).run().answered("Seen.");
        let results = scratch.record().results();
        let log = scratch.record();
        let first = data(log.of(&Kind::ToolResult)[0]);
        let blocks = first["message"]["content"][0]["content"]
            .as_array()
            .unwrap()
            .clone();
        let messages = sent(&mock).pop().unwrap();
        if sees {
            let said = blocks[0]["text"].as_str().unwrap();
            assert!(said.contains("image/png image, 24x12 px"), "{said}");
            assert_eq!(blocks[1]["attachment"]["name"], "red.png");
            assert!(results[1].0.contains("it is text"), "{results:?}");
            assert!(results[2].0.contains("absent.png"), "{results:?}");
            let file = object(&scratch, &blocks[1]["attachment"]);
            let last = messages.last().unwrap();
            assert_eq!(last["role"], "user");
            assert_eq!(last["content"][1], url("image/png", &file));
        } else {
            assert_eq!(blocks.len(), 1);
            assert!(results[0].0.contains("takes text only"), "{results:?}");
            assert!(
                results[0].0.contains(&*path.to_string_lossy()),
                "{results:?}"
            );
            assert!(!objects(&scratch).exists());
        }
    }
}

#[test]
fn every_protocol_sends_what_was_attached_and_what_a_tool_showed() {
    for protocol in [
        Protocol::Completions,
        Protocol::Responses,
        Protocol::Messages,
    ] {
        let scratch = Scratch::new();
        placed(&scratch, "palette.png", "a.png");
        placed(&scratch, "clear.png", "b.png");
        let mock = Mock::with(move |request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let answered = ["function_call_output", "tool_result", r#""role":"tool""#]
                .iter()
                .any(|mark| body.to_string().contains(mark));
            let speech = if body["tools"].as_array().is_none_or(Vec::is_empty) {
                Speech::new("A title")
            } else if answered {
                Speech::new("Seen.")
            } else {
                Speech::new("").call("read_image", r#"{"file_path":"b.png"}"#)
            };
            speech.answer(protocol)
        });
        let profile = json!({
            "api": protocol.api(),
            "baseURL": protocol.base(&mock.base_url()),
            "apiKeyEnv": "E2E_KEY",
            "models": [{"id": "m1", "input": ["text", "image"]}],
        });
        let settings = json!({"llm-pi-ai": {"providers": {"acme": profile}}});
        scratch.write_home("settings.yaml", &settings.to_string());
        let dsh = scratch.dsh().env("E2E_KEY", "sk-e2e").headless();
        let ended = dsh
            .args(["--model", "acme/m1", "--attach", "a.png", "Look"])
            .run();
        ended.answered("Seen.");
        let record = scratch.record();
        let result = data(record.of(&Kind::ToolResult)[0]);
        let shown = &result["message"]["content"][0]["content"][1]["attachment"];
        let base64 =
            |attachment: &Value| BASE64.encode(fs::read(object(&scratch, attachment)).unwrap());
        let (first, second) = (base64(&attachments(&scratch)[0]), base64(shown));
        let bodies: Vec<String> = mock
            .requests()
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .filter(|body| body.contains("read_image"))
            .collect();
        assert_eq!(bodies.len(), 2, "{protocol:?}");
        assert!(bodies[0].contains(&first), "{protocol:?}: {}", bodies[0]);
        assert!(!bodies[0].contains(&second), "{protocol:?}");
        assert!(bodies[1].contains(&first), "{protocol:?}: {}", bodies[1]);
        assert!(bodies[1].contains(&second), "{protocol:?}: {}", bodies[1]);
    }
}
