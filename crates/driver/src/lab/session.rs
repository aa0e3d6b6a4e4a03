//! One run of `unflake run` from the first VM to the last verdict.
//!
//! The session starts the project, lets `suite` run it, and `climb` look into the
//! failures. All that happens goes out as events; what it means was decided in `unflake-core`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime};

use camino::Utf8PathBuf;
use unflake_core::blame::Blame;
use unflake_core::event::{Ending, Event, Note};
use unflake_core::ladder::{Stage, Step};
use unflake_core::plan::Plan;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Birth, Fixtures, Rung, Trial, VmId};
use unflake_core::verdict::{Doubt, Finding, Verdict};

use crate::blame::base::{Base, Unready};
use crate::blame::comparison::{Changes, watch};
use crate::files::home::Home;
use crate::framework::project::Project;
use crate::git::difference::Against;
use crate::lab::listings::Listings;
use crate::lab::run_error::RunError;
use crate::lab::start_error::StartError;
use crate::lab::suspect::Suspect;
use crate::protocol::messages::{Collected, Command, Worker};
use crate::usage::lookout::Outlook;
use crate::vm::event::Happening;
use crate::vm::fleet::Fleet;
use crate::vm::interrupter::Interrupter;

/// What the user wants of a run.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The project.
    pub project: Project,
    /// How failures are examined.
    pub plan: Plan,
    /// In how many VMs the suite runs; `None` leaves it to the project's own options, or to one.
    pub jobs: Option<usize>,
    /// How fresh VMs are made; `None` is the cheapest way that works.
    pub fresh_by: Option<Birth>,
    /// What is wanted about the latest changes; `None` if nothing.
    pub against: Option<Against>,
    /// How many VMs earlier parts of the same run had, so that no number is used twice.
    pub vms_before: u32,
}

/// One run.
pub struct Session {
    pub(crate) fleet: Fleet,
    pub(crate) wish: Wish,
    pub(crate) suspects: Vec<Suspect>,
    pub(crate) tests: Vec<Test>,
    /// Where each test stands in the list.
    pub(crate) places: HashMap<TestId, usize>,
    /// The files in which a rerun has set up shared fixtures anew, by VM.
    pub(crate) rebuilt: HashSet<(VmId, String)>,
    pub(crate) suite: Option<Collected>,
    pub(crate) listings: Listings,
    /// A forked VM that never runs a test: the mould of fresh VMs.
    pub(crate) mould: Mould,
    pub(crate) jobs: usize,
    /// How long the first VM took to list its tests.
    pub(crate) collecting: Duration,
    pub(crate) too_many_failures: bool,
    /// The VMs that ran the suite and are still there.
    pub(crate) suite_vms: Vec<VmId>,
    /// What changed since the base.
    pub(crate) changes: Changes,
    /// The system's eye on it while the suite runs.
    pub(crate) outlook: Outlook,
    /// The base, once one is needed, or why it cannot run.
    pub(crate) base: Option<Result<Base, Unready>>,
    /// When the session began.
    pub(crate) began: SystemTime,
    /// What each VM of the suite ran, in order, without reruns.
    pub(crate) suite_orders: HashMap<VmId, Vec<TestId>>,
    /// What the suite took on the wall clock.
    pub(crate) suite_elapsed: Duration,
    /// Whether every VM writes down what it uses.
    pub(crate) is_watching: bool,
    /// Where the project lives, and what experiments are copied from.
    pub(crate) home: Home,
    /// Why a pass says nothing about the failures of some VMs.
    pub(crate) doubts: HashMap<VmId, Doubt>,
    /// Whether nobody sees what writes the state of VMs, and that was said.
    pub(crate) is_blind_to_writes: bool,
    folder: Utf8PathBuf,
    pub(crate) events: Sender<Event>,
}

/// Whether fresh VMs can be forked.
pub(crate) enum Mould {
    Vm(VmId),
    None { why: String, said: bool },
}

/// Why the session stopped in the middle.
pub(crate) enum Halt {
    Interrupted,
    Error(RunError),
}

/// What came of an experiment in a new interpreter; `None` if the interpreter ended before it listed its
/// tests, which says nothing and must not cost what is known already.
pub(crate) fn if_listed<T>(result: Result<T, Halt>) -> Result<Option<T>, Halt> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Halt::Error(RunError::EndedEarly { .. })) => Ok(None),
        Err(halt) => Err(halt),
    }
}

impl From<StartError> for Halt {
    fn from(error: StartError) -> Self {
        Self::Error(error.into())
    }
}

impl Session {
    /// Prepares a run; nothing is started yet.
    pub fn new(wish: Wish, events: Sender<Event>) -> Result<Self, StartError> {
        let fleet = Fleet::new(events.clone(), wish.vms_before)?;
        Self::with(wish, events, fleet)
    }

