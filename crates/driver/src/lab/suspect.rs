//! A test that failed, and what is found out about it.

use std::collections::BTreeSet;

use unflake_core::failure::{Fingerprint, incident};
use unflake_core::order::Dependence;
use unflake_core::state::Cause;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;
use unflake_core::verdict::Verdict;

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
    /// The files of the work tree that its runs changed.
    pub(crate) left_behind: Vec<String>,
    /// Which tests it depends on, if that was looked into.
    pub(crate) dependence: Option<Box<Dependence>>,
    /// The state behind it, if that was looked into.
    pub(crate) cause: Option<Box<Cause>>,
    pub(crate) is_judged: bool,
}

impl Suspect {
    /// A test that has just failed.
    pub(crate) fn new(trial: Trial, worker: Option<Worker>) -> Self {
        Self {
            test: trial.test.clone(),
            worker,
            trials: vec![trial],
            opened: None,
            verdict: None,
            left_behind: Vec::new(),
            dependence: None,
            cause: None,
            is_judged: false,
        }
    }

    /// What it has in common with others that failed together with it, if anything.
    pub(crate) fn incident(&self) -> Option<Fingerprint> {
        let first = self.trials.first()?;
        incident(&first.outcome, &first.account)
    }
}
