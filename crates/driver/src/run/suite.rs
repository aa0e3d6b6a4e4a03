//! The suite's own run: every test once, in the framework's order, in one VM or several, with the
//! immediate reruns in between. A VM that dies takes only the test that killed it along.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use unflake_core::event::{Ending, Event};
use unflake_core::ladder::{Stage, Step};
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial, VmId};

use crate::lab::pending::{Asked, last_lines};
use crate::lab::session::{Halt, Session};
use crate::protocol::messages::{Command, Name, Target};
use crate::protocol::result::{Ran, StopKind};
use crate::vm::event::{Fate, Happening};

/// The number of tests that are sent to a VM at once.
const BATCH: usize = 500;
/// The number of tests that are sent to a VM at once if others run beside it, which may want to stop the suite.
const SHARED_BATCH: usize = 20;
/// The time that a VM may take to end after its test has ended the session.
const LEAVING: Duration = Duration::from_secs(10);

/// One of the parallel strands of the suite, and the VM that it uses now.
struct Lane {
    number: usize,
    vm: VmId,
    /// The tests that are sure to run here, in order.
    tests: VecDeque<TestId>,
    /// The tests that failed while their VM could not wait for an answer.
    failed: VecDeque<TestId>,
    state: State,
}

/// The state of a lane's VM.
enum State {
    /// Not ready yet.
    Starting,
    /// Running a test.
    Running {
        asked: Asked,
        limit: Option<Duration>,
    },
    /// Ending because of its test, with the trial that comes of it, if any does.
    Dying {
        trial: Option<Trial>,
        deadline: Instant,
    },
    /// Has nothing more to do.
    Idle,
}

struct Suite<'a> {
    session: &'a mut Session,
    lanes: Vec<Lane>,
    files: VecDeque<Vec<TestId>>,
    ending: Ending,
    ran: usize,
}

impl Session {
    /// Runs every test of the suite once and the failed ones again at once.
    pub(crate) fn run_suite(&mut self, first: VmId) -> Result<Ending, Halt> {
        let since = Instant::now();
        let files = self.split_into_files();
        let mut lanes = vec![Lane::new(0, first, State::Idle)];
        for number in 1..self.jobs.min(files.len()) {
            let vm = self.spawn_for_suite()?;
            lanes.push(Lane::new(number, vm, State::Starting));
        }
        let mut suite = Suite {
            session: self,
            lanes,
            files,
            ending: Ending::Completed,
            ran: 0,
        };
        suite.run()?;
        let (ending, ran) = (suite.ending, suite.ran);
        self.suite_vms = suite.lanes.iter().map(|lane| lane.vm).collect();
        let failures = self.suspects.len();
        self.suite_elapsed = since.elapsed();
        self.too_many_failures = self.wish.plan.threshold.is_reached(failures, ran);
        self.tell(Event::SuiteEnded {
            elapsed: since.elapsed(),
            failures,
            too_many_failures: self.too_many_failures,
        });
        Ok(ending)
    }

    fn spawn_for_suite(&mut self) -> Result<VmId, Halt> {
        let suite = self.listed();
        let start = self.wish.project.start(true, &suite.replay);
        self.spawn(start)
    }

    /// The tests in pieces that stay together: the whole suite for one VM, else its files.
    fn split_into_files(&self) -> VecDeque<Vec<TestId>> {
        let mut files: VecDeque<Vec<TestId>> = VecDeque::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for test in &self.tests {
            let file = if self.jobs > 1 {
                test.file.as_str()
            } else {
                ""
            };
            let at = *places.entry(file).or_insert_with(|| {
                files.push_back(Vec::new());
                files.len() - 1
            });
            files[at].push(test.id.clone());
        }
        files
    }
}

impl Lane {
    fn new(number: usize, vm: VmId, state: State) -> Self {
        Self {
            number,
            vm,
            tests: VecDeque::new(),
            failed: VecDeque::new(),
            state,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Running { asked, limit } => limit.map(|limit| asked.since + limit),
            State::Dying { deadline, .. } => Some(*deadline),
            State::Starting | State::Idle => None,
        }
    }

    /// The tests that its VM was told to run and has not answered.
    fn asked(&self) -> Option<&Asked> {
        match &self.state {
            State::Running { asked, .. } => Some(asked),
            State::Starting | State::Dying { .. } | State::Idle => None,
        }
    }
}

