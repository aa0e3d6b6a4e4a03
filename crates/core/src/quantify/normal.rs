//! The standard normal distribution, and levels of confidence.

use statrs::function::erf::{erfc, erfc_inv};

/// A level of confidence: above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level(f64);

impl Level {
    /// 95 %.
    pub const DEFAULT: Self = Self(0.95);

    /// `None` unless it is above 0 and below 1.
    pub fn new(level: f64) -> Option<Self> {
        (level > 0.0 && level < 1.0).then_some(Self(level))
    }

    /// The level as a share, from 0 to 1.
    pub fn share(self) -> f64 {
        self.0
    }

    /// The share of wrong answers that the level allows.
    pub fn error(self) -> f64 {
        1.0 - self.0
    }

    /// The point that cuts off the error at the upper end only: 1.645 for 95 %.
    ///
    /// Rehman 2019 (3.1.3) uses it, rounded to 1.65, without saying that it is one-sided.
    pub fn one_sided(self) -> f64 {
        quantile(self.0)
    }

    /// The point that cuts off half the error at each end: 1.96 for 95 %.
    pub fn two_sided(self) -> f64 {
        quantile(1.0 - self.error() / 2.0)
    }
}

/// The probability of a value up to `z`.
pub fn cumulative(z: f64) -> f64 {
    erfc(-z / std::f64::consts::SQRT_2) / 2.0
}

/// The value that is not exceeded with this probability.
pub fn quantile(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_that_everybody_knows() {
        assert!((Level::DEFAULT.one_sided() - 1.644_853_626_951_472).abs() < 1e-9);
        assert!((Level::DEFAULT.two_sided() - 1.959_963_984_540_054).abs() < 1e-9);
        assert!((cumulative(1.65) - 0.950_528_531_966_351_9).abs() < 1e-9);
        assert!((cumulative(0.0) - 0.5).abs() < 1e-15);
        assert!(Level::new(0.0).is_none() && Level::new(1.0).is_none());
        assert!(Level::new(f64::NAN).is_none());
    }
}
