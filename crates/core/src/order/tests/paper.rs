//! Suites that exist only on paper.

use super::super::trunk::find_trunk;
use super::super::*;
use crate::outcome::Outcome;

pub(super) fn test(number: usize) -> TestId {
    TestId::new(&format!("t{number}"))
}

/// A test of a paper suite: what it does to a few switches, and when it passes.
#[derive(Clone, Debug, Default)]
pub(super) struct Paper {
    pub(super) sets: Vec<usize>,
    pub(super) clears: Vec<usize>,
    /// Sets a switch only if another is set: two culprits whose order matters.
    pub(super) sets_if: Option<(usize, usize)>,
    /// Fails if all of these are set.
    pub(super) fails_if: Vec<Vec<usize>>,
    /// Fails unless one of these is set.
    pub(super) needs: Vec<usize>,
    pub(super) is_broken: bool,
    /// The number of failures in ten runs in which it would fail; `None` means all.
    pub(super) chance: Option<u32>,
}

pub(super) struct Suite {
    pub(super) tests: Vec<Paper>,
    pub(super) clock: u32,
    pub(super) trials: usize,
    /// Whether orders that begin alike are run as one.
    pub(super) shares: bool,
    /// The place in the lead from which on it is guessed to be enough.
    pub(super) guess: Option<usize>,
    /// Culprits of other tests.
    pub(super) hints: Vec<Vec<TestId>>,
}

impl Suite {
    pub(super) fn new(tests: Vec<Paper>) -> Self {
        Self {
            tests,
            clock: 0,
            trials: 0,
            shares: false,
            guess: None,
            hints: Vec::new(),
        }
    }

    /// Runs an order in a fresh VM and says how its last test ended.
    pub(super) fn run(&mut self, order: &[TestId]) -> Outcome {
        let mut switches = [false; 16];
        let mut outcome = Outcome::NotRun;
        for id in order {
            self.trials += 1;
            let number: usize = id.name()[1..].parse().unwrap();
            let paper = &self.tests[number];
            let is_hurt = paper
                .fails_if
                .iter()
                .any(|all| all.iter().all(|at| switches[*at]));
            let is_lacking = !paper.needs.is_empty() && !paper.needs.iter().any(|at| switches[*at]);
            let is_drawn = paper.chance.is_none_or(|chance| {
                self.clock = self
                    .clock
                    .wrapping_mul(1_664_525)
                    .wrapping_add(1_013_904_223);
                (self.clock >> 16) % 10 < chance
            });
            let fails = paper.is_broken || ((is_hurt || is_lacking) && is_drawn);
            outcome = if fails {
                Outcome::Failed
            } else {
                Outcome::Passed
            };
            if let Some((condition, target)) = paper.sets_if
                && switches[condition]
            {
                switches[target] = true;
            }
            paper.sets.iter().for_each(|at| switches[*at] = true);
            paper.clears.iter().for_each(|at| switches[*at] = false);
        }
        outcome
    }

    pub(super) fn others(&self, target: usize) -> Vec<TestId> {
        (0..self.tests.len())
            .filter(|at| *at != target)
            .map(test)
            .collect()
    }

    pub(super) fn diagnose(&mut self, target: usize, lead: &[usize], scope: Scope) -> Diagnosis {
        let others = self.others(target);
        let leads: Vec<Vec<TestId>> =
            Vec::from_iter((!lead.is_empty()).then(|| lead.iter().copied().map(test).collect()));
        let guess = self.guess.and_then(|from| leads.first()?.get(from..));
        let guesses: Vec<Vec<TestId>> = guess.map(<[TestId]>::to_vec).into_iter().collect();
        let hints = self.hints.clone();
        let mut case = Case {
            others: &others,
            leads: &leads,
            guesses: &guesses,
            hints: &hints,
            width: 2,
            shares: false,
            scope,
            patience: Work(750),
            price: &|order| Work(5) + Work(1) * order.len(),
        };
        let mut answers = Answers::default();
        for _ in 0..10_000 {
            case.shares = self.shares && !answers.is_mixed();
            match next_step(&case, &answers) {
                Step::Conclude(diagnosis) => return diagnosis,
                Step::Run(befores) => {
                    assert!(!befores.is_empty());
                    let orders: Vec<Vec<TestId>> = befores
                        .iter()
                        .map(|before| [&before[..], &[test(target)]].concat())
                        .collect();
                    let trunk = find_trunk(&orders).filter(|_| case.shares);
                    let shared = trunk.iter().flat_map(|trunk| &trunk.branches);
                    let shared: usize = shared.map(|branch| branch.after).sum();
                    for (before, order) in befores.iter().zip(&orders) {
                        answers.note(before, &self.run(order));
                    }
                    self.trials -= shared;
                }
            }
        }
        panic!("no end");
    }
}

pub(super) fn sets(diagnosis: &Diagnosis) -> Vec<Vec<&str>> {
    let sets = diagnosis.culprits.iter();
    sets.map(|one| one.tests.iter().map(TestId::name).collect())
        .collect()
}

/// A suite of bystanders with these tests planted in it.
pub(super) fn planted(size: usize, tests: &[(usize, Paper)]) -> Suite {
    let mut all = vec![Paper::default(); size];
    for (at, paper) in tests {
        all[*at] = paper.clone();
    }
    Suite::new(all)
}

pub(super) fn setting(switches: &[usize]) -> Paper {
    Paper {
        sets: switches.to_vec(),
        ..Paper::default()
    }
}

pub(super) fn failing_with(sets: &[&[usize]]) -> Paper {
    Paper {
        fails_if: sets.iter().map(|all| all.to_vec()).collect(),
        ..Paper::default()
    }
}
