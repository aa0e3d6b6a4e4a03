//! The history as a reader of events: writes down what runs, as it runs.
//!
//! A failure waits for its verdict, or for the end. Trouble with the history is told and costs nothing else.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::comparison::AtBase;
use unflake_core::event::Event;
use unflake_core::outcome::Outcome;
use unflake_core::signature::signature;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial};
use unflake_history::batch::{Batch, Packer};
use unflake_history::dates;
use unflake_history::run::{Ended, More, Provenance, Row};
use unflake_history::sqlite::{Missing, Sqlite};
use unflake_history::store::{Refused, Source, Store, StoreError, digest_of};

use super::whence;

/// Runs are written this often, and when there are so many.
const INTERVAL: Duration = Duration::from_secs(5);
const MANY: usize = 1000;

/// The most of a message that is kept.
const MESSAGE: usize = 2000;

/// Writes runs into the history.
pub(crate) struct Recorder {
    path: PathBuf,
    store: Option<Sqlite>,
    /// Git is asked while the tests already run.
    asking: Option<JoinHandle<Provenance>>,
    provenance: Provenance,
    environment: String,
    /// The digest of what is installed.
    installed: Option<[u8; 32]>,
    /// What these runs are called.
    source: String,
    ready: Vec<Held>,
    /// Runs of tests that have failed, until their verdict.
    waiting: HashMap<TestId, Vec<Held>>,
    attempts: HashMap<TestId, u32>,
    last_written: Instant,
    written: u32,
    trouble: Option<StoreError>,
}

/// One run that is not written yet.
struct Held {
    test: TestId,
    row: Row,
    /// Where it was not that of the work tree: the revision, empty if it is not known.
    revision: Option<String>,
}

impl Recorder {
    /// Begins to write into the history at `path` what runs in `folder`.
    pub(crate) fn new(path: &Utf8Path, folder: &Utf8Path) -> Self {
        let asked: Utf8PathBuf = folder.to_owned();
        Self {
            path: path.as_std_path().to_owned(),
            store: None,
            asking: Some(thread::spawn(move || whence::provenance(&asked))),
            provenance: Provenance::default(),
            environment: String::new(),
            installed: None,
            source: whence::source(folder),
            ready: Vec::new(),
            waiting: HashMap::new(),
            attempts: HashMap::new(),
            last_written: Instant::now(),
            written: 0,
            trouble: None,
        }
    }

    /// Takes in one event.
    pub(crate) fn read(&mut self, event: &Event) {
        match event {
            Event::Listed(listing) => {
                // What was run in another module had its own around it.
                self.write();
                self.environment.clone_from(&listing.language);
                self.installed = listing.installed.as_deref().map(whence::installed);
            }
            Event::TrialEnded(trial) => self.read_trial(trial),
            Event::Judged(finding) => {
                let mut runs = self.waiting.remove(&finding.test).unwrap_or_default();
                let failed = runs
                    .iter_mut()
                    .find(|run| run.row.attempt == 1 && run.row.ended.is_failure());
                if let Some(failed) = failed {
                    let more = failed.row.more.get_or_insert_default();
                    more.verdict = Some(finding.verdict.label().to_owned());
                }
                // A run at the base that used files of the work tree is none of the base.
                let compared = finding.comparison.as_ref();
                let at_base = compared.filter(|compared| compared.at_base == AtBase::Passed);
                if let Some(comparison) = at_base {
                    for revision in runs.iter_mut().filter_map(|run| run.revision.as_mut()) {
                        revision.clone_from(&comparison.base.commit);
                    }
                }
                self.ready.append(&mut runs);
            }
            Event::VmStarted { .. }
            | Event::CollectionFailed(_)
            | Event::Unmatched { .. }
            | Event::Noted(_)
            | Event::TrialStarted { .. }
            | Event::Prepared { .. }
            | Event::SuiteEnded { .. }
            | Event::Searching { .. }
            | Event::Detected { .. }
            | Event::CulpritFound { .. }
            | Event::Latent(_)
            | Event::SessionFailed { .. }
            | Event::Ended(_) => {}
        }
        if self.ready.len() >= MANY && self.last_written.elapsed() >= INTERVAL {
            self.write();
        }
    }

