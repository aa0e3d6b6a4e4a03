//! Which test to run next: `BinomialStabilityOrder` (Rehman 2019, 4.5), ours, and what either would have
//! done with runs of the past.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::binomial::ln_probability;
use super::information::Belief;
use super::prior::Prior;
use super::sample::{Sample, to_float};
use super::unstable::Course;

/// However quick a test is, to run it takes about this long.
pub const LEAST_SECONDS: f64 = 0.1;

/// The order in which tests run again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RerunOrder {
    /// As they were run: `DefaultOrder`.
    Default,
    /// The test with the least likely result first, by `P_t` (Eq. 9): `BinomialStabilityOrder`.
    Binomial(Prior),
    /// The test first whose next run is expected to tell most, per second.
    Information,
}

/// A test as the orders see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Flaky failures among the runs of the baseline.
    pub baseline: Sample,
    /// Failures among the runs since.
    pub current: Sample,
    /// The belief about it today.
    pub belief: Belief,
    /// The time of a run.
    pub seconds: f64,
}

impl Candidate {
    /// A test with this course since the first day of a period, as it is seen today.
    pub fn new(course: &Course, (first, today): (i32, i32), seconds: f64) -> Self {
        let belief = Belief::after_days(course.baseline, &course.days, first);
        Self {
            baseline: course.baseline,
            current: course.current(),
            belief: belief.on(today),
            seconds,
        }
    }

    /// Adds one run of its day.
    pub fn add(&mut self, failed: bool) {
        self.current = self.current.plus(Sample::one(failed));
        self.belief = self.belief.after(Sample::one(failed));
    }
}

/// The urgency of a test: the greater, the sooner it runs. `Default` has no opinion.
pub fn urgency(candidate: &Candidate, order: RerunOrder) -> f64 {
    match order {
        RerunOrder::Default => 0.0,
        RerunOrder::Binomial(prior) => {
            let rate = prior.rate(candidate.baseline).unwrap_or(0.0);
            -ln_probability(candidate.current, rate)
        }
        RerunOrder::Information => candidate.belief.gain() / candidate.seconds.max(LEAST_SECONDS),
    }
}

/// The places of all tests, the most urgent first; equally urgent ones in the order given.
pub fn rank(candidates: &[Candidate], order: RerunOrder) -> Vec<(usize, f64)> {
    let urgencies = candidates.iter().map(|one| urgency(one, order));
    let mut ranked: Vec<(usize, f64)> = urgencies.enumerate().collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    ranked
}

/// Runs of the past, in the order in which they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The tests, as they were before.
    pub candidates: Vec<Candidate>,
    /// The runs.
    pub runs: Vec<RecordedRun>,
}

/// A run of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRun {
    /// The test's place among the candidates.
    pub test: u32,
    /// The day, counted from 1970.
    pub day: i32,
    /// Whether it failed.
    pub failed: bool,
}

/// One run of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    /// The run.
    pub run: RecordedRun,
    /// The test's runs so far, this one included.
    pub so_far: Sample,
}

/// Hands out the recorded runs of each test in another order of tests, in O(R log T).
///
/// As in the paper every test first runs once, and a test whose recorded runs are used up cannot be run
/// any more. `Default` keeps the order of the record.
pub fn replay(recorded: &Recorded, order: RerunOrder, visit: impl FnMut(Replayed)) {
    let mut player = Player::new(recorded, order, visit);
    if order == RerunOrder::Default {
        recorded.runs.iter().for_each(|run| player.take(*run));
        return;
    }
    let mut queues = Queues::of(&recorded.runs, recorded.candidates.len());
    let mut waiting = BinaryHeap::with_capacity(recorded.candidates.len());
    for (test, _) in (0..).zip(&recorded.candidates) {
        if let Some(run) = queues.next(test) {
            player.take(run);
            waiting.push(player.wait(test));
        }
    }
    while let Some(Waiting { test, .. }) = waiting.pop() {
        if let Some(run) = queues.next(test) {
            player.take(run);
            waiting.push(player.wait(test));
        }
    }
}

