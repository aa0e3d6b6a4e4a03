//! The assumption about a test's rate before it has run often: one failure in 10,000 clean runs is not the same as one
//! failure after 3.

use statrs::function::beta::ln_beta;

use super::sample::{Sample, to_float};

/// A rate's distribution before any run: Beta(a, b), or the bare share of failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Prior {
    /// Nothing: the rate is the share of failures, and a test that never failed never will. The paper's
    /// rule (Rehman 2019, 3.1.2).
    None,
    /// Jeffreys' Beta(½, ½).
    Jeffreys,
    /// The rate of the whole suite, with the weight of one run.
    Pooled {
        /// The share of failures among all runs of all tests.
        rate: f64,
    },
}

impl Prior {
    /// The rate that a test is expected to have after this sample; `None` if nothing is known.
    pub fn rate(self, sample: Sample) -> Option<f64> {
        let Some((a, b)) = self.weights() else {
            return sample.rate();
        };
        Some((to_float(sample.failures()) + a) / (to_float(sample.runs()) + a + b))
    }

    fn weights(self) -> Option<(f64, f64)> {
        match self {
            Self::None => None,
            Self::Jeffreys => Some((0.5, 0.5)),
            Self::Pooled { rate } => Some((rate, 1.0 - rate)),
        }
    }
}

/// The logarithm of the probability of a sequence of runs whose rate is drawn from Beta(a, b).
pub fn ln_marginal(sample: Sample, a: f64, b: f64) -> f64 {
    ln_beta(
        a + to_float(sample.failures()),
        b + to_float(sample.passes()),
    ) - ln_beta(a, b)
}

/// The probability of at least `current`'s failures for a test with this baseline, whose rate is not known exactly:
/// the tail of the beta-binomial distribution with Jeffreys' prior.
///
/// With a long baseline it comes to the binomial test against the baseline's rate.
pub fn at_least_after(baseline: Sample, current: Sample) -> f64 {
    let a = 0.5 + to_float(baseline.failures());
    let b = 0.5 + to_float(baseline.passes());
    let runs = to_float(current.runs());
    // The probabilities of 0, 1, 2 ... failures by their ratios, from the most likely side.
    let ln_first = ln_beta(a, b + runs) - ln_beta(a, b);
    let mut ln_term = ln_first;
    let mut below = 0.0;
    let mut tail = 0.0;
    for failures in 0..=current.runs() {
        let term = ln_term.exp();
        if failures < current.failures() {
            below += term;
        } else {
            tail += term;
        }
        let k = to_float(failures);
        ln_term += ((runs - k) * (a + k)).ln() - ((k + 1.0) * (b + runs - k - 1.0)).ln();
        if failures > current.failures() && term < tail * 1e-16 {
            break;
        }
    }
    if tail > 0.5 { 1.0 - below } else { tail }.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantify::binomial::at_least;

    #[test]
    fn a_failure_weighs_more_after_a_long_clean_record() {
        let once = Sample::new(1, 10);
        let after = |runs| at_least_after(Sample::new(0, runs), once);
        assert!(
            after(10_000) < 0.001 && after(3) > 0.3,
            "{} {}",
            after(10_000),
            after(3)
        );
    }

    #[test]
    fn with_a_long_baseline_it_is_the_binomial_test() {
        let current = Sample::new(12, 100);
        let found = at_least_after(Sample::new(50_000, 1_000_000), current);
        assert!((found - at_least(current, 0.05)).abs() < 1e-4, "{found}");
    }

    #[test]
    fn without_failures_there_is_nothing_to_explain() {
        let found = at_least_after(Sample::new(3, 50), Sample::new(0, 40));
        assert!((found - 1.0).abs() < 1e-12);
        assert!((at_least_after(Sample::new(0, 0), Sample::new(0, 0)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_bare_share_knows_nothing_of_a_test_that_never_ran() {
        assert_eq!(Prior::None.rate(Sample::new(0, 0)), None);
        assert_eq!(Prior::Jeffreys.rate(Sample::new(0, 0)), Some(0.5));
        let pooled = Prior::Pooled { rate: 0.02 };
        assert!((pooled.rate(Sample::new(1, 3)).unwrap() - 0.255).abs() < 1e-12);
    }
}
