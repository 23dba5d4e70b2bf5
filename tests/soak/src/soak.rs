//! Conversations in all weathers, a few side by side, until the provider was asked so many times.
//!
//! After each conversation its log has to be sound, with every turn ended, and to open to the surface that the agent had;
//! some go on from the file then, with another protocol. At the end nothing may be held that was not held before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dsh_agent::{CancelCause, Clock, Message, RunOutcome, StartSource, SystemClock};
use dsh_model::Models;
use dsh_session::{Digest, Header, Kind, Session};
use dsh_store::{Store, StoreConfig, Target, Writer};
use dsh_torture::random::Random;
use mock_provider::{Mock, Protocol};
use serde_json::json;

use crate::leaks::{Held, resident_kib};
use crate::rig::{Attempts, Conversation, Rig, Routes};
use crate::weather::{Weather, speech};

/// Conversations side by side.
const WIDTH: usize = 4;
/// Before what is resident is measured: caches fill, arenas grow.
const WARM_UP: u64 = 5;

/// What a soak came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Requests that the provider saw.
    pub calls: u64,
    /// Sessions that were made and read again.
    pub sessions: u64,
    /// How turns ended: `completed`, `aborted`, or a failure's code.
    pub turns: BTreeMap<String, u64>,
    /// A message of each failure's code.
    pub said: BTreeMap<String, String>,
    /// What the provider did.
    pub weathers: BTreeMap<Weather, u64>,
    /// Attempts that were made again.
    pub retries: u64,
    /// Attempts at all.
    pub attempts: u64,
    /// Resident after the warm-up and at the end, in KiB.
    pub resident_kib: [u64; 2],
}

/// What the provider does next.
struct Sky {
    random: Random,
    said: u64,
    weathers: BTreeMap<Weather, u64>,
    /// What the model meant to say: an answer that completes a turn is the whole of one of these.
    texts: BTreeSet<String>,
    /// Of these, words may have been lost.
    garbled: Vec<String>,
}

/// Asks `calls` times at least, with conversations in a store below `folder`.
///
/// # Errors
/// What does not hold, with the session that it was found in.
pub async fn run(protocols: &[Protocol], calls: u64, seed: u64, folder: &Path) -> Result<Tally> {
    let sky = Arc::new(Mutex::new(Sky {
        random: Random::new(seed),
        said: 0,
        weathers: BTreeMap::new(),
        texts: BTreeSet::new(),
        garbled: Vec::new(),
    }));
    let of_mock = Arc::clone(&sky);
    let mock = Mock::with(move |request| {
        let mut sky = of_mock.lock().unwrap_or_else(PoisonError::into_inner);
        let protocol = Protocol::of(&request.path).expect("a path of a protocol");
        sky.said += 1;
        let number = sky.said;
        let said = speech(number, &mut sky.random);
        let weather = Weather::thrown(&mut sky.random);
        *sky.weathers.entry(weather).or_default() += 1;
        // Garbage may swallow an event without a trace.
        if weather == Weather::Garbage {
            sky.garbled.push(said.text().to_owned());
        } else {
            sky.texts.insert(said.text().to_owned());
        }
        weather.answer(protocol, &said, &mut sky.random)
    });
    let routes = Routes {
        idle_timeout_ms: 150,
        retry_policy: json!({
            "mode": "normal", "maxRetries": 3,
            "backoff": {"initialDelayMs": 1, "maxDelayMs": 2000, "jitterRatio": 0.5},
        }),
        longest_wait_ms: 5.0,
    };
    let rig = Arc::new(Rig::new(protocols, &mock.base_url(), &routes).await?);
    let store = Store::open(StoreConfig::new(folder))?;
    let attempts = Arc::new(Attempts::default());
    // What is made once and kept is made by a conversation that does not count.
    let shared = Shared {
        rig,
        store,
        sky: Arc::clone(&sky),
        tally: Arc::default(),
        protocols: protocols.to_vec(),
        asked: Arc::new(AtomicU64::new(0)),
        made: Arc::new(AtomicU64::new(0)),
    };
    let warm = shared.rig.models(&attempts)?;
    shared.until(&warm, &mock, 2 * WIDTH as u64, seed).await?;
    drop(warm);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let before = Held::now()?;

    let models = shared.rig.models(&attempts)?;
    shared
        .until(&models, &mock, calls / WARM_UP, seed + 1)
        .await?;
    let warm = resident_kib()?;
    shared.until(&models, &mock, calls, seed + 2).await?;
    let end = resident_kib()?;

    drop(models);
    before.again().await?;
    ensure!(
        attempts.open() == 0,
        "adapters keep {} attempts",
        attempts.open()
    );
    let mut tally = std::mem::take(&mut *lock(&shared.tally));
    tally.calls = lock(&sky).said;
    tally.weathers = lock(&sky).weathers.clone();
    tally.attempts = attempts.opened();
    tally.resident_kib = [warm, end];
    Ok(tally)
}

/// What conversations have in common.
#[derive(Clone)]
struct Shared {
    rig: Arc<Rig>,
    store: Store,
    sky: Arc<Mutex<Sky>>,
    tally: Arc<Mutex<Tally>>,
    protocols: Vec<Protocol>,
    /// Requests when conversations were last counted.
    asked: Arc<AtomicU64>,
    made: Arc<AtomicU64>,
}

