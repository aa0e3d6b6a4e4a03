//! The suite's own run: every test once, in the framework's order, in one VM or several, with the
//! immediate reruns in between. A VM that dies takes only the test that killed it along.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use unflake_core::event::{Ending, Event};
use unflake_core::ladder::{Stage, Step};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::{Account, Rung, Trial, VmId};

use crate::fleet::{Fate, Happening};
use crate::protocol::{Command, Name, Ran, StopKind, Target};
use crate::session::{Costing, Halt, Session};

/// How long a VM whose session was ended by a test may take to end.
const LEAVING: Duration = Duration::from_secs(10);
/// How much of a dead VM's output is shown.
const LAST_LINES: usize = 40;

/// One of the parallel strands of the suite, and the VM that it uses now.
struct Lane {
    number: usize,
    vm: VmId,
    /// The tests that are sure to run here, in order.
    tests: VecDeque<TestId>,
    state: State,
}

/// What a lane's VM is doing.
enum State {
    /// Not ready yet.
    Starting,
    /// Running a test.
    Running {
        test: TestId,
        rung: Rung,
        since: Instant,
        limit: Option<Duration>,
    },
    /// Ended, or about to, for this reason.
    Dying {
        trial: Box<Trial>,
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
        self.too_many_failures = self.wish.plan.threshold.is_reached(failures, ran);
        self.tell(Event::SuiteEnded {
            elapsed: since.elapsed(),
            failures,
            too_many_failures: self.too_many_failures,
        });
        Ok(ending)
    }

    fn spawn_for_suite(&mut self) -> Result<VmId, Halt> {
        let suite = self
            .suite
            .as_ref()
            .expect("the suite is listed before it runs");
        let start = self.wish.project.start(true, &suite.replay);
        self.spawn(start)
    }

    /// The tests in pieces that stay together: the whole suite for one VM, else its files.
    fn split_into_files(&self) -> VecDeque<Vec<TestId>> {
        if self.jobs <= 1 {
            let all = self.tests.iter().map(|test| test.id.clone()).collect();
            return VecDeque::from([all]);
        }
        let mut files: Vec<(&str, Vec<TestId>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for test in &self.tests {
            let at = *places.entry(test.file.as_str()).or_insert_with(|| {
                files.push((&test.file, Vec::new()));
                files.len() - 1
            });
            files[at].1.push(test.id.clone());
        }
        files.into_iter().map(|(_, tests)| tests).collect()
    }
}

impl Lane {
    fn new(number: usize, vm: VmId, state: State) -> Self {
        Self {
            number,
            vm,
            tests: VecDeque::new(),
            state,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Running { since, limit, .. } => limit.map(|limit| *since + limit),
            State::Dying { deadline, .. } => Some(*deadline),
            State::Starting | State::Idle => None,
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
            match self.session.next(deadline)? {
                Happening::Deadline => self.expire()?,
                Happening::Parsed(vm, _) => {
                    let number = self.lane_of(vm).map_or(0, |at| self.lanes[at].number);
                    let worker = self.session.worker(number);
                    self.session.fleet.collect(vm, worker);
                }
                Happening::Ready(vm, _) => {
                    if let Some(at) = self.lane_of(vm) {
                        self.advance(at)?;
                    }
                }
                Happening::Ran(vm, ran) => self.take_result(vm, *ran)?,
                Happening::Unknown(vm) => self.take_unknown(vm)?,
                Happening::Stopped(vm, why, message) => self.take_stop(vm, why, &message),
                Happening::Ended(vm, fate) => self.take_end(vm, &fate)?,
                unrelated => drop(unrelated),
            }
        }
        Ok(())
    }

    fn lane_of(&self, vm: VmId) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.vm == vm)
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
        self.ran += 1;
        self.start(at, test, Rung::Suite);
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

    fn start(&mut self, at: usize, test: TestId, rung: Rung) {
        let lane = &mut self.lanes[at];
        let target = Target {
            test: Name::from(&test),
            next: lane.tests.front().map(Name::from),
        };
        let vm = lane.vm;
        lane.state = State::Running {
            test: test.clone(),
            rung,
            since: Instant::now(),
            limit: self.session.wish.plan.timeout_for(&test),
        };
        self.session.tell(Event::TrialStarted { test, vm, rung });
        let command = if rung == Rung::Suite {
            Command::Run(target)
        } else {
            Command::Rerun(target)
        };
        self.session.fleet.tell(vm, &command);
    }

    fn take_result(&mut self, vm: VmId, ran: Ran) -> Result<(), Halt> {
        let Some(at) = self.lane_of(vm) else {
            return Ok(());
        };
        let State::Running {
            test, rung, since, ..
        } = &self.lanes[at].state
        else {
            return Ok(());
        };
        let (test, rung, cost) = (test.clone(), *rung, since.elapsed());
        let worker = self.session.worker(self.lanes[at].number);
        if ran.attempts.is_empty() || ran.test.to_id() != test {
            let account = nothing_ran();
            let trial = self
                .session
                .trial(&test, rung, vm, Outcome::Errored, account);
            self.session.record(trial.costing(cost), worker.clone());
        }
        let mut rungs = std::iter::once(rung).chain(std::iter::repeat(Rung::OwnRerun));
        for attempt in ran.attempts {
            let rung = rungs.next().expect("the repetition has no end");
            let trial = self.session.to_trial(&test, rung, vm, attempt, cost);
            self.session.record(trial, worker.clone());
        }
        if let Some(reason) = ran.stop
            && self.ending == Ending::Completed
        {
            self.ending = Ending::Stopped { reason };
        }
        self.go_on(at, test)
    }

