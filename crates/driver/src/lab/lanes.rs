//! Groups of tests on one or several VMs at once, each test run once, or twice in a row.
//!
//! A lane is a VM in a workspace of its own. In a lane a group runs either in the VM itself, or in a
//! copy of it that then ends; after each group the lane's files are put back.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use unflake_core::nio::Setting;
use unflake_core::test::TestId;
use unflake_core::trial::{Birth, Rung, Trial};

use crate::lab::lane::{Group, Lane, News, State};
use crate::lab::session::{Halt, Mould, Session};
use crate::lab::start_error::StartError;
use crate::protocol::messages::Command;
use crate::run::climb::LEAVING;
use crate::vm::event::Happening;

/// A test in a copy of a VM gets at least this long before the copy itself is blamed for the delay.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

impl Session {
    /// Waits until something happens, and has the lanes hear of it.
    ///
    /// A lane whose VM is lost gets a new one, which goes on with the rest of the group.
    pub(crate) fn turn_lanes(
        &mut self,
        lanes: &mut [Lane],
        news: &mut Vec<News>,
    ) -> Result<(), Halt> {
        match self.next(lanes.iter().filter_map(|lane| lane.deadline).min())? {
            Happening::Deadline => {
                let now = Instant::now();
                for lane in lanes.iter_mut() {
                    if lane.deadline.is_some_and(|deadline| deadline <= now) {
                        self.give_up(lane, news);
                    }
                }
            }
            Happening::Parsed(vm, _) => {
                let lane = lanes.iter().find(|lane| lane.vm == vm);
                self.fleet
                    .collect(vm, lane.and_then(|lane| lane.worker.clone()));
            }
            Happening::Ready(vm, _) => {
                for lane in lanes.iter_mut().filter(|lane| lane.vm == vm) {
                    lane.state = State::Idle;
                    lane.mark_once()?;
                }
            }
            Happening::Ended(vm, fate) if lanes.iter().any(|lane| lane.is_started_by(vm)) => {
                return Err(self.ended_early(&fate));
            }
            happening => self.hear_lanes(lanes, happening, news),
        }
        Ok(())
    }

    /// Lets an idle lane go on with the rest of its group, or with the next one.
    pub(crate) fn go_on(
        &mut self,
        lane: &mut Lane,
        groups: &mut VecDeque<Group>,
        news: &mut Vec<News>,
    ) -> Result<(), Halt> {
        if lane.state != State::Idle {
            return Ok(());
        }
        let rest = lane.rest();
        if !rest.is_empty() {
            self.begin(lane, &rest, news)?;
            return self.start_ahead(lane, groups.front().map(|next| &next.tests));
        }
        let manner = groups.front().map_or(lane.manner, |next| next.manner);
        let mut left_behind = Vec::new();
        if lane.is_used && manner.is_alone() {
            left_behind = self.put_back(lane)?;
        }
        if let Some(group) = lane.group.take() {
            news.push(News::Ended(group, left_behind));
        }
        match groups.pop_front() {
            Some(group) => {
                (lane.group, lane.manner) = (Some(group.number), group.manner);
                self.begin(lane, &group.tests, news)?;
                self.start_ahead(lane, groups.front().map(|next| &next.tests))
            }
            None => Ok(()),
        }
    }

    /// Puts a lane's files back as they were before its group, and says which had changed.
    pub(crate) fn put_back(&mut self, lane: &mut Lane) -> Result<Vec<String>, Halt> {
        if lane.is_spent {
            self.fleet.kill(lane.vm);
        }
        lane.is_used = false;
        let Some(workspace) = &mut lane.workspace else {
            return Ok(Vec::new());
        };
        let restored = workspace.restore().map_err(StartError::Scratch)?;
        // A VM whose folder was removed stands in one that has no name any more.
        if restored.is_rebuilt {
            lane.is_spent = true;
            self.drop_ahead(lane);
        }
        Ok(restored.changed)
    }

