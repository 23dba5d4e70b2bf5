//! The writing end of one session: the queue, its log file, and the threads between them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use dsh_session::{Event, Seq};
use tokio::sync::oneshot;

use crate::StoreError;
use crate::behind::{Behind, Step};
use crate::log_file::LogFile;
use crate::pool::{Job, Pool, Threads};
use crate::store::FailureHook;

type Answer = Result<(), StoreError>;

/// Who waits for a barrier: a task, or a thread.
enum Waiter {
    Task(oneshot::Sender<Answer>),
    Thread(mpsc::Sender<Answer>),
}

impl Waiter {
    fn answer(self, answer: Answer) {
        // A waiter that went away does not want to know.
        match self {
            Self::Task(to) => drop(to.send(answer)),
            Self::Thread(to) => drop(to.send(answer)),
        }
    }
}

struct Queue {
    behind: Behind<Arc<Event>, Waiter, StoreError>,
    next_seq: u64,
    durable_seq: u64,
    /// What ended the writer for good.
    stopped: Option<StoreError>,
    /// Whether the hook knows that writing fails; it hears of the next failure when there was a success between.
    told: bool,
}

struct Core {
    id: String,
    path: PathBuf,
    queue: Mutex<Queue>,
    log: Mutex<LogFile>,
    threads: Threads,
    on_failure: Option<FailureHook>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// Does what the queue asked for; whether to write at once.
    fn follow(self: &Arc<Self>, step: Step<Waiter, StoreError>) -> bool {
        if let Some(deadline) = step.arm {
            let job: Arc<dyn Job> = self.clone();
            self.threads.arm(&job, deadline);
        }
        for (waiter, answer) in step.done {
            waiter.answer(answer);
        }
        if let (Some(e), Some(hook)) = (step.failed, &self.on_failure) {
            // A hook that panics must not take the thread along, nor the write that follows.
            let _ = catch_unwind(AssertUnwindSafe(|| hook(&self.id, &e)));
        }
        step.write
    }

    fn follow_in_background(self: &Arc<Self>, step: Step<Waiter, StoreError>) {
        if self.follow(step) {
            self.threads.submit(self.clone());
        }
    }

    fn write(&self, batch: &[Arc<Event>]) -> Answer {
        // A writer whose thread died would never answer its barriers.
        catch_unwind(AssertUnwindSafe(|| lock(&self.log).write(batch))).unwrap_or_else(|_| {
            let fault = std::io::Error::other("the writer panicked");
            Err(StoreError::io("write", &self.path)(fault))
        })
    }

    fn finish(&self, batch: &[Arc<Event>], result: Answer) -> Step<Waiter, StoreError> {
        let mut queue = lock(&self.queue);
        match result {
            Ok(()) => {
                queue.durable_seq = batch.last().map_or(queue.durable_seq, |e| e.seq.0 + 1);
                queue.told = false;
                queue.behind.finish(Ok(()))
            }
            Err(e) if e.is_transient() => {
                let mut step = queue.behind.finish(Err(e));
                let again = step.failed.is_some() && std::mem::replace(&mut queue.told, true);
                if again {
                    step.failed = None;
                }
                step
            }
            Err(e) => {
                queue.stopped = Some(e.clone());
                let done = queue.behind.stop(&e);
                // A barrier's waiters hear of it; without one, nobody would.
                let failed = done.is_empty().then_some(e);
                Step {
                    done,
                    failed,
                    ..Step::default()
                }
            }
        }
    }
}

impl Job for Core {
    fn run(self: Arc<Self>) {
        loop {
            let batch = lock(&self.queue).behind.begin();
            let result = self.write(&batch);
            let step = self.finish(&batch, result);
            if !self.follow(step) {
                return;
            }
        }
    }

    fn fired(self: Arc<Self>, deadline: Instant) {
        let step = lock(&self.queue).behind.fired(deadline);
        if self.follow(step) {
            self.run();
        }
    }
}

/// Writes one session's log behind its back. `Send + Sync`; share it in an `Arc`.
///
/// Events are queued and written as batches; only [`Writer::flush`] says that they are
/// durable. Dropping it writes what is queued (blocking) and gives the lock back.
pub struct Writer {
    core: Arc<Core>,
    /// Keeps the threads alive while anyone may write.
    _pool: Arc<Pool>,
}

