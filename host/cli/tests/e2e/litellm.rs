//! A server of somebody else's: litellm's proxy on loopback, which translates between chat completions, responses and
//! messages, in front of the mock provider. A whole run with a tool call on each protocol.
//!
//! `cargo xtask litellm` installs it and runs this; CI does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dsh_session::Kind;
use mock_provider::{Answer, Mock, Protocol, Recorded, Speech};
use serde_json::{Value, json};

use crate::support::{Scratch, data, root};

/// What litellm wants of whoever asks it.
const MASTER_KEY: &str = "sk-litellm-test";
/// Starting it reads most of its packages.
const PATIENCE: Duration = Duration::from_secs(300);

/// A run's part: which adapter, and by which of litellm's models.
struct Route {
    protocol: Protocol,
    provider: &'static str,
    model: &'static str,
}

/// `hosted_vllm` is litellm's plain way through; `deepseek` is one for which it makes responses itself.
const ROUTES: [Route; 4] = [
    Route {
        protocol: Protocol::DeepSeek,
        provider: "deepseek-official",
        model: "plain",
    },
    Route {
        protocol: Protocol::Completions,
        provider: "lite-completions",
        model: "plain",
    },
    Route {
        protocol: Protocol::Responses,
        provider: "lite-responses",
        model: "translated",
    },
    Route {
        protocol: Protocol::Messages,
        provider: "lite-messages",
        model: "plain",
    },
];

/// litellm, until it is dropped.
struct Lite {
    child: Child,
    port: u16,
    output: PathBuf,
}

impl Lite {
    /// Starts it in front of `mock` and waits until it is healthy.
    fn start(python: &Path, scratch: &Scratch, mock: &Mock) -> Self {
        let model = |name: &str, backend: &str| {
            let base = format!("{}/v1", mock.base_url());
            json!({"model_name": name, "litellm_params": {
                "model": format!("{backend}/m"), "api_base": base, "api_key": "sk-mock",
            }})
        };
        // JSON is YAML.
        let config = json!({
            "model_list": [model("plain", "hosted_vllm"), model("translated", "deepseek")],
            "litellm_settings": {"telemetry": false, "drop_params": true, "num_retries": 0},
            "general_settings": {"master_key": MASTER_KEY},
        });
        let config = scratch.write_beside("litellm.yaml", &config.to_string());
        let output = scratch.write_beside("litellm.out", "");
        let mut child = Command::new(python)
            .arg(root().join("tests/litellm/serve.py"))
            .current_dir(scratch.user())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", scratch.user())
            .env("CONFIG_FILE_PATH", config)
            // It would fetch a list of prices, and tell home what it is used for.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("LITELLM_TELEMETRY", "False")
            .env("NO_PROXY", "*")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&output).unwrap())
            .spawn()
            .expect("litellm's Python starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let lite = Self {
            child,
            port: line.trim().parse().unwrap_or(0),
            output,
        };
        let health = lite.ask("/health/liveliness");
        assert!(
            health
                .as_ref()
                .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")),
            "litellm is not healthy: {health:?}\n{}",
            lite.said()
        );
        lite
    }

    /// What it answers; it listens from the start, and answers when it is ready.
    fn ask(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The end of its own output.
    fn said(&self) -> String {
        let text = std::fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(80)..].join("\n")
    }
}

impl Drop for Lite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Behind litellm everything is chat completions: a call of `bash`, then an answer that names what it gave.
fn answer(request: &Recorded) -> Answer {
    // It also looks which models there are.
    if request.method != "POST" {
        return Answer::new(404, "{}");
    }
    let body: Value = serde_json::from_slice(&request.body).expect("litellm sends JSON");
    let messages = body["messages"].as_array().expect("messages");
    let result = messages.iter().find(|message| message["role"] == "tool");
    let speech = match result {
        Some(result) => {
            let text = result["content"]
                .as_str()
                .map_or_else(|| result["content"].to_string(), str::to_owned);
            let word = if text.contains("four") {
                "four"
            } else {
                "nothing"
            };
            Speech::new(format!("The command said {word}."))
        }
        // A title is asked for without tools.
        None if body["tools"].as_array().is_none_or(Vec::is_empty) => Speech::new("Short title"),
        None => Speech::new("I look. ")
            .thinking("A command will tell.")
            .call(
                "bash",
                json!({"command": "echo four", "description": "say four"}).to_string(),
            ),
    };
    speech.answer(Protocol::Completions)
}

fn settings(lite: &Lite) -> String {
    let profile = |route: &Route| {
        let model = json!({"id": route.model, "contextWindow": 100_000, "maxTokens": 4096});
        json!({
            "api": route.protocol.api(), "baseURL": route.protocol.base(&lite.url()),
            "apiKeyEnv": "LITELLM_KEY", "models": [model],
        })
    };
    let providers: serde_json::Map<String, Value> = ROUTES[1..]
        .iter()
        .map(|route| (route.provider.to_owned(), profile(route)))
        .collect();
    json!({"llm-pi-ai": {"providers": providers}}).to_string()
}

#[test]
#[ignore = "needs litellm; `cargo xtask litellm` installs it and runs this"]
fn litellm_takes_and_brings_a_whole_run_on_every_protocol() {
    let python = std::env::var_os("DSH_TEST_LITELLM").map(PathBuf::from);
    let python = python.expect("DSH_TEST_LITELLM names the Python that has it");
    let mock = Mock::with(answer);
    let place = Scratch::new();
    let lite = Lite::start(&python, &place, &mock);
    for route in &ROUTES {
        let scratch = Scratch::new();
        scratch.write_home("settings.yaml", &settings(&lite));
        let model = format!("{}/{}", route.provider, route.model);
        let before = mock.requests().len();
        let ended = scratch
            .dsh()
            .env("DEEPSEEK_BASE_URL", lite.url())
            .env("DEEPSEEK_API_KEY", MASTER_KEY)
            .env("LITELLM_KEY", MASTER_KEY)
            .headless()
            .args(["--model", &model, "Say four"])
            .run();
        assert!(
            ended.code == Some(0)
                && ended.stdout == "The command said four.\n"
                && ended.stderr.is_empty(),
            "{model}: {ended:?}\nlitellm:\n{}",
            lite.said()
        );
        let log = scratch.record();
        assert_eq!(log.turn_end(), json!({"kind": "completed"}), "{model}");
        assert_eq!(log.results().len(), 1, "{model}");
        assert!(
            log.results()[0].0.contains("four"),
            "{model}: {:?}",
            log.results()
        );
        let answers = log.of(&Kind::AssistantMessage);
        assert_eq!(answers.len(), 2, "{model}");
        let first = data(answers[0]);
        assert_eq!(first["message"]["source"]["provider"], route.provider);
        let blocks = first["message"]["content"].as_array().unwrap();
        let block = |kind: &str| blocks.iter().find(|block| block["type"] == kind);
        let call = block("tool-call").unwrap_or_else(|| panic!("{model}: {first}"));
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&call["name"], &arguments["command"]),
            (&json!("bash"), &json!("echo four"))
        );
        let text = block("text").and_then(|block| block["text"].as_str());
        assert_eq!(text.map(str::trim), Some("I look."), "{model}: {first}");
        assert!(
            mock.requests().len() >= before + 2,
            "{model}: litellm asked the mock"
        );
    }
}