    /// Writes what is left, and says what went wrong.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let mut waiting: Vec<Held> = self.waiting.drain().flat_map(|(_, runs)| runs).collect();
        waiting.sort_by_key(|run| (run.row.time, run.row.attempt));
        self.ready.append(&mut waiting);
        self.write();
        match self.trouble {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }
    }

    fn read_trial(&mut self, trial: &Trial) {
        // What another command ran is for `unflake record`.
        if trial.outcome == Outcome::NotRun || trial.rung == Rung::Report {
            return;
        }
        let attempt = match trial.rung {
            Rung::Suite => 1,
            // Other code, or other conditions on purpose.
            Rung::Base | Rung::Once(_) | Rung::Again(_) => 0,
            Rung::OwnRerun
            | Rung::Immediate
            | Rung::End
            | Rung::Fresh
            | Rung::Look
            | Rung::AfterItself
            | Rung::Confirm
            | Rung::Replay
            | Rung::Report => {
                let reruns = self.attempts.entry(trial.test.clone()).or_insert(1);
                *reruns += 1;
                *reruns
            }
        };
        let run = Held {
            test: trial.test.clone(),
            row: to_row(trial, attempt),
            revision: (trial.rung == Rung::Base).then(String::new),
        };
        let is_waiting = self.waiting.contains_key(&trial.test);
        if is_waiting || (attempt == 1 && trial.outcome.is_failure()) {
            self.waiting
                .entry(trial.test.clone())
                .or_default()
                .push(run);
        } else {
            self.ready.push(run);
        }
    }

    fn write(&mut self) {
        self.last_written = Instant::now();
        if self.ready.is_empty() || self.trouble.is_some() {
            return;
        }
        if let Some(asking) = self.asking.take() {
            // A thread that panicked has said so; then nothing is known of the code.
            self.provenance = asking.join().unwrap_or_default();
            self.provenance.environment.clone_from(&self.environment);
        }
        if let Err(trouble) = self.try_write() {
            self.trouble = Some(trouble);
        }
    }

    fn try_write(&mut self) -> Result<(), StoreError> {
        if self.store.is_none() {
            self.store = Some(Sqlite::open(&self.path, Missing::Make)?);
        }
        let mut batches = Vec::new();
        let mut packer = Packer::new(|batch| {
            batches.push(batch);
            Ok::<(), ()>(())
        });
        for run in self.ready.drain(..) {
            let test = packer.test(run.test.name(), run.test.copy(), true);
            let provenance = match run.revision {
                None => packer.provenance(&self.provenance),
                Some(revision) => packer.provenance(&Provenance {
                    revision,
                    branch: String::new(),
                    ..self.provenance.clone()
                }),
            };
            // The packer only remembers: it cannot fail.
            let _ = packer.push(Row {
                test,
                provenance,
                ..run.row
            });
        }
        let _ = packer.flush();
        batches.reverse();
        self.written += 1;
        let mut source = OwnRuns {
            name: self.source.clone(),
            batches,
            number: self.written,
            installed: self.installed,
        };
        let store = self.store.as_mut().expect("it was just opened");
        store.append(&mut source).map(|_| ())
    }
}

fn to_row(trial: &Trial, attempt: u32) -> Row {
    let duration = i64::try_from(trial.duration.as_micros()).ok();
    let is_plain = trial.rung == Rung::Suite && !trial.outcome.is_failure();
    let message: String = trial.account.message.chars().take(MESSAGE).collect();
    let signature = signature("", &message);
    let is_failure = trial.outcome.is_failure();
    let more = (!is_plain).then(|| {
        Box::new(More {
            rung: Some(trial.rung.label().to_owned()),
            vm: Some(trial.vm.0),
            signature: (is_failure && !signature.is_empty()).then_some(signature),
            message,
            ..More::default()
        })
    });
    Row {
        test: 0,
        provenance: 0,
        time: dates::now() - duration.unwrap_or(0) / 1000,
        ended: Ended::of(&trial.outcome),
        attempt,
        duration,
        more,
    }
}

/// Runs that nobody else can have written.
struct OwnRuns {
    name: String,
    batches: Vec<Batch>,
    number: u32,
    installed: Option<[u8; 32]>,
}

impl Source for OwnRuns {
    fn next_batch(&mut self) -> Option<Batch> {
        self.batches.pop()
    }

    fn digest(&mut self) -> Result<[u8; 32], Refused> {
        let host = nix::unistd::gethostname().unwrap_or_default();
        let moment = jiff::Timestamp::now().as_nanosecond();
        let host = host.to_string_lossy();
        let tell = format!("{host} {} {moment} {}", process::id(), self.number);
        Ok(digest_of(tell.as_bytes()))
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn installed(&self) -> Option<[u8; 32]> {
        self.installed
    }
}