/// Hands out a share of each day's runs, in O(R log T): as if only this number of runs could be made on each day, and
/// the order chose among the runs that were made.
///
/// In [`replay`] a test that is preferred comes to its later days sooner than the others, which nobody can
/// do; here all tests are of the same day. By `Binomial` a test that has not run comes first, as in the
/// paper. `Default` takes the first runs of the day.
pub fn replay_days(
    recorded: &Recorded,
    order: RerunOrder,
    share: f64,
    visit: impl FnMut(Replayed),
) {
    let mut player = Player::new(recorded, order, visit);
    let mut budget = 0.0;
    for today in recorded.runs.chunk_by(|one, other| one.day == other.day) {
        budget += share * to_float(today.len() as u64);
        if order == RerunOrder::Default {
            for run in today.iter().take_while(|_| spend(&mut budget)) {
                player.take(*run);
            }
            continue;
        }
        let mut queues = Queues::of(today, recorded.candidates.len());
        let mut waiting = BinaryHeap::new();
        for test in queues.tests() {
            player.wake(test, today[0].day);
            waiting.push(player.wait(test));
        }
        while let Some(Waiting { test, .. }) = waiting.pop() {
            let Some(run) = queues.next(test) else {
                continue;
            };
            if !spend(&mut budget) {
                break;
            }
            player.take(run);
            waiting.push(player.wait(test));
        }
    }
}

/// Whether the budget is enough for one more run; if so, the run is paid from it.
fn spend(budget: &mut f64) -> bool {
    let is_enough = *budget >= 1.0;
    if is_enough {
        *budget -= 1.0;
    }
    is_enough
}

/// The tests as far as a replay has come.
struct Player<F> {
    candidates: Vec<Candidate>,
    order: RerunOrder,
    visit: F,
}

impl<F: FnMut(Replayed)> Player<F> {
    fn new(recorded: &Recorded, order: RerunOrder, visit: F) -> Self {
        Self {
            candidates: recorded.candidates.clone(),
            order,
            visit,
        }
    }

    fn take(&mut self, run: RecordedRun) {
        self.wake(run.test, run.day);
        let candidate = &mut self.candidates[run.test as usize];
        candidate.add(run.failed);
        (self.visit)(Replayed {
            run,
            so_far: candidate.current,
        });
    }

    fn wake(&mut self, test: u32, day: i32) {
        let candidate = &mut self.candidates[test as usize];
        candidate.belief = candidate.belief.on(day);
    }

    fn wait(&self, test: u32) -> Waiting {
        let candidate = &self.candidates[test as usize];
        let is_new = candidate.current.runs() == 0;
        let urgency = match self.order {
            RerunOrder::Binomial(_) if is_new => f64::INFINITY,
            RerunOrder::Default | RerunOrder::Binomial(_) | RerunOrder::Information => {
                urgency(candidate, self.order)
            }
        };
        Waiting { urgency, test }
    }
}

/// The runs of each test that have not been used yet.
struct Queues {
    /// All runs, those of one test together.
    runs: Vec<RecordedRun>,
    /// The range of each test's remaining runs: where they begin and end.
    rest: Vec<(u32, u32)>,
}

impl Queues {
    fn of(runs: &[RecordedRun], tests: usize) -> Self {
        let mut runs = runs.to_vec();
        // A stable sort: runs of one test stay in their order.
        runs.sort_by_key(|run| run.test);
        let mut rest = vec![(0, 0); tests];
        let mut begin = 0;
        for same in runs.chunk_by(|one, other| one.test == other.test) {
            let end =
                begin + u32::try_from(same.len()).expect("fewer than four thousand million runs");
            rest[same[0].test as usize] = (begin, end);
            begin = end;
        }
        Self { runs, rest }
    }

    /// The tests that have runs.
    fn tests(&self) -> Vec<u32> {
        let same = self.runs.chunk_by(|one, other| one.test == other.test);
        same.map(|runs| runs[0].test).collect()
    }

    fn next(&mut self, test: u32) -> Option<RecordedRun> {
        let (begin, end) = &mut self.rest[test as usize];
        if begin == end {
            return None;
        }
        *begin += 1;
        Some(self.runs[*begin as usize - 1])
    }
}

struct Waiting {
    urgency: f64,
    test: u32,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_urgency = self.urgency.total_cmp(&other.urgency);
        by_urgency.then(other.test.cmp(&self.test))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantify::binomial::probability;
    use proptest::prelude::*;

    fn candidate(baseline: Sample) -> Candidate {
        Candidate {
            baseline,
            current: Sample::default(),
            belief: Belief::new(baseline, 0),
            seconds: 1.0,
        }
    }

    fn order_of(recorded: &Recorded, order: RerunOrder) -> Vec<u32> {
        let mut tests = Vec::new();
        replay(recorded, order, |played| tests.push(played.run.test));
        tests
    }

