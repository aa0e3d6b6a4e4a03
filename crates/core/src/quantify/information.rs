//! How much one more run of a test would tell us about whether it has changed.
//!
//! Two hypotheses: the test has its old rate, or a new one of which nothing is known. The worth of a run is
//! the mutual information between its outcome and the truth, in nats. A test that has been shown to be
//! broken is worth nothing any more, whereas `BinomialStabilityOrder` reruns it for ever.

use super::prior::ln_marginal;
use super::sample::{Sample, to_float};

/// How probable a change is before anything has run.
const CHANGED: f64 = 0.02;

/// What a test without a baseline is held against: one that passed so often. Nothing else can be said to have
/// changed about it, and without this the test that has passed most would be the one to run again.
const HEALTHY: u64 = 20;

/// What is believed of one test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    baseline: Sample,
    current: Sample,
    /// The logarithm of the odds that it has changed.
    ln_odds: f64,
}

impl Belief {
    /// After this baseline and these runs since; without a baseline it is held against a healthy test.
    pub fn new(baseline: Sample, current: Sample) -> Self {
        let baseline = match baseline.runs() {
            0 => Sample::new(0, HEALTHY),
            _ => baseline,
        };
        let a = 0.5 + to_float(baseline.failures());
        let b = 0.5 + to_float(baseline.passes());
        let same = ln_marginal(current, a, b);
        let changed = ln_marginal(current, 1.0, 1.0);
        Self {
            baseline,
            current,
            ln_odds: (CHANGED / (1.0 - CHANGED)).ln() + changed - same,
        }
    }

    /// The probability that it has changed.
    pub fn changed(self) -> f64 {
        1.0 / (1.0 + (-self.ln_odds).exp())
    }

    /// Adds one run.
    #[must_use]
    pub fn after(self, failed: bool) -> Self {
        let (new, old) = self.predictions();
        let ratio = if failed {
            new / old
        } else {
            (1.0 - new) / (1.0 - old)
        };
        Self {
            current: self.current.plus(Sample::new(u64::from(failed), 1)),
            ln_odds: self.ln_odds + ratio.ln(),
            ..self
        }
    }

    /// What the next run is expected to tell, in nats.
    pub fn gain(self) -> f64 {
        let (new, old) = self.predictions();
        let changed = self.changed();
        let mixed = changed * new + (1.0 - changed) * old;
        (entropy(mixed) - changed * entropy(new) - (1.0 - changed) * entropy(old)).max(0.0)
    }

    /// The probability that the next run fails if it has changed, and if it has not.
    fn predictions(self) -> (f64, f64) {
        let (failures, runs) = (
            to_float(self.current.failures()),
            to_float(self.current.runs()),
        );
        let new = (1.0 + failures) / (2.0 + runs);
        let before = to_float(self.baseline.failures());
        let old = (0.5 + before + failures) / (1.0 + to_float(self.baseline.runs()) + runs);
        (new, old)
    }
}

fn entropy(probability: f64) -> f64 {
    let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    part(probability) + part(1.0 - probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_failure_makes_a_test_interesting_and_certainty_makes_it_dull() {
        let steady = Belief::new(Sample::new(0, 500), Sample::new(0, 20));
        let startled = steady.after(true);
        assert!(startled.gain() > 5.0 * steady.gain());
        let mut broken = startled;
        for _ in 0..30 {
            broken = broken.after(true);
        }
        assert!(broken.changed() > 0.999 && broken.gain() < startled.gain() / 10.0);
    }

    #[test]
    fn a_test_that_always_flaked_is_not_interesting_when_it_flakes() {
        let flaky = Belief::new(Sample::new(150, 500), Sample::new(3, 10));
        assert!(flaky.changed() < 0.02 && flaky.gain() < 0.02);
    }

    #[test]
    fn without_a_baseline_the_test_that_ran_least_tells_most_unless_one_failed() {
        let after = |failures, runs| Belief::new(Sample::default(), Sample::new(failures, runs));
        for runs in 0..50 {
            assert!(after(0, runs).gain() > after(0, runs + 1).gain(), "{runs}");
        }
        assert!(after(1, 2).gain() > after(0, 0).gain());
    }

    #[test]
    fn run_by_run_it_comes_to_the_same_as_at_once() {
        let baseline = Sample::new(3, 90);
        let mut belief = Belief::new(baseline, Sample::default());
        for failed in [true, false, false, true, false] {
            belief = belief.after(failed);
        }
        let at_once = Belief::new(baseline, Sample::new(2, 5));
        assert!((belief.changed() - at_once.changed()).abs() < 1e-12);
    }
}
