//! The information that one more run of a test would give about whether it is broken now.
//!
//! A test is as it was, or broken. On any day it may break, and a broken test may be mended; so the runs of weeks ago
//! say little about today, and a test that has not run for long is worth a look. The worth of a run is the mutual
//! information between its outcome and the truth, in nats. A test that has been shown to be broken is worth little
//! until it may have been mended, whereas `BinomialStabilityOrder` reruns it again and again. `docs/statistics.md` has
//! the reasons.

use super::sample::{Day, Sample, to_float};

/// The probability that a test breaks within a day: about once in three years.
const BREAKS: f64 = 0.001;

/// The probability that a broken test is mended within a day: after ten days on average.
const MENDED: f64 = 0.1;

/// The rates that a broken test can have, as shares of the way from its old rate to 1. Each is equally likely.
const ALTERNATIVES: [f64; 4] = [0.1, 0.3, 0.6, 0.95];

/// The passes of the healthy test with which a test without a baseline is compared.
const HEALTHY: u64 = 20;

/// The belief about one test on one day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// The old rate as Beta(a, b).
    old: (f64, f64),
    /// The probabilities of being broken with each of the rates.
    broken: [f64; ALTERNATIVES.len()],
    day: i32,
}

impl Belief {
    /// The belief after this baseline, on the first day since. A test without a baseline is compared with a healthy
    /// one.
    pub fn new(baseline: Sample, day: i32) -> Self {
        let baseline = match baseline.runs() {
            0 => Sample::new(0, HEALTHY),
            _ => baseline,
        };
        Self {
            old: (
                0.5 + to_float(baseline.failures()),
                0.5 + to_float(baseline.passes()),
            ),
            broken: [usual() / number_of_rates(); ALTERNATIVES.len()],
            day,
        }
    }

    /// The belief after the days since the baseline.
    pub fn after_days(baseline: Sample, days: &[Day], first: i32) -> Self {
        let start = Self::new(baseline, first);
        days.iter()
            .fold(start, |belief, day| belief.on(day.day).after(day.failed()))
    }

    /// The probability that it is broken.
    pub fn broken_probability(self) -> f64 {
        self.broken.iter().sum::<f64>().min(1.0)
    }

    /// The belief on a later day, without a run in between: the test may have broken, or been mended.
    #[must_use]
    pub fn on(mut self, day: i32) -> Self {
        let days = day.saturating_sub(self.day);
        if days <= 0 {
            return self;
        }
        let broken = self.broken_probability();
        let then = usual() + (broken - usual()) * (1.0 - BREAKS - MENDED).powi(days);
        let stays = (1.0 - MENDED).powi(days);
        let newly = (then - broken * stays).max(0.0) / number_of_rates();
        for one in &mut self.broken {
            *one = *one * stays + newly;
        }
        self.day = day;
        self
    }

    /// Adds runs of its day.
    #[must_use]
    pub fn after(mut self, runs: Sample) -> Self {
        let (failures, passes) = (to_float(runs.failures()), to_float(runs.passes()));
        let likelihood = |rate: f64| failures * rate.ln() + passes * (1.0 - rate).ln();
        let healthy = likelihood(self.old_rate()) + (1.0 - self.broken_probability()).ln();
        let mut broken = self.rates().map(likelihood);
        for (one, probability) in broken.iter_mut().zip(self.broken) {
            *one += probability.ln();
        }
        // Many runs make all of them very small: only how they compare matters.
        let most = broken.iter().copied().fold(healthy, f64::max);
        let healthy = (healthy - most).exp();
        let broken = broken.map(|one| (one - most).exp());
        let sum = healthy + broken.iter().sum::<f64>();
        self.broken = broken.map(|one| one / sum);
        // The runs say what the test's rate is, as far as they are those of a healthy test.
        self.old.0 += failures * healthy / sum;
        self.old.1 += passes * healthy / sum;
        self
    }

    /// The information that the next run is expected to give, in nats.
    pub fn gain(self) -> f64 {
        let broken = self.broken_probability();
        if broken <= 0.0 {
            return 0.0;
        }
        let rates = self.rates();
        let new = self.broken.iter().zip(rates).map(|(one, rate)| one * rate);
        let (new, old) = (new.sum::<f64>() / broken, self.old_rate());
        let mixed = broken * new + (1.0 - broken) * old;
        (entropy(mixed) - broken * entropy(new) - (1.0 - broken) * entropy(old)).max(0.0)
    }