    /// Prepares a run that stops when another does.
    pub(crate) fn beside(&self, wish: Wish, events: Sender<Event>) -> Result<Self, StartError> {
        let fleet = self.fleet.beside(events.clone(), wish.vms_before)?;
        Self::with(wish, events, fleet)
    }

    fn with(wish: Wish, events: Sender<Event>, fleet: Fleet) -> Result<Self, StartError> {
        let folder = fleet.folder();
        wish.project
            .install_runner(&folder)
            .map_err(StartError::Scratch)?;
        Ok(Self {
            fleet,
            suspects: Vec::new(),
            tests: Vec::new(),
            places: HashMap::new(),
            rebuilt: HashSet::new(),
            suite: None,
            listings: Listings::default(),
            mould: Mould::None {
                why: "it was not asked for".to_owned(),
                said: true,
            },
            jobs: 1,
            collecting: Duration::ZERO,
            too_many_failures: false,
            suite_vms: Vec::new(),
            changes: Changes::Unread,
            outlook: Outlook::None,
            base: None,
            began: SystemTime::now(),
            suite_orders: HashMap::new(),
            suite_elapsed: Duration::ZERO,
            is_watching: false,
            home: Home::of(&wish.project),
            doubts: HashMap::new(),
            is_blind_to_writes: false,
            wish,
            folder,
            events,
        })
    }

    /// A handle that stops the run.
    pub fn interrupter(&self) -> Interrupter {
        self.fleet.interrupter()
    }

    /// Lists the tests without running any.
    pub fn list(mut self) -> Result<(), RunError> {
        let listed = self.open(true).and_then(|first| {
            self.announce(self.tests.clone());
            self.finish(first)
        });
        match listed {
            Ok(()) => Ok(()),
            Err(Halt::Interrupted) => {
                self.fleet.kill_all();
                Err(RunError::Interrupted)
            }
            Err(Halt::Error(error)) => Err(error),
        }
    }

    /// Runs the suite and examines its failures. Whatever happens, no VM is left behind.
    pub fn run(mut self) -> Result<(), RunError> {
        let checked = self.check_against();
        self.look_out();
        let ending = checked
            .and_then(|()| self.open(false))
            .and_then(|first| self.examine(first));
        self.close(ending)
    }

    /// Tells how a run ended.
    pub(crate) fn close(mut self, ending: Result<Ending, Halt>) -> Result<(), RunError> {
        match ending {
            Ok(ending) => {
                self.tell(Event::Ended(ending));
                Ok(())
            }
            Err(Halt::Interrupted) if self.suite.is_none() => {
                self.fleet.kill_all();
                Err(RunError::Interrupted)
            }
            Err(Halt::Interrupted) => {
                self.fleet.kill_all();
                self.judge_unfinished();
                self.tell(Event::Ended(Ending::Interrupted));
                Ok(())
            }
            Err(Halt::Error(error)) => Err(error),
        }
    }

    fn examine(&mut self, first: VmId) -> Result<Ending, Halt> {
        self.announce(self.tests.clone());
        let blocked = self.suite.as_ref().is_some_and(|suite| suite.blocked);
        if blocked {
            self.finish(first)?;
            return Ok(Ending::Completed);
        }
        if self.wish.plan.has_reruns() && self.wish.fresh_by != Some(Birth::Exec) {
            self.make_mould(first)?;
        }
        let ending = self.run_suite(first)?;
        self.climb()?;
        self.blame_all()?;
        Ok(ending)
    }

    /// What a VM must know that runs one of several parts of the suite.
    pub(crate) fn worker(&self, number: usize) -> Option<Worker> {
        (self.jobs > 1).then(|| Worker {
            number,
            count: self.jobs,
            run: self.folder.file_name().unwrap_or("unflake").to_owned(),
        })
    }

    /// Starts an interpreter.
    pub(crate) fn spawn(&mut self, start: Command) -> Result<VmId, Halt> {
        let start = self.watched(start);
        let process = self.wish.project.process(&self.folder, &start);
        let process = process.map_err(StartError::Scratch)?;
        Ok(self.fleet.spawn(process, Some(start))?)
    }