    /// Four runs a day.
    fn to_runs(ended: &[(u32, bool)]) -> Vec<RecordedRun> {
        let run = |(at, (test, failed)): (i32, &(u32, bool))| RecordedRun {
            test: *test,
            day: at / 4,
            failed: *failed,
        };
        (0..).zip(ended).map(run).collect()
    }

    const PAPER: RerunOrder = RerunOrder::Binomial(Prior::None);

    #[test]
    fn the_least_likely_result_is_run_next() {
        // Test 1 never failed and fails: P_t = 0, so it is run until its runs are used up.
        let recorded = Recorded {
            candidates: vec![
                candidate(Sample::new(5, 100)),
                candidate(Sample::new(0, 100)),
            ],
            runs: to_runs(&[
                (0, false),
                (1, true),
                (0, false),
                (1, true),
                (0, true),
                (1, false),
            ]),
        };
        assert_eq!(order_of(&recorded, PAPER), [0, 1, 1, 1, 0, 0]);
        assert_eq!(order_of(&recorded, RerunOrder::Default), [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn by_information_a_quick_test_comes_before_a_slow_one() {
        let slow = Candidate {
            seconds: 60.0,
            ..candidate(Sample::new(1, 100))
        };
        let ranked = rank(
            &[slow, candidate(Sample::new(1, 100))],
            RerunOrder::Information,
        );
        assert_eq!(ranked[0].0, 1);
    }

    #[test]
    fn day_by_day_a_failure_is_looked_into_at_once_and_a_broken_test_is_left_alone() {
        // Five tests, three runs each a day; test 3 breaks on the second day.
        let mut runs = Vec::new();
        for day in 0..4 {
            for turn in 0..15 {
                let test = turn % 5;
                let failed = test == 3 && day > 0;
                runs.push(RecordedRun { test, day, failed });
            }
        }
        let candidates = vec![candidate(Sample::new(0, 100)); 5];
        let recorded = Recorded { candidates, runs };
        let mut made = vec![Vec::new(); 4];
        replay_days(&recorded, RerunOrder::Information, 0.4, |played| {
            made[usize::try_from(played.run.day).unwrap()].push(played.run.test);
        });
        assert_eq!(made[0], [0, 1, 2, 3, 4, 0]);
        // All have the same worth until test 3 fails; then it is run until that is sure.
        assert_eq!(made[1][..4], [1, 2, 3, 3]);
    }

    proptest! {
        #[test]
        fn every_order_uses_every_run_once_and_ends_with_the_same_sum(
            runs in proptest::collection::vec((0_u32..6, any::<bool>()), 0..120),
        ) {
            let candidates = (0..6).map(|at| candidate(Sample::new(at, 40))).collect();
            let recorded = Recorded { candidates, runs: to_runs(&runs) };
            let sum = |order| {
                let (mut sum, mut count) = (0.0, 0);
                replay(&recorded, order, |played| {
                    let rate = recorded.candidates[played.run.test as usize].baseline.rate().unwrap();
                    sum += probability(played.so_far, rate);
                    count += 1;
                });
                (sum, count)
            };
            let (default, all) = sum(RerunOrder::Default);
            for order in [PAPER, RerunOrder::Binomial(Prior::Jeffreys), RerunOrder::Information] {
                let (found, count) = sum(order);
                // When all runs are used the sums are equal (Rehman 2019, 4.5).
                prop_assert!((found - default).abs() < 1e-9);
                prop_assert_eq!(count, all);
            }
        }

        #[test]
        fn day_by_day_no_run_is_made_before_its_day_and_the_share_is_kept(
            runs in proptest::collection::vec((0_u32..6, any::<bool>()), 0..120),
            share in 0.0..1.0,
        ) {
            let candidates = (0..6).map(|at| candidate(Sample::new(at, 40))).collect();
            let recorded = Recorded { candidates, runs: to_runs(&runs) };
            for order in [RerunOrder::Default, PAPER, RerunOrder::Information] {
                let (mut made, mut days) = (Vec::new(), Vec::new());
                replay_days(&recorded, order, share, |played| {
                    made.push(played.run);
                    days.push(played.run.day);
                });
                prop_assert!(days.is_sorted());
                let expected = share * to_float(runs.len() as u64);
                prop_assert!((to_float(made.len() as u64) - expected).abs() <= 1.0 + 1e-6);
                // Each run is one that there was, and is used once.
                let mut left = recorded.runs.clone();
                for run in made {
                    let place = left.iter().position(|one| *one == run);
                    prop_assert!(place.is_some());
                    left.remove(place.unwrap());
                }
            }
        }
    }
}
