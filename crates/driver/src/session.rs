//! One run of `unflake run` from the first VM to the last verdict.
//!
//! The session starts the project, lets [`crate::suite`] run it, and [`crate::climb`] look into the
//! failures. All that happens goes out as events; what it means was decided in `unflake-core`.

use std::num::NonZeroUsize;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use unflake_core::event::{CollectionError, Ending, Event, Listing, Note};
use unflake_core::ladder::{Stage, Step, next_step};
use unflake_core::outcome::Outcome;
use unflake_core::plan::Plan;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Account, Birth, Rung, Trial, VmId};
use unflake_core::verdict::{Finding, Reason, Verdict};

use crate::fleet::{Fate, Fleet, Happening, Interrupter, StartError};
use crate::interpreter;
use crate::protocol::{
    Attempt, Collected, Command, Inability, Parsed, WireOutcome, Worker, Workers,
};
use crate::pytest::Project;

/// How long a VM that was told to finish may take for it.
const FINISHING: Duration = Duration::from_secs(60);

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
}

/// One run.
pub struct Session {
    pub(crate) fleet: Fleet,
    pub(crate) wish: Wish,
    pub(crate) suspects: Vec<Suspect>,
    pub(crate) tests: Vec<Test>,
    pub(crate) suite: Option<Collected>,
    /// A forked VM that never runs a test: the mould of fresh VMs.
    pub(crate) mould: Mould,
    pub(crate) jobs: usize,
    pub(crate) too_many_failures: bool,
    /// The VMs that ran the suite and are still there.
    pub(crate) suite_vms: Vec<VmId>,
    folder: Utf8PathBuf,
    events: Sender<Event>,
}

/// Whether fresh VMs can be forked.
pub(crate) enum Mould {
    Vm(VmId),
    None { why: String, said: bool },
}

/// A test that failed in the suite.
pub(crate) struct Suspect {
    pub(crate) test: TestId,
    pub(crate) worker: Option<Worker>,
    pub(crate) trials: Vec<Trial>,
    pub(crate) is_judged: bool,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A VM could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The framework ended before it had listed its tests.
    #[error("pytest ended ({how}) before it listed its tests")]
    EndedEarly {
        /// How it ended.
        how: String,
        /// What it wrote.
        output: String,
    },
    /// The interpreter has no pytest.
    #[error("`{python}` has no pytest")]
    NoPytest {
        /// The interpreter.
        python: String,
        /// What Python said.
        detail: String,
    },
    /// The interpreter's pytest is too old.
    #[error("`{python}` has pytest {version}, and unflake needs 6.2 or later")]
    OldPytest {
        /// The interpreter.
        python: String,
        /// The version.
        version: String,
    },
    /// The interpreter is too old.
    #[error("`{python}` is Python {major}.{minor}, and unflake needs 3.8 or later")]
    OldPython {
        /// The interpreter.
        python: String,
        /// Its version.
        major: u32,
        /// Its version.
        minor: u32,
    },
    /// There is nothing to run.
    #[error("pytest found no tests in {root}")]
    NoTests {
        /// Where it looked.
        root: String,
        /// How many its options left out.
        deselected: usize,
    },
    /// The options want a debugger.
    #[error("pytest's options ask for a debugger (--pdb or --trace)")]
    Interactive,
    /// The options want no test to run.
    #[error("pytest's options ask for --collect-only, so no test would run")]
    CollectOnly,
    /// The runner said something that is not in the protocol.
    #[error("the runner in {vm} broke the protocol: {line}")]
    Protocol {
        /// The VM.
        vm: VmId,
        /// What it said.
        line: String,
    },
    /// The user stopped before there was anything to tell.
    #[error("interrupted")]
    Interrupted,
}

/// Why the session stopped in the middle.
pub(crate) enum Halt {
    Interrupted,
    Error(RunError),
}

impl From<StartError> for Halt {
    fn from(error: StartError) -> Self {
        Self::Error(error.into())
    }
}

