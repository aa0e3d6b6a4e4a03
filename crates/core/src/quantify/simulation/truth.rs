//! The truth that is planted in a simulated history: the tests' rates, the releases, and the faults.

use std::collections::BTreeMap;

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Distribution, Plan};

/// Everything that statistics on the history may try to find.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// The tests, by number.
    pub tests: Vec<TestTruth>,
    /// The releases, in the order of their first days.
    pub releases: Vec<Release>,
    /// The faults, by number.
    pub faults: Vec<Fault>,
    /// The mean rate of the tests of each cluster.
    pub clusters: Vec<f64>,
    /// The faults of each test and release.
    by_test: BTreeMap<(u32, u32), Vec<u32>>,
}

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestTruth {
    /// The rate at which it fails without a fault.
    pub rate: f64,
    /// Whether its failures come in bursts of days.
    pub is_bursty: bool,
    /// The tests that it fails together with.
    pub cluster: Option<u32>,
    /// The duration of a run in milliseconds, about.
    pub milliseconds: u32,
}

/// One release. Days count from the first day of the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Its name: A, B, C ...
    pub name: String,
    /// The first day of its test cycle.
    pub first_day: i32,
    /// The last day on which it is tested at all.
    pub last_day: i32,
    /// The length of its test cycle in days.
    pub cycle: i32,
    /// The amount of testing, compared with other releases.
    pub weight: f64,
    /// The tests that it has.
    pub tests: Vec<u32>,
}

/// A fault of the product, in one release. Days count from the first day of the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The release's number.
    pub release: u32,
    /// The first day with it.
    pub first_day: i32,
    /// The last.
    pub last_day: i32,
    /// The probability that it makes a run of one of its tests fail.
    pub probability: f64,
    /// The tests that can find it.
    pub tests: Vec<u32>,
}

/// Ericsson's releases (Rehman 2019, Table 1): their first days, so that four of these lengths make 895
/// days; lengths, tests of 10,383, and runs.
const RELEASES: [(i32, i32, f64, f64); 4] = [
    (0, 425, 7_075.0, 789_934.0),
    (150, 588, 8_166.0, 1_991_475.0),
    (276, 619, 6_980.0, 2_519_063.0),
    (548, 347, 6_672.0, 1_670_010.0),
];

/// The days for which a release is tested before it is rolled out.
const CYCLE: i32 = 180;

impl Truth {
    pub(super) fn draw(plan: &Plan, chance: &mut ChaCha8Rng) -> Self {
        let mut tests: Vec<TestTruth> = (0..plan.tests).map(|_| draw_test(plan, chance)).collect();
        let clusters = draw_clusters(&mut tests, plan.clustered, chance);
        let releases = draw_releases(plan, chance);
        let faults = draw_faults(plan, &releases, chance);
        let mut by_test: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (number, fault) in (0..).zip(&faults) {
            for test in &fault.tests {
                let key = (*test, fault.release);
                by_test.entry(key).or_default().push(number);
            }
        }
        Self {
            tests,
            releases,
            faults,
            clusters,
            by_test,
        }
    }

    /// The fault that can make a test fail in this release on this day.
    pub fn fault_of(&self, test: u32, release: u32, day: i32) -> Option<u32> {
        let faults = self.by_test.get(&(test, release))?;
        let is_there = |number: &&u32| {
            let fault = &self.faults[**number as usize];
            (fault.first_day..=fault.last_day).contains(&day)
        };
        faults.iter().find(is_there).copied()
    }
}

fn draw_test(plan: &Plan, chance: &mut ChaCha8Rng) -> TestTruth {
    let rate = draw_rate(plan.rates, chance);
    TestTruth {
        rate,
        is_bursty: rate > 0.0 && chance.random::<f64>() < plan.bursty,
        cluster: None,
        milliseconds: to_milliseconds(log_uniform(0.05, 60.0, chance)),
    }
}

fn draw_rate(rates: Distribution, chance: &mut ChaCha8Rng) -> f64 {
    let place: f64 = chance.random();
    match rates {
        // Between these points the logarithm of the rate is linear.
        Distribution::Ericsson => {
            let points = [
                (0.27, 0.0005),
                (0.40, 0.004),
                (0.50, 0.012),
                (0.66, 0.045),
                (0.75, 0.065),
                (0.82, 0.1),
                (0.95, 0.3),
                (1.0, 0.6),
            ];
            let above = points.iter().position(|(share, _)| place < *share);
            let Some(above) = above.filter(|above| *above > 0) else {
                return 0.0;
            };
            let ((from, low), (to, high)): ((f64, f64), (f64, f64)) =
                (points[above - 1], points[above]);
            low * (high / low).powf((place - from) / (to - from))
        }
        Distribution::Google if place < 0.16 => log_uniform(0.001, 0.6, chance),
        Distribution::Google => 0.0,
    }
}

