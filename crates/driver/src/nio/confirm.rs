//! Confirmations of many suspects at once, where a VM cannot be copied and every one of them needs a new
//! process.
//!
//! Each run of a test has a set-up of its own there, that of its class included. So a confirmation is a
//! pair with everything torn down in between as well. In the last of them the garbage is collected
//! between the runs too: if the test fails all the same, the collector has no part in it.
//!
//! A process for each is dear. So where there are many suspects, only the first confirmation is alone. The
//! others are made among all that passed and failed there, once backwards and once forwards, each time in
//! new processes. One that ends otherwise among others is confirmed alone after all.

use std::collections::{HashMap, HashSet};

use unflake_core::event::Note;
use unflake_core::nio::{Pair, Setting, Shape, Step, next_step};
use unflake_core::test::TestId;
use unflake_core::trial::Trial;
use unflake_core::verdict::Verdict;

use crate::lab::lane::{Lane, Manner};
use crate::lab::session::{Halt, Session};
use crate::nio::hunt::{class_of, to_pair};
use crate::protocol::messages::Between;

/// So many suspects for each VM are confirmed before any is named: a hunt that is cut off keeps the others.
const CHUNK: usize = 32;

/// Of more suspects than this, only some are looked into further.
const FEW: usize = 16;

/// For so many NIO tests, each of another class, the state behind them is looked for afterwards: it takes
/// several processes for each.
const EXPLAINED: usize = 2;

/// What is done between the two runs of the first confirmation.
const ONCE: [Between; 1] = [Between::Nothing];

/// The same for the others, where they are alone as well.
const REST: [Between; 2] = [Between::Nothing, Between::Collect];

impl Session {
    /// Runs all suspects twice alone, each in a VM of its own, as long as that can tell what they are.
    pub(crate) fn confirm_together(
        &mut self,
        pairs: &mut HashMap<TestId, Vec<Pair>>,
    ) -> Result<(), Halt> {
        let mut lanes: Vec<Lane> = Vec::new();
        let mut explained: HashSet<String> = HashSet::new();
        let mut unexplained: Vec<TestId> = Vec::new();
        let all: Vec<usize> = (0..self.suspects.len()).collect();
        let some = CHUNK * self.wish.jobs.unwrap_or(1);
        let tests: Vec<TestId> = self.suspects.iter().map(|one| one.test.clone()).collect();
        self.prepare_fresh_vms(&tests)?;
        for chunk in all.chunks(some) {
            self.confirm_some(&mut lanes, chunk, &ONCE, pairs)?;
            self.confirm_among_others(&mut lanes, chunk, pairs)?;
            self.confirm_some(&mut lanes, chunk, &REST, pairs)?;
            for at in chunk {
                let seen = pairs.get(&self.suspects[*at].test);
                if let Some(Step::Conclude(Some(verdict))) = seen.map(|seen| next_step(seen)) {
                    let class = class_of(&self.suspects[*at].test).to_owned();
                    let is_explained = matches!(verdict, Verdict::Nio(_))
                        && (all.len() <= FEW || explained.len() < EXPLAINED)
                        && (explained.insert(class) || all.len() <= FEW);
                    if !is_explained {
                        if matches!(verdict, Verdict::Nio(_)) {
                            unexplained.push(self.suspects[*at].test.clone());
                        }
                        self.judge(*at, verdict, None);
                    }
                }
            }
        }
        if !unexplained.is_empty() {
            self.note(Note::Unexplained {
                tests: unexplained,
                explained: explained.len(),
            });
        }
        self.leave_lanes(lanes)
    }

    /// The same for some of them.
    fn confirm_some(
        &mut self,
        lanes: &mut Vec<Lane>,
        some: &[usize],
        rounds: &[Between],
        pairs: &mut HashMap<TestId, Vec<Pair>>,
    ) -> Result<(), Halt> {
        for between in rounds.iter().copied() {
            let open = self.open_among(some, pairs);
            if open.is_empty() {
                break;
            }
            self.open_lanes(lanes, open.len())?;
            let manner = Manner {
                setting: Setting::Confirm,
                between: Some(between),
                is_apart: true,
                is_brief: false,
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

    /// Runs those that passed and failed alone twice, among each other.
    fn confirm_among_others(
        &mut self,
        lanes: &mut Vec<Lane>,
        some: &[usize],
        pairs: &mut HashMap<TestId, Vec<Pair>>,
    ) -> Result<(), Halt> {
        for between in [Between::Nothing, Between::Collect] {
            let mut open = self.open_among(some, pairs);
            open.retain(|at| is_seen_alone(pairs.get(&self.suspects[*at].test)));
            let count = self.wish.jobs.unwrap_or(1);
            if open.len() <= count {
                return Ok(());
            }
            if between == Between::Nothing {
                open.reverse();
            }
            self.open_lanes(lanes, count)?;
            let manner = Manner {
                setting: Setting::Together,
                between: Some(between),
                is_apart: true,
                is_brief: false,
            };
            let parts = open.chunks(open.len().div_ceil(count));
            let test_at = |at: &usize| self.suspects[*at].test.clone();
            let groups: Vec<Vec<TestId>> = parts
                .map(|part| part.iter().map(test_at).collect())
                .collect();
            let trials = self.run_each(lanes, &groups, manner)?;
            for lane in lanes.iter_mut() {
                // Which of them changed the files is not known.
                lane.left_behind.clear();
            }
            let trials: Vec<Trial> = trials.into_iter().flatten().collect();
            for at in open {
                let test = self.suspects[at].test.clone();
                let own = trials.iter().filter(|trial| trial.test == test);
                let own: Vec<Trial> = own.cloned().collect();
                let seen = pairs.entry(test).or_default();
                keep(seen, &own, between);
                self.suspects[at].trials.extend(own);
            }
        }
        Ok(())
    }

    /// Those that have still to be confirmed.
    fn open_among(&self, some: &[usize], pairs: &HashMap<TestId, Vec<Pair>>) -> Vec<usize> {
        let wants = |at: &usize| {
            let seen = pairs.get(&self.suspects[*at].test);
            seen.map(|seen| next_step(seen)) == Some(Step::Run(Setting::Confirm))
        };
        some.iter().copied().filter(wants).collect()
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

/// Whether a test was run alone, and passed and failed each time.
fn is_seen_alone(seen: Option<&Vec<Pair>>) -> bool {
    let seen = seen.into_iter().flatten();
    let mut alone = seen
        .filter(|pair| pair.setting == Setting::Confirm)
        .peekable();
    alone.peek().is_some() && alone.all(|pair| pair.shape() == Shape::PassFail)
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
    if pair.setting == Setting::Together && !fails_again {
        // One of the others may have disturbed it.
        return;
    }
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