impl Session {
    /// Prepares a run; nothing is started yet.
    pub fn new(wish: Wish, events: Sender<Event>) -> Result<Self, StartError> {
        let fleet = Fleet::new(events.clone())?;
        let folder = fleet.folder();
        Project::install_runner(&folder).map_err(StartError::Scratch)?;
        Ok(Self {
            fleet,
            wish,
            suspects: Vec::new(),
            tests: Vec::new(),
            suite: None,
            mould: Mould::None {
                why: "it was not asked for".to_owned(),
                said: true,
            },
            jobs: 1,
            too_many_failures: false,
            suite_vms: Vec::new(),
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
        let listed = self.open().and_then(|first| self.finish(first));
        match listed {
            Ok(()) => Ok(()),
            Err(Halt::Interrupted) => Err(RunError::Interrupted),
            Err(Halt::Error(error)) => Err(error),
        }
    }

    /// Runs the suite and examines its failures. Whatever happens, no VM is left behind.
    pub fn run(mut self) -> Result<(), RunError> {
        let ending = match self.open() {
            Ok(first) => self.examine(first),
            Err(halt) => Err(halt),
        };
        match ending {
            Ok(ending) => {
                self.tell(Event::Ended(ending));
                Ok(())
            }
            Err(Halt::Interrupted) if self.suite.is_none() => Err(RunError::Interrupted),
            Err(Halt::Interrupted) => {
                self.judge_unfinished();
                self.tell(Event::Ended(Ending::Interrupted));
                Ok(())
            }
            Err(Halt::Error(error)) => Err(error),
        }
    }

    fn examine(&mut self, first: VmId) -> Result<Ending, Halt> {
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
        Ok(ending)
    }

    /// Starts the first VM and lists its tests.
    fn open(&mut self) -> Result<VmId, Halt> {
        let first = self.spawn(self.wish.project.start(false, &[]))?;
        let collected = loop {
            match self.next(None)? {
                Happening::Parsed(vm, parsed) => {
                    let worker = self.settle_jobs(&parsed)?;
                    self.fleet.collect(vm, worker);
                }
                Happening::Ready(_, collected) => break *collected,
                Happening::Unable(_, why, detail) => return Err(self.unable(why, detail)),
                Happening::Ended(_, fate) => return Err(self.ended_early(&fate)),
                unrelated => drop(unrelated),
            }
        };
        self.tests = collected.tests.iter().map(listed_test).collect();
        self.announce(&collected);
        if self.tests.is_empty() && collected.errors.is_empty() {
            return Err(Halt::Error(RunError::NoTests {
                root: collected.root,
                deselected: collected.deselected,
            }));
        }
        self.suite = Some(collected);
        Ok(first)
    }

    fn announce(&self, collected: &Collected) {
        let hello = self
            .fleet
            .hello()
            .expect("a VM that listed its tests has said hello");
        self.tell(Event::Listed(Listing {
            framework: format!("{} {}", hello.framework, hello.framework_version),
            language: format!("Python {}", hello.language_version),
            root: collected.root.clone(),
            tests: self.tests.clone(),
            deselected: collected.deselected,
            jobs: self.jobs,
            replay: collected.replay.clone(),
            positional: collected.positional.clone(),
        }));
        for error in &collected.errors {
            self.tell(Event::CollectionFailed(CollectionError {
                place: error.place.clone(),
                text: error.text.clone(),
            }));
        }
        if let (Some(file), true) = (&collected.own_report, self.jobs > 1) {
            self.note(Note::OwnReportLeftOut { file: file.clone() });
        }
    }

    fn settle_jobs(&mut self, parsed: &Parsed) -> Result<Option<Worker>, Halt> {
        if parsed.interactive {
            return Err(Halt::Error(RunError::Interactive));
        }
        if parsed.collect_only {
            return Err(Halt::Error(RunError::CollectOnly));
        }
        let automatic = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let asked = parsed.workers.as_ref().map(|workers| match workers {
            Workers::Count(count) => *count,
            Workers::Automatic(_) => automatic,
        });
        self.jobs = self.wish.jobs.or(asked).unwrap_or(1).max(1);
        if asked.is_some() {
            self.note(Note::WorkersReplaced { jobs: self.jobs });
        }
        Ok(self.worker(0))
    }

    /// What a VM must know that runs one of several parts of the suite.
    pub(crate) fn worker(&self, number: usize) -> Option<Worker> {
        (self.jobs > 1).then(|| Worker {
            number,
            count: self.jobs,
            run: self.folder.file_name().unwrap_or("unflake").to_owned(),
        })
    }

    fn make_mould(&mut self, first: VmId) -> Result<(), Halt> {
        let mould = self.fleet.fork(first);
        self.mould = loop {
            match self.next(None)? {
                Happening::Cloned(vm) if vm == mould => break Mould::Vm(vm),
                Happening::Unforked(_, why) => break Mould::None { why, said: false },
                Happening::Ended(vm, fate) if vm == first => return Err(self.ended_early(&fate)),
                Happening::Ended(vm, fate) if vm == mould => {
                    break Mould::None {
                        why: fate.how,
                        said: false,
                    };
                }
                unrelated => drop(unrelated),
            }
        };
        Ok(())
    }

    /// Starts an interpreter.
    pub(crate) fn spawn(&mut self, start: Command) -> Result<VmId, Halt> {
        let process = self.wish.project.process(&self.folder);
        Ok(self.fleet.spawn(process, start)?)
    }

    /// Waits for the next happening; an interruption ends the run.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Happening, Halt> {
        match self.fleet.next(deadline)? {
            Happening::Interrupted => Err(Halt::Interrupted),
            Happening::Garbled(vm, line) => Err(Halt::Error(RunError::Protocol { vm, line })),
            other => Ok(other),
        }
    }

    /// Lets a VM end its session by itself, and kills it when that takes too long.
    pub(crate) fn finish(&mut self, vm: VmId) -> Result<(), Halt> {
        self.fleet.tell(vm, &Command::Finish {});
        self.await_end(vm, FINISHING)
    }

    /// Waits until a VM has ended; kills it when that takes longer than `patience`.
    pub(crate) fn await_end(&mut self, vm: VmId, patience: Duration) -> Result<(), Halt> {
        let deadline = Instant::now() + patience;
        let mut was_killed = false;
        while self.fleet.vm(vm).is_some() {
            match self.next((!was_killed).then_some(deadline))? {
                Happening::Deadline => {
                    self.fleet.kill(vm);
                    self.note(Note::VmLingered { vm });
                    was_killed = true;
                }
                unrelated => drop(unrelated),
            }
        }
        Ok(())
    }

    /// Records a trial of a suspect, or of a test that becomes one by it.
    pub(crate) fn record(&mut self, trial: Trial, worker: Option<Worker>) {
        self.tell(Event::TrialEnded(trial.clone()));
        let known = self
            .suspects
            .iter_mut()
            .find(|suspect| suspect.test == trial.test);
        match known {
            Some(suspect) => suspect.trials.push(trial),
            None if trial.outcome.is_failure() => self.suspects.push(Suspect {
                test: trial.test.clone(),
                worker,
                trials: vec![trial],
                is_judged: false,
            }),
            None => {}
        }
    }

    /// The trial that an attempt of a runner makes.
    pub(crate) fn to_trial(
        &mut self,
        test: &TestId,
        rung: Rung,
        vm: VmId,
        attempt: Attempt,
        cost: Duration,
    ) -> Trial {
        let outcome = match attempt.outcome {
            WireOutcome::Passed => Outcome::Passed,
            WireOutcome::Failed => Outcome::Failed,
            WireOutcome::Errored => Outcome::Errored,
            WireOutcome::Skipped => Outcome::Skipped,
            WireOutcome::Xfailed => Outcome::ExpectedFailure,
            WireOutcome::Xpassed => Outcome::UnexpectedPass,
        };
        let account = Account {
            message: attempt.message,
            text: attempt.text,
            output: attempt.output,
        };
        let duration = Duration::try_from_secs_f64(attempt.seconds).unwrap_or_default();
        Trial {
            duration,
            ..self.trial(test, rung, vm, outcome, account).costing(cost)
        }
    }

    /// A trial whose VM did not report it.
    pub(crate) fn trial(
        &mut self,
        test: &TestId,
        rung: Rung,
        vm: VmId,
        outcome: Outcome,
        account: Account,
    ) -> Trial {
        let birth = self.fleet.vm(vm).map_or(Birth::Exec, |vm| vm.birth);
        Trial {
            test: test.clone(),
            rung,
            vm,
            birth,
            before: self.fleet.count_trial(vm),
            outcome,
            duration: Duration::ZERO,
            cost: Duration::ZERO,
            account,
        }
    }

    pub(crate) fn step(&self, suspect: &Suspect, stage: Stage) -> Step {
        next_step(
            self.wish.plan.rungs_for(&suspect.test),
            &suspect.trials,
            stage,
        )
    }

    pub(crate) fn judge(&mut self, at: usize, verdict: Verdict) {
        let suspect = &mut self.suspects[at];
        suspect.is_judged = true;
        let finding = Finding {
            test: suspect.test.clone(),
            verdict,
            trials: suspect.trials.clone(),
        };
        self.tell(Event::Judged(finding));
    }

    fn judge_unfinished(&mut self) {
        for at in 0..self.suspects.len() {
            if !self.suspects[at].is_judged {
                self.judge(at, Verdict::Unexamined(Reason::Cut));
            }
        }
    }

    pub(crate) fn note(&self, note: Note) {
        self.tell(Event::Noted(note));
    }

    pub(crate) fn tell(&self, event: Event) {
        // Readers go away only when the program ends; then there is nobody left to tell.
        drop(self.events.send(event));
    }

    fn unable(&self, why: Inability, detail: String) -> Halt {
        let python = self.wish.project.python.to_string();
        Halt::Error(match why {
            Inability::NoFramework => RunError::NoPytest { python, detail },
            Inability::OldFramework => RunError::OldPytest {
                python,
                version: detail,
            },
        })
    }

    pub(crate) fn ended_early(&self, fate: &Fate) -> Halt {
        let python = &self.wish.project.python;
        if let Some((major, minor)) = interpreter::ask_version(python)
            && (major, minor) < interpreter::OLDEST
        {
            let python = python.to_string();
            return Halt::Error(RunError::OldPython {
                python,
                major,
                minor,
            });
        }
        Halt::Error(RunError::EndedEarly {
            how: fate.how.clone(),
            output: fate.output.text(Duration::from_secs(1)),
        })
    }
}

/// A trial with what it cost.
pub(crate) trait Costing {
    fn costing(self, cost: Duration) -> Self;
}

impl Costing for Trial {
    fn costing(self, cost: Duration) -> Self {
        Self { cost, ..self }
    }
}

fn listed_test(listed: &crate::protocol::Listed) -> Test {
    Test {
        id: listed.name.to_id(),
        file: listed.file.clone(),
        line: listed.line,
    }
}
