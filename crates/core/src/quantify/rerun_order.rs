//! Which test to run next: `BinomialStabilityOrder` (Rehman 2019, 4.5), ours, and what either would have
//! done with runs of the past.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::binomial::ln_probability;
use super::information::Belief;
use super::prior::Prior;
use super::sample::Sample;

/// However quick a test is, to run it takes about this long.
pub const LEAST_SECONDS: f64 = 0.1;

/// In which order tests are run again.
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
    /// What a run takes.
    pub seconds: f64,
}

/// How urgent a test is: the greater, the sooner. `Default` has no opinion.
pub fn urgency(candidate: &Candidate, order: RerunOrder) -> f64 {
    match order {
        RerunOrder::Default => 0.0,
        RerunOrder::Binomial(prior) => {
            let rate = prior.rate(candidate.baseline).unwrap_or(0.0);
            -ln_probability(candidate.current, rate)
        }
        RerunOrder::Information => {
            let belief = Belief::new(candidate.baseline, candidate.current);
            belief.gain() / candidate.seconds.max(LEAST_SECONDS)
        }
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
    /// The tests.
    pub candidates: Vec<Candidate>,
    /// Which test ran, and whether it failed.
    pub runs: Vec<(u32, bool)>,
}

/// One run of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    /// The test's place among the candidates.
    pub test: u32,
    /// Whether it failed.
    pub failed: bool,
    /// The test's runs so far, this one included.
    pub so_far: Sample,
}

/// Hands out the recorded runs of each test in another order of tests, in O(R log T).
///
/// As in the paper every test first runs once, and a test whose recorded runs are used up cannot be run
/// any more. `Default` keeps the order of the record.
pub fn replay(recorded: &Recorded, order: RerunOrder, mut visit: impl FnMut(Replayed)) {
    let mut so_far = vec![Sample::default(); recorded.candidates.len()];
    let mut take = |test: u32, failed: bool| {
        let sample = &mut so_far[test as usize];
        *sample = sample.plus(Sample::new(u64::from(failed), 1));
        let so_far = *sample;
        visit(Replayed {
            test,
            failed,
            so_far,
        });
        so_far
    };
    if order == RerunOrder::Default {
        for (test, failed) in &recorded.runs {
            take(*test, *failed);
        }
        return;
    }
    let mut queues = Queues::of(recorded);
    let mut waiting = BinaryHeap::with_capacity(recorded.candidates.len());
    for (test, _) in (0..).zip(&recorded.candidates) {
        if let Some(failed) = queues.next(test) {
            let so_far = take(test, failed);
            waiting.push(Waiting::after(recorded, test, so_far, order));
        }
    }
    while let Some(Waiting { test, .. }) = waiting.pop() {
        if let Some(failed) = queues.next(test) {
            let so_far = take(test, failed);
            waiting.push(Waiting::after(recorded, test, so_far, order));
        }
    }
}

/// The outcomes of each test that have not been used yet.
struct Queues {
    /// All outcomes, those of one test together.
    outcomes: Vec<bool>,
    /// Where the rest of each test's outcomes begins and ends.
    rest: Vec<(u32, u32)>,
}

impl Queues {
    fn of(recorded: &Recorded) -> Self {
        let mut counts = vec![0_u32; recorded.candidates.len()];
        for (test, _) in &recorded.runs {
            counts[*test as usize] += 1;
        }
        let mut begin = 0;
        let rest = counts.iter().map(|count| {
            begin += count;
            (begin - count, begin - count)
        });
        let mut rest: Vec<(u32, u32)> = rest.collect();
        let mut outcomes = vec![false; recorded.runs.len()];
        for (test, failed) in &recorded.runs {
            let end = &mut rest[*test as usize].1;
            outcomes[*end as usize] = *failed;
            *end += 1;
        }
        Self { outcomes, rest }
    }

    fn next(&mut self, test: u32) -> Option<bool> {
        let (begin, end) = &mut self.rest[test as usize];
        if begin == end {
            return None;
        }
        *begin += 1;
        Some(self.outcomes[*begin as usize - 1])
    }
}

struct Waiting {
    urgency: f64,
    test: u32,
}

impl Waiting {
    fn after(recorded: &Recorded, test: u32, current: Sample, order: RerunOrder) -> Self {
        let candidate = Candidate {
            current,
            ..recorded.candidates[test as usize]
        };
        Self {
            urgency: urgency(&candidate, order),
            test,
        }
    }
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
            seconds: 1.0,
        }
    }

    fn order_of(recorded: &Recorded, order: RerunOrder) -> Vec<u32> {
        let mut tests = Vec::new();
        replay(recorded, order, |run| tests.push(run.test));
        tests
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
            runs: vec![
                (0, false),
                (1, true),
                (0, false),
                (1, true),
                (0, true),
                (1, false),
            ],
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

    proptest! {
        #[test]
        fn every_order_uses_every_run_once_and_ends_with_the_same_sum(
            runs in proptest::collection::vec((0_u32..6, any::<bool>()), 0..120),
        ) {
            let candidates = (0..6).map(|at| candidate(Sample::new(at, 40))).collect();
            let recorded = Recorded { candidates, runs };
            let sum = |order| {
                let (mut sum, mut count) = (0.0, 0);
                replay(&recorded, order, |run| {
                    let rate = recorded.candidates[run.test as usize].baseline.rate().unwrap();
                    sum += probability(run.so_far, rate);
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
    }
}
