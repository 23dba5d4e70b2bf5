//! The threads that write. All writers of a store share a few, since a process may hold thousands of sessions and
//! each of them is nearly always idle.
//!
//! A thread takes the oldest job, or the timer that is due, or sleeps until one is. Threads are started when there is
//! work and none is idle, up to [`MAX_THREADS`]: they mostly wait for the disk, so their number is not the
//! number of cores.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Instant;

const MAX_THREADS: usize = 16;

/// What the threads run.
pub(crate) trait Job: Send + Sync {
    /// Writes until there is nothing to do at once.
    fn run(self: Arc<Self>);
    /// A timer that was set for `deadline` fired.
    fn fired(self: Arc<Self>, deadline: Instant);
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<dyn Job>>,
    timers: BTreeMap<(Instant, u64), Weak<dyn Job>>,
    next: u64,
    threads: usize,
    idle: usize,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// What writers hold of a pool: enough to hand in work, not enough to keep the threads alive.
#[derive(Clone)]
pub(crate) struct Threads(Arc<Shared>);

/// The threads of one store. Dropping it lets them finish what is ready and end.
pub(crate) struct Pool(Threads);

impl Pool {
    pub(crate) fn new() -> Self {
        Self(Threads(Arc::new(Shared::default())))
    }

    /// A handle, with at least one thread behind it.
    pub(crate) fn threads(&self) -> io::Result<Threads> {
        let threads = self.0.clone();
        let mut state = threads.lock();
        if state.threads == 0 {
            threads.spawn(&mut state)?;
        }
        drop(state);
        Ok(threads)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().stopping = true;
        self.0.0.wake.notify_all();
    }
}

enum Task {
    Run(Arc<dyn Job>),
    Timer(Weak<dyn Job>, Instant),
    End,
}

impl Threads {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, state: &mut State) -> io::Result<()> {
        let threads = self.clone();
        thread::Builder::new()
            .name("dsh-store".to_owned())
            .spawn(move || threads.work())?;
        state.threads += 1;
        Ok(())
    }

    /// Sees to it that a thread looks at what was just added.
    fn wake(&self, state: &mut State) {
        // An idle thread may have been woken for an earlier job already, so jobs are counted, not threads alone.
        let short = state.idle == 0 || state.ready.len() > state.idle;
        if short && state.threads < MAX_THREADS {
            // One thread is there already, so failing to start another one only costs time.
            let _ = self.spawn(state);
        }
        self.0.wake.notify_one();
    }

    /// Runs a job soon.
    pub(crate) fn submit(&self, job: Arc<dyn Job>) {
        let mut state = self.lock();
        state.ready.push_back(job);
        self.wake(&mut state);
    }

    /// Fires a job's timer at `deadline`. A timer cannot be taken back; the job ignores a stale one.
    pub(crate) fn arm(&self, job: &Arc<dyn Job>, deadline: Instant) {
        let mut state = self.lock();
        let key = (deadline, state.next);
        state.next += 1;
        state.timers.insert(key, Arc::downgrade(job));
        if state
            .timers
            .first_key_value()
            .is_some_and(|(first, _)| *first == key)
        {
            self.wake(&mut state);
        }
    }

    fn next(&self) -> Task {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.ready.pop_front() {
                return Task::Run(job);
            }
            let now = Instant::now();
            let first = state.timers.first_key_value().map(|((at, _), _)| *at);
            if let Some(at) = first.filter(|at| *at <= now)
                && let Some((_, job)) = state.timers.pop_first()
            {
                return Task::Timer(job, at);
            }
            if state.stopping {
                state.threads -= 1;
                return Task::End;
            }
            state.idle += 1;
            state = match first {
                Some(at) => {
                    self.0
                        .wake
                        .wait_timeout(state, at - now)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .0
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
            state.idle -= 1;
        }
    }

    fn work(self) {
        loop {
            match self.next() {
                Task::Run(job) => job.run(),
                Task::Timer(job, deadline) => {
                    if let Some(job) = job.upgrade() {
                        job.fired(deadline);
                    }
                }
                Task::End => return,
            }
        }
    }
}
