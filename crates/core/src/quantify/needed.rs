//! The number of runs that it takes to trust a test, and the trust that the runs so far allow.

use super::normal::{Level, cumulative};
use super::sample::to_float;

/// The precision that is wanted: a point of the normal distribution, and the largest error of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// Z of Rehman 2019, Eq. 7.
    pub z: f64,
    /// e of Eq. 7: the margin of error.
    pub margin: f64,
}

impl Aim {
    /// Z = 1.65 and e = 0.05, as the paper has it.
    pub const PAPER: Self = Self {
        z: 1.65,
        margin: 0.05,
    };

    /// The one-sided point of a level.
    pub fn at(level: Level, margin: f64) -> Self {
        Self {
            z: level.one_sided(),
            margin,
        }
    }
}

/// The number of runs that are needed (Rehman 2019, Eq. 7), before rounding. At rates 0 and 1 it is none: the normal
/// approximation knows no doubt there. [`runs_by_wilson`] does.
pub fn runs(rate: f64, aim: Aim) -> f64 {
    aim.z.powi(2) * rate * (1.0 - rate) / aim.margin.powi(2)
}

/// The number of runs that make Wilson's interval as narrow as the margin on each side.
///
/// Rehman 2019, Eq. 3, with its misplaced square put right: the half-width of Eq. 4 is set to the margin ε,
/// and ε²(n + z²)² = z²(nπ(1 − π) + z²/4) is solved for n.
pub fn runs_by_wilson(rate: f64, aim: Aim) -> f64 {
    let (spread, square) = (rate * (1.0 - rate), aim.margin.powi(2));
    let root = (spread.powi(2) + 4.0 * square * (rate - 0.5).powi(2)).sqrt();
    (aim.z.powi(2) * (spread - 2.0 * square + root) / (2.0 * square)).max(0.0)
}

/// The confidence that this number of runs allows (Rehman 2019, Eq. 8, and the normal table): 0 without runs, and 1 at
/// the rates 0 and 1, where the formula divides by 0.
pub fn confidence(runs: u64, rate: f64, margin: f64) -> f64 {
    if runs == 0 {
        return 0.0;
    }
    let spread = rate * (1.0 - rate);
    if spread <= 0.0 {
        return 1.0;
    }
    cumulative((to_float(runs) * margin.powi(2) / spread).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantify::interval::wilson;
    use crate::quantify::sample::Sample;

    #[test]
    fn the_papers_own_examples() {
        // Section 4.2, before truncation. It says 95 for the last one; its formula says 98.
        for (rate, wanted) in [
            (0.001, 1.088),
            (0.005, 5.418),
            (0.01, 10.781),
            (0.05, 51.727),
            (0.1, 98.010),
        ] {
            let found = runs(rate, Aim::PAPER);
            assert!((found - wanted).abs() < 5e-4, "{rate}: {found}");
        }
    }

    #[test]
    fn as_many_runs_as_needed_reach_the_confidence() {
        let reached = confidence(99, 0.1, 0.05);
        assert!(reached > 0.95 && confidence(97, 0.1, 0.05) < 0.951);
        assert!(
            (confidence(98, 0.1, 0.05) - cumulative((98.0_f64 * 0.0025 / 0.09).sqrt())).abs()
                < 1e-12
        );
        assert!(confidence(0, 0.1, 0.05).abs() < 1e-12);
        assert!((confidence(1, 0.0, 0.05) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn wilsons_number_of_runs_makes_wilsons_interval_that_narrow() {
        let level = Level::DEFAULT;
        for (failures, total) in [(0, 73), (5, 150), (50, 396), (200, 386)] {
            let rate = to_float(failures) / to_float(total);
            let interval = wilson(Sample::new(failures, total), level);
            let margin = f64::midpoint(interval.high, -interval.low);
            let aim = Aim {
                z: level.two_sided(),
                margin,
            };
            let found = runs_by_wilson(rate, aim);
            assert!((found - to_float(total)).abs() < 1e-6, "{rate}: {found}");
        }
    }
}