/// Puts a share of the flaky tests into clusters of 13.5 on average, and gives their mean rates.
fn draw_clusters(tests: &mut [TestTruth], share: f64, chance: &mut ChaCha8Rng) -> Vec<f64> {
    let mut members: Vec<usize> = (0..tests.len())
        .filter(|at| tests[*at].rate > 0.0)
        .collect();
    members.retain(|_| chance.random::<f64>() < share);
    // Tests that fail together fail about equally often.
    members.sort_by(|one, other| tests[*one].rate.total_cmp(&tests[*other].rate));
    let mut clusters = Vec::new();
    let mut rest = members.as_slice();
    while !rest.is_empty() {
        let size = chance.random_range(2..=25).min(rest.len());
        let (cluster, others) = rest.split_at(size);
        let number = u32::try_from(clusters.len()).expect("fewer clusters than tests");
        let sum: f64 = cluster.iter().map(|at| tests[*at].rate).sum();
        clusters.push(sum / super::to_float(size as u64));
        for at in cluster {
            tests[*at].cluster = Some(number);
        }
        rest = others;
    }
    clusters
}

fn draw_releases(plan: &Plan, chance: &mut ChaCha8Rng) -> Vec<Release> {
    let all: Vec<u32> = (0..plan.tests).collect();
    let like_ericsson = plan.releases == 4;
    let one = |number: u32| {
        let (first, length, share, weight) = if like_ericsson {
            let (first, length, tests, runs) = RELEASES[number as usize];
            let stretch = f64::from(plan.days) / 895.0;
            let scaled = |days: i32| round(f64::from(days) * stretch);
            (
                scaled(first),
                scaled(length),
                tests / 10_383.0,
                runs / f64::from(length),
            )
        } else {
            let length = plan.days / i32::try_from(plan.releases).unwrap_or(1).max(1);
            let first = length * i32::try_from(number).unwrap_or(0);
            (first, length, 1.0, 1.0)
        };
        let mut tests = all.clone();
        tests.shuffle(chance);
        let kept = round(f64::from(plan.tests) * share).max(1);
        tests.truncate(usize::try_from(kept).unwrap_or(1));
        tests.sort_unstable();
        Release {
            name: name(number),
            first_day: first,
            last_day: (first + length - 1).min(plan.days - 1),
            cycle: CYCLE.min(length),
            weight,
            tests,
        }
    };
    (0..plan.releases).map(one).collect()
}

/// A to Z, then R26, R27 ...
fn name(number: u32) -> String {
    let letter = u8::try_from(number).ok().filter(|number| *number < 26);
    letter.map_or_else(
        || format!("R{number}"),
        |number| char::from(b'A' + number).to_string(),
    )
}

fn draw_faults(plan: &Plan, releases: &[Release], chance: &mut ChaCha8Rng) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, release) in (0..).zip(releases) {
        for _ in 0..plan.faults {
            // Most faults come while features do: in the first two thirds of the cycle.
            let late = (release.cycle * 2 / 3).max(1);
            let first_day = release.first_day + chance.random_range(0..late);
            let is_hard = chance.random::<f64>() < 0.6;
            let probability = if is_hard {
                1.0
            } else {
                chance.random_range(0.2..0.7)
            };
            let size = chance.random_range(1..=15).min(release.tests.len());
            let mut tests: Vec<u32> = (0..size)
                .map(|_| release.tests[chance.random_range(0..release.tests.len())])
                .collect();
            tests.sort_unstable();
            tests.dedup();
            faults.push(Fault {
                release: number,
                first_day,
                last_day: first_day + chance.random_range(3..=30),
                probability,
                tests,
            });
        }
    }
    faults
}

fn log_uniform(low: f64, high: f64, chance: &mut ChaCha8Rng) -> f64 {
    low * (high / low).powf(chance.random::<f64>())
}

#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
fn round(number: f64) -> i32 {
    number.round() as i32
}

fn to_milliseconds(seconds: f64) -> u32 {
    u32::try_from(round(seconds * 1000.0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn rates(distribution: Distribution) -> Vec<f64> {
        let mut chance = ChaCha8Rng::seed_from_u64(11);
        let mut rates: Vec<f64> = (0..20_000)
            .map(|_| draw_rate(distribution, &mut chance))
            .collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    #[test]
    fn ericssons_rates_have_the_quantiles_of_table_2() {
        let rates = rates(Distribution::Ericsson);
        let at = |share: usize| rates[rates.len() * share / 100];
        assert!(
            at(25) <= 0.0 && (0.004..0.03).contains(&at(50)),
            "{}",
            at(50)
        );
        assert!((0.034..0.081).contains(&at(75)), "{}", at(75));
        let over = rates.iter().filter(|rate| **rate > 0.1).count();
        assert!(
            (3_400..=4_500).contains(&over),
            "18 % to 22 % of tests: {over}"
        );
    }

    #[test]
    fn googles_rates_have_their_published_shares() {
        let rates = rates(Distribution::Google);
        let flaky = rates.iter().filter(|rate| **rate > 0.0).count();
        assert!((3_000..3_400).contains(&flaky), "{flaky}");
        let mean = rates.iter().sum::<f64>() / 20_000.0;
        assert!((0.013..0.017).contains(&mean), "{mean}");
    }
}
