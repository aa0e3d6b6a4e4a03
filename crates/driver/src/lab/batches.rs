//! Batches: groups that are run to their end by who waits for them.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::collections::VecDeque;
use std::time::Instant;

use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use crate::lab::lane::{Lane, Manner, State};
use crate::lab::lanes::{Done, Group};
use crate::lab::session::{Halt, Session};
use crate::nio::hunt::in_pairs;
use crate::vm::event::Happening;

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
        groups: VecDeque<Vec<TestId>>,
        manner: Manner,
    ) -> Result<Vec<Trial>, Halt> {
        let trials = self.run_numbered(lanes, groups, manner)?;
        Ok(trials.into_iter().map(|(_, trial)| trial).collect())
    }

    /// Runs all groups, and gives the trials of each.
    pub(crate) fn run_each(
        &mut self,
        lanes: &mut [Lane],
        groups: &[Vec<TestId>],
        manner: Manner,
    ) -> Result<Vec<Vec<Trial>>, Halt> {
        let mut trials: Vec<Vec<Trial>> = vec![Vec::new(); groups.len()];
        for (group, trial) in self.run_numbered(lanes, groups.to_vec().into(), manner)? {
            trials[group].push(trial);
        }
        Ok(trials)
    }

    fn run_numbered(
        &mut self,
        lanes: &mut [Lane],
        groups: VecDeque<Vec<TestId>>,
        manner: Manner,
    ) -> Result<Vec<Done>, Halt> {
        let mut groups: VecDeque<Group> = groups.into_iter().enumerate().collect();
        let mut trials = Vec::new();
        loop {
            for lane in lanes.iter_mut() {
                self.go_on(lane, &mut groups, manner)?;
            }
            let is_done = |lane: &Lane| lane.state != State::Busy && lane.expected.is_empty();
            if groups.is_empty() && lanes.iter().all(is_done) {
                for lane in lanes.iter_mut() {
                    self.drop_ahead(lane);
                }
                return Ok(trials);
            }
            match self.next(lanes.iter().filter_map(|lane| lane.deadline).min())? {
                Happening::Deadline => {
                    let now = Instant::now();
                    for lane in lanes.iter_mut() {
                        if lane.deadline.is_some_and(|deadline| deadline <= now) {
                            self.give_up(lane, &mut trials);
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
                happening => self.hear_lanes(lanes, happening, manner, &mut trials),
            }
        }
    }
}
