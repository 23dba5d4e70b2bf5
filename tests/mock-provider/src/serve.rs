//! The server.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::answer::{Answer, End, Step};
use crate::authority::Authority;
use crate::h2;

/// Requests kept; more are answered with 503.
const MAX_REQUESTS: usize = 10_000;
/// Bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;
/// Bytes of a request's body.
pub(crate) const MAX_BODY: usize = 64 << 20;

/// What a request for a title is answered with, unless a test says otherwise.
const SHORT_TITLE: &str = concat!(
    r#"data: {"id":"t","choices":[{"index":0,"delta":{"role":"assistant","content":"Short title"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"t","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

type Script = Box<dyn FnMut(&Recorded) -> Answer + Send>;

/// A request that came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// `GET`, `POST`, ...
    pub method: String,
    /// With its query.
    pub path: String,
    /// In order, as they were written.
    pub headers: Vec<(String, String)>,
    /// The whole of it.
    pub body: Vec<u8>,
    /// Which connection it came over, counted from 0.
    pub connection: u64,
    /// How many came over that one before it.
    pub before: u64,
}

impl Recorded {
    /// A header's value; case does not matter.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it asks the model for a session's title, which every run does beside
    /// its turn: without tools, without thinking, and for little output.
    #[must_use]
    pub fn asks_for_a_title(&self) -> bool {
        let text = String::from_utf8_lossy(&self.body);
        let has = |member: &str| text.contains(member);
        !has(r#""tools":["#)
            && has(r#""thinking":{"type":"disabled"}"#)
            && has(r#""max_tokens":64"#)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A running server.
pub struct Mock {
    address: SocketAddr,
    secure: bool,
    shared: Arc<Shared>,
    gate: watch::Sender<u64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

pub(crate) struct Shared {
    script: Mutex<Script>,
    /// Where all tunnels of a proxy lead.
    tunnel: Option<u16>,
    /// Answers the requests for titles.
    titles: Mutex<Script>,
    requests: Mutex<Vec<Recorded>>,
    title_requests: Mutex<Vec<Recorded>>,
    pub(crate) written: AtomicU64,
    accepted: AtomicU64,
    closed: AtomicU64,
}

impl Mock {
    /// Gives these answers one after another, whatever is asked; then 500.
    ///
    /// # Panics
    /// Where no loopback port can be had.
    #[must_use]
    pub fn start(answers: Vec<Answer>) -> Self {
        let mut answers = answers.into_iter();
        Self::with(move |_| {
            answers
                .next()
                .unwrap_or_else(|| Answer::new(500, "the mock has no answer left"))
        })
    }

    /// Lets a function answer.
    ///
    /// # Panics
    /// Where no loopback port can be had.
    #[must_use]
    pub fn with(script: impl FnMut(&Recorded) -> Answer + Send + 'static) -> Self {
        Self::serve(script, None, None)
    }

    /// A proxy: a request to open a tunnel is one whose method is `CONNECT`; where the script
    /// answers it with 200 it leads to `port` of this machine, whatever it asks for.
    ///
    /// # Panics
    /// Where no loopback port can be had.
    #[must_use]
    pub fn proxy(port: u16, script: impl FnMut(&Recorded) -> Answer + Send + 'static) -> Self {
        Self::serve(script, None, Some(port))
    }

    /// The same over TLS, with a certificate of this authority's for `subject`: `127.0.0.1`
    /// for one that a client which trusts the authority takes.
    ///
    /// # Panics
    /// Where no loopback port can be had, or `subject` is no name.
    #[must_use]
    pub fn secure(
        authority: &Authority,
        subject: &str,
        script: impl FnMut(&Recorded) -> Answer + Send + 'static,
    ) -> Self {
        Self::serve(script, Some(authority.acceptor(subject, &[])), None)
    }

    /// The same, and HTTP/2 with a client that asks for it.
    ///
    /// # Panics
    /// Where no loopback port can be had, or `subject` is no name.
    #[must_use]
    pub fn h2(
        authority: &Authority,
        subject: &str,
        script: impl FnMut(&Recorded) -> Answer + Send + 'static,
    ) -> Self {
        let acceptor = authority.acceptor(subject, &["h2", "http/1.1"]);
        Self::serve(script, Some(acceptor), None)
    }

    fn serve(
        script: impl FnMut(&Recorded) -> Answer + Send + 'static,
        tls: Option<TlsAcceptor>,
        tunnel: Option<u16>,
    ) -> Self {
        let secure = tls.is_some();
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            tunnel,
            titles: Mutex::new(Box::new(|_| Answer::sse(SHORT_TITLE))),
            requests: Mutex::default(),
            title_requests: Mutex::default(),
            written: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            closed: AtomicU64::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let (gate, gate_watch) = watch::channel(0);
        let for_thread = Arc::clone(&shared);
        let thread =
            std::thread::spawn(move || run(&for_thread, &gate_watch, stopped, &tell, tls.as_ref()));
        let address = told
            .recv()
            .expect("the mock's thread ended")
            .expect("no loopback port");
        Self {
            address,
            secure,
            shared,
            gate,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// `http://127.0.0.1:<port>` (`https:` over TLS), without a slash at its end.
    #[must_use]
    pub fn base_url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Answers requests for a session's title. They are told apart from all others,
    /// take none of their answers, and are kept in [`Mock::title_requests`].
    #[must_use]
    pub fn answering_titles(
        self,
        script: impl FnMut(&Recorded) -> Answer + Send + 'static,
    ) -> Self {
        *lock(&self.shared.titles) = Box::new(script);
        self
    }

    /// The requests for a title that came so far.
    #[must_use]
    pub fn title_requests(&self) -> Vec<Recorded> {
        lock(&self.shared.title_requests).clone()
    }

    /// All that came so far, but for requests for a title.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }

    /// Keeps nothing of the requests that came so far, for tests that make very many.
    pub fn forget(&self) {
        lock(&self.shared.requests).clear();
        lock(&self.shared.title_requests).clear();
    }

    /// Lets one more [`Step::Gate`] of each answer pass.
    pub fn open_gate(&self) {
        self.gate.send_modify(|opened| *opened += 1);
    }

    /// Bytes of bodies that the system took so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::SeqCst)
    }

    /// Connections that were made.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that are over, on either side's doing.
    #[must_use]
    pub fn closed(&self) -> u64 {
        self.shared.closed.load(Ordering::SeqCst)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    shared: &Arc<Shared>,
    gate: &watch::Receiver<u64>,
    stopped: oneshot::Receiver<()>,
    tell: &mpsc::Sender<io::Result<SocketAddr>>,
    tls: Option<&TlsAcceptor>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return drop(tell.send(Err(error))),
    };
    runtime.block_on(async {
        let listener = match TcpListener::bind(("127.0.0.1", 0)).await {
            Ok(listener) => listener,
            Err(error) => return drop(tell.send(Err(error))),
        };
        let _ = tell.send(listener.local_addr());
        let accept = async {
            while let Ok((stream, _)) = listener.accept().await {
                let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
                let (shared, gate, tls) = (Arc::clone(shared), gate.clone(), tls.cloned());
                tokio::spawn(async move {
                    // A client that goes away, or trusts no such server, is part of what tests do.
                    let _ = match tls {
                        None => connection(stream, &shared, gate, number).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                                h2::connection(stream, &shared, gate, number).await
                            }
                            Ok(stream) => connection(stream, &shared, gate, number).await,
                            Err(error) => Err(error),
                        },
                    };
                    shared.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        };
        tokio::select! {
            () = accept => {}
            _ = stopped => {}
        }
    });
}

/// What a request comes over.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin {
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Wire for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

async fn connection(
    stream: impl Wire,
    shared: &Shared,
    mut gate: watch::Receiver<u64>,
    number: u64,
) -> io::Result<()> {
    stream.tcp().set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut before = 0;
    while let Some(mut request) = read_request(&mut stream).await? {
        (request.connection, request.before) = (number, before);
        before += 1;
        let answer = shared.answer(&request);
        if let Some(port) = shared.tunnel
            && request.method == "CONNECT"
            && answer.status == 200
            && !answer.silent
        {
            let mut there = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.write_all(b"HTTP/1.1 200 Mock\r\n\r\n").await?;
            stream.flush().await?;
            tokio::io::copy_bidirectional(&mut stream, &mut there).await?;
            break;
        }
        if !play(&mut stream, answer, shared, &mut gate).await? {
            break;
        }
    }
    Ok(())
}

impl Shared {
    /// Keeps a request, and what the script says to it.
    pub(crate) fn answer(&self, request: &Recorded) -> Answer {
        let (kept, script) = if request.asks_for_a_title() {
            (&self.title_requests, &self.titles)
        } else {
            (&self.requests, &self.script)
        };
        let mut requests = lock(kept);
        if requests.len() >= MAX_REQUESTS {
            return Answer::new(503, "the mock keeps no more requests");
        }
        requests.push(request.clone());
        drop(requests);
        (lock(script))(request)
    }
}

/// Whether the connection can be used again.
async fn play(
    stream: &mut BufReader<impl Wire>,
    answer: Answer,
    shared: &Shared,
    gate: &mut watch::Receiver<u64>,
) -> io::Result<bool> {
    if let Some(delay) = answer.delay {
        tokio::time::sleep(delay).await;
    }
    if answer.silent {
        return match answer.end {
            End::Reset | End::Cut => end(stream, answer.end).await,
            _ => stall(stream).await,
        };
    }
    if !answer.raw {
        let mut head = format!("HTTP/1.1 {} Mock\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if answer.end == End::Leave {
            head.push_str("connection: close\r\n");
        }
        head.push_str("transfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await?;
    }
    let mut gates = 0;
    for step in answer.steps {
        match step {
            Step::Bytes(bytes) if bytes.is_empty() => {}
            Step::Bytes(bytes) if answer.raw => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
            }
            Step::Bytes(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(&bytes);
                chunk.extend_from_slice(b"\r\n");
                stream.write_all(&chunk).await?;
                stream.flush().await?;
                shared
                    .written
                    .fetch_add(bytes.len() as u64, Ordering::SeqCst);
            }
            Step::Pause(time) => tokio::time::sleep(time).await,
            Step::Gate => {
                gates += 1;
                let _ = gate.wait_for(|opened| *opened >= gates).await;
            }
        }
    }
    match answer.end {
        End::Clean | End::Leave if !answer.raw => {
            stream.write_all(b"0\r\n\r\n").await?;
            stream.flush().await?;
            Ok(answer.end == End::Clean)
        }
        other => end(stream, other).await,
    }
}

/// Ends what is not over by its framing; whether the connection stays.
async fn end(stream: &mut BufReader<impl Wire>, end: End) -> io::Result<bool> {
    match end {
        End::Reset => {
            // Closing without lingering resets.
            stream.get_ref().tcp().set_zero_linger()?;
            Ok(false)
        }
        End::Cut | End::Leave => Ok(false),
        End::Stall => stall(stream).await,
        End::Clean => Ok(true),
    }
}

/// Waits until the client goes away.
async fn stall(stream: &mut BufReader<impl Wire>) -> io::Result<bool> {
    let mut rest = [0; 512];
    while stream.read(&mut rest).await? > 0 {}
    Ok(false)
}

async fn read_request(stream: &mut BufReader<impl Wire>) -> io::Result<Option<Recorded>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) if head.len() < MAX_HEAD => head.push(byte),
            Ok(_) => return Err(io::Error::other("the head is too long")),
            Err(_) => return Ok(None),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut word = || first.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut request = Recorded {
        method,
        path,
        headers,
        body: Vec::new(),
        connection: 0,
        before: 0,
    };
    let length = request
        .header("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    if length > MAX_BODY {
        return Err(io::Error::other("the body is too long"));
    }
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).await?;
    Ok(Some(request))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
