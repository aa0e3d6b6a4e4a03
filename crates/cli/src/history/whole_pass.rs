//! Whether a run was one in which nothing failed, told by its events: only then do its files say what works.

use unflake_core::event::{Ending, Event};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::Rung;

use super::whence;

/// A run in which nothing failed.
pub(crate) struct Passed {
    /// The digest of what was installed.
    pub(crate) installed: [u8; 32],
    /// The tests in their order, and whether they passed: others were left out.
    pub(crate) tests: Vec<(TestId, bool)>,
}

/// What is known of a run so far.
#[derive(Debug, Default)]
pub(crate) struct WholePass {
    /// How many tests are expected; `None` before they are listed.
    expected: Option<usize>,
    /// Whether it cannot become one in which nothing failed.
    is_over: bool,
    installed: [u8; 32],
    tests: Vec<(TestId, bool)>,
}

impl WholePass {
    /// Takes in one event.
    pub(crate) fn read(&mut self, event: &Event) {
        match event {
            Event::Listed(listing) => {
                // In several parts, in several VMs and in a shuffled order, the same tests run otherwise each time.
                let is_plain = listing.jobs == 1 && listing.replay.is_empty() && !self.is_over;
                let installed = listing.installed.as_deref().filter(|_| is_plain);
                self.is_over = installed.is_none() || self.expected.is_some();
                self.expected = Some(listing.tests.len());
                self.installed = installed.map(whence::installed).unwrap_or_default();
            }
            Event::TrialEnded(trial) if trial.rung == Rung::Suite => match trial.outcome {
                Outcome::Passed => self.tests.push((trial.test.clone(), true)),
                Outcome::Skipped | Outcome::ExpectedFailure | Outcome::UnexpectedPass => {
                    self.tests.push((trial.test.clone(), false));
                }
                Outcome::Failed
                | Outcome::Errored
                | Outcome::TimedOut { .. }
                | Outcome::VmDied { .. }
                | Outcome::NotRun => self.is_over = true,
            },
            Event::TrialEnded(_)
            | Event::CollectionFailed(_)
            | Event::SessionFailed { .. }
            | Event::Unmatched { .. } => self.is_over = true,
            Event::Ended(ending) => self.is_over |= *ending != Ending::Completed,
            Event::Prepared { .. }
            | Event::Judged(_)
            | Event::VmStarted { .. }
            | Event::Noted(_)
            | Event::TrialStarted { .. }
            | Event::SuiteEnded { .. }
            | Event::Searching { .. }
            | Event::Blaming { .. }
            | Event::Detected { .. }
            | Event::CulpritFound { .. }
            | Event::Latent(_) => {}
        }
    }

    /// What ran, if the run has ended and nothing failed.
    pub(crate) fn into_passed(self) -> Option<Passed> {
        let has_all = self.expected == Some(self.tests.len()) && !self.tests.is_empty();
        let is_whole = has_all && !self.is_over;
        is_whole.then_some(Passed {
            installed: self.installed,
            tests: self.tests,
        })
    }
}
