//! The history as a reader of events: writes down what runs, as it runs.
//!
//! A failure waits for its verdict, or for the end. Trouble with the history is told and costs nothing else.

use std::collections::HashMap;
use std::process;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use unflake_core::event::Event;
use unflake_core::failure::Fingerprint;
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial, VmId};
use unflake_driver::git::difference::Readers;
use unflake_history::batch::{Batch, Packer};
use unflake_history::dates;
use unflake_history::engine::{self, Missing};
use unflake_history::past::VmPast;
use unflake_history::run::{Ended, More, Provenance, Row, TestName};
use unflake_history::store::source::{Conditions, Refused, Source};
use unflake_history::store::{Store, StoreError, digest_of};

use super::own_files::OwnFiles;
use super::whence::{self, Code};
use super::whole_pass::WholePass;

/// Runs are written this often, and when there are so many.
const INTERVAL: Duration = Duration::from_secs(5);
const MANY: usize = 1000;

/// The most of a message that is kept.
const MESSAGE: usize = 2000;

/// Writes runs into the history.
pub(crate) struct Recorder {
    own: OwnFiles,
    pass: WholePass,
    store: Option<Box<dyn Store>>,
    /// Git is asked while the tests already run.
    asking: Option<JoinHandle<(Code, String)>>,
    readers: Readers,
    provenance: Provenance,
    environment: String,
    origin: Origin,
    ready: Vec<Held>,
    /// Runs of tests that have failed, until their verdict.
    waiting: HashMap<TestId, Vec<Held>>,
    attempts: HashMap<TestId, u32>,
    /// What has run in each VM.
    pasts: HashMap<VmId, VmPast>,
    last_written: Instant,
    written: u32,
    trouble: Option<StoreError>,
}

/// Where and how these runs are made.
#[derive(Clone)]
struct Origin {
    /// What they are called.
    source: String,
    /// The digest of what is installed.
    installed: Option<[u8; 32]>,
    conditions: Conditions,
}

/// One run that is not written yet.
struct Held {
    test: TestId,
    row: Row,
    /// Where it was not that of the work tree: the revision, empty if it is not known.
    revision: Option<String>,
}

impl Recorder {
    /// Begins to write into the history what runs in its folder.
    pub(crate) fn new(own: &OwnFiles) -> Self {
        let asked = own.clone();
        let (readers, done) = Readers::new();
        Self {
            readers,
            own: own.clone(),
            pass: WholePass::default(),
            store: None,
            asking: Some(thread::spawn(move || {
                let answer = (Code::look(&asked), whence::project(&asked.folder));
                drop(done);
                answer
            })),
            provenance: Provenance::default(),
            environment: String::new(),
            origin: Origin {
                source: whence::source(&own.folder),
                installed: None,
                conditions: Conditions {
                    hash_seed: whence::hash_seed(),
                    ..Conditions::default()
                },
            },
            ready: Vec::new(),
            waiting: HashMap::new(),
            attempts: HashMap::new(),
            pasts: HashMap::new(),
            last_written: Instant::now(),
            written: 0,
            trouble: None,
        }
    }

    /// Those who ask git where these runs are made.
    pub(crate) fn readers(&self) -> Readers {
        self.readers.clone()
    }

    /// Takes in one event.
    pub(crate) fn read(&mut self, event: &Event) {
        self.pass.read(event);
        match event {
            Event::Listed(listing) => {
                // What was run in another module had its own around it.
                self.write();
                self.environment.clone_from(&listing.language);
                self.origin.installed = listing.installed.as_deref().map(whence::installed);
                self.origin.conditions.jobs = u32::try_from(listing.jobs).unwrap_or(u32::MAX);
            }
            Event::TrialEnded(trial) => self.read_trial(trial),
            Event::Prepared { test, vm } => self.has_run(test, *vm),
            Event::Judged(finding) => {
                let mut runs = self.waiting.remove(&finding.test).unwrap_or_default();
                let failed = runs
                    .iter_mut()
                    .find(|run| run.row.attempt == 1 && run.row.ended.is_failure());
                if let Some(failed) = failed {
                    let more = failed.row.more.get_or_insert_default();
                    more.verdict = Some(finding.verdict.label().to_owned());
                }
                self.ready.append(&mut runs);
            }
            Event::VmStarted { .. }
            | Event::CollectionFailed(_)
            | Event::Unmatched { .. }
            | Event::Noted(_)
            | Event::TrialStarted { .. }
            | Event::SuiteEnded { .. }
            | Event::Searching { .. }
            | Event::Blaming { .. }
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
        match (self.trouble, self.pass.into_passed()) {
            (Some(trouble), _) => Err(trouble),
            (None, Some(passed)) => self.own.keep_passed(&passed),
            (None, None) => Ok(()),
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
            Rung::Base
            | Rung::InOrder
            | Rung::Alone
            | Rung::OtherSeed
            | Rung::Once(_)
            | Rung::Again(_) => 0,
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
        let mut run = Held {
            test: trial.test.clone(),
            row: to_row(trial, attempt),
            revision: (trial.rung == Rung::Base).then(String::new),
        };
        if trial.outcome.is_failure()
            && let Some(more) = &mut run.row.more
        {
            more.past = Some(self.pasts.entry(trial.vm).or_default().so_far());
        }
        self.has_run(&trial.test, trial.vm);
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

    fn has_run(&mut self, test: &TestId, vm: VmId) {
        self.pasts.entry(vm).or_default().push(TestName {
            name: test.name().to_owned(),
            copy: test.copy(),
            is_own: true,
        });
    }

    fn write(&mut self) {
        self.last_written = Instant::now();
        if self.ready.is_empty() || self.trouble.is_some() {
            return;
        }
        if let Some(asking) = self.asking.take() {
            // A thread that panicked has said so; then nothing is known of the code.
            let (code, project) = asking.join().unwrap_or_default();
            self.provenance = code.into_provenance();
            self.origin.conditions.project = project;
            self.provenance.environment.clone_from(&self.environment);
        }
        if let Err(trouble) = self.try_write() {
            self.trouble = Some(trouble);
        }
    }

    fn try_write(&mut self) -> Result<(), StoreError> {
        if self.store.is_none() {
            self.store = Some(engine::open(self.own.store.as_std_path(), Missing::Make)?);
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
            origin: self.origin.clone(),
            batches,
            number: self.written,
        };
        let store = self.store.as_mut().expect("it was just opened");
        store.append(&mut source).map(|_| ())
    }
}

fn to_row(trial: &Trial, attempt: u32) -> Row {
    let duration = i64::try_from(trial.duration.as_micros()).ok();
    let is_plain = trial.rung == Rung::Suite && !trial.outcome.is_failure();
    let message: String = trial.account.message.chars().take(MESSAGE).collect();
    let more = (!is_plain).then(|| {
        let fingerprint = Fingerprint::of(&trial.outcome, &trial.account);
        let summary = fingerprint.summary();
        let is_failure = trial.outcome.is_failure();
        Box::new(More {
            rung: Some(trial.rung.label().to_owned()),
            vm: Some(trial.vm.0),
            signature: (is_failure && !summary.is_empty()).then(|| summary.to_owned()),
            fingerprint: is_failure.then(|| fingerprint.as_str().to_owned()),
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
    origin: Origin,
    batches: Vec<Batch>,
    number: u32,
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
        self.origin.source.clone()
    }

    fn installed(&self) -> Option<[u8; 32]> {
        self.origin.installed
    }

    fn conditions(&self) -> Option<Conditions> {
        Some(self.origin.conditions.clone())
    }
}