    /// Reruns the test of a lane at once if the ladder says so, else goes on to the next.
    fn go_on(&mut self, at: usize, test: TestId) -> Result<(), Halt> {
        let suspect = self
            .session
            .suspects
            .iter()
            .find(|suspect| suspect.test == test);
        let step = suspect.map(|suspect| self.session.step(suspect, Stage::SuiteRunning));
        match step {
            Some(Step::Rerun(rung, _)) => {
                self.start(at, test, rung);
                Ok(())
            }
            Some(Step::Wait | Step::Conclude(_)) | None => self.advance(at),
        }
    }

    /// After a crash a new VM may list other tests: what it lacks has failed, not passed.
    fn take_unknown(&mut self, vm: VmId) -> Result<(), Halt> {
        let Some(at) = self.lane_of(vm) else {
            return Ok(());
        };
        if let State::Running { test, rung, .. } = &self.lanes[at].state {
            let (test, rung) = (test.clone(), *rung);
            let account = Account {
                message:
                    "a new interpreter does not list this test: its id changes from run to run"
                        .to_owned(),
                ..Account::default()
            };
            let trial = self
                .session
                .trial(&test, rung, vm, Outcome::Errored, account);
            let worker = self.session.worker(self.lanes[at].number);
            self.session.record(trial, worker);
        }
        self.advance(at)
    }

    fn take_stop(&mut self, vm: VmId, why: StopKind, message: &str) {
        let Some(at) = self.lane_of(vm) else { return };
        let State::Running { test, rung, .. } = &self.lanes[at].state else {
            return;
        };
        let (test, rung) = (test.clone(), *rung);
        match why {
            StopKind::Interrupt => {
                let how = "KeyboardInterrupt".to_owned();
                let account = account_of(&format!("KeyboardInterrupt {message}"), "");
                self.die(at, &test, rung, Outcome::VmDied { how }, account, LEAVING);
            }
            StopKind::Exit => {
                let reason = message.to_owned();
                self.ending = Ending::Quit { test, reason };
                self.lanes[at].state = State::Idle;
                self.lanes[at].tests.clear();
            }
        }
    }

    /// A lane's test has ended its VM; the VM itself ends now or soon.
    fn die(
        &mut self,
        at: usize,
        test: &TestId,
        rung: Rung,
        outcome: Outcome,
        account: Account,
        patience: Duration,
    ) {
        let vm = self.lanes[at].vm;
        let cost = match &self.lanes[at].state {
            State::Running { since, .. } => since.elapsed(),
            State::Starting | State::Dying { .. } | State::Idle => Duration::ZERO,
        };
        let trial = self.session.trial(test, rung, vm, outcome, account);
        self.lanes[at].state = State::Dying {
            trial: Box::new(trial.costing(cost)),
            deadline: Instant::now() + patience,
        };
    }

    /// Kills what has run for too long.
    fn expire(&mut self) -> Result<(), Halt> {
        let now = Instant::now();
        for at in 0..self.lanes.len() {
            if self.lanes[at]
                .deadline()
                .is_none_or(|deadline| deadline > now)
            {
                continue;
            }
            let vm = self.lanes[at].vm;
            if let State::Running {
                test,
                rung,
                limit: Some(after),
                ..
            } = &self.lanes[at].state
            {
                let (test, rung, after) = (test.clone(), *rung, *after);
                let stack = self.session.fleet.stack(vm).unwrap_or_default();
                let account = account_of(&format!("still running after {after:?}"), &stack);
                self.die(
                    at,
                    &test,
                    rung,
                    Outcome::TimedOut { after },
                    account,
                    LEAVING,
                );
            }
            self.session.fleet.kill(vm);
        }
        Ok(())
    }

    fn take_end(&mut self, vm: VmId, fate: &Fate) -> Result<(), Halt> {
        let Some(at) = self.lane_of(vm) else {
            return Ok(());
        };
        if let State::Running { test, rung, .. } = &self.lanes[at].state {
            let (test, rung) = (test.clone(), *rung);
            let output = fate.output.text(Duration::from_secs(1));
            let message = format!("its VM ended: {}", fate.how);
            let account = account_of(&message, &last_lines(&output));
            let how = fate.how.clone();
            self.die(
                at,
                &test,
                rung,
                Outcome::VmDied { how },
                account,
                Duration::ZERO,
            );
        }
        match std::mem::replace(&mut self.lanes[at].state, State::Idle) {
            State::Dying { trial, .. } => {
                let test = trial.test.clone();
                let worker = self.session.worker(self.lanes[at].number);
                self.session.record(*trial, worker);
                self.go_on(at, test)
            }
            State::Starting => Err(self.session.ended_early(fate)),
            State::Running { .. } | State::Idle => Ok(()),
        }
    }
}

fn nothing_ran() -> Account {
    account_of("pytest ran nothing for this test", "")
}

fn account_of(message: &str, text: &str) -> Account {
    Account {
        message: message.trim_end().to_owned(),
        text: text.to_owned(),
        output: String::new(),
    }
}

/// The end of what a dead VM wrote: where an interpreter says why it died.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
