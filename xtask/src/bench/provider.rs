//! A provider on loopback that answers at once and notes when it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Answers each request of the loop with the next of its bodies, and others with
/// a title. Its threads end with this process.
pub(crate) struct Provider {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    first: Option<Instant>,
    /// When the last answer to the loop was written.
    answered: Option<Instant>,
    /// From there to the first byte of the loop's next request.
    between: Vec<Duration>,
    watched: Option<u32>,
    peak_kib: Option<u64>,
}

impl Provider {
    /// A text.
    pub(crate) fn text() -> Result<Self> {
        Self::start(vec![text("done")])
    }

    /// A command, then a text.
    pub(crate) fn one_tool() -> Result<Self> {
        let arguments = r#"{\"command\":\"echo hi\",\"description\":\"say hi\"}"#;
        let call = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\
             \"function\":{{\"name\":\"bash\",\"arguments\":\"{arguments}\"}}}}]}},\"finish_reason\":\"tool_calls\"}}]}}\n\n\
             data: [DONE]\n\n"
        );
        Self::start(vec![call, text("done")])
    }

    /// So many calls of `read`, a step each, then a text.
    pub(crate) fn steps(count: usize) -> Result<Self> {
        let call = |step: usize| {
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c{step}\",\"type\":\"function\",\
                 \"function\":{{\"name\":\"read\",\"arguments\":\"{{\\\"file_path\\\":\\\"a.txt\\\"}}\"}}}}]}},\"finish_reason\":\"tool_calls\"}}]}}\n\n\
                 data: [DONE]\n\n"
            )
        };
        Self::start((0..count).map(call).chain([text("done")]).collect())
    }

    /// From the last byte of each answer to the first of the loop's next request.
    pub(crate) fn between(&self) -> Vec<Duration> {
        let seen = self.seen.lock();
        seen.map_or_else(|_| Vec::new(), |seen| seen.between.clone())
    }

    fn start(answers: Vec<String>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let of_server = Arc::clone(&seen);
        std::thread::spawn(move || serve(&listener, answers, &of_server));
        Ok(Self { address, seen })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// When the first request's head was there.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.seen.lock().ok()?.first
    }

    /// Looks at this process's memory at each request.
    pub(crate) fn watch(&self, process: u32) {
        if let Ok(mut seen) = self.seen.lock() {
            seen.watched = Some(process);
        }
    }

    pub(crate) fn peak_kib(&self) -> Option<u64> {
        self.seen.lock().ok()?.peak_kib
    }
}

fn text(text: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

fn serve(listener: &TcpListener, answers: Vec<String>, seen: &Arc<Mutex<Seen>>) {
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    while let Ok((stream, _)) = listener.accept() {
        // Else the system keeps an answer's last bytes back until what came before was acknowledged.
        let _ = stream.set_nodelay(true);
        let (answers, seen) = (Arc::clone(&answers), Arc::clone(seen));
        // A run asks for its title beside its turn, over a connection of its own.
        std::thread::spawn(move || connection(stream, &answers, &seen));
    }
}

/// Serves a connection for as many requests as come over it.
fn connection(
    stream: TcpStream,
    answers: &Mutex<std::vec::IntoIter<String>>,
    seen: &Mutex<Seen>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut length = 0;
        let mut line = String::new();
        reader.fill_buf()?;
        let begun = Instant::now();
        while reader.read_line(&mut line)? > 0 && line != "\r\n" {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let arrived = Instant::now();
        let mut request = String::new();
        reader.by_ref().take(length).read_to_string(&mut request)?;
        // Only the loop offers tools.
        let of_loop = request.contains("\"tools\":");
        let body = if of_loop {
            note(seen, begun, arrived);
            let next = answers.lock().ok().and_then(|mut answers| answers.next());
            let Some(body) = next else {
                return Ok(());
            };
            body
        } else {
            text("A title")
        };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        stream.flush()?;
        if of_loop && let Ok(mut seen) = seen.lock() {
            seen.answered = Some(Instant::now());
        }
    }
}

/// A request of the loop's: when its first byte was there, and when its head.
fn note(seen: &Mutex<Seen>, begun: Instant, arrived: Instant) {
    let Ok(mut seen) = seen.lock() else {
        return;
    };
    if let Some(answered) = seen.answered.take() {
        seen.between.push(begun.duration_since(answered));
    }
    seen.first.get_or_insert(arrived);
    if let Some(process) = seen.watched {
        let peak = peak_of(process);
        seen.peak_kib = seen.peak_kib.max(peak);
    }
}

/// `VmHWM`: the most that the process has had resident, in KiB.
fn peak_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