impl Writer {
    pub(crate) fn new(
        pool: &Arc<Pool>,
        log: LogFile,
        next_seq: u64,
        delay: Duration,
        on_failure: Option<FailureHook>,
    ) -> Result<Self, StoreError> {
        let threads = pool
            .threads()
            .map_err(StoreError::io("start a thread that writes", log.path()))?;
        let core = Core {
            id: log.id().to_owned(),
            path: log.path().to_owned(),
            queue: Mutex::new(Queue {
                behind: Behind::new(delay),
                next_seq,
                durable_seq: next_seq,
                stopped: None,
                told: false,
            }),
            log: Mutex::new(log),
            threads,
            on_failure,
        };
        Ok(Self {
            core: Arc::new(core),
            _pool: pool.clone(),
        })
    }

    /// Queues the next event. Never waits for the disk.
    ///
    /// # Errors
    /// [`StoreError::Sequence`] when the event does not continue the log, [`StoreError::Closed`], and what stopped the
    /// writer for good ([`StoreError::TailChanged`], [`StoreError::AlreadyExists`]).
    pub fn enqueue(&self, event: Arc<Event>) -> Result<(), StoreError> {
        let mut queue = lock(&self.core.queue);
        if let Some(e) = &queue.stopped {
            return Err(e.clone());
        }
        let (expected, got) = (queue.next_seq, event.seq.0);
        if got != expected {
            return Err(StoreError::Sequence {
                id: self.core.id.clone(),
                expected,
                got,
            });
        }
        queue.next_seq += 1;
        let step = queue.behind.push(event, Instant::now());
        drop(queue);
        self.core.follow_in_background(step);
        Ok(())
    }

    fn barrier(&self, waiter: Waiter) {
        let mut queue = lock(&self.core.queue);
        if let Some(e) = queue.stopped.clone() {
            drop(queue);
            return waiter.answer(Err(e));
        }
        let step = queue.behind.flush(waiter);
        drop(queue);
        self.core.follow_in_background(step);
    }

    fn unanswered(&self) -> StoreError {
        StoreError::Closed {
            id: self.core.id.clone(),
        }
    }

    /// Waits until everything that is queued, also meanwhile, is durable. Writes at once.
    ///
    /// # Errors
    /// Why it could not be written. The events stay queued, and a later flush tries again, unless the writer has
    /// stopped for good.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let (to, answer) = oneshot::channel();
        self.barrier(Waiter::Task(to));
        answer.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// [`Writer::flush`] for callers outside a runtime; blocks the thread.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn flush_blocking(&self) -> Result<(), StoreError> {
        let (to, answer) = mpsc::channel();
        self.barrier(Waiter::Thread(to));
        answer.recv().unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Flushes, then gives the lock back. Later calls fail with [`StoreError::Closed`].
    ///
    /// # Errors
    /// As [`Writer::flush`]; the writer stays open then.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.flush().await?;
        self.release();
        Ok(())
    }

    fn release(&self) {
        let mut queue = lock(&self.core.queue);
        queue.stopped.get_or_insert_with(|| self.unanswered());
        drop(queue);
        lock(&self.core.log).release();
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// Where the log is, or will be after the first batch.
    pub fn path(&self) -> &Path {
        &self.core.path
    }

    /// The first seq that is not durable: everything before it is.
    pub fn durable_seq(&self) -> Seq {
        Seq(lock(&self.core.queue).durable_seq)
    }

    /// The seq of the event that it takes next.
    pub fn next_seq(&self) -> Seq {
        Seq(lock(&self.core.queue).next_seq)
    }

    /// Why background writing is paused or stopped, if it is.
    pub fn paused(&self) -> Option<StoreError> {
        let queue = lock(&self.core.queue);
        queue
            .stopped
            .clone()
            .or_else(|| queue.behind.paused().cloned())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let open = lock(&self.core.queue).stopped.is_none();
        if open
            && let Err(e) = self.flush_blocking()
            && let Some(hook) = &self.core.on_failure
        {
            hook(&self.core.id, &e);
        }
        self.release();
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
