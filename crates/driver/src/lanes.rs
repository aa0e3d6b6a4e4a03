//! Groups of tests, each test run twice in a row, on one or several VMs at once.
//!
//! A lane is a VM in a workspace of its own. In a lane a group runs either in the VM itself, or in a
//! copy of it that then ends; after each group the lane's files are put back.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use unflake_core::event::Event;
use unflake_core::nio::Setting;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial, VmId};

use crate::asked::Asked;
use crate::fleet::Happening;
use crate::protocol::{Between, Command, Name};
use crate::session::{Halt, Session};
use crate::start_error::StartError;
use crate::workspace::Workspace;

/// A test in a copy of a VM gets at least this long before the copy itself is blamed for the delay.
const PATIENCE: Duration = Duration::from_secs(60);

/// How groups are run.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) setting: Setting,
    /// What is done between the two runs of a test; `None` runs each once only.
    pub(crate) between: Option<Between>,
    /// Whether each group has a copy of the VM to itself.
    pub(crate) is_apart: bool,
}

/// A VM in a workspace of its own.
pub(crate) struct Lane {
    pub(crate) vm: VmId,
    /// `None` if it works in the user's own files.
    pub(crate) workspace: Option<Workspace>,
    /// The runs that are still to be reported.
    expected: VecDeque<(TestId, Rung)>,
    /// The copy that runs them.
    copy: Option<Pid>,
    asked: Option<Asked>,
    deadline: Option<Instant>,
    /// Whether the VM has been told something and has not ended it.
    is_busy: bool,
    /// Whether the VM is gone.
    is_lost: bool,
    /// The files of the work tree that its groups have changed.
    pub(crate) left_behind: Vec<String>,
}

impl Lane {
    pub(crate) fn new(vm: VmId, workspace: Option<Workspace>) -> Self {
        Self {
            vm,
            workspace,
            expected: VecDeque::new(),
            copy: None,
            asked: None,
            deadline: None,
            is_busy: false,
            is_lost: false,
            left_behind: Vec::new(),
        }
    }
}

impl Session {
    /// Runs all groups, and gives both trials of each test.
    ///
    /// A lane whose VM is lost gets a new one, which goes on with the rest of the group.
    pub(crate) fn run_twice(
        &mut self,
        lanes: &mut [Lane],
        groups: VecDeque<Vec<TestId>>,
        manner: Manner,
    ) -> Result<Vec<(Trial, Trial)>, Halt> {
        Ok(in_pairs(self.run_groups(lanes, groups, manner)?))
    }

    /// Runs all groups, and gives the trials in the order in which they ended.
    pub(crate) fn run_groups(
        &mut self,
        lanes: &mut [Lane],
        mut groups: VecDeque<Vec<TestId>>,
        manner: Manner,
    ) -> Result<Vec<Trial>, Halt> {
        let mut trials = Vec::new();
        let mut backlog = VecDeque::new();
        loop {
            for lane in lanes.iter_mut().filter(|lane| !lane.is_busy) {
                if let Some(group) = groups.pop_front() {
                    self.begin(lane, &group, manner);
                }
            }
            let deadlines = lanes.iter().filter(|lane| lane.is_busy);
            let Some(deadline) = deadlines.map(|lane| lane.deadline).min() else {
                return Ok(trials);
            };
            let happening = match backlog.pop_front() {
                Some(happening) => happening,
                None => self.next(deadline)?,
            };
            if let Happening::Deadline = happening {
                let now = Instant::now();
                for lane in lanes.iter_mut() {
                    if lane.deadline.is_some_and(|deadline| deadline <= now) {
                        self.give_up(lane, &mut trials);
                    }
                }
            } else {
                self.hear_lanes(lanes, happening, &mut trials);
            }
            for lane in lanes.iter_mut() {
                self.go_on(lane, manner, &mut backlog)?;
            }
        }
    }

    fn begin(&mut self, lane: &mut Lane, group: &[TestId], manner: Manner) {
        let setting = manner.setting;
        let is_twice = manner.between.is_some();
        let runs = |test: &TestId| {
            let again = is_twice.then(|| (test.clone(), Rung::Again(setting)));
            [Some((test.clone(), Rung::Once(setting))), again]
        };
        lane.expected = group.iter().flat_map(runs).flatten().collect();
        lane.is_busy = true;
        let command = Command::Twice {
            tests: group.iter().map(Name::from).collect(),
            between: manner.between,
            apart: manner.is_apart,
        };
        self.fleet.tell(lane.vm, &command);
        self.expect_next(lane, manner.is_apart);
    }

    /// Notes what the next report of a lane must be about.
    fn expect_next(&mut self, lane: &mut Lane, is_apart: bool) {
        lane.asked = None;
        lane.deadline = None;
        let Some((test, rung)) = lane.expected.front().cloned() else {
            return;
        };
        let own = self.wish.plan.timeout_for(&test);
        let limit = own.or(is_apart.then_some(PATIENCE));
        lane.deadline = limit.map(|limit| Instant::now() + limit);
        lane.asked = Some(self.ask(test, rung, lane.vm, Instant::now()));
    }

