//! Telling without waiting: a queue and a task for each listener that is told
//! something. A slow observer delays nobody; what piled up for it comes in one
//! call, in order.
//!
//! A call into a component costs microseconds and a step has dozens of events, so
//! a task that was woken lingers for what follows before it calls. Nobody waits
//! for that: who needs a listener to be up to date ([`Observers::catch_up`], and
//! whoever settles) puts a mark into its queue and hurries it.
//!
//! A listener that is also asked to decide is told all that was queued for it before
//! ([`Observers::catch_up`]), so that a decision may rest on what happened. What
//! it listens to *beside* the turn has a queue and an instance of its own, which
//! nothing but the end of the agent waits for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_session::Json;
use futures_util::future::join_all;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::events::EventSpec;
use super::listener::Listener;
use super::report::Reports;
use super::row::{Row, Taken};

/// How long more is waited for after something came.
const LINGER: Duration = Duration::from_millis(20);

/// Payloads of one call, in number and in bytes.
const MOST: usize = 1024;
const MOST_BYTES: usize = 1 << 20;

enum Told {
    Event(&'static EventSpec, Json),
    /// Answered when all before it was delivered.
    Mark(oneshot::Sender<()>),
}

/// What teller and task share.
#[derive(Default)]
struct Progress {
    /// Events that are queued and not delivered.
    waiting: AtomicUsize,
    hurry: Notify,
}

struct Observer {
    row: usize,
    beside: bool,
    takes: Vec<Taken>,
    queue: mpsc::UnboundedSender<Told>,
    progress: Arc<Progress>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
pub(super) struct Observers(Vec<Observer>);

impl Observers {
    /// Must be called inside a tokio runtime if any row is told anything.
    pub(super) fn new(rows: &[Row], reports: &Arc<Reports>) -> Self {
        let mut observers = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            for beside in [false, true] {
                let told = |taken: &&Taken| taken.spec.mode.only_tells() && taken.beside == beside;
                let takes: Vec<_> = row.takes.iter().filter(told).cloned().collect();
                if takes.is_empty() {
                    continue;
                }
                let listener = if beside { row.listener.beside() } else { None };
                let listener = listener.unwrap_or_else(|| Arc::clone(&row.listener));
                observers.push(Observer::start(index, beside, takes, listener, reports));
            }
        }
        Self(observers)
    }

    pub(super) fn tell(
        &self,
        spec: &'static EventSpec,
        key: Option<&str>,
        payload: impl FnOnce() -> Json,
    ) {
        let mut takers = self.0.iter().filter(|observer| observer.takes(spec, key));
        let Some(first) = takers.next() else {
            return;
        };
        let json = payload();
        super::events::assert_payload(spec, &json);
        for observer in takers {
            observer.put(spec, json.clone());
        }
        first.put(spec, json);
    }

    /// Waits until a row was told what was queued for it, but for what it takes beside.
    pub(super) async fn catch_up(&self, row: usize, listener: &dyn Listener) {
        for observer in &self.0 {
            let behind = observer.progress.waiting.load(Ordering::Acquire) > 0;
            // Whoever is inside of its own call would wait for itself.
            if observer.row == row && !observer.beside && behind && !listener.is_entered() {
                observer.mark().await;
            }
        }
    }

    /// Waits until all rows that take an event were told what was queued for
    /// them, side by side.
    pub(super) async fn told(&self, rows: &[Row], spec: &'static EventSpec, key: Option<&str>) {
        let waits = |observer: &&Observer| {
            let entered = rows
                .get(observer.row)
                .is_some_and(|row| row.listener.is_entered());
            observer.takes(spec, key) && !observer.beside && !entered
        };
        join_all(self.0.iter().filter(waits).map(Observer::mark)).await;
    }

    /// Waits until everybody was told everything.
    pub(super) async fn settle(&self) {
        join_all(self.0.iter().map(Observer::mark)).await;
    }
}

impl Observer {
    fn start(
        row: usize,
        beside: bool,
        takes: Vec<Taken>,
        listener: Arc<dyn Listener>,
        reports: &Arc<Reports>,
    ) -> Self {
        let (queue, told) = mpsc::unbounded_channel();
        let progress = Arc::new(Progress::default());
        let delivery = Delivery {
            listener,
            progress: Arc::clone(&progress),
            reports: Arc::clone(reports),
        };
        let task = tokio::spawn(delivery.run(told));
        Self {
            row,
            beside,
            takes,
            queue,
            progress,
            task: Mutex::new(Some(task)),
        }
    }

    fn takes(&self, spec: &EventSpec, key: Option<&str>) -> bool {
        self.takes.iter().any(|taken| taken.covers(spec, key))
    }

    fn put(&self, spec: &'static EventSpec, json: Json) {
        self.progress.waiting.fetch_add(1, Ordering::AcqRel);
        let _ = self.queue.send(Told::Event(spec, json));
    }

    async fn mark(&self) {
        let (mark, reached) = oneshot::channel();
        if self.queue.send(Told::Mark(mark)).is_ok() {
            self.progress.hurry.notify_one();
            let _ = reached.await;
        }
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        for observer in &self.0 {
            let task = observer
                .task
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take();
            if let Some(task) = task {
                task.abort();
            }
        }
    }
}

/// The task of a queue.
struct Delivery {
    listener: Arc<dyn Listener>,
    progress: Arc<Progress>,
    reports: Arc<Reports>,
}

impl Delivery {
    async fn run(self, mut queue: mpsc::UnboundedReceiver<Told>) {
        let mut waiting = Vec::new();
        while queue.recv_many(&mut waiting, MOST).await > 0 {
            if !waiting.iter().any(|told| matches!(told, Told::Mark(_))) {
                tokio::select! {
                    () = tokio::time::sleep(LINGER) => {}
                    () = self.progress.hurry.notified() => {}
                }
                while waiting.len() < MOST
                    && let Ok(told) = queue.try_recv()
                {
                    waiting.push(told);
                }
            }
            self.deliver(&mut waiting).await;
        }
    }

    /// Runs of one event become one call.
    async fn deliver(&self, waiting: &mut Vec<Told>) {
        let mut batch: Option<(&'static EventSpec, Vec<Json>)> = None;
        let mut bytes = 0;
        for told in waiting.drain(..) {
            match told {
                Told::Event(spec, payload) => {
                    let fits = batch.as_ref().is_none_or(|(other, _)| {
                        std::ptr::eq(*other, spec) && bytes + payload.as_str().len() <= MOST_BYTES
                    });
                    if !fits {
                        self.flush(&mut batch).await;
                        bytes = 0;
                    }
                    bytes += payload.as_str().len();
                    batch
                        .get_or_insert_with(|| (spec, Vec::new()))
                        .1
                        .push(payload);
                }
                Told::Mark(reached) => {
                    self.flush(&mut batch).await;
                    bytes = 0;
                    let _ = reached.send(());
                }
            }
        }
        self.flush(&mut batch).await;
    }

    async fn flush(&self, batch: &mut Option<(&'static EventSpec, Vec<Json>)>) {
        let Some((spec, payloads)) = batch.take() else {
            return;
        };
        if let Err(error) = self.listener.notify(spec.name, &payloads).await {
            self.reports.failed(&*self.listener, spec, &error, false);
        }
        self.progress
            .waiting
            .fetch_sub(payloads.len(), Ordering::AcqRel);
    }
}
