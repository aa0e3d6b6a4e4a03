//! The settings of the ladder, for all tests and for some.

use std::time::Duration;

use crate::ladder::Rungs;
use crate::pattern::Pattern;
use crate::test::TestId;
use crate::threshold::Threshold;

/// The settings by which a suite is examined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The number of reruns of a failed test on each rung.
    pub rungs: Rungs,
    /// The number of failures above which nothing runs again.
    pub threshold: Threshold,
    /// The longest time that a test may run; `None` means without a limit.
    pub timeout: Option<Duration>,
    /// The settings that differ for some tests. The first override that matches and has a value gives it.
    pub overrides: Vec<Override>,
}

/// The settings that differ for the tests that a pattern names.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of `Rungs` and `Plan`")]
pub struct Override {
    pub tests: Pattern,
    pub immediate: Option<u32>,
    pub end: Option<u32>,
    pub fresh: Option<u32>,
    pub timeout: Option<Duration>,
}

impl Plan {
    /// The number of reruns of this test after a failure, on each rung.
    pub fn rungs_for(&self, test: &TestId) -> Rungs {
        Rungs {
            other_seeds: self.rungs.other_seeds,
            immediate: self
                .first(test, |one| one.immediate)
                .unwrap_or(self.rungs.immediate),
            end: self.first(test, |one| one.end).unwrap_or(self.rungs.end),
            fresh: self
                .first(test, |one| one.fresh)
                .unwrap_or(self.rungs.fresh),
        }
    }

    /// The longest time that this test may run; `None` means without a limit.
    pub fn timeout_for(&self, test: &TestId) -> Option<Duration> {
        self.first(test, |one| one.timeout).or(self.timeout)
    }

    /// Whether any failure at all can be examined further.
    pub fn has_reruns(&self) -> bool {
        let counts = |one: &Override| [one.immediate, one.end, one.fresh];
        let all = self.overrides.iter().flat_map(counts).flatten();
        let rungs = [self.rungs.immediate, self.rungs.end, self.rungs.fresh];
        rungs.into_iter().chain(all).any(|count| count > 0)
    }

    fn first<T>(&self, test: &TestId, value: impl Fn(&Override) -> Option<T>) -> Option<T> {
        let mut fitting = self
            .overrides
            .iter()
            .filter(|one| one.tests.matches(test.name()));
        fitting.find_map(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn override_of(pattern: &str, immediate: Option<u32>, end: Option<u32>) -> Override {
        Override {
            tests: Pattern::new(pattern),
            immediate,
            end,
            fresh: None,
            timeout: None,
        }
    }

    #[test]
    fn the_first_override_that_has_a_value_gives_it() {
        let plan = Plan {
            overrides: vec![
                override_of("net.py::*", Some(5), None),
                override_of("*", Some(7), Some(0)),
            ],
            ..Plan::default()
        };
        let rungs = plan.rungs_for(&TestId::new("net.py::ping"));
        assert_eq!((rungs.immediate, rungs.end, rungs.fresh), (5, 0, 2));
        let rungs = plan.rungs_for(&TestId::new("cart.py::total"));
        assert_eq!((rungs.immediate, rungs.end, rungs.fresh), (7, 0, 2));
    }

    #[test]
    fn an_override_alone_can_ask_for_reruns() {
        let off = Rungs {
            other_seeds: 0,
            immediate: 0,
            end: 0,
            fresh: 0,
        };
        let mut plan = Plan {
            rungs: off,
            ..Plan::default()
        };
        assert!(!plan.has_reruns());
        plan.overrides.push(override_of("a", None, Some(1)));
        assert!(plan.has_reruns());
    }
}
