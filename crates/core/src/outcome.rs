//! How one run of a test ended.

use std::fmt;
use std::time::Duration;

/// What happened when a test ran once.
///
/// A time-out and a dead VM are not failed assertions: we never learned how the test would have
/// ended. They count as failures of the run, and are kept apart so that a report can say which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end and nothing was wrong.
    Passed,
    /// Its body failed.
    Failed,
    /// Its set-up or tear-down failed.
    Errored,
    /// It asked not to be run.
    Skipped,
    /// It failed, as its author said it would.
    ExpectedFailure,
    /// It passed although its author said it would fail, and that is allowed.
    UnexpectedPass,
    /// It could not be run: a new VM did not list it, or did not start. It shows nothing.
    NotRun,
    /// It ran longer than it may; its VM was killed.
    TimedOut {
        /// The limit that it reached.
        after: Duration,
    },
    /// Its VM ended under it.
    VmDied {
        /// How the VM ended, in words: "exit status 1", "killed by signal 11".
        how: String,
    },
}

impl Outcome {
    /// Whether it shows that the test can pass. A skip does not.
    pub fn is_pass(&self) -> bool {
        matches!(self, Self::Passed | Self::UnexpectedPass)
    }

    /// Whether it makes a suite red.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Failed | Self::Errored | Self::TimedOut { .. } | Self::VmDied { .. } => true,
            Self::Passed
            | Self::Skipped
            | Self::ExpectedFailure
            | Self::UnexpectedPass
            | Self::NotRun => false,
        }
    }

    /// Whether it passed; `None` if it says neither, as a skip or a run that did not come about.
    pub fn passed(&self) -> Option<bool> {
        (self.is_pass() || self.is_failure()).then(|| self.is_pass())
    }

    /// Whether the VM is gone after it, so that nothing more can run there.
    pub fn ends_vm(&self) -> bool {
        matches!(
            self,
            Self::TimedOut { .. } | Self::VmDied { .. } | Self::NotRun
        )
    }

    /// The one word for it in reports.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Errored => "error",
            Self::Skipped => "skipped",
            Self::ExpectedFailure => "xfailed",
            Self::UnexpectedPass => "xpassed",
            Self::NotRun => "not-run",
            Self::TimedOut { .. } => "timeout",
            Self::VmDied { .. } => "crashed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_neither_a_pass_nor_a_failure() {
        for outcome in [Outcome::Skipped, Outcome::ExpectedFailure, Outcome::NotRun] {
            assert_eq!(outcome.passed(), None, "{outcome}");
        }
        assert_eq!(Outcome::Passed.passed(), Some(true));
        assert_eq!(Outcome::Failed.passed(), Some(false));
    }

    #[test]
    fn a_crash_and_a_time_out_are_failures_that_end_the_vm() {
        let crash = Outcome::VmDied {
            how: "killed by signal 11".into(),
        };
        let hang = Outcome::TimedOut {
            after: Duration::from_secs(1),
        };
        for outcome in [crash, hang] {
            assert!(outcome.is_failure() && outcome.ends_vm() && !outcome.is_pass());
        }
        for outcome in [Outcome::Failed, Outcome::Errored] {
            assert!(outcome.is_failure() && !outcome.ends_vm());
        }
        assert!(Outcome::UnexpectedPass.is_pass() && Outcome::Passed.is_pass());
    }
}