    fn old_rate(self) -> f64 {
        self.old.0 / (self.old.0 + self.old.1)
    }

    /// The rates that a broken test may have.
    fn rates(self) -> [f64; ALTERNATIVES.len()] {
        let old = self.old_rate();
        ALTERNATIVES.map(|way| old + (1.0 - old) * way)
    }
}

/// The share of tests that are broken on a day, in the long run.
fn usual() -> f64 {
    BREAKS / (BREAKS + MENDED)
}

fn number_of_rates() -> f64 {
    to_float(ALTERNATIVES.len() as u64)
}

fn entropy(probability: f64) -> f64 {
    let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    part(probability) + part(1.0 - probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Sample = Sample::ONE_FAILURE;
    const PASSED: Sample = Sample::ONE_PASS;

    fn after(belief: Belief, runs: &[Sample]) -> Belief {
        runs.iter().fold(belief, |belief, run| belief.after(*run))
    }

    #[test]
    fn a_first_failure_makes_a_test_interesting_and_certainty_makes_it_dull() {
        let steady = Belief::new(Sample::new(0, 500), 0).after(Sample::new(0, 20));
        let startled = steady.after(FAILED);
        assert!(startled.gain() > 5.0 * steady.gain());
        let broken = after(startled, &[FAILED; 30]);
        assert!(broken.broken_probability() > 0.999 && broken.gain() < startled.gain() / 10.0);
    }

    #[test]
    fn a_test_that_always_flaked_is_not_interesting_when_it_flakes() {
        let flaky = Belief::new(Sample::new(150, 500), 0).after(Sample::new(3, 10));
        assert!(flaky.broken_probability() < 0.02 && flaky.gain() < 0.02);
    }

    #[test]
    fn without_a_baseline_the_test_that_ran_least_tells_most_unless_one_failed() {
        let mut belief = Belief::new(Sample::default(), 0);
        let new = belief;
        for runs in 0..50 {
            let next = belief.after(PASSED);
            assert!(belief.gain() > next.gain(), "{runs}");
            belief = next;
        }
        assert!(after(new, &[FAILED, PASSED]).gain() > new.gain());
    }

    #[test]
    fn what_was_seen_long_ago_is_forgotten() {
        let quiet = Belief::new(Sample::new(0, 500), 0).after(Sample::new(0, 20));
        assert!(quiet.on(10).gain() > 2.0 * quiet.gain());
        let broken = after(quiet, &[FAILED; 10]);
        assert!(broken.broken_probability() > 0.99 && broken.gain() < quiet.on(10).gain());
        // It may have been mended meanwhile.
        assert!(broken.on(3).gain() > 10.0 * broken.gain());
        assert!(broken.on(3).gain() > quiet.on(10).gain());
        let (later, usual) = (broken.on(1000).broken_probability(), usual());
        assert!((later - usual).abs() < 1e-9, "{later}");
        assert_eq!(broken.on(-5), broken);
    }

    #[test]
    fn one_run_changes_the_odds_as_bayes_says() {
        // A rate of 0.5 / 21 before; half-way, broken means 0.1, 0.3, 0.6 or 0.95 of the way to 1.
        let belief = Belief::new(Sample::new(0, 20), 0).after(FAILED);
        let old = 0.5 / 21.0;
        let new = old + (1.0 - old) * (0.1 + 0.3 + 0.6 + 0.95) / 4.0;
        let broken = 0.001 / 0.101;
        let expected = broken * new / (broken * new + (1.0 - broken) * old);
        assert!((belief.broken_probability() - expected).abs() < 1e-12);
    }

    #[test]
    fn a_million_runs_are_no_trouble() {
        let belief = Belief::new(Sample::new(0, 1_000_000), 0);
        let broken = belief.after(Sample::new(1_000_000, 1_000_000));
        assert!(broken.broken_probability() > 0.999_999 && broken.gain().is_finite());
        let healthy = belief.after(Sample::new(0, 1_000_000));
        assert!(
            healthy.broken_probability() < 1e-9
                && healthy.gain() >= 0.0
                && healthy.on(1).gain() > 0.0
        );
    }
}