impl Shared {
    /// Conversations until so many requests were made.
    async fn until(&self, models: &Arc<Models>, mock: &Mock, calls: u64, seed: u64) -> Result<()> {
        let mut running = tokio::task::JoinSet::new();
        loop {
            self.asked.store(lock(&self.sky).said, Ordering::SeqCst);
            while running.len() < WIDTH && self.asked.load(Ordering::SeqCst) < calls {
                let number = self.made.fetch_add(1, Ordering::SeqCst);
                let random = Random::new(seed ^ (number << 20));
                let (shared, models) = (self.clone(), Arc::clone(models));
                running.spawn(async move {
                    let id = format!("soak-{number}");
                    let done = shared.conversation(&models, &id, random).await;
                    done.with_context(|| format!("session {id}"))
                });
                // So that many do not start at once for the last few calls.
                self.asked.fetch_add(1, Ordering::SeqCst);
            }
            // The bodies of requests are no memory of ours.
            mock.forget();
            match running.join_next().await {
                None => return Ok(()),
                Some(done) => done??,
            }
        }
    }

    /// Some turns, a look at the file, and perhaps some more turns from there.
    async fn conversation(&self, models: &Arc<Models>, id: &str, mut random: Random) -> Result<()> {
        let mut session = Session::new(Header::new(id, now_ms().unsigned_abs()))?;
        let mut source = StartSource::Startup;
        let mut writer = self.store.create(&session)?;
        for _ in 0..=random.below(2) {
            let protocol = self.protocols[random.below(self.protocols.len())];
            let parts = (session, writer);
            let conversation = self.rig.conversation(models, protocol, parts, source)?;
            for _ in 0..=random.below(4) {
                self.turn(&conversation, &mut random).await?;
            }
            let shown = conversation.log.messages()?.digest();
            conversation.close().await?;
            (session, writer) = self.reopened(id, shown).await?;
            source = StartSource::Resume;
        }
        writer.close().await?;
        lock(&self.tally).sessions += 1;
        Ok(())
    }

    /// One prompt and what comes of it; now and then somebody gives up.
    async fn turn(&self, conversation: &Conversation, random: &mut Random) -> Result<()> {
        let (agent, log) = (&conversation.agent, &conversation.log);
        let first = log.read(Session::next_seq);
        agent.followup(&Message::from_person("And what else is there?"))?;
        if random.percent(5) {
            let wait = Duration::from_millis(random.below(40) as u64);
            tokio::time::sleep(wait).await;
            agent.cancel(CancelCause::User, false)?;
        }
        agent.when_idle().await;
        let (outcome, in_turn) =
            log.read(|session| (RunOutcome::of(session, first), session.in_turn()));
        ensure!(!in_turn, "a turn is open though the agent is idle");
        // A turn that was given up before it began has no end either.
        let kind = outcome.kind().unwrap_or_else(|| "never begun".to_owned());
        if outcome.completed() {
            let sky = lock(&self.sky);
            let known = sky.texts.contains(&outcome.answer)
                || sky
                    .garbled
                    .iter()
                    .any(|said| is_left_of(&outcome.answer, said));
            drop(sky);
            ensure!(known, "the provider never said {:?}", outcome.answer);
        }
        let end = match outcome.error() {
            Some(error) => {
                let mut tally = lock(&self.tally);
                tally.said.insert(error.code.clone(), error.message);
                error.code
            }
            None => kind,
        };
        *lock(&self.tally).turns.entry(end).or_default() += 1;
        Ok(())
    }

    /// Closed a moment ago, the file is sound, ended, and shows the model the same.
    async fn reopened(&self, id: &str, shown: Digest) -> Result<(Session, Writer)> {
        let (store, name) = (self.store.clone(), id.to_owned());
        let work = tokio::task::spawn_blocking(move || -> Result<_> {
            let found = store.inspect(&Target::Id(name.clone()))?;
            let fault = (&found.damage, &found.torn, found.closers.len());
            ensure!(
                fault == (&None, &None, 0),
                "the log is not sound: {fault:?}"
            );
            let events = found.log.to_vec()?;
            let count = |kind: &Kind| events.iter().filter(|event| event.kind == *kind).count();
            ensure!(
                count(&Kind::TurnStart) == count(&Kind::TurnEnd)
                    && count(&Kind::StepStart) == count(&Kind::StepEnd),
                "a turn or a step has no end"
            );
            let retries = count(&Kind::LlmRetry);
            let (mut session, writer) = store.resume(&name, now_ms())?;
            ensure!(
                session.messages()?.digest() == shown,
                "the model would see something else"
            );
            Ok((session, writer, retries as u64))
        });
        let (session, writer, retries) = work.await??;
        lock(&self.tally).retries += retries;
        Ok((session, writer))
    }
}

/// Whether a text is what is left when words are lost.
fn is_left_of(text: &str, said: &str) -> bool {
    let mut said = said.split(' ');
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    words.all(|word| said.any(|known| known == word))
}

fn now_ms() -> i64 {
    SystemClock.now_ms()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} requests, {} attempts, {} retries, {} sessions",
            self.calls, self.attempts, self.retries, self.sessions
        )?;
        writeln!(f, "turns: {:?}", self.turns)?;
        for (code, message) in &self.said {
            writeln!(f, "  {code}: {message}")?;
        }
        writeln!(f, "the provider's part: {:?}", self.weathers)?;
        let [warm, end] = self.resident_kib;
        write!(
            f,
            "resident: {warm} KiB after the warm-up, {end} KiB at the end"
        )
    }
}