impl Suite<'_> {
    fn run(&mut self) -> Result<(), Halt> {
        self.advance(0)?;
        while self
            .lanes
            .iter()
            .any(|lane| !matches!(lane.state, State::Idle))
        {
            let deadline = self.lanes.iter().filter_map(Lane::deadline).min();
            let happening = self.session.next(deadline)?;
            let lane = |vm: VmId| self.lanes.iter().position(|lane| lane.vm == vm);
            match happening {
                Happening::Deadline => self.expire(),
                Happening::Parsed(vm, _) => {
                    let number = lane(vm).map_or(0, |at| self.lanes[at].number);
                    let worker = self.session.worker(number);
                    self.session.fleet.collect(vm, worker);
                }
                Happening::Ready(vm, _) => {
                    if let Some(at) = lane(vm) {
                        self.advance(at)?;
                    }
                }
                Happening::Ran(vm, ran) => {
                    if let Some(at) = lane(vm) {
                        self.take_result(at, *ran)?;
                    }
                }
                Happening::Unknown(vm) => {
                    if let Some(at) = lane(vm) {
                        self.take_unknown(at)?;
                    }
                }
                Happening::Stopped(vm, why, message) => {
                    if let Some(at) = lane(vm) {
                        self.take_stop(at, why, &message);
                    }
                }
                Happening::Ended(vm, fate) => {
                    if let Some(at) = lane(vm) {
                        self.take_end(at, &fate)?;
                    }
                }
                unrelated => drop(unrelated),
            }
        }
        Ok(())
    }

    /// Gives a lane its next test, or lets it rest.
    fn advance(&mut self, at: usize) -> Result<(), Halt> {
        self.refill(at);
        let Some(test) = self.lanes[at].tests.pop_front() else {
            self.lanes[at].state = State::Idle;
            return Ok(());
        };
        self.refill(at);
        if self.session.fleet.vm(self.lanes[at].vm).is_none() {
            self.lanes[at].tests.push_front(test);
            self.lanes[at].vm = self.session.spawn_for_suite()?;
            self.lanes[at].state = State::Starting;
            return Ok(());
        }
        self.start_batch(at, test);
        Ok(())
    }

    /// Keeps two tests in sight, so that each run knows which test follows it.
    fn refill(&mut self, at: usize) {
        if self.ending != Ending::Completed {
            self.lanes[at].tests.clear();
            return;
        }
        while self.lanes[at].tests.len() < 2 {
            let Some(file) = self.files.pop_front() else {
                return;
            };
            self.lanes[at].tests.extend(file);
        }
    }

    /// Tells a lane's VM of its next tests. One that passes is followed by the next without a word.
    fn start_batch(&mut self, at: usize, test: TestId) {
        let lane = &self.lanes[at];
        let told = if self.session.wish.project.runs_by_class() {
            // A class that is cut would be set up once more.
            lane.tests.len()
        } else {
            // The last one stays behind while more may come, because what follows it is not known.
            let known = lane.tests.len() - usize::from(!self.files.is_empty());
            let most = if self.lanes.len() > 1 {
                SHARED_BATCH
            } else {
                BATCH
            };
            known.min(most)
        };
        let more = lane.tests.iter().take(told);
        let command = Command::Run {
            tests: std::iter::once(&test).chain(more).map(Name::from).collect(),
            next: lane.tests.get(told).map(Name::from),
        };
        let vm = lane.vm;
        self.await_result(at, test, Rung::Suite);
        self.session.fleet.tell(vm, &command);
    }

    fn start_rerun(&mut self, at: usize, test: TestId, rung: Rung) {
        let lane = &self.lanes[at];
        let target = Target {
            test: Name::from(&test),
            next: lane.tests.front().map(Name::from),
        };
        let vm = lane.vm;
        self.await_result(at, test, rung);
        let keep = false;
        self.session
            .fleet
            .tell(vm, &Command::Rerun { target, keep });
    }

    /// Notes that a lane's VM runs this test now.
    fn await_result(&mut self, at: usize, test: TestId, rung: Rung) {
        self.ran += usize::from(rung == Rung::Suite);
        let limit = self.session.wish.plan.timeout_for(&test);
        let vm = self.lanes[at].vm;
        if rung == Rung::Suite {
            let order = self.session.suite_orders.entry(vm).or_default();
            order.push(test.clone());
        }
        let asked = self.session.ask(test, rung, vm, Instant::now());
        self.lanes[at].state = State::Running { asked, limit };
    }

    fn take_result(&mut self, at: usize, ran: Ran) -> Result<(), Halt> {
        let Some(asked) = self.lanes[at].asked().cloned() else {
            return Ok(());
        };
        if let (Some(reason), Ending::Completed) = (&ran.stop, &self.ending) {
            let reason = reason.clone();
            self.ending = Ending::Stopped { reason };
        }
        let is_held = ran.held;
        let trials = asked.ran(ran);
        let has_failed = trials.iter().any(|trial| trial.outcome.is_failure());
        for trial in trials {
            self.record(at, trial);
        }
        if !is_held && let Some(next) = self.lanes[at].tests.pop_front() {
            if has_failed {
                // A class runs to its end; its failures are looked into there.
                self.lanes[at].failed.push_back(asked.test);
            }
            self.await_result(at, next, Rung::Suite);
            return Ok(());
        }
        let failed = &mut self.lanes[at].failed;
        if asked.rung == Rung::Suite {
            failed.push_back(asked.test);
        } else {
            failed.push_front(asked.test);
        }
        self.look_into_failed(at)
    }

    fn record(&mut self, at: usize, trial: Trial) {
        let worker = self.session.worker(self.lanes[at].number);
        self.session.record(trial, worker);
    }

    /// Reruns the tests of a lane that failed at once if the ladder says so, else goes on to the next.
    fn look_into_failed(&mut self, at: usize) -> Result<(), Halt> {
        while let Some(test) = self.lanes[at].failed.pop_front() {
            match self.session.step_of(&test, Stage::SuiteRunning) {
                Some(Step::Rerun(rung, _)) => {
                    self.start_rerun(at, test, rung);
                    return Ok(());
                }
                Some(Step::Wait | Step::Conclude(_)) | None => {}
            }
        }
        self.advance(at)
    }

    /// After a crash a new VM may list other tests: what it lacks has failed, not passed.
    fn take_unknown(&mut self, at: usize) -> Result<(), Halt> {
        if let Some(asked) = self.lanes[at].asked().cloned() {
            self.record(at, asked.unknown());
        }
        self.advance(at)
    }

    fn take_stop(&mut self, at: usize, why: StopKind, message: &str) {
        let Some(asked) = self.lanes[at].asked().cloned() else {
            return;
        };
        let trial = match why {
            StopKind::Interrupt => Some(asked.stopped("KeyboardInterrupt", message)),
            StopKind::Exit => {
                let (test, reason) = (asked.test, message.to_owned());
                self.ending = Ending::Quit { test, reason };
                None
            }
        };
        let deadline = Instant::now() + LEAVING;
        self.lanes[at].state = State::Dying { trial, deadline };
    }

    /// Kills what has run for too long.
    fn expire(&mut self) {
        let now = Instant::now();
        for lane in &mut self.lanes {
            if lane.deadline().is_none_or(|deadline| deadline > now) {
                continue;
            }
            if let State::Running {
                asked,
                limit: Some(after),
            } = &lane.state
            {
                let stack = self.session.fleet.stack(lane.vm, None);
                let trial = Some(asked.timed_out(*after, stack.as_deref()));
                let deadline = Instant::now() + LEAVING;
                lane.state = State::Dying { trial, deadline };
            }
            self.session.fleet.kill(lane.vm);
        }
    }

    fn take_end(&mut self, at: usize, fate: &Fate) -> Result<(), Halt> {
        let trial = match std::mem::replace(&mut self.lanes[at].state, State::Idle) {
            State::Running { asked, .. } => Some(asked.died(fate)),
            State::Dying { trial, .. } => trial,
            State::Starting => {
                // Tests that have run keep their results, and the others are reported as not run.
                let output = last_lines(&fate.output.text(Duration::from_secs(1)));
                let reason = format!("a new VM could not start ({}):\n{output}", fate.how);
                self.ending = Ending::CutShort { reason };
                return Ok(());
            }
            State::Idle => None,
        };
        let Some(trial) = trial else { return Ok(()) };
        self.lanes[at].failed.clear();
        self.lanes[at].failed.push_back(trial.test.clone());
        self.record(at, trial);
        self.look_into_failed(at)
    }
}
