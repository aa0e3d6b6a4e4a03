//! A test that did not pass twice, and what is known of it so far.

use crate::nio::{Pair, Setting, Step, next_step};
use crate::outcome::Outcome;
use crate::state::Cause;
use crate::test::TestId;
use crate::trial::Trial;

/// A test that did not pass twice.
#[derive(Clone, Debug)]
pub(super) struct Suspect {
    pub(super) test: TestId,
    /// Its pairs so far; the first is the one that was to detect.
    pub(super) pairs: Vec<Pair>,
    /// All trials that the pairs are made of, and those that decide nothing.
    pub(super) trials: Vec<Trial>,
    /// The files of the work tree that its last run alone changed.
    pub(super) left_behind: Vec<String>,
    /// The state behind it, if that was looked for.
    pub(super) cause: Option<Box<Cause>>,
    pub(super) is_judged: bool,
}

impl Suspect {
    /// A test of which one pair is known.
    pub(super) fn new(once: Trial, again: Trial) -> Self {
        Self {
            test: once.test.clone(),
            pairs: vec![Pair::of(&once, &again)],
            trials: vec![once, again],
            left_behind: Vec::new(),
            cause: None,
            is_judged: false,
        }
    }

    /// What to do next about it.
    pub(super) fn step(&self) -> Step {
        next_step(&self.pairs)
    }

    /// Whether it is not judged, and this is what to do next about it.
    pub(super) fn wants(&self, setting: Setting) -> bool {
        !self.is_judged && self.step() == Step::Run(setting)
    }

    /// Takes the trials of a pair in this setting. One that is missing did not run.
    pub(super) fn take(&mut self, setting: Setting, trials: Vec<Trial>) {
        let outcome_at = |at: usize| {
            let trial: Option<&Trial> = trials.get(at);
            trial.map_or(Outcome::NotRun, |trial| trial.outcome.clone())
        };
        self.pairs.push(Pair {
            setting,
            once: outcome_at(0),
            again: outcome_at(1),
        });
        self.trials.extend(trials);
    }
}
