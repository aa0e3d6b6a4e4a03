//! A test that failed, and what is found out about it.

use std::collections::BTreeSet;

use unflake_core::failure::{Fingerprint, incident};
use unflake_core::ladder::{Rungs, Stage, Step, next_step};
use unflake_core::nio::class::takes_two_classes;
use unflake_core::order::Dependence;
use unflake_core::state::Cause;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::Trial;
use unflake_core::verdict::Verdict;

use crate::framework::project::Project;
use crate::protocol::messages::Worker;

/// A test that failed in the suite.
pub(crate) struct Suspect {
    pub(crate) test: TestId,
    pub(crate) worker: Option<Worker>,
    pub(crate) trials: Vec<Trial>,
    /// The watched paths that had been opened when it failed, if that is known.
    pub(crate) opened: Option<BTreeSet<String>>,
    /// How it fails, once the ladder has ended.
    pub(crate) verdict: Option<Verdict>,
    /// With how many hash seeds it may be tried, if it fails everywhere and not through the change.
    pub(crate) seeds: Option<u32>,
    /// The files of the work tree that its runs changed.
    pub(crate) left_behind: Vec<String>,
    /// Which tests it depends on, if that was looked into.
    pub(crate) dependence: Option<Box<Dependence>>,
    /// The state behind it, if that was looked into.
    pub(crate) cause: Option<Box<Cause>>,
    pub(crate) is_judged: bool,
}

impl Suspect {
    /// A test of which these trials are known.
    pub(crate) fn of(test: TestId, trials: Vec<Trial>) -> Self {
        Self {
            test,
            worker: None,
            trials,
            opened: None,
            verdict: None,
            seeds: None,
            left_behind: Vec::new(),
            dependence: None,
            cause: None,
            is_judged: false,
        }
    }

    /// A test that has just failed.
    pub(crate) fn new(trial: Trial, worker: Option<Worker>) -> Self {
        let test = trial.test.clone();
        Self {
            worker,
            ..Self::of(test, vec![trial])
        }
    }

    /// The next step of its ladder.
    pub(crate) fn step(&self, rungs: Rungs, stage: Stage) -> Step {
        let Some(seeds) = self.seeds else {
            return next_step(rungs, &self.trials, stage);
        };
        // Those that were made for blame are none of the ladder's.
        let trials = self.trials.iter();
        let own = trials.filter(|trial| !trial.rung.is_for_blame());
        let own: Vec<Trial> = own.cloned().collect();
        next_step(rungs.seeking_a_seed(seeds), &own, stage)
    }

    /// Whether a verdict takes tests of two classes in one VM, where the project gives each its own.
    pub(crate) fn is_latent(&self, verdict: Verdict, project: &Project, listed: &[Test]) -> bool {
        let (_, is_by_class) = project.differences();
        let culprits = self.dependence.as_ref();
        let culprits = culprits.map_or(&[][..], |known| &known.diagnosis.culprits);
        let listed = listed.iter().map(|test| &test.id);
        is_by_class
            && (verdict.depends_on_order() || !culprits.is_empty())
            && takes_two_classes(&self.test, culprits, listed)
    }

    /// What it has in common with others that failed together with it, if anything.
    pub(crate) fn incident(&self) -> Option<Fingerprint> {
        let first = self.trials.first()?;
        incident(&first.outcome, &first.account)
    }
}