    /// Waits for the next happening; an interruption ends the run.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Happening, Halt> {
        match self.fleet.next(deadline)? {
            Happening::Interrupted => {
                // Before anything is cleaned up: a test that goes on would write into it.
                self.fleet.kill_all();
                Err(Halt::Interrupted)
            }
            Happening::Garbled(vm, line) => Err(Halt::Error(RunError::Protocol { vm, line })),
            Happening::Ready(vm, collected) => {
                self.compare_listing(vm, &collected);
                Ok(Happening::Ready(vm, collected))
            }
            other => Ok(other),
        }
    }

    /// Records a trial of a suspect, or of a test that becomes one by it.
    pub(crate) fn record(&mut self, trial: Trial, worker: Option<Worker>) {
        self.tell(Event::TrialEnded(trial.clone()));
        if trial.rung != Rung::Suite {
            if trial.fixtures == Fixtures::Rebuilt {
                let file = self.file_of(&trial.test).to_owned();
                self.rebuilt.insert((trial.vm, file));
            }
            let mut suspects = self.suspects.iter_mut().rev();
            if let Some(suspect) = suspects.find(|suspect| suspect.test == trial.test) {
                suspect.trials.push(trial);
            }
        } else if trial.outcome.is_failure() {
            let opened = self.outlook.opened();
            let suspect = Suspect::new(trial, worker);
            self.suspects.push(Suspect { opened, ..suspect });
        }
    }

    /// The suite as the first VM listed it.
    pub(crate) fn listed(&self) -> &Collected {
        let suite = self.suite.as_ref();
        suite.expect("the suite is listed before anything runs")
    }

    /// The file that defines a test.
    pub(crate) fn file_of(&self, test: &TestId) -> &str {
        let place = self.places.get(test);
        place.map_or("", |place| &self.tests[*place].file)
    }

    /// The tests of the same file that stand before a test.
    pub(crate) fn before_in_file(&self, test: &TestId) -> Vec<TestId> {
        let place = self.places.get(test).copied().unwrap_or(0);
        let file = self.file_of(test);
        let earlier = self.tests[..place].iter().filter(|one| one.file == file);
        earlier.map(|one| one.id.clone()).collect()
    }

    pub(crate) fn tell_start(&self, test: &TestId, vm: VmId, rung: Rung) {
        let test = test.clone();
        self.tell(Event::TrialStarted { test, vm, rung });
    }

    /// The ladder's next step for a test, if it is a suspect.
    pub(crate) fn step_of(&self, test: &TestId, stage: Stage) -> Option<Step> {
        let mut suspects = self.suspects.iter().rev();
        let suspect = suspects.find(|suspect| suspect.test == *test)?;
        Some(self.step(suspect, stage))
    }

    pub(crate) fn step(&self, suspect: &Suspect, stage: Stage) -> Step {
        let rungs = self.wish.plan.rungs_for(&suspect.test);
        let rungs = match stage {
            Stage::SuiteEnded { .. } if self.is_of_incident(suspect) => rungs.confirming(),
            Stage::SuiteRunning | Stage::SuiteEnded { .. } => rungs,
        };
        suspect.step(rungs, stage)
    }

    /// Whether an earlier suspect failed in the same way below its test: it is examined in full, and this one only
    /// confirmed.
    fn is_of_incident(&self, suspect: &Suspect) -> bool {
        let Some(own) = suspect.incident() else {
            return false;
        };
        let earlier = self.suspects.iter();
        let mut earlier = earlier.take_while(|one| one.test != suspect.test);
        earlier.any(|one| one.incident().as_ref() == Some(&own))
    }

    pub(crate) fn judge(&mut self, at: usize, verdict: Verdict, blame: Option<Box<Blame>>) {
        self.suspects[at].is_judged = true;
        let suspect = &self.suspects[at];
        let finding = Finding {
            is_latent: suspect.is_latent(verdict, &self.wish.project, &self.tests),
            test: suspect.test.clone(),
            verdict,
            trials: suspect.trials.clone(),
            blame,
            left_behind: suspect.left_behind.clone(),
            dependence: suspect.dependence.clone(),
            cause: suspect.cause.clone(),
        };
        self.tell(Event::Judged(finding));
    }

    /// Notes how a suspect fails, once the ladder has ended for it.
    pub(crate) fn settle(&mut self, at: usize, verdict: Verdict) {
        let suspect = &mut self.suspects[at];
        let first = suspect.trials.first();
        suspect.verdict = Some(match first.and_then(|first| self.doubts.get(&first.vm)) {
            Some(doubt) if verdict.rests_on_a_pass() => Verdict::Unclear(*doubt),
            Some(_) | None => verdict,
        });
    }

    /// What a VM is told at its start, and to write down what it uses if all are.
    pub(crate) fn watched(&self, start: Command) -> Command {
        if self.is_watching {
            watch(start)
        } else {
            start
        }
    }

    pub(crate) fn note(&self, note: Note) {
        self.tell(Event::Noted(note));
    }

    pub(crate) fn tell(&self, event: Event) {
        // Readers go away only when the program ends; then there is nobody left to tell.
        drop(self.events.send(event));
    }
}
