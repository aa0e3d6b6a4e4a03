//! The number of failures from which on a change is probably broken, and reruns are a waste.

/// The number of failures from which on reruns are a waste, because the change is probably broken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The share of the suite's tests (THRESHOLD of Eloussi 2015, 3.1), from 0 to 1.
    pub ratio: f64,
    /// The number of failures that must be exceeded as well.
    pub floor: usize,
}

impl Default for Threshold {
    fn default() -> Self {
        Self {
            ratio: 0.01,
            floor: 10,
        }
    }
}

impl Threshold {
    /// Whether `failures` of `tests` are too many: at or above the ratio, and above the floor.
    #[expect(clippy::cast_precision_loss, reason = "no suite has 2^52 tests")]
    pub fn is_reached(self, failures: usize, tests: usize) -> bool {
        failures > self.floor && failures as f64 >= self.ratio * tests as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_needs_both_the_ratio_and_the_floor() {
        let threshold = Threshold::default();
        assert!(!threshold.is_reached(1, 20), "5 %, but one failure");
        assert!(!threshold.is_reached(10, 20), "the floor must be exceeded");
        assert!(threshold.is_reached(11, 20));
        assert!(threshold.is_reached(11, 1100), "exactly 1 %");
        assert!(!threshold.is_reached(11, 1101), "just under 1 %");
    }
}
