//! A history whose truth is known: tests with given rates, bursts, clusters, and faults planted and fixed.
//!
//! Everything follows from the seed, on every machine. The shape is that of the project in Rehman 2019
//! (3.2): releases that overlap, a test cycle of 180 days each, and less testing after it.

mod truth;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use truth::{Fault, Release, TestTruth, Truth};

/// The distribution from which flake rates are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Ericsson's quantiles: Rehman 2019, Table 2 and 4.1.
    Ericsson,
    /// Google's: 16 % of tests are flaky, 1.5 % of all runs.
    Google,
}

/// The settings of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The number of tests.
    pub tests: u32,
    /// The number of runs, about.
    pub runs: u64,
    /// The number of days, from `first_day` on.
    pub days: i32,
    /// The first day, in days since 1970.
    pub first_day: i32,
    /// The number of releases.
    pub releases: u32,
    /// The rates of the tests.
    pub rates: Distribution,
    /// The share of flaky tests whose failures come in bursts of days.
    pub bursty: f64,
    /// The share of flaky tests that fail together with others.
    pub clustered: f64,
    /// The number of faults in each release.
    pub faults: u32,
    /// The seed from which everything is drawn.
    pub seed: u64,
}

impl Plan {
    /// The size of Ericsson's data: 10,383 tests, 9.9 million runs, 4 releases, 895 days.
    pub const ERICSSON: Self = Self {
        tests: 10_383,
        runs: 9_900_000,
        days: 895,
        first_day: 17_000,
        releases: 4,
        rates: Distribution::Ericsson,
        bursty: 0.3,
        clustered: 0.75,
        faults: 60,
        seed: 1,
    };
}

/// One simulated run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedRun {
    /// The test's number.
    pub test: u32,
    /// The release's number.
    pub release: u32,
    /// Milliseconds since 1970.
    pub time: i64,
    /// Whether it failed.
    pub failed: bool,
    /// The number of the fault that was found to be behind the failure, and filed as a bug.
    pub bug: Option<u32>,
    /// Its duration in milliseconds.
    pub milliseconds: u32,
}

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// The share of testing that goes on after the test cycle of a release.
const MAINTENANCE: f64 = 0.15;

/// The share of the failures of a test in a cluster that it has together with the cluster.
const TOGETHER: f64 = 0.3;

/// The probability that a test of a cluster fails while its cluster does.
const JOINT_FAILURE: f64 = 0.8;

/// The share of days that a bursty test spends in bursts, and how much oftener it fails then.
const BURST_DAYS: f64 = 0.08;
const BURST_FACTOR: f64 = 8.0;

/// The days until somebody has found the fault behind failures, and the share of such failures that are then labelled
/// with it.
const DAYS_TO_BUG: i32 = 2;
const LABELLED: f64 = 0.6;

/// A simulation that goes day by day.
#[derive(Clone, Debug)]
pub struct Simulation {
    plan: Plan,
    truth: Truth,
    chance: ChaCha8Rng,
    /// The day that comes next, from 0.
    next_day: i32,
    /// The bursty tests that are in a burst, by test number.
    bursting: Vec<bool>,
    /// The weight of all releases on all days.
    weight: f64,
}

impl Simulation {
    /// Draws the truth; no runs yet.
    pub fn new(plan: Plan) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(plan.seed);
        let truth = Truth::draw(&plan, &mut chance);
        let days = 0..plan.days;
        let weight = days.map(|day| {
            truth
                .releases
                .iter()
                .map(|one| intensity(one, day))
                .sum::<f64>()
        });
        Self {
            weight: weight.sum(),
            bursting: vec![false; truth.tests.len()],
            plan,
            truth,
            chance,
            next_day: 0,
        }
    }

    /// The truth that is planted.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// The runs of the next day in the order of time; `None` when all days are over.
    pub fn next_day(&mut self) -> Option<Vec<SimulatedRun>> {
        if self.next_day >= self.plan.days {
            return None;
        }
        let day = self.next_day;
        self.next_day += 1;
        let is_joint = self.draw_clusters();
        self.draw_bursts();
        let mut runs = Vec::new();
        for release in 0..self.truth.releases.len() {
            let share = intensity(&self.truth.releases[release], day) / self.weight;
            let count = self.draw_count(share * to_float(self.plan.runs));
            for _ in 0..count {
                runs.push(self.draw_run(release, day, &is_joint));
            }
        }
        runs.sort_by_key(|run| (run.time, run.test, run.release));
        Some(runs)
    }

    /// The clusters whose tests fail together today.
    fn draw_clusters(&mut self) -> Vec<bool> {
        let truth = &self.truth;
        let chance = &mut self.chance;
        let draw = |rate: &f64| chance.random::<f64>() < TOGETHER * rate / JOINT_FAILURE;
        truth.clusters.iter().map(draw).collect()
    }

    fn draw_bursts(&mut self) {
        for (test, is_bursting) in self.truth.tests.iter().zip(&mut self.bursting) {
            if test.is_bursty {
                // A burst lasts three days on average.
                let end = 1.0 / 3.0;
                let begin = end * BURST_DAYS / (1.0 - BURST_DAYS);
                let change = if *is_bursting { end } else { begin };
                *is_bursting ^= self.chance.random::<f64>() < change;
            }
        }
    }

    fn draw_run(&mut self, release: usize, day: i32, is_joint: &[bool]) -> SimulatedRun {
        let tests = &self.truth.releases[release].tests;
        let test = tests[self.chance.random_range(0..tests.len())];
        let truth = &self.truth.tests[test as usize];
        let flakes = {
            let rate = flake_rate(truth, self.bursting[test as usize]);
            let is_joint = truth
                .cluster
                .is_some_and(|cluster| is_joint[cluster as usize]);
            let alone = self.chance.random::<f64>() < rate;
            alone || (is_joint && self.chance.random::<f64>() < JOINT_FAILURE)
        };
        let number = u32::try_from(release).expect("few releases");
        let fault = self.truth.fault_of(test, number, day);
        let mut failed = flakes;
        let mut bug = None;
        if let Some(number) = fault {
            let fault = &self.truth.faults[number as usize];
            let is_hit = self.chance.random::<f64>() < fault.probability;
            failed |= is_hit;
            let is_known = day >= fault.first_day + DAYS_TO_BUG;
            let is_labelled = self.chance.random::<f64>() < LABELLED;
            bug = (is_hit && is_known && is_labelled).then_some(number);
        }
        let time = i64::from(self.plan.first_day + day) * DAY
            + self.chance.random_range(0..DAY / 1000) * 1000;
        let milliseconds = scale(truth.milliseconds, 0.8 + 0.4 * self.chance.random::<f64>());
        SimulatedRun {
            test,
            release: number,
            time,
            failed,
            bug,
            milliseconds,
        }
    }

    /// A whole number around `mean`.
    fn draw_count(&mut self, mean: f64) -> u64 {
        let whole = mean.floor();
        to_count(whole) + u64::from(self.chance.random::<f64>() < mean - whole)
    }
}

