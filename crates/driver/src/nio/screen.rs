//! A first look at many tests where a VM cannot be copied: each twice on classes that are loaded anew for it,
//! in a few VMs.
//!
//! Static fields, thread locals, the VM's settings and the files are then as for a test that runs alone. What
//! libraries remember is not. So the look only says who needs no VM of its own: a test that passes both times.
//! Whatever else happens says nothing, because the loaded classes can be what disturbed the test, and is not
//! told: the test is run twice in a VM of its own.

use std::collections::{HashSet, VecDeque};

use unflake_core::event::{Event, Note};
use unflake_core::nio::{Setting, Shape};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::{Birth, Rung, Trial};

use crate::lab::lane::{Lane, Manner};
use crate::lab::session::{Halt, Session};
use crate::nio::hunt::to_pair;
use crate::protocol::messages::Between;

/// Fewer tests than this have a VM each: the first look would be one more.
const MANY: usize = 4;

impl Session {
    /// The pairs of those groups that need no VM of their own, which are taken out of them.
    pub(crate) fn screen(
        &mut self,
        lanes: &mut Vec<Lane>,
        groups: &mut VecDeque<Vec<TestId>>,
    ) -> Result<Vec<(Trial, Trial)>, Halt> {
        let is_wanted = self.wish.fresh_by != Some(Birth::Exec) && groups.len() >= MANY;
        if !is_wanted || !self.home.project.can_reload() {
            return Ok(Vec::new());
        }
        let wanted = self.wish.jobs.unwrap_or(1).min(groups.len());
        while lanes.len() < wanted {
            let worker = self.worker(lanes.len());
            lanes.push(self.open_unused_lane(worker)?);
        }
        use_up(lanes);
        let manner = Manner {
            setting: Setting::Reloaded,
            between: Some(Between::Nothing),
            is_apart: false,
            is_brief: false,
        };
        let pairs = self.run_twice(lanes, groups.clone(), manner)?;
        use_up(lanes);
        let passed = |(once, again): &(Trial, Trial)| ended_well(once, again);
        let pairs: Vec<(Trial, Trial)> = pairs.into_iter().filter(passed).collect();
        let done: HashSet<&TestId> = pairs.iter().map(|(once, _)| &once.test).collect();
        groups.retain(|group| !group.iter().all(|test| done.contains(test)));
        self.note(Note::Screened {
            passed: pairs.len(),
            alone: groups.len(),
        });
        Ok(pairs)
    }

    /// Keeps a trial of a lane, and tells it.
    pub(crate) fn keep(&self, lane: &Lane, trial: Trial, trials: &mut Vec<(usize, Trial)>) {
        if trial.rung == Rung::Again(Setting::Reloaded) {
            self.tell_screened(&trial, trials.iter().map(|(_, trial)| trial));
        }
        // The runs of a search are told as what they show, those of a first look if they count.
        if !matches!(
            trial.rung,
            Rung::Once(Setting::Ordered | Setting::Reloaded) | Rung::Again(Setting::Reloaded)
        ) {
            self.tell(Event::TrialEnded(trial.clone()));
        }
        trials.push((lane.group, trial));
    }

    /// Tells both runs of a test whose second has just ended, if they count.
    fn tell_screened<'a>(
        &self,
        again: &Trial,
        mut before: impl DoubleEndedIterator<Item = &'a Trial>,
    ) {
        let once = Rung::Once(Setting::Reloaded);
        let once = before.rfind(|trial| trial.test == again.test && trial.rung == once);
        if let Some(once) = once
            && ended_well(once, again)
        {
            self.tell(Event::TrialEnded(once.clone()));
            self.tell(Event::TrialEnded(again.clone()));
        }
    }

    /// A VM has no room for another set of classes: a new one takes its place. One that is new and has none
    /// runs nothing.
    pub(crate) fn replace_full(&mut self, lane: &mut Lane) -> bool {
        let is_new = self.fleet.vm(lane.vm).is_none_or(|vm| vm.trials <= 1);
        if !is_new {
            lane.asked = None;
            lane.start_over();
        }
        !is_new
    }
}

/// Has each lane take a new VM for what it does next.
fn use_up(lanes: &mut [Lane]) {
    for lane in lanes {
        lane.is_spent = true;
        lane.left_behind.clear();
    }
}

fn ended_well(once: &Trial, again: &Trial) -> bool {
    let is_skipped = |trial: &Trial| matches!(trial.outcome, Outcome::Skipped);
    is_skipped(once) && is_skipped(again) || to_pair(once, again).shape() == Shape::PassPass
}