    /// Has a lane run a group; if it needs a new VM for that, as soon as that is ready.
    fn begin(
        &mut self,
        lane: &mut Lane,
        group: &[TestId],
        news: &mut Vec<News>,
    ) -> Result<(), Halt> {
        let manner = lane.manner;
        let setting = manner.setting;
        let is_twice = manner.between.is_some();
        let runs = |test: &TestId| {
            let again = is_twice.then(|| (test.clone(), Rung::Again(setting)));
            [Some((test.clone(), Rung::Once(setting))), again]
        };
        lane.expected = group.iter().flat_map(runs).flatten().collect();
        if lane.is_spent || self.fleet.vm(lane.vm).is_none() {
            self.fleet.kill(lane.vm);
            lane.vm = self.take_vm(lane, group)?;
            (lane.is_spent, lane.state) = (false, State::Starting);
            return Ok(());
        }
        (lane.state, lane.is_used) = (State::Busy, true);
        // Without a copy the VM itself runs the group, and nothing else after it.
        let is_copied = manner.is_apart && !self.wants_new_process(manner.setting);
        lane.is_spent |= manner.is_apart && !is_copied;
        self.tell_group(lane, is_copied);
        self.expect_next(lane, is_copied, news);
        Ok(())
    }

    /// Whether the user wants a new process where a copy would do.
    fn wants_new_process(&self, setting: Setting) -> bool {
        let is_of_user = matches!(setting, Setting::Class | Setting::Method);
        is_of_user && self.wish.fresh_by == Some(Birth::Exec)
    }

    fn tell_group(&mut self, lane: &Lane, is_apart: bool) {
        let manner = lane.manner;
        // Where states are compared, a generator that was drawn anew would be a difference.
        let is_compared = lane.compares || !lane.restore.is_empty();
        let redraw = (is_apart && !is_compared).then(|| self.redraw());
        let there = |test: &TestId| self.listings.name_in(lane.vm, test);
        let command = Command::Twice {
            tests: lane.rest().iter().map(there).collect(),
            between: manner.between,
            next: lane.next.as_ref().map(there),
            restore: lane.restore.clone(),
            compare: lane.compares,
            brief: is_apart && manner.is_brief,
            apart: is_apart,
            usage: lane.facts.clone(),
            reload: manner.setting == Setting::Reloaded,
            redraw: redraw.unwrap_or_default(),
            branches: Vec::new(),
        };
        self.fleet.tell(lane.vm, &command);
    }

    /// Notes what the next report of a lane must be about.
    fn expect_next(&mut self, lane: &mut Lane, is_apart: bool, news: &mut Vec<News>) {
        lane.asked = None;
        // When all is reported, a copy has still to end.
        let patience = is_apart.then_some(PATIENCE);
        lane.deadline = patience.map(|limit| Instant::now() + limit);
        let Some((test, rung)) = lane.expected.front().cloned() else {
            if !is_apart {
                lane.state = State::Idle;
            }
            return;
        };
        let limit = self.wish.plan.timeout_for(&test).or(patience);
        lane.deadline = limit.map(|limit| Instant::now() + limit);
        news.push(News::Started(test.clone(), lane.vm, rung));
        lane.asked = Some(self.asked(test, rung, lane.vm, Instant::now()));
    }

    fn hear_lanes(&mut self, lanes: &mut [Lane], happening: Happening, news: &mut Vec<News>) {
        let vm = match &happening {
            Happening::Ran(vm, _)
            | Happening::Unknown(vm)
            | Happening::Apart(vm, _)
            | Happening::Unforked(vm, _)
            | Happening::Rejoined(vm, _)
            | Happening::Changed(vm, ..)
            | Happening::Stopped(vm, ..)
            | Happening::Ended(vm, _) => *vm,
            _ => return,
        };
        let Some(lane) = lanes.iter_mut().find(|lane| lane.vm == vm) else {
            return;
        };
        let asked = lane.asked.as_ref();
        let trial = match happening {
            Happening::Apart(_, pid) => {
                lane.copy = Some(pid);
                return;
            }
            Happening::Changed(_, pieces, _) => {
                lane.changed = pieces;
                return;
            }
            Happening::Unforked(_, why) if lane.manner.setting == Setting::Reloaded => {
                if !self.replace_full(lane) {
                    while let Some(asked) = lane.asked.take() {
                        self.take_trial(lane, Some(asked.not_run(&why, "")), news);
                    }
                }
                return;
            }
            Happening::Unforked(_, why) => {
                self.miss_forks(why);
                lane.is_spent = true;
                self.tell_group(lane, false);
                return self.expect_next(lane, false, news);
            }
            Happening::Rejoined(_, how) => {
                let how = how.as_deref().unwrap_or("ended without a word");
                let trial = lane.asked.take().map(|asked| asked.lost(how));
                self.take_trial(lane, trial, news);
                return end_group(lane);
            }
            Happening::Ended(_, fate) => {
                let trial = lane.asked.take().map(|asked| asked.died(&fate));
                if let Some(copy) = lane.copy.take() {
                    kill_copy(copy);
                }
                self.take_trial(lane, trial, news);
                return end_group(lane);
            }
            // A plugin of the project that reran the test has the first word only.
            Happening::Ran(_, ran) => asked.and_then(|asked| asked.ran(*ran).into_iter().next()),
            Happening::Unknown(_) => {
                asked.map(|asked| asked.not_run("its VM does not list it", ""))
            }
            Happening::Stopped(_, _, message) => {
                asked.map(|asked| asked.stopped("KeyboardInterrupt or pytest.exit", &message))
            }
            _ => None,
        };
        self.take_trial(lane, trial, news);
    }

