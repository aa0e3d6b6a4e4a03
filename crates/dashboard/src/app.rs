//! What all requests share: the store's readers and its one writer, and what was last computed from it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, broadcast};
use unflake_core::owners::Owners;
use unflake_core::quarantine::Release;
use unflake_history::engine::{self, Missing};
use unflake_history::periods::PeriodWish;
use unflake_history::run::Label;
use unflake_history::store::{Store, StoreError};

use crate::board::Board;
use crate::board::snapshot::{QUICK, Snapshot};
use crate::board::suite::Suites;
use crate::http::metrics::Metrics;
use crate::http::problem::Problem;
use crate::http::session::Sessions;
use crate::http::tokens::TokenFile;
use crate::writer::Writer;

/// What a server is to do.
#[derive(Debug)]
pub struct Options {
    /// The history.
    pub store: PathBuf,
    /// Who may do what; without it everybody may do everything, which is for one's own machine only.
    pub tokens: Option<TokenFile>,
    /// Which days are held against which.
    pub periods: PeriodWish,
    /// Who looks after which files.
    pub owners: Owners,
    /// When tests leave quarantine.
    pub release: Release,
    /// How much is taken at once.
    pub limits: Limits,
}

/// How much is taken at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest body of a report, in bytes.
    pub body: usize,
    /// How many connections are open.
    pub connections: usize,
    /// How many requests are worked on; others wait for their turn.
    pub requests: usize,
    /// How many reports are held in memory; others wait.
    pub reports: usize,
    /// How long a request may take.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 64 * 1024 * 1024,
            connections: 1024,
            requests: 64,
            reports: 16,
            time: Duration::from_secs(60),
        }
    }
}

/// What all requests share.
pub(crate) struct App {
    pub(crate) options: Options,
    pub(crate) writer: Writer,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) sessions: Sessions,
    pub(crate) suites: Suites,
    /// Says that the store has grown.
    pub(crate) grown: broadcast::Sender<()>,
    /// Turns to work on a request, and to hold a report.
    pub(crate) turns: Semaphore,
    pub(crate) report_turns: Semaphore,
    /// Set when the server drains.
    pub(crate) is_draining: AtomicBool,
    idle: Mutex<Vec<Box<dyn Store>>>,
    current: RwLock<Arc<Snapshot>>,
    refreshing: Mutex<()>,
}

impl App {
    pub(crate) fn open(options: Options) -> Result<Self, StoreError> {
        let store = engine::open(&options.store, Missing::Make)?;
        store.prepare_to_serve()?;
        let metrics = Arc::new(Metrics::default());
        let (grown, _) = broadcast::channel(16);
        let writer = Writer::start(
            engine::open(&options.store, Missing::Make)?,
            options.release,
        );
        let snapshot = Snapshot::read(&*store, &options.periods, None)?;
        Ok(Self {
            writer,
            metrics,
            sessions: Sessions::new(),
            suites: Suites::default(),
            grown,
            turns: Semaphore::new(options.limits.requests),
            report_turns: Semaphore::new(options.limits.reports),
            is_draining: AtomicBool::new(false),
            idle: Mutex::new(vec![store]),
            current: RwLock::new(Arc::new(snapshot)),
            refreshing: Mutex::new(()),
            options,
        })
    }

    /// Asks the board in a thread that may wait.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Board<'_>) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        let work = move || {
            let store = app.take_store()?;
            let snapshot = app.snapshot(&*store)?;
            let answer = question(&Board {
                store: &*store,
                snapshot: &snapshot,
                suites: &app.suites,
                periods: &app.options.periods,
                owners: &app.options.owners,
                release: app.options.release,
            });
            app.idle.lock().expect("nobody panics with it").push(store);
            answer
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| Problem::Broken)?
    }

    /// Writes down what somebody says, if it makes sense on the board. When this returns well, it is on the disk.
    pub(crate) async fn say(
        self: &Arc<Self>,
        saying: impl FnOnce(&Board<'_>) -> Result<Vec<Label>, Problem> + Send + 'static,
    ) -> Result<(), Problem> {
        let labels = self.ask(saying).await?;
        Ok(self.writer.label(labels).await?)
    }

    fn take_store(&self) -> Result<Box<dyn Store>, StoreError> {
        let idle = self.idle.lock().expect("nobody panics with it").pop();
        idle.map_or_else(|| engine::open(&self.options.store, Missing::Refuse), Ok)
    }

    /// What is known of all tests: of now, where that is quick to compute. What people say counts at once.
    fn snapshot(&self, store: &dyn Store) -> Result<Arc<Snapshot>, StoreError> {
        let (current, extent) = (self.latest(), store.extent()?);
        if current.extent == extent {
            return Ok(current);
        }
        if current.took <= QUICK {
            return self.refresh(store);
        }
        if current.heard == extent.label {
            return Ok(current);
        }
        let heard = Arc::new(current.hear(store)?);
        let mut latest = self.current.write().expect("nobody panics with it");
        // Somebody else may have counted anew meanwhile; then all is heard already.
        if latest.heard < heard.heard {
            *latest = Arc::clone(&heard);
        }
        Ok(heard)
    }

    fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().expect("nobody panics with it"))
    }

    fn refresh(&self, store: &dyn Store) -> Result<Arc<Snapshot>, StoreError> {
        let _turn = self.refreshing.lock().expect("nobody panics with it");
        let known = self.latest();
        if known.extent == store.extent()? {
            return Ok(known);
        }
        let next = Snapshot::read(store, &self.options.periods, Some(&known))?;
        let next = Arc::new(next);
        *self.current.write().expect("nobody panics with it") = Arc::clone(&next);
        Ok(next)
    }

    /// Looks whether the store has grown, whoever wrote to it, and computes anew what follows from it. To be
    /// called now and then; it takes a tenth of the time at most.
    pub(crate) fn keep_up(&self, rested: Instant) -> Result<bool, Problem> {
        let store = self.take_store()?;
        let known = self.latest();
        let has_grown = known.extent != store.extent()?;
        let is_rested = rested.elapsed() >= known.took * 9;
        let is_done = has_grown && is_rested;
        if is_done {
            self.refresh(&*store)?;
        }
        self.suites
            .keep_up(&*store, &self.latest(), &self.options.periods)?;
        self.idle.lock().expect("nobody panics with it").push(store);
        Ok(is_done)
    }

    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        // Without listeners there is nobody to tell.
        let _ = self.grown.send(());
    }
}
