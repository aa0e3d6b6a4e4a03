//! Runs counted by test, day and stream: what statistics read instead of runs.

use crate::run::Ended;

/// Which failures are flaky ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlakyRule {
    /// What is known decides: a verdict of unflake or of the reporting tool, then a bug id; a failure of
    /// which nothing is known counts as flaky, as in the paper.
    #[default]
    Evidence,
    /// A failure without a bug id is flaky: the rule of Rehman 2019 (3.2.2).
    Bug,
    /// Only a verdict makes a failure flaky.
    Verdict,
    /// A failure is flaky if the same test passed at the same revision.
    Revision,
}

impl FlakyRule {
    /// The word for it on the command line.
    pub fn label(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::Bug => "bug",
            Self::Verdict => "verdict",
            Self::Revision => "revision",
        }
    }

    /// What it means, in a sentence for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Evidence => {
                "a failure is flaky unless a bug was filed for it or a verdict says it is real"
            }
            Self::Bug => "a failure is flaky if no bug was filed for it",
            Self::Verdict => "a failure is flaky if a verdict says so",
            Self::Revision => "a failure is flaky if the test also passed at the same revision",
        }
    }
}

/// The runs of one test on one day in one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DailyCount {
    /// The test's number in the store.
    pub test: u32,
    /// Days since 1970, in UTC.
    pub day: i32,
    /// The number of branch and release together.
    pub stream: u32,
    /// Runs that passed or failed.
    pub runs: u32,
    /// Those that failed.
    pub failures: u32,
    /// Those that are flaky by the rule that was asked for.
    pub flaky: u32,
}

/// The counts that all rules but one can be computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) runs: u32,
    pub(crate) failures: u32,
    /// Failures with a bug id.
    pub(crate) with_bug: u32,
    /// Failures that a verdict calls flaky.
    pub(crate) judged_flaky: u32,
    /// Failures that are known to be no flakes.
    pub(crate) real: u32,
}

impl Tally {
    /// One run.
    pub(crate) fn of(ended: Ended, has_bug: bool, verdict: Option<&str>) -> Self {
        if !ended.is_failure() {
            return Self {
                runs: 1,
                ..Self::default()
            };
        }
        let is_flaky = verdict.is_some_and(says_flaky);
        let is_real = !is_flaky && (has_bug || verdict.is_some_and(says_real));
        Self {
            runs: 1,
            failures: 1,
            with_bug: u32::from(has_bug),
            judged_flaky: u32::from(is_flaky),
            real: u32::from(is_real),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.failures += other.failures;
        self.with_bug += other.with_bug;
        self.judged_flaky += other.judged_flaky;
        self.real += other.real;
    }

    /// How many failures are flaky. By revision it cannot be told from these counts.
    pub(crate) fn flaky(self, rule: FlakyRule) -> u32 {
        match rule {
            FlakyRule::Evidence | FlakyRule::Revision => self.failures - self.real,
            FlakyRule::Bug => self.failures - self.with_bug,
            FlakyRule::Verdict => self.judged_flaky,
        }
    }
}

/// Whether a verdict says that the product is not at fault.
pub(crate) fn says_flaky(verdict: &str) -> bool {
    matches!(
        verdict,
        "flaky" | "victim" | "brittle" | "nio" | "nio-after-others" | "non-deterministic"
    )
}

/// Whether a verdict says that it is.
pub(crate) fn says_real(verdict: &str) -> bool {
    matches!(verdict, "broken" | "pre-existing")
}