    /// A lane's test takes too long, or its copy does not end.
    fn give_up(&mut self, lane: &mut Lane, news: &mut Vec<News>) {
        let asked = lane.asked.take();
        let limit = asked
            .as_ref()
            .and_then(|asked| self.wish.plan.timeout_for(&asked.test));
        let limit = limit.unwrap_or(PATIENCE);
        let trial = asked.map(|asked| {
            let stack = self.fleet.stack(lane.vm, lane.copy);
            asked.timed_out(limit, stack.as_deref())
        });
        match lane.copy {
            // `rejoined` follows.
            Some(copy) if trial.is_some() => kill_copy(copy),
            Some(_) | None => {
                self.fleet.kill(lane.vm);
                if let Some(copy) = lane.copy {
                    kill_copy(copy);
                }
                end_group(lane);
                lane.is_spent = true;
            }
        }
        self.take_trial(lane, trial, news);
    }

    fn take_trial(&mut self, lane: &mut Lane, trial: Option<Trial>, news: &mut Vec<News>) {
        let (Some(trial), Some(group)) = (trial, lane.group) else {
            return;
        };
        let is_lost = trial.outcome.ends_vm();
        let is_first = matches!(trial.rung, Rung::Once(_));
        let message = trial.account.message.clone();
        let trial = self.at_home(lane.workspace.as_ref(), trial);
        news.push(News::Ran(group, Box::new(trial)));
        lane.expected.pop_front();
        if !is_lost {
            return self.expect_next(lane, lane.copy.is_some(), news);
        }
        let is_again = |(_, rung): &(TestId, Rung)| matches!(rung, Rung::Again(_));
        if is_first
            && lane.expected.front().is_some_and(is_again)
            && let Some((test, rung)) = lane.expected.pop_front()
        {
            // Its second run is lost with it, for the same reason.
            news.push(News::Started(test.clone(), lane.vm, rung));
            let asked = self.asked(test, rung, lane.vm, Instant::now());
            let trial = asked.not_run(&message, "");
            news.push(News::Ran(group, Box::new(trial)));
        }
        lane.asked = None;
        // A copy has still to end; without one the VM itself is lost.
        lane.deadline = lane.copy.map(|_| Instant::now() + PATIENCE);
        if lane.copy.is_none() {
            (lane.state, lane.is_spent) = (State::Idle, true);
        }
    }

    /// Ends the VMs of lanes that are not needed any more, all at once.
    pub(crate) fn leave_lanes(&mut self, lanes: Vec<Lane>) -> Result<(), Halt> {
        for lane in &lanes {
            if lane.state == State::Starting {
                self.fleet.kill(lane.vm);
            } else {
                self.fleet.tell(lane.vm, &Command::Finish {});
            }
        }
        for lane in lanes {
            self.await_end(lane.vm, LEAVING)?;
        }
        Ok(())
    }

    /// A VM has no room for another set of classes: a new one takes its place. One that is new and has none
    /// runs nothing.
    fn replace_full(&mut self, lane: &mut Lane) -> bool {
        let is_new = self.fleet.vm(lane.vm).is_none_or(|vm| vm.trials <= 1);
        if !is_new {
            lane.asked = None;
            lane.start_over();
        }
        !is_new
    }

    /// Notes that no VM can be copied.
    fn miss_forks(&mut self, why: String) {
        let is_known = matches!(&self.mould, Mould::None { why: known, .. } if *known == why);
        if !is_known {
            self.mould = Mould::None { why, said: false };
            self.say_why_no_fork();
        }
    }
}

/// The copy of a lane has ended, or its VM has.
fn end_group(lane: &mut Lane) {
    (lane.copy, lane.deadline) = (None, None);
    lane.state = State::Idle;
}

/// Ends a copy and its process group. That it has just ended, or has left the group, is no harm.
pub(crate) fn kill_copy(copy: Pid) {
    let _gone = (killpg(copy, Signal::SIGKILL), kill(copy, Signal::SIGKILL));
}
