//! Detection: every test runs twice, in the VMs that the mode of the hunt says.

use std::collections::{HashSet, VecDeque};

use crate::event::Note;
use crate::experiment::{Between, Capabilities, Experiment, Times, TrialsTold, VmSpec};
use crate::nio::class::by_class;
use crate::nio::hunt::{HuntPlan, Mode};
use crate::nio::{Pair, Setting, Shape};
use crate::test::TestId;
use crate::trial::Trial;

/// The fewest tests for which a first look pays. Fewer have a VM each: the first look would be one more.
const MANY: usize = 4;

/// The experiments that detect, stage by stage, and the pairs that they made.
#[derive(Clone, Debug)]
pub(super) struct Detection {
    waiting: VecDeque<Search>,
    running: Option<Search>,
    /// The first runs of the running stage whose second runs are missing.
    firsts: Vec<Trial>,
    /// The pairs of the running stage.
    pairs: Vec<(Trial, Trial)>,
    /// The pairs of earlier stages that are not two passes.
    odd: Vec<(Trial, Trial)>,
}

/// One stage of a detection: experiments that may run at the same time.
#[derive(Clone, Debug)]
enum Search {
    /// A first look: each test on classes that are loaded anew for it, in a VM that others use too.
    ///
    /// Static fields, thread locals, the VM's settings and the files are then as for a test that runs alone. What
    /// libraries remember is not. So a look only says who needs no VM of its own: a test that passes both times.
    /// Whatever else happens says nothing, because the loaded classes can be what disturbed the test.
    Look(Vec<TestId>),
    /// Each group in a VM of its own.
    Apart(Setting, Vec<Vec<TestId>>),
    /// All in one VM.
    Suite(Vec<TestId>),
}

impl Detection {
    pub(super) fn new(plan: &HuntPlan, can: Capabilities) -> Self {
        let tests = &plan.tests;
        let suite = || Search::Suite(tests.clone());
        let waiting = match plan.mode {
            Mode::Suite => vec![suite()],
            Mode::Class => vec![Search::Apart(Setting::Class, by_class(tests))],
            Mode::Method => vec![each_alone(tests.clone(), can)],
            Mode::Auto => {
                let changed = tests.iter().filter(|test| plan.changed.contains(*test));
                // Before the suite, while the VM has run nothing.
                vec![each_alone(changed.cloned().collect(), can), suite()]
            }
        };
        Self {
            waiting: waiting.into(),
            running: None,
            firsts: Vec::new(),
            pairs: Vec::new(),
            odd: Vec::new(),
        }
    }

    /// The experiments of the next stage; none if there is no other.
    pub(super) fn next_experiments(&mut self) -> Vec<Experiment> {
        while let Some(search) = self.waiting.pop_front() {
            let experiments = search.experiments();
            if !experiments.is_empty() {
                self.running = Some(search);
                return experiments;
            }
        }
        Vec::new()
    }

    /// Takes a trial of the running stage; the test, if that settles it.
    pub(super) fn hear(&mut self, trial: &Trial) -> Option<TestId> {
        let place = self.firsts.iter().position(|one| one.test == trial.test);
        let Some(place) = place else {
            self.firsts.push(trial.clone());
            return None;
        };
        let once = self.firsts.swap_remove(place);
        let pair = Pair::of(&once, trial);
        let is_last = !matches!(self.waiting.front(), Some(Search::Suite(_)));
        let is_look = matches!(self.running, Some(Search::Look(_)));
        let is_fine = if is_look {
            pair.is_content()
        } else {
            matches!(pair.shape(), Shape::PassPass | Shape::Skipped)
        };
        self.pairs.push((once, trial.clone()));
        let is_known = self.odd.iter().any(|(odd, _)| odd.test == trial.test);
        (is_last && is_fine && !is_known).then(|| trial.test.clone())
    }

    /// Ends the running stage; what is to be said of it.
    pub(super) fn end_stage(&mut self) -> Option<Note> {
        let pairs = std::mem::take(&mut self.pairs);
        if let Some(Search::Look(tests)) = self.running.take() {
            let fine: HashSet<&TestId> = pairs
                .iter()
                .filter(|(once, again)| Pair::of(once, again).is_content())
                .map(|(once, _)| &once.test)
                .collect();
            let (passed, tests) = (fine.len(), tests.into_iter());
            let rest: Vec<TestId> = tests.filter(|test| !fine.contains(test)).collect();
            let alone = rest.len();
            self.waiting
                .push_front(Search::Apart(Setting::Method, one_by_one(rest)));
            return Some(Note::Screened { passed, alone });
        }
        let known: HashSet<TestId> = self.odd.iter().map(|(once, _)| once.test.clone()).collect();
        let new = pairs.into_iter().filter(|(once, again)| {
            !known.contains(&once.test) && Pair::of(once, again).shape() != Shape::PassPass
        });
        self.odd.extend(new);
        None
    }

    /// The pairs of tests that did not pass twice, once all stages have ended.
    pub(super) fn into_suspects(self) -> impl Iterator<Item = (Trial, Trial)> {
        let is_shown = |(once, again): &(Trial, Trial)| {
            !matches!(
                Pair::of(once, again).shape(),
                Shape::PassPass | Shape::Skipped
            )
        };
        self.odd.into_iter().filter(is_shown)
    }

    /// The trials of a test that say something about it so far.
    pub(super) fn trials_of(&self, test: &TestId) -> Vec<Trial> {
        let is_own = |(once, _): &&(Trial, Trial)| once.test == *test;
        let odd = self.odd.iter().find(is_own);
        let is_look = matches!(self.running, Some(Search::Look(_)));
        let here = self.pairs.iter().find(is_own).filter(|_| !is_look);
        if let Some((once, again)) = odd.or(here) {
            return vec![once.clone(), again.clone()];
        }
        let firsts = self.firsts.iter().filter(|_| !is_look);
        firsts.filter(|once| once.test == *test).cloned().collect()
    }
}

impl Search {
    fn experiments(&self) -> Vec<Experiment> {
        let of = |vm, order: &[TestId], setting, told| Experiment {
            vm,
            order: order.to_vec(),
            times: Times::Twice(Between::Nothing),
            setting,
            told,
        };
        match self {
            Self::Look(tests) => {
                let look = |test| {
                    of(
                        VmSpec::Reloaded,
                        test,
                        Setting::Reloaded,
                        TrialsTold::Content,
                    )
                };
                tests.iter().map(std::slice::from_ref).map(look).collect()
            }
            Self::Apart(setting, groups) => {
                let apart =
                    |group: &Vec<TestId>| of(VmSpec::Copied, group, *setting, TrialsTold::All);
                groups.iter().map(apart).collect()
            }
            Self::Suite(tests) if tests.is_empty() => Vec::new(),
            Self::Suite(tests) => {
                vec![of(VmSpec::Suite, tests, Setting::Suite, TrialsTold::All)]
            }
        }
    }
}

/// Each test in a VM of its own; with a first look before, where that saves VMs.
fn each_alone(tests: Vec<TestId>, can: Capabilities) -> Search {
    if can.reloads && tests.len() >= MANY {
        Search::Look(tests)
    } else {
        Search::Apart(Setting::Method, one_by_one(tests))
    }
}

fn one_by_one(tests: Vec<TestId>) -> Vec<Vec<TestId>> {
    tests.into_iter().map(|test| vec![test]).collect()
}
