//! Between which rates the true one lies.

use super::normal::Level;
use super::sample::{Sample, to_float};

/// A range of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lowest rate in it.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// Wilson's score interval (Rehman 2019, Eq. 4): it stays in [0, 1] and holds for few runs and for rates
/// near 0. Without runs it is all of [0, 1].
pub fn wilson(sample: Sample, level: Level) -> Interval {
    let Some(rate) = sample.rate() else {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    };
    let (n, z) = (to_float(sample.runs()), level.two_sided());
    let square = z * z;
    let middle = (to_float(sample.failures()) + square / 2.0) / (n + square);
    let half = z / (n + square) * (n * rate * (1.0 - rate) + square / 4.0).sqrt();
    Interval {
        low: if sample.failures() == 0 {
            0.0
        } else {
            (middle - half).max(0.0)
        },
        high: if sample.passes() == 0 {
            1.0
        } else {
            (middle + half).min(1.0)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantify::binomial::probability;

    #[test]
    fn it_holds_the_true_rate_about_as_often_as_it_says() {
        // Exactly, over all counts of failures that there can be.
        let mut sum = 0.0;
        for runs in [10, 40, 200] {
            for rate in [0.01, 0.05, 0.1, 0.2, 0.35, 0.5] {
                let counts = (0..=runs).map(|failures| Sample::new(failures, runs));
                let holds = counts.filter(|sample| {
                    let interval = wilson(*sample, Level::DEFAULT);
                    (interval.low..=interval.high).contains(&rate)
                });
                let coverage: f64 = holds.map(|sample| probability(sample, rate)).sum();
                assert!(coverage > 0.88, "{rate} in {runs} runs: {coverage}");
                sum += coverage;
            }
        }
        assert!((sum / 18.0 - 0.95).abs() < 0.01, "{}", sum / 18.0);
    }

    #[test]
    fn a_clean_record_is_no_proof() {
        // By hand: z²/(n + z²) with n = 10.
        let clean = wilson(Sample::new(0, 10), Level::DEFAULT);
        assert!(clean.low.abs() < 1e-12 && (clean.high - 0.277_532_8).abs() < 1e-6);
        let none = wilson(Sample::new(0, 0), Level::DEFAULT);
        assert!(none.low.abs() < 1e-12 && (none.high - 1.0).abs() < 1e-12);
        let all = wilson(Sample::new(10, 10), Level::DEFAULT);
        assert!((all.low - 0.722_467_2).abs() < 1e-6 && (all.high - 1.0).abs() < 1e-12);
    }
}
