//! `--output stream-json`: each event of the log as it is committed.
//!
//! A thread of its own writes, so that a reader who is slow holds up nothing of
//! the run, and one who is gone does not end it.

use std::sync::Arc;
use std::thread::JoinHandle;

use dsh_agent::Log;
use dsh_session::Event;
use tokio::sync::{mpsc, oneshot};

use crate::exit::Failure;
use crate::report;

/// The lines of a run. Dropping it ends them without a result.
pub(crate) struct Stream {
    /// Takes the last line.
    end: oneshot::Sender<String>,
    written: oneshot::Receiver<Result<(), Failure>>,
}

impl Stream {
    /// Starts with what this process has added to the session so far.
    pub(crate) fn start(log: &Log) -> Self {
        let events = log.follow();
        let before = log.read(|session| session.live_events().to_vec());
        let (end, ending) = oneshot::channel();
        let (tell, written) = oneshot::channel();
        let runtime = tokio::runtime::Handle::current();
        let _detached: JoinHandle<()> = std::thread::spawn(move || {
            let lines = runtime.block_on(lines(before, events, ending));
            // Who left does not want to know.
            let _ = tell.send(lines);
        });
        Self { end, written }
    }

    /// Writes the rest and then `result`; returns when all of it is out.
    pub(crate) async fn finish(self, result: String) -> Result<(), Failure> {
        let _ = self.end.send(result);
        self.written
            .await
            .unwrap_or_else(|_| Err(Failure::of("the thread that writes to stdout has died")))
    }
}

async fn lines(
    before: Vec<Arc<Event>>,
    mut events: mpsc::UnboundedReceiver<Arc<Event>>,
    mut ending: oneshot::Receiver<String>,
) -> Result<(), Failure> {
    for event in before {
        write(&event)?;
    }
    let result = loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => write(&event)?,
                None => break (&mut ending).await,
            },
            result = &mut ending => break result,
        }
    };
    // What was committed before the end came.
    while let Ok(event) = events.try_recv() {
        write(&event)?;
    }
    match result {
        Ok(result) => report::product(&result).map(drop),
        Err(_) => Ok(()),
    }
}

fn write(event: &Event) -> Result<(), Failure> {
    let mut line = event.line();
    line.push('\n');
    report::product(&line).map(drop)
}
