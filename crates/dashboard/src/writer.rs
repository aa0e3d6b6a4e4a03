//! The one thread that writes: reports that wait are added together, so that the disk is waited for once.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;
use unflake_core::quarantine::Release;
use unflake_history::import::Whole;
use unflake_history::run::Label;
use unflake_history::store::source::{Appended, Source};
use unflake_history::store::{Store, StoreError};

use crate::board::aliases::Aliases;
use crate::board::quarantine;

/// So many reports are added together at most.
const TOGETHER: usize = 32;

/// So many may wait.
const WAITING: usize = 256;

/// What is to be written, and who waits for it.
enum Job {
    Report(Box<Whole>, oneshot::Sender<Result<Appended, WriteError>>),
    Labels(Vec<Label>, oneshot::Sender<Result<(), WriteError>>),
}

/// Why something was not written. It may be tried again.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("too much waits to be written")]
    Full,
    #[error("the server is going down")]
    Closed,
    #[error("{0}")]
    Store(String),
}

/// The way to the thread that writes.
pub(crate) struct Writer {
    jobs: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(store: Box<dyn Store>, release: Release) -> Self {
        let (sender, jobs) = sync_channel(WAITING);
        let thread = thread::spawn(move || write_all(store, release, &jobs));
        Self {
            jobs: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        }
    }

    /// Adds a report. When this returns well, it is on the disk.
    pub(crate) async fn add(&self, whole: Whole) -> Result<Appended, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Report(Box::new(whole), reply))?;
        answer.await.map_err(|_| WriteError::Closed)?
    }

    /// Adds labels.
    pub(crate) async fn label(&self, labels: Vec<Label>) -> Result<(), WriteError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Labels(labels, reply))?;
        answer.await.map_err(|_| WriteError::Closed)?
    }

    fn send(&self, job: Job) -> Result<(), WriteError> {
        let jobs = self.jobs.lock().expect("nobody panics with it");
        let jobs = jobs.as_ref().ok_or(WriteError::Closed)?;
        jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => WriteError::Full,
            TrySendError::Disconnected(_) => WriteError::Closed,
        })
    }

    /// Writes what waits, and ends.
    pub(crate) fn close(&self) {
        drop(self.jobs.lock().expect("nobody panics with it").take());
        let thread = self.thread.lock().expect("nobody panics with it").take();
        if let Some(thread) = thread {
            // A thread that panicked has said so; whoever waited for it was told.
            let _ = thread.join();
        }
    }
}

fn write_all(mut store: Box<dyn Store>, release: Release, jobs: &Receiver<Job>) {
    let mut aliases = Aliases::default();
    while let Ok(first) = jobs.recv() {
        let mut reports = Vec::new();
        let mut labels = Vec::new();
        let more = jobs.try_iter().take(TOGETHER - 1);
        for job in std::iter::once(first).chain(more) {
            match job {
                Job::Report(whole, reply) => reports.push((whole, reply)),
                Job::Labels(texts, reply) => labels.push((texts, reply)),
            }
        }
        let has_reports = !reports.is_empty();
        add_reports(&mut *store, reports);
        for (texts, reply) in labels {
            let result = store.append_labels(&texts).map_err(|error| tell(&error));
            // Whoever hung up has lost the answer, not the labels.
            let _ = reply.send(result);
        }
        if has_reports {
            // What cannot be said now is found again after the next report.
            let _ = quarantine::release_earned(&mut *store, &mut aliases, release);
        }
    }
}

type Waiting = (Box<Whole>, oneshot::Sender<Result<Appended, WriteError>>);

fn add_reports(store: &mut dyn Store, mut reports: Vec<Waiting>) {
    if reports.is_empty() {
        return;
    }
    let mut sources: Vec<&mut dyn Source> = Vec::new();
    for (whole, _) in &mut reports {
        sources.push(whole.as_mut());
    }
    let results: Vec<Result<Appended, WriteError>> = match store.append_all(&mut sources) {
        Ok(results) => results.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(tell(&error)); reports.len()],
    };
    for ((_, reply), result) in reports.into_iter().zip(results) {
        // Whoever hung up sends the report again, and it counts once.
        let _ = reply.send(result);
    }
}

fn tell(error: &StoreError) -> WriteError {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    WriteError::Store(text)
}
