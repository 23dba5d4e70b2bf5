//! Telling without waiting: a queue and a task for each listener that is told
//! something. A slow observer delays nobody; what piled up for it comes in one
//! call, in order.

use std::sync::{Arc, Mutex};

use dsh_session::Json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::events::{Mode, event};
use super::listener::{Listener, Subscription};

enum Told {
    Event(&'static str, Json),
    /// Answered when all before it was delivered.
    Mark(oneshot::Sender<()>),
}

struct Observer {
    subscriptions: Vec<Subscription>,
    queue: mpsc::UnboundedSender<Told>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
pub(super) struct Observers(Vec<Observer>);

impl Observers {
    pub(super) fn new<'a>(
        rows: impl Iterator<Item = (&'a Arc<dyn Listener>, &'a [Subscription])>,
    ) -> Self {
        let told = |subscription: &&Subscription| {
            event(&subscription.event).is_some_and(|spec| spec.mode == Mode::Notify)
        };
        Self(
            rows.filter_map(|(listener, subscriptions)| {
                let subscriptions: Vec<_> = subscriptions.iter().filter(told).cloned().collect();
                if subscriptions.is_empty() {
                    return None;
                }
                let (queue, told) = mpsc::unbounded_channel();
                let task = tokio::spawn(deliver(Arc::clone(listener), told));
                Some(Observer {
                    subscriptions,
                    queue,
                    task: Mutex::new(Some(task)),
                })
            })
            .collect(),
        )
    }

    pub(super) fn tell(
        &self,
        name: &'static str,
        key: Option<&str>,
        payload: impl FnOnce() -> Json,
    ) {
        let takes = |observer: &&Observer| {
            observer
                .subscriptions
                .iter()
                .any(|subscription| subscription.covers(name, key))
        };
        let mut made: Option<Json> = None;
        let mut payload = Some(payload);
        for observer in self.0.iter().filter(takes) {
            let json = match (&made, payload.take()) {
                (Some(json), _) => json.clone(),
                (None, Some(make)) => made.insert(make()).clone(),
                (None, None) => return,
            };
            let _ = observer.queue.send(Told::Event(name, json));
        }
    }

    pub(super) async fn settle(&self) {
        for observer in &self.0 {
            let (mark, reached) = oneshot::channel();
            if observer.queue.send(Told::Mark(mark)).is_ok() {
                let _ = reached.await;
            }
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

async fn deliver(listener: Arc<dyn Listener>, mut queue: mpsc::UnboundedReceiver<Told>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, 256).await > 0 {
        let mut batch: (&'static str, Vec<Json>) = ("", Vec::new());
        for told in waiting.drain(..) {
            match told {
                Told::Event(name, payload) => {
                    if name != batch.0 {
                        flush(&*listener, &mut batch).await;
                        batch.0 = name;
                    }
                    batch.1.push(payload);
                }
                Told::Mark(reached) => {
                    flush(&*listener, &mut batch).await;
                    let _ = reached.send(());
                }
            }
        }
        flush(&*listener, &mut batch).await;
    }
}

async fn flush(listener: &dyn Listener, batch: &mut (&'static str, Vec<Json>)) {
    if !batch.1.is_empty() {
        let payloads = std::mem::take(&mut batch.1);
        listener.notify(batch.0, &payloads).await;
    }
}
