//! What is known about one test: how it ended after which tests.

use std::collections::HashMap;

use crate::outcome::Outcome;
use crate::sequential::{Sequential, Tally};
use crate::test::TestId;

/// How often one test passed and failed after the same tests in a fresh VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The number of runs in which it passed.
    pub passed: u32,
    /// The number of runs in which it failed.
    pub failed: u32,
    /// The number of runs in which it did not come to run, or was skipped.
    pub lost: u32,
}

/// How one test ended after which tests; the runs of every question that was ever asked about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    ends: HashMap<Vec<TestId>, Ends>,
}

impl Answers {
    /// Notes a run.
    pub fn note(&mut self, before: &[TestId], outcome: &Outcome) {
        let ends = self.ends.entry(before.to_vec()).or_default();
        if outcome.is_pass() {
            ends.passed += 1;
        } else if outcome.is_failure() {
            ends.failed += 1;
        } else {
            ends.lost += 1;
        }
    }

    /// How it ended after these tests so far.
    pub fn after(&self, before: &[TestId]) -> Ends {
        self.ends.get(before).copied().unwrap_or_default()
    }

    /// Whether the test ended in two ways after the very same tests.
    pub fn is_mixed(&self) -> bool {
        let mut all = self.ends.values();
        all.any(|ends| ends.passed > 0 && ends.failed > 0)
    }

    /// The number of runs in all.
    pub fn runs(&self) -> u32 {
        let all = self.ends.values();
        all.map(|ends| ends.passed + ends.failed + ends.lost).sum()
    }
}

/// The event that culprits bring about: a victim fails, and a brittle test passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    Failure,
    Pass,
}

impl Hit {
    pub(super) fn tally(self, ends: Ends) -> Tally {
        let (hits, misses) = match self {
            Self::Failure => (ends.failed, ends.passed),
            Self::Pass => (ends.passed, ends.failed),
        };
        Tally { hits, misses }
    }
}

/// Orders that must be run before the question can be answered, each as the tests before the one.
pub(super) type Need = Vec<Vec<TestId>>;

/// Somebody who answers questions about one test from what is known, or says what must be run.
#[derive(Clone, Copy)]
pub(super) struct Oracle<'a> {
    pub(super) answers: &'a Answers,
    pub(super) hit: Hit,
    pub(super) test: Sequential,
}

/// The event that happens more often after a lead than alone, and its tallies alone and after the lead.
fn event(alone: Ends, after: Ends) -> (Hit, Tally, Tally) {
    let fails_more = Hit::Failure.tally(after).rate() > Hit::Failure.tally(alone).rate();
    let hit = if fails_more { Hit::Failure } else { Hit::Pass };
    (hit, hit.tally(alone), hit.tally(after))
}

/// The tallies of the event alone, and after a lead.
pub(super) fn rates(alone: Ends, after: Ends) -> (Tally, Tally) {
    let (_, low, high) = event(alone, after);
    (low, high)
}

/// The number of runs after which a question is given up, if the test never comes to its end in them.
const LOST: u32 = 2;

impl<'a> Oracle<'a> {
    /// An oracle for the event that tells the runs after a lead from those alone.
    pub(super) fn new(answers: &'a Answers, alone: Ends, after: Ends) -> Self {
        let (hit, low, high) = event(alone, after);
        // A part of the lead may have the effect a little less often than the whole.
        let yes = if high.is_steady() {
            high.rate()
        } else {
            high.rate() * 0.75
        };
        let test = Sequential::between(low.rate().min(yes / 2.0), yes);
        Self { answers, hit, test }
    }

    /// An oracle that wants more evidence.
    pub(super) fn strict(&self) -> Self {
        let test = self.test.strict();
        Self { test, ..*self }
    }

    /// Whether these tests cause the event.
    pub(super) fn ask(&self, before: &[TestId]) -> Result<bool, Need> {
        self.known(before).ok_or_else(|| vec![before.to_vec()])
    }

    /// Whether the tests of each order cause the event. All the runs that this needs can be made at once.
    pub(super) fn ask_all(&self, orders: &[Vec<TestId>]) -> Result<Vec<bool>, Need> {
        let answers: Vec<Option<bool>> = orders.iter().map(|order| self.known(order)).collect();
        let open = orders.iter().zip(&answers);
        let open = open.filter(|(_, answer)| answer.is_none());
        let need: Need = open.map(|(order, _)| order.clone()).collect();
        if need.is_empty() {
            Ok(answers.into_iter().flatten().collect())
        } else {
            Err(need)
        }
    }

    pub(super) fn tally(&self, before: &[TestId]) -> Tally {
        self.hit.tally(self.answers.after(before))
    }

    /// Whether these tests cause the event; `None` if too little is known.
    pub(super) fn known(&self, before: &[TestId]) -> Option<bool> {
        let ends = self.answers.after(before);
        let is_lost = ends.passed + ends.failed == 0 && ends.lost >= LOST;
        if is_lost {
            return Some(false);
        }
        self.test.answer(self.hit.tally(ends))
    }
}

/// The ends after these tests, once there are `runs` runs; the need for more until then.
pub(super) fn at_least(answers: &Answers, before: &[TestId], runs: u32) -> Result<Ends, Need> {
    let ends = answers.after(before);
    let made = ends.passed + ends.failed;
    let is_lost = made == 0 && ends.lost >= LOST;
    if made >= runs || is_lost {
        return Ok(ends);
    }
    Err(vec![before.to_vec(); (runs - made) as usize])
}
