//! Tests that may fail for a while without failing the run, and what lets them out again.

use crate::quantify::interval::wilson;
use crate::quantify::normal::Level;
use crate::quantify::sample::Sample;
use crate::reported::junit_name;
use crate::test::TestId;

/// A test in quarantine. It is still run and recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The test's name: the framework's own, or class and name as reports write them.
    pub test: String,
    /// Why it is there.
    pub reason: String,
    /// Who looks after it; may be empty.
    pub owner: String,
    /// The last day on which it is there, in days since 1970.
    pub until: i32,
}

impl Quarantined {
    /// Whether this is the test that is meant.
    pub fn means(&self, test: &TestId) -> bool {
        if self.test == test.name() {
            return true;
        }
        let (class, name) = junit_name(test);
        let dot = if class.is_empty() { "" } else { "." };
        self.test == format!("{class}{dot}{name}")
    }

    /// Whether its time is over.
    pub fn is_over(&self, today: i32) -> bool {
        self.until < today
    }
}

/// The condition under which a test may leave quarantine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Release {
    /// Its rate of failures must be below this.
    pub limit: f64,
    /// The confidence that the rate is below the limit.
    pub level: Level,
    /// The least number of runs before a test may leave.
    pub least_runs: u64,
}

impl Release {
    /// At most 5 % of runs fail, with 95 % confidence, after 50 runs or more. Without a failure this takes 73.
    pub const DEFAULT: Self = Self {
        limit: 0.05,
        level: Level::DEFAULT,
        least_runs: 50,
    };

    /// Whether the runs since a test came into quarantine are enough to let it go.
    pub fn is_earned(self, since: Sample) -> bool {
        since.runs() >= self.least_runs && wilson(since, self.level).high < self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_meant_by_either_of_its_names() {
        let quarantined = |test: &str| Quarantined {
            test: test.to_owned(),
            reason: String::new(),
            owner: String::new(),
            until: 10,
        };
        let test = TestId::new("tests/test_cart.py::test_total");
        assert!(quarantined("tests/test_cart.py::test_total").means(&test));
        assert!(quarantined("tests.test_cart.test_total").means(&test));
        assert!(!quarantined("test_total").means(&test));
        assert!(!quarantined("t").is_over(10) && quarantined("t").is_over(11));
    }

    #[test]
    fn a_test_leaves_by_evidence_and_not_by_luck() {
        let rule = Release::DEFAULT;
        // Wilson's upper bound of 0 of n is z²/(n + z²) with z = 1.96: below 5 % from n = 73 on.
        assert!(!rule.is_earned(Sample::new(0, 72)));
        assert!(rule.is_earned(Sample::new(0, 73)));
        assert!(!rule.is_earned(Sample::new(3, 100)));
        assert!(rule.is_earned(Sample::new(3, 300)));
        assert!(!rule.is_earned(Sample::default()));
    }
}
