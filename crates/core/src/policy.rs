//! Whether a run's findings make it fail.

use crate::verdict::Finding;

/// What the user wants of flaky failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether a run whose failures are all flaky succeeds.
    pub flaky: FlakyResult,
    /// Above how many flaky tests a run fails even so.
    pub max_flaky: Option<usize>,
}

/// Whether a flaky failure is a failure of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlakyResult {
    /// It is not.
    Pass,
    /// It is.
    Fail,
}

impl Policy {
    /// Whether these findings leave the run a success.
    pub fn is_met<'a>(self, findings: impl Iterator<Item = &'a Finding> + Clone) -> bool {
        let all_flaky = count_flaky(findings.clone()) == findings.clone().count();
        all_flaky && self.forgives(findings)
    }

    /// Whether the flaky ones among these findings are forgiven.
    pub fn forgives<'a>(self, findings: impl Iterator<Item = &'a Finding>) -> bool {
        let flaky = count_flaky(findings);
        let is_allowed = flaky == 0 || self.flaky == FlakyResult::Pass;
        is_allowed && self.max_flaky.is_none_or(|most| flaky <= most)
    }
}

fn count_flaky<'a>(findings: impl Iterator<Item = &'a Finding>) -> usize {
    findings
        .filter(|finding| finding.verdict.is_flaky())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::TestId;
    use crate::verdict::{Blame, Flakiness, Verdict};

    fn found(verdict: Verdict) -> Finding {
        Finding {
            test: TestId::new("t"),
            verdict,
            trials: Vec::new(),
            comparison: None,
            left_behind: Vec::new(),
            dependence: None,
            cause: None,
            is_latent: false,
        }
    }

    const FLAKY: Verdict = Verdict::Flaky(Flakiness::Bursty);
    const LENIENT: Policy = Policy {
        flaky: FlakyResult::Pass,
        max_flaky: None,
    };

    #[test]
    fn only_flaky_failures_can_be_forgiven() {
        assert!(LENIENT.is_met([].iter()));
        assert!(LENIENT.is_met([found(FLAKY)].iter()));
        assert!(!LENIENT.is_met([found(FLAKY), found(Verdict::Broken(Blame::NotAsked))].iter()));
        assert!(!LENIENT.is_met([found(Verdict::Brittle)].iter()));
        assert!(!LENIENT.is_met([found(Verdict::PreExisting)].iter()));
    }

    #[test]
    fn flaky_failures_fail_the_run_when_the_user_says_so() {
        let strict = Policy {
            flaky: FlakyResult::Fail,
            ..LENIENT
        };
        assert!(strict.is_met([].iter()));
        assert!(!strict.is_met([found(FLAKY)].iter()));
    }

    #[test]
    fn more_flaky_tests_than_allowed_fail_the_run() {
        let two = Policy {
            max_flaky: Some(2),
            ..LENIENT
        };
        assert!(two.is_met([found(FLAKY), found(FLAKY)].iter()));
        assert!(!two.is_met([found(FLAKY), found(FLAKY), found(FLAKY)].iter()));
    }
}