/// The rate at which a test fails by itself today.
fn flake_rate(test: &TestTruth, is_bursting: bool) -> f64 {
    let alone = if test.cluster.is_some() {
        test.rate * (1.0 - TOGETHER)
    } else {
        test.rate
    };
    if !test.is_bursty {
        return alone;
    }
    let burst = (alone * BURST_FACTOR).min(0.9);
    if is_bursting {
        burst
    } else {
        ((alone - BURST_DAYS * burst) / (1.0 - BURST_DAYS)).max(0.0)
    }
}

/// The amount of testing of a release on a day.
fn intensity(release: &Release, day: i32) -> f64 {
    if !(release.first_day..=release.last_day).contains(&day) {
        0.0
    } else if day < release.first_day + release.cycle {
        release.weight
    } else {
        release.weight * MAINTENANCE
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers above 0"
)]
fn to_count(number: f64) -> u64 {
    number as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "milliseconds of a test, above 0"
)]
fn scale(milliseconds: u32, factor: f64) -> u32 {
    (f64::from(milliseconds) * factor) as u32
}

fn to_float(count: u64) -> f64 {
    super::sample::to_float(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(seed: u64) -> Plan {
        Plan {
            tests: 300,
            runs: 200_000,
            seed,
            ..Plan::ERICSSON
        }
    }

    fn all(plan: Plan) -> Vec<SimulatedRun> {
        let mut simulation = Simulation::new(plan);
        let days = std::iter::from_fn(|| simulation.next_day());
        days.flatten().collect()
    }

    #[test]
    fn the_seed_decides_everything() {
        let plan = Plan {
            runs: 2_000,
            ..small(3)
        };
        assert_eq!(all(plan), all(plan));
        assert_ne!(all(plan), all(Plan { seed: 4, ..plan }));
    }

    #[test]
    fn runs_come_in_the_order_of_time_and_about_as_many_as_asked_for() {
        let runs = all(small(1));
        assert!(runs.is_sorted_by_key(|run| run.time));
        assert!((198_000..202_000).contains(&runs.len()), "{}", runs.len());
    }

    #[test]
    fn a_test_fails_about_as_often_as_its_rate_says() {
        let mut plan = small(2);
        plan.faults = 0;
        let simulation = Simulation::new(plan);
        let truth = simulation.truth().clone();
        let mut counts = vec![(0_u32, 0_u32); truth.tests.len()];
        for run in all(plan) {
            let (failures, runs) = &mut counts[run.test as usize];
            *failures += u32::from(run.failed);
            *runs += 1;
        }
        let expected: f64 = (truth.tests.iter().zip(&counts))
            .map(|(test, (_, runs))| test.rate * f64::from(*runs))
            .sum();
        let found: f64 = counts
            .iter()
            .map(|(failures, _)| f64::from(*failures))
            .sum();
        assert!(
            (found / expected - 1.0).abs() < 0.1,
            "{found} of {expected}"
        );
        let never = truth
            .tests
            .iter()
            .zip(&counts)
            .filter(|(test, _)| test.rate <= 0.0);
        assert!(
            never.clone().count() > 50 && never.clone().all(|(_, (failures, _))| *failures == 0)
        );
    }

    #[test]
    fn a_fault_is_there_between_its_days_only_and_bugs_are_its_own() {
        let plan = small(5);
        let truth = Simulation::new(plan).truth().clone();
        assert!(!truth.faults.is_empty());
        for run in all(plan) {
            let Some(bug) = run.bug else { continue };
            let fault = &truth.faults[bug as usize];
            let day = i32::try_from(run.time / DAY).unwrap() - plan.first_day;
            assert!(fault.tests.contains(&run.test) && run.release == fault.release);
            assert!((fault.first_day..=fault.last_day).contains(&day));
        }
    }
}