    fn hear_lanes(&mut self, lanes: &mut [Lane], happening: Happening, trials: &mut Vec<Trial>) {
        let vm = match &happening {
            Happening::Ran(vm, _)
            | Happening::Unknown(vm)
            | Happening::Apart(vm, _)
            | Happening::Rejoined(vm, _)
            | Happening::Stopped(vm, ..)
            | Happening::Ended(vm, _) => *vm,
            _ => return,
        };
        let Some(lane) = lanes.iter_mut().find(|lane| lane.vm == vm) else {
            return;
        };
        match happening {
            Happening::Apart(_, pid) => lane.copy = Some(pid),
            Happening::Ran(_, ran) => {
                let made = lane.asked.as_ref().map(|asked| asked.ran(*ran));
                // A plugin of the project that reran the test has the first word only.
                let first = made.into_iter().flatten().next();
                self.take_trial(lane, first, trials);
            }
            Happening::Unknown(_) => {
                let trial = lane
                    .asked
                    .as_ref()
                    .map(|asked| asked.not_run("its VM does not list it", ""));
                self.take_trial(lane, trial, trials);
            }
            Happening::Stopped(_, _, message) => {
                let how = "KeyboardInterrupt or pytest.exit";
                let trial = lane
                    .asked
                    .as_ref()
                    .map(|asked| asked.stopped(how, &message));
                self.take_trial(lane, trial, trials);
            }
            Happening::Rejoined(_, how) => self.rejoin(lane, how.as_deref(), trials),
            Happening::Ended(_, fate) => {
                let trial = lane.asked.as_ref().map(|asked| asked.died(&fate));
                self.take_trial(lane, trial, trials);
            }
            _ => {}
        }
    }

    /// The copy of a lane has ended. What it has not reported, it has not run.
    fn rejoin(&mut self, lane: &mut Lane, how: Option<&str>, trials: &mut Vec<Trial>) {
        lane.copy = None;
        if let Some(asked) = lane.asked.take() {
            let how = how.unwrap_or("ended without a word");
            self.take_trial(lane, Some(asked.lost(how)), trials);
        }
        while let Some((test, rung)) = lane.expected.pop_front() {
            let asked = self.ask(test, rung, lane.vm, Instant::now());
            self.keep(asked.not_run("its VM ended before", ""), trials);
        }
        lane.deadline = None;
        lane.is_busy = false;
    }

    /// A lane's test takes too long.
    fn give_up(&mut self, lane: &mut Lane, trials: &mut Vec<Trial>) {
        let asked = lane.asked.take();
        let limit = lane.deadline.zip(asked.as_ref());
        let limit = limit.map_or(PATIENCE, |(deadline, asked)| deadline - asked.since);
        let mut stack = None;
        if let Some(copy) = lane.copy {
            // It is ours, and so is its group; `rejoined` follows. That it has just ended is no harm.
            let _gone = killpg(copy, Signal::SIGKILL);
        } else {
            stack = self.fleet.stack(lane.vm);
            self.fleet.kill(lane.vm);
        }
        let trial = asked.map(|asked| asked.timed_out(limit, stack.as_deref()));
        lane.deadline = None;
        self.take_trial(lane, trial, trials);
    }

    fn take_trial(&mut self, lane: &mut Lane, trial: Option<Trial>, trials: &mut Vec<Trial>) {
        let Some(trial) = trial else { return };
        let is_lost = trial.outcome.ends_vm();
        let is_first = matches!(trial.rung, Rung::Once(_));
        let trial = self.at_home(lane.workspace.as_ref(), trial);
        self.keep(trial, trials);
        lane.expected.pop_front();
        let is_apart = lane.copy.is_some();
        if is_lost && is_first {
            // Its second run is lost with it.
            let second = lane
                .expected
                .front()
                .is_some_and(|(_, rung)| matches!(rung, Rung::Again(_)));
            if second && let Some((test, rung)) = lane.expected.pop_front() {
                let asked = self.ask(test, rung, lane.vm, Instant::now());
                self.keep(asked.not_run("its VM ended before", ""), trials);
            }
        }
        if is_lost {
            lane.asked = None;
            lane.deadline = None;
            lane.is_lost = !is_apart;
        } else {
            self.expect_next(lane, is_apart);
        }
    }
}

impl Session {
    /// Ends a lane's group, or gives the lane a new VM for the rest of it.
    fn go_on(
        &mut self,
        lane: &mut Lane,
        manner: Manner,
        backlog: &mut VecDeque<Happening>,
    ) -> Result<(), Halt> {
        if lane.is_lost {
            lane.is_lost = false;
            let mut rest: Vec<TestId> =
                lane.expected.iter().map(|(test, _)| test.clone()).collect();
            rest.dedup();
            lane.is_busy = false;
            if !rest.is_empty() {
                self.fleet.kill(lane.vm);
                lane.vm = self.start_in(lane.workspace.as_ref())?;
                self.await_ready(lane.vm, backlog)?;
                self.begin(lane, &rest, manner);
            }
        } else if lane.is_busy && lane.expected.is_empty() && !manner.is_apart {
            lane.is_busy = false;
        }
        if !lane.is_busy
            && manner.is_apart
            && let Some(workspace) = &mut lane.workspace
        {
            lane.left_behind = workspace.restore().map_err(StartError::Scratch)?;
        }
        Ok(())
    }
}

impl Session {
    fn keep(&self, trial: Trial, trials: &mut Vec<Trial>) {
        self.tell(Event::TrialEnded(trial.clone()));
        trials.push(trial);
    }
}

/// Trials of one VM after the other, two by two.
fn in_pairs(trials: Vec<Trial>) -> Vec<(Trial, Trial)> {
    let mut firsts: Vec<Trial> = Vec::new();
    let mut pairs = Vec::new();
    for trial in trials {
        let place = firsts.iter().position(|first| first.test == trial.test);
        match place {
            Some(place) => pairs.push((firsts.swap_remove(place), trial)),
            None => firsts.push(trial),
        }
    }
    pairs
}
