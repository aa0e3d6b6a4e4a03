//! Confirmations of many suspects at once, where a VM cannot be copied and every one of them needs a new
//! process.
//!
//! Each run of a test has a set-up of its own there, that of its class included. So a confirmation is a
//! pair with everything torn down in between as well. In the last of them the garbage is collected
//! between the runs too: if the test fails all the same, the collector has no part in it.

use std::collections::HashMap;

use unflake_core::nio::{Pair, Setting, Shape, Step, next_step};
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use crate::hunt::to_pair;
use crate::lane::{Lane, Manner};
use crate::protocol::Between;
use crate::session::{Halt, Session};

/// So many suspects for each VM are confirmed before any is named: a hunt that is cut off keeps the others.
const CHUNK: usize = 4;

impl Session {
    /// Runs all suspects twice alone, each in a VM of its own, as long as that can tell what they are.
    pub(crate) fn confirm_together(
        &mut self,
        pairs: &mut HashMap<TestId, Vec<Pair>>,
    ) -> Result<(), Halt> {
        let mut lanes: Vec<Lane> = Vec::new();
        let all: Vec<usize> = (0..self.suspects.len()).collect();
        let some = CHUNK * self.wish.jobs.unwrap_or(1);
        for chunk in all.chunks(some) {
            self.confirm_some(&mut lanes, chunk, pairs)?;
            for at in chunk {
                let seen = pairs.get(&self.suspects[*at].test);
                if let Some(Step::Conclude(Some(verdict))) = seen.map(|seen| next_step(seen)) {
                    self.judge(*at, verdict, None);
                }
            }
        }
        self.leave_lanes(lanes)
    }

    /// The same for some of them.
    fn confirm_some(
        &mut self,
        lanes: &mut Vec<Lane>,
        some: &[usize],
        pairs: &mut HashMap<TestId, Vec<Pair>>,
    ) -> Result<(), Halt> {
        for between in [Between::Nothing, Between::Nothing, Between::Collect] {
            let wants = |at: &usize| {
                let seen = pairs.get(&self.suspects[*at].test);
                seen.map(|seen| next_step(seen)) == Some(Step::Run(Setting::Confirm))
            };
            let open: Vec<usize> = some.iter().copied().filter(wants).collect();
            if open.is_empty() {
                break;
            }
            self.open_lanes(lanes, open.len())?;
            let manner = Manner {
                setting: Setting::Confirm,
                between: Some(between),
                is_apart: true,
            };
            let test_at = |at: &usize| vec![self.suspects[*at].test.clone()];
            let groups: Vec<Vec<TestId>> = open.iter().map(test_at).collect();
            let trials = self.run_each(lanes, &groups, manner)?;
            for lane in lanes.iter_mut() {
                for (group, changed) in std::mem::take(&mut lane.left_behind) {
                    self.suspects[open[group]].left_behind = changed;
                }
            }
            for (at, trials) in open.into_iter().zip(trials) {
                let seen = pairs.entry(self.suspects[at].test.clone()).or_default();
                keep(seen, &trials, between);
                self.suspects[at].trials.extend(trials);
            }
        }
        Ok(())
    }

    /// As many lanes as there may be for so many groups.
    fn open_lanes(&mut self, lanes: &mut Vec<Lane>, groups: usize) -> Result<(), Halt> {
        let wanted = self.wish.jobs.unwrap_or(1).min(groups);
        while lanes.len() < wanted {
            let worker = self.worker(lanes.len());
            lanes.push(self.open_unused_lane(worker)?);
        }
        Ok(())
    }
}

/// Takes the two trials of a confirmation for what they show.
fn keep(seen: &mut Vec<Pair>, trials: &[Trial], between: Between) {
    let [once, again] = trials else { return };
    let pair = to_pair(once, again);
    let also = |setting: Setting| Pair {
        setting,
        ..pair.clone()
    };
    let fails_again = pair.shape() == Shape::PassFail;
    let (torn_down, collected) = (also(Setting::TornDown), also(Setting::Collected));
    if between == Between::Collect {
        seen.push(collected);
        if !fails_again {
            // The collector may have helped: this one confirms nothing.
            return;
        }
    }
    if seen.iter().all(|pair| pair.setting != Setting::TornDown) {
        seen.push(torn_down);
    }
    seen.push(pair);
}
