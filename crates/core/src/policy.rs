//! Whether a run's findings make it fail: a table of how tests fail and whose failures they are.

use crate::blame::{Blame, Whose};
use crate::verdict::{Finding, Verdict};

/// The user's rules for which failures are forgiven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether a run whose failures are all flaky and not the user's succeeds.
    pub flaky: FlakyResult,
    /// The most flaky tests with which a run can still succeed; `None` means any number.
    pub max_flaky: Option<usize>,
    /// Whether a flaky failure is forgiven if it is not known whose it is.
    pub not_known: NotKnownResult,
    /// Whether failures are forgiven that the base has too.
    pub pre_existing: PreExistingResult,
}

impl Policy {
    /// The rules if the user sets none.
    pub const DEFAULT: Self = Self {
        flaky: FlakyResult::Pass,
        max_flaky: None,
        not_known: NotKnownResult::Fail,
        pre_existing: PreExistingResult::Fail,
    };

    /// Whether the run succeeds with these findings.
    pub fn is_met<'a>(self, findings: impl Iterator<Item = &'a Finding> + Clone) -> bool {
        let mut all = findings.clone();
        all.all(|finding| self.forgives(finding)) && self.is_within_limit(findings)
    }

    /// Whether the number of flaky tests among these findings is allowed.
    pub fn is_within_limit<'a>(self, findings: impl Iterator<Item = &'a Finding>) -> bool {
        let flaky = findings
            .filter(|finding| finding.verdict.is_flaky())
            .count();
        self.max_flaky.is_none_or(|most| flaky <= most)
    }

    /// Whether one finding is forgiven.
    pub fn forgives(self, finding: &Finding) -> bool {
        let whose = finding.blame.as_deref().map(|blame: &Blame| &blame.whose);
        let not_known = self.not_known == NotKnownResult::Pass;
        let pre_existing = self.pre_existing == PreExistingResult::Pass;
        match (finding.verdict, whose) {
            (_, Some(Whose::Yours(_))) => false,
            (Verdict::Flaky(_), _) if self.flaky == FlakyResult::Fail => false,
            (Verdict::Flaky(_), Some(Whose::NotYours(_))) => true,
            (Verdict::Flaky(_), Some(Whose::NotKnown(_)) | None) => not_known,
            (
                Verdict::Broken | Verdict::Brittle | Verdict::Unclear(_),
                Some(Whose::NotYours(_)),
            ) => pre_existing,
            (
                Verdict::Broken
                | Verdict::Brittle
                | Verdict::Unclear(_)
                | Verdict::Unexamined(_)
                | Verdict::Nio(_)
                | Verdict::NioAfterOthers
                | Verdict::Victim
                | Verdict::NonDeterministic,
                Some(Whose::NotYours(_) | Whose::NotKnown(_)) | None,
            ) => false,
        }
    }
}

/// Whether a flaky failure that is not the user's is a failure of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlakyResult {
    /// It is not.
    Pass,
    /// It is.
    Fail,
}

/// Whether a flaky failure is a failure of the run if it is not known whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKnownResult {
    /// It is not.
    Pass,
    /// It is.
    Fail,
}

/// Whether a failure that the base has too is a failure of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreExistingResult {
    /// It is not.
    Pass,
    /// It is.
    Fail,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::{Guilt, Innocence, Open};
    use crate::test::TestId;
    use crate::verdict::{Doubt, Flakiness, Reason};

    fn found(verdict: Verdict, whose: Whose) -> Finding {
        let blame = Blame {
            whose,
            ..Blame::unasked(Open::NotAsked)
        };
        Finding {
            test: TestId::new("t"),
            verdict,
            trials: Vec::new(),
            blame: Some(Box::new(blame)),
            left_behind: Vec::new(),
            dependence: None,
            cause: None,
            is_latent: false,
        }
    }

    const FLAKY: Verdict = Verdict::Flaky(Flakiness::Unplaced);
    const UNCLEAR: Verdict = Verdict::Unclear(Doubt::NotRunAgain);
    const UNEXAMINED: Verdict = Verdict::Unexamined(Reason::TooManyFailures);
    const YOURS: Whose = Whose::Yours(Guilt::FailsMore);
    const NOT_YOURS: Whose = Whose::NotYours(Innocence::AtBase);
    const NOT_KNOWN: Whose = Whose::NotKnown(Open::NotSettled);

    /// Every cell of the table: how, whose, and whether it is forgiven by default, with `--not-known pass`, with
    /// `--forgive pre-existing`, and with `--flaky fail`.
    #[test]
    fn the_table_of_exit_codes_holds_cell_by_cell() {
        let lenient = Policy {
            not_known: NotKnownResult::Pass,
            ..Policy::DEFAULT
        };
        let older = Policy {
            pre_existing: PreExistingResult::Pass,
            ..Policy::DEFAULT
        };
        let strict = Policy {
            flaky: FlakyResult::Fail,
            ..Policy::DEFAULT
        };
        for (verdict, whose, forgiven) in [
            (FLAKY, YOURS, [false, false, false, false]),
            (FLAKY, NOT_YOURS, [true, true, true, false]),
            (FLAKY, NOT_KNOWN, [false, true, false, false]),
            (Verdict::Broken, YOURS, [false, false, false, false]),
            (Verdict::Broken, NOT_YOURS, [false, false, true, false]),
            (Verdict::Broken, NOT_KNOWN, [false, false, false, false]),
            (Verdict::Brittle, YOURS, [false, false, false, false]),
            (Verdict::Brittle, NOT_YOURS, [false, false, true, false]),
            (Verdict::Brittle, NOT_KNOWN, [false, false, false, false]),
            (UNCLEAR, YOURS, [false, false, false, false]),
            (UNCLEAR, NOT_YOURS, [false, false, true, false]),
            (UNCLEAR, NOT_KNOWN, [false, false, false, false]),
            (UNEXAMINED, YOURS, [false, false, false, false]),
            (UNEXAMINED, NOT_YOURS, [false, false, false, false]),
            (UNEXAMINED, NOT_KNOWN, [false, false, false, false]),
        ] {
            let finding = found(verdict, whose);
            let policies = [Policy::DEFAULT, lenient, older, strict];
            let got = policies.map(|policy| policy.is_met([finding.clone()].iter()));
            assert_eq!(got, forgiven, "{finding:?}");
        }
    }

    #[test]
    fn one_failure_that_is_not_forgiven_fails_the_run() {
        let findings = [found(FLAKY, NOT_YOURS), found(Verdict::Broken, YOURS)];
        assert!(!Policy::DEFAULT.is_met(findings.iter()));
        assert!(Policy::DEFAULT.is_met([].iter()));
    }

    #[test]
    fn a_finding_of_which_nobody_asked_whose_it_is_is_not_forgiven() {
        let finding = Finding {
            blame: None,
            ..found(FLAKY, NOT_YOURS)
        };
        assert!(!Policy::DEFAULT.forgives(&finding));
    }

    #[test]
    fn more_flaky_tests_than_allowed_fail_the_run() {
        let two = Policy {
            max_flaky: Some(2),
            ..Policy::DEFAULT
        };
        let flaky = found(FLAKY, NOT_YOURS);
        assert!(two.is_met([flaky.clone(), flaky.clone()].iter()));
        assert!(!two.is_met([flaky.clone(), flaky.clone(), flaky].iter()));
    }
}
